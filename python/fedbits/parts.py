"""What classes made from the registry of the simulator have in common: names, signatures, docstrings, and arrays without copies."""
from __future__ import annotations

import inspect
import keyword
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from fedbits import _core
from fedbits.arguments import FLOATS, nearest

# Names whose letters are not those of a kind in capitals at the beginning of each word.
_SPELLING = {"adaqs": "AdaQS", "dgc_sampled": "DGCSampled", "dqsgd": "DQSGD", "drive": "DRIVE", "eden": "EDEN", "ef_sign": "EFSign", "fp8": "FP8",
             "gradzip": "GradZip", "lgreco": "LGreCo", "lpc": "LPC", "powersgd": "PowerSGD", "qsgd": "QSGD", "rank_r_svd": "RankRSVD",
             "sidco": "SIDCo", "sketched_sgd": "SketchedSGD", "sketchml": "SketchML", "stc": "STC", "sz": "SZ", "terngrad": "TernGrad",
             "three_lc": "ThreeLC", "vqsgd": "VQSGD", "zfp": "ZFP",
             "cafe": "CAFe", "cser": "CSER", "dasha": "DASHA", "diana": "DIANA", "ec_diana": "ECDIANA", "ec_gd_star": "ECGDStar",
             "ec_lsvrg": "ECLSVRG", "econtrol": "EControl", "ef14": "EF14", "ef21": "EF21", "ef21_normalised": "EF21Normalised", "ef21_p": "EF21P",
             "ef21_plus": "EF21Plus", "ef21_sgdm": "EF21SGDM", "ef_bv": "EFBV",
             "fedcomgate": "FedCOMGATE", "feddyn": "FedDyn", "fedpaq": "FedPAQ", "lag": "LAG",
             "marina": "MARINA", "none": "NoFeedback", "power_ef": "PowerEF", "sa_pef": "SAPEF", "scafcom": "SCAFCOM", "scaffold": "SCAFFOLD",
             "scallion": "SCALLION", "three_pc": "ThreePC"}
_TYPES = {"true or false": bool, "integer": int, "number": float, "number or rule": float | str, "string": str, "choice": str}


class Part:
    """What compressors and feedbacks are: a kind and options, which are attributes that can be read.

    They cannot be set, because operators have been made of them; only names with an underscore in front, as those of subclasses, can.
    """

    kind: str = ""
    _fields: tuple[dict[str, Any], ...] = ()
    _options: dict[str, Any]

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that were given, by their names in a scenario."""
        return MappingProxyType(self._options)

    if not TYPE_CHECKING:  # the stub file names the options of each class

        def __getattr__(self, name: str) -> Any:
            for field in self._fields:
                if name == as_argument(field["name"]):
                    return self._options[field["name"]] if field["name"] in self._options else self._default(field["default"])
            raise AttributeError(f"{type(self).__name__} has no {name!r}{nearest(name, dir(self))}")

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_"):
                getattr(self, name)  # says that it has no such option
                raise AttributeError(f"{name} of {self!r} cannot be set; make another one, as {type(self).__name__}(..., {name}={value!r})")
            super().__setattr__(name, value)

    def _default(self, value: Any) -> Any:
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(as_argument(field["name"]) for field in self._fields)})


def as_argument(option: str) -> str:
    """Returns the name of an option as an argument of Python: from_ of a schedule."""
    return option + "_" * keyword.iskeyword(option)


def class_name(kind: str) -> str:
    return _SPELLING.get(kind) or "".join(word.capitalize() for word in kind.split("_"))


def make_class(role: str, kind: str, base: type, first: Sequence[inspect.Parameter], last: Sequence[inspect.Parameter], note: str = "") -> type:
    """Returns a class of a part, with the options of its schema as keyword arguments between `first` and `last`."""
    facts = _core.describe(role, kind)
    lines = [facts["summary"][:1].upper() + facts["summary"][1:] + ".", ""]
    parameters = list(first)
    for field in facts["fields"]:
        limits = ", ".join(filter(None, (" or ".join(map(repr, field["choices"])), field["constraint"])))
        default = "required" if field["required"] else f"default {field['default']!r}"
        name = as_argument(field["name"])
        lines.append(f"{name}: {field['doc']} ({'; '.join(filter(None, (limits, field['unit'], default)))})")
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_TYPES.get(field["type"], Any)))
    parameters += last
    if note:
        lines += ["", note]
    if facts["source"]:
        lines += ["", f"Source: {facts['source']}."]
    return type(class_name(kind), (base,), {"kind": kind, "_fields": tuple(facts["fields"]), "__doc__": "\n".join(lines), "__module__": "fedbits",
                                            "__signature__": inspect.Signature(parameters)})


def summaries(classes: dict[str, type]) -> dict[str, str]:
    """Returns the first line of each class's docstring, by name."""
    return {name: (made.__doc__ or "").splitlines()[0] for name, made in sorted(classes.items())}


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that were given, by their names in a scenario."""
    return {name.removesuffix("_"): value for name, value in options.items() if value is not None}


def flat(x: Any) -> tuple[np.ndarray, tuple[int, ...], Callable[[np.ndarray], Any]]:
    """Returns the numbers of x as a flat array that shares its memory, the shape of x, and a function that makes its library's array."""
    torch = sys.modules.get("torch")
    like: Any = lambda array: array
    if torch is not None and isinstance(x, torch.Tensor):
        if x.device.type != "cpu":
            raise TypeError(f"the tensor lies on {x.device}; x.cpu() copies it to where this package works")
        x, like = x.detach(), torch.from_numpy
        if x.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"the tensor has {x.dtype}; float32 and float64 can be compressed, and x.float() converts it")
        if not x.is_contiguous():
            raise ValueError("the tensor is not contiguous; x.contiguous() makes a copy that is")
    if not isinstance(x, np.ndarray):
        if not hasattr(x, "__dlpack__"):
            raise TypeError(f"expected an array of NumPy or one with DLPack, got {type(x).__name__}")
        try:
            x = np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(f"{type(x).__name__} cannot be read here ({error}); an array on the CPU can") from error
    if x.dtype not in FLOATS:
        raise TypeError(f"the array has {x.dtype}; float32 and float64 can be compressed, and x.astype(\"float32\") converts it")
    if not x.flags.c_contiguous:
        raise ValueError("the array is not contiguous; numpy.ascontiguousarray(x) makes a copy that is")
    if x.size == 0:
        raise ValueError("the array is empty")
    return x.reshape(-1), x.shape, like
