"""Packages that are imported where they are used, so that fedbits needs NumPy alone."""
from __future__ import annotations

import importlib
from types import ModuleType


def needed(package: str, what: str, otherwise: str = "", distribution: str = "") -> ModuleType:
    """Imports a package. Raises ImportError that says what needs it, how to install it, and what to do without."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        install = distribution or package.split(".")[0]
        raise ImportError(f"{what} needs the package {install}: pip install {install}" + (f"; {otherwise}" if otherwise else "")) from error
