#!/usr/bin/env python3
"""Which sources are compiled for both devices: FL_DEVICE_NS is the namespace of compressors, of postprocessors, of local optimizers and of the
headers that they share, which are compiled once as C++ and once as CUDA; what is compiled once stands in an ordinary namespace.

usage: devices_test.py SOURCE_FOLDER
"""

import pathlib
import re
import sys

SOURCES = {".cpp", ".hpp", ".cu", ".cuh"}
TWICE = re.compile(r"^FL_REGISTER_PART\((Compressor|Postprocessor|LocalOptimizer)", re.MULTILINE)
FOLDERS = ("apps", "bench", "checks", "clients", "compressors", "examples", "fl_core", "net", "research", "scenarios", "server", "status", "study", "tests", "timing")


def is_compiled_twice(file, text):
    """Says whether cmake/FedbitsCuda.cmake or fedbits_add_plugin compiles the file for both devices, or it is a header of those."""
    is_shared_header = file.parent.as_posix() in ("compressors", "compressors/support", "clients/optimizers") and file.suffix in (".hpp", ".cuh")
    return is_shared_header or TWICE.search(text) is not None


def problems_of(source):
    problems, compressors = [], 0
    for folder in FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            text, file = path.read_text(), path.relative_to(source)
            opens = re.search(r"^namespace (\w+::)*FL_DEVICE_NS\b", text, re.MULTILINE)
            compressors += opens is not None and file.suffix == ".cpp"
            if opens and not is_compiled_twice(file, text):
                problems.append(f"{file.as_posix()} is compiled once and stands in FL_DEVICE_NS; give it an ordinary namespace")
            if not opens and file.suffix == ".cpp" and TWICE.search(text):
                problems.append(f"{file.as_posix()} registers a compressor, a postprocessor or a local optimizer and stands in no FL_DEVICE_NS: its two copies would be one class")
    if compressors == 0:
        problems.append(f"no compressor was found below {source}")
    return problems


def main():
    problems = problems_of(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or "FL_DEVICE_NS is the namespace of what is compiled for both devices, and of nothing else")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
