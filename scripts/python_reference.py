#!/usr/bin/env python3
"""Writes docs/python-reference.md, the reference of the Python package, from its docstrings.

    scripts/python_reference.py > docs/python-reference.md

It reads the sources and imports nothing, so that it needs no package. A test compares the file with what this script prints.
"""
import ast
import inspect
import pathlib
import textwrap

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "fedbits"
# Modules in the order of the page, with the name by which users reach what is in them.
MODULES = [("simulator", "fedbits"), ("scenario", "fedbits"), ("store", "fedbits"), ("progress", "fedbits"), ("compressors", "fedbits"),
           ("feedbacks", "fedbits"), ("models", "fedbits"), ("data", "fedbits"), ("torch", "fedbits.torch"),
           ("torch_optimizer", "fedbits.torch"), ("torch_hook", "fedbits.torch"), ("torch_model", "fedbits.torch"), ("plot", "fedbits.plot"),
           ("export", "fedbits.export"), ("build", "fedbits")]
WIDTH = 140
HEAD = """# The Python package

Every public name with its arguments; scripts/python_reference.py writes this page from the docstrings. `help(fedbits.TopK)` shows the options of a
compressor, as [compressors.md](compressors.md) does; [python.md](python.md) and [python-simulator.md](python-simulator.md) begin with examples.
"""


def exported(tree: ast.Module) -> set[str]:
    """Returns the names that a module gives to the package: those that __init__.py and torch.py import."""
    return {name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}


def is_public(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and bool(ast.get_docstring(node))


def text_of(node: ast.AST) -> str:
    return inspect.cleandoc(ast.get_docstring(node) or "")


def signature(name: str, function: ast.FunctionDef) -> str:
    """Returns "compress(x, *, client=0)" on lines of the page's width: without types, which editors show, and without self."""
    arguments = function.args
    bare = ast.arguments(posonlyargs=[], args=[ast.arg(one.arg) for one in [*arguments.posonlyargs, *arguments.args] if one.arg not in ("self", "cls")],
                         vararg=arguments.vararg and ast.arg(arguments.vararg.arg), kwonlyargs=[ast.arg(one.arg) for one in arguments.kwonlyargs],
                         kw_defaults=arguments.kw_defaults, kwarg=arguments.kwarg and ast.arg(arguments.kwarg.arg), defaults=arguments.defaults)
    return textwrap.fill(f"{name}({ast.unparse(bare)})", WIDTH, subsequent_indent=" " * (len(name) + 1), break_long_words=False)


def is_property(function: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(one) for one in function.decorator_list)


def indented(text: str) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def class_text(node: ast.ClassDef, path: str) -> str:
    start = next((one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    lines = [f"### {path}.{node.name}\n", indented((signature(node.name, start) if start else node.name) + "\n\n" + text_of(node))]
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and is_public(one):
            head = f".{one.name}" if is_property(one) else signature(f".{one.name}", one)
            lines.append(indented(f"{head}\n" + "\n".join(f"    {line}" for line in text_of(one).splitlines())))
    return "\n".join(lines)


def module_text(name: str, path: str, wanted: set[str] | None) -> str:
    tree = ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
    parts = [f"## {path}{'' if path.endswith(name) else ': ' + name.replace('_', ' ')}\n", indented(text_of(tree))]
    for node in tree.body:
        if not is_public(node) or (wanted is not None and node.name not in wanted):
            continue
        parts.append(class_text(node, path) if isinstance(node, ast.ClassDef) else
                     f"### {path}.{node.name}\n\n" + indented(f"{signature(node.name, node)}\n\n{text_of(node)}"))
    return "\n".join(parts)


def main() -> None:
    package = exported(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")))
    of_torch = exported(ast.parse((PACKAGE / "torch.py").read_text(encoding="utf-8")))
    wanted = {"fedbits": package, "fedbits.torch": None, "fedbits.plot": None, "fedbits.export": None}
    pages = [module_text(name, path, of_torch if name == "torch_model" else wanted[path]) for name, path in MODULES]
    print("\n".join([HEAD, *pages]), end="")


if __name__ == "__main__":
    main()
