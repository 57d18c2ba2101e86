"""The stub file and the reference are what scripts write, and the stub file says what mypy needs to know."""
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]


def test_the_stub_file_is_current():
    printed = subprocess.run([sys.executable, TOP / "scripts" / "python_stubs.py"], capture_output=True, text=True, check=True).stdout
    assert printed == (TOP / "python" / "fedbits" / "__init__.pyi").read_text(encoding="utf-8"), \
        "python/fedbits/__init__.pyi is stale: scripts/python_stubs.py > python/fedbits/__init__.pyi"


def test_the_reference_is_current():
    printed = subprocess.run([sys.executable, TOP / "scripts" / "python_reference.py"], capture_output=True, text=True, check=True).stdout
    assert printed == (TOP / "docs" / "python-reference.md").read_text(encoding="utf-8"), \
        "docs/python-reference.md is stale: scripts/python_reference.py > docs/python-reference.md"


def mypy(*arguments) -> str:
    pytest.importorskip("mypy", reason="TOOL MISSING: mypy is not installed, so types were NOT CHECKED")
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--hide-error-context", *arguments], capture_output=True, text=True,
                          cwd=HERE)
    return done.stdout + done.stderr


def test_mypy_accepts_and_refuses_what_the_example_says():
    found = {int(line): code for line, code in re.findall(r"typed_example\.py:(\d+): error: .*\[([\w-]+)\]", mypy("typed_example.py"))}
    lines = (HERE / "typed_example.py").read_text(encoding="utf-8").splitlines()
    expected = {number: line.split("# refused: ")[1] for number, line in enumerate(lines, 1) if "# refused: " in line}
    assert found == expected


def test_the_package_has_no_type_errors():
    names = ("_drawing", "_ending", "_mlflow", "_toml", "arguments", "build", "compressors", "data", "digest", "export", "feedbacks", "models", "needed", "parts",
             "plot", "progress", "registration", "scenario", "simulator", "store", "words")
    modules = [word for name in names for word in ("-m", f"fedbits.{name}")]
    assert "Success: no issues found" in mypy(*modules)
