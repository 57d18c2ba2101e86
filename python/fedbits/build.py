"""What this package was built for. The package imports this module first: it raises ImportError on a processor that lacks what the build needs."""
from __future__ import annotations

from fedbits import _processor


def _require_processor(missing: str, is_portable: bool) -> None:
    if missing:
        portable = "" if is_portable else "`pip install .` in a clone makes the portable build, and "
        raise ImportError(f"fedbits {missing}; {portable}`pip install . -Ccmake.define.FL_NATIVE=ON` in a clone on this machine builds it for this processor")


_require_processor(_processor.missing(), _processor.is_portable())


def build_info() -> dict[str, str]:
    """Returns what the package was built for and with.

    A dict with the keys version, level (the instruction set, such as "x86-64-v3") and compiler. Results may differ in their last bits between levels.
    """
    from fedbits import _core  # which only runs on a processor that has everything

    return {"version": _core.version, "level": _core.build_level, "compiler": _core.build_compiler}
