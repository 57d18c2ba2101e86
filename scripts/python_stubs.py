#!/usr/bin/env python3
"""Writes the stub file of the Python package, which gives editors and mypy the classes that are made from the registry.

    PYTHON scripts/python_stubs.py > python/fedbits/__init__.pyi

PYTHON has fedbits installed. A test compares the file with what this script prints.
"""
import ast
import inspect
import pathlib
import textwrap

import fedbits
from fedbits import _core
from fedbits.compressors import CLASSES as COMPRESSORS
from fedbits.feedbacks import CLASSES as FEEDBACKS
from fedbits.parts import as_argument

TYPES = {"true or false": "bool", "integer": "int", "number": "float", "number or rule": "float | str", "string": "str", "text": "str",
         "compressor": "Compressor", "list of numbers": "Sequence[float]", "list of integers": "Sequence[int]",
         "list of compressors": "Sequence[Compressor]"}
GLUE = "\N{NO-BREAK SPACE}"  # keeps a parameter on one line
HEADER = '''"""Written by scripts/python_stubs.py."""
from typing import Any, Final, Literal, Mapping, Sequence

from fedbits import export as export, plot as plot
'''


def imports() -> list[str]:
    """Returns the public names that the package imports from its modules, as explicit exports."""
    source = pathlib.Path(fedbits.__file__).read_text(encoding="utf-8")
    lines = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("fedbits."):
            continue
        public = [name.name for name in node.names if not (name.asname or name.name).startswith("_")]
        lines += [f"from {node.module} import {name} as {name}" for name in public if name != "CLASSES"]
    return sorted(lines)


def type_of(field: dict) -> str:
    if field["choices"]:
        return f"Literal[{', '.join(map(repr, field['choices']))}]"
    return TYPES.get(field["type"], "Any")


def default_of(field: dict) -> str:
    value = field["default"]
    return repr(value) if isinstance(value, (bool, int, float, str)) and not field["required"] else "..."


def parameter_text(parameter: inspect.Parameter, fields: dict[str, dict]) -> str:
    field = fields.get(parameter.name.removesuffix("_"))
    if field is not None:
        return f"{parameter.name}: {type_of(field)} = {default_of(field)}"
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else parameter.annotation.__name__
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}" if not isinstance(parameter.default, type) else " = ..."
    return f"{parameter.name}: {annotation}{default}"


def class_text(name: str, made: type) -> list[str]:
    fields = {field["name"]: field for field in made._fields}
    words, has_star = ["self"], False
    for parameter in inspect.signature(made).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            words.append("*")
            has_star = True
        words.append(parameter_text(parameter, fields))
    text = ", ".join(word.replace(" ", GLUE) for word in words)
    lines = textwrap.wrap(f"    def __init__({text}){GLUE}->{GLUE}None:{GLUE}...", 140, subsequent_indent=" " * 17, break_long_words=False)
    doc = textwrap.indent(made.__doc__, "    ").strip().replace("\\", "\\\\")
    options = [f"    {as_argument(field['name'])}: Final[{type_of(field)}]" for field in made._fields]
    return [f"class {name}({made.__base__.__name__}):", f'    """{doc}"""', *options, *(line.replace(GLUE, " ") for line in lines), ""]


def main() -> None:
    lines = imports()
    for classes in (COMPRESSORS, FEEDBACKS):
        for name, made in sorted(classes.items()):
            lines += ["", *class_text(name, made)]
    print(HEADER + "\n".join(line.rstrip() for line in lines) + "\n\n__version__: str")


if __name__ == "__main__":
    main()
