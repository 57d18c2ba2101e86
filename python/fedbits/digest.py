"""Digests of values and of code, which tell runs of other code apart.

    digest_of(model=torch_module, loss=function)        # 16 hexadecimal digits

A digest reads all that a result may depend on: of a function its instructions, constants, default arguments, captured variables and the global
variables that it names; of a class its functions and attributes, and those of its bases; of an object its class and its state; of arrays and tensors
their numbers. It is the same in every process: names and places of files, addresses and the order of sets do not count. Parts of Python's own
library, of NumPy, PyTorch and this package count by their names, and so do modules. Global variables of installed packages are not followed.

A value without a state that can be read, such as an open file or a generator, is refused: a model with one is a line to change, whereas a result of
other code that is taken for that of this one is never seen.
"""
from __future__ import annotations

import copyreg
import dis
import hashlib
import logging
import pickle
import sys
import sysconfig
import threading
import types
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping

import numpy as np

_LIBRARIES = ("fedbits", "numpy", "torch")
_PLACE_OF_PYTHON = sysconfig.get_path("stdlib")
_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE of a class
_NAMED_BY_TYPE = (type(threading.Lock()), type(threading.RLock()))  # whether a lock is held changes no result
_WORDS = (type(None), bool, float, complex, type(Ellipsis), type(NotImplemented))
_PLACES_OF_PACKAGES = ("site-packages", "dist-packages")
# What a class has beside what it was written with.
_BOOKKEEPING = ("__abstractmethods__", "__annotations__", "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__",
                "__match_args__", "__module__", "__parameters__", "__orig_bases__", "__qualname__", "__slots__", "__static_attributes__",
                "__weakref__", "_abc_impl")
_C_FUNCTIONS = (types.BuiltinFunctionType, types.MethodWrapperType)
_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
                types.MemberDescriptorType)


def digest_of(**values: Any) -> str:
    """Returns a digest of values. Raises TypeError, with the way to it, for a value that has no digest."""
    walk = Walk()
    for name, value in values.items():
        try:
            walk.named(name, value)
        except RecursionError:
            raise TypeError(f"{name} holds values in values, too deep for a digest") from None
    return walk.hexdigest()[:16]


def is_library(module: str | None) -> bool:
    """Whether the code of a module counts by its name. A file of one's own may have a name of Python's library."""
    name = (module or "").split(".")[0]
    if name in _LIBRARIES or name not in sys.stdlib_module_names:
        return name in _LIBRARIES
    return (getattr(sys.modules.get(name), "__file__", None) or _PLACE_OF_PYTHON).startswith(_PLACE_OF_PYTHON)


def _is_class_of_library(part: type) -> bool:
    if part.__module__ == "builtins":  # also the name of a module that exec() makes without a name
        return not part.__flags__ & _MADE_IN_PYTHON
    return is_library(part.__module__)


class Walk:
    """Feeds values to a hash, each behind a word that says what it is. An object that is met again is told by the number of its first visit, so
    that cycles end."""

    def __init__(self, open_sets: frozenset[int] = frozenset()) -> None:
        self._hash, self._path, self._open_sets = hashlib.sha256(), [""], open_sets
        self._visits: dict[int, int] = {}
        self._alive: list[Any] = []  # what was visited: the number of an object that has gone would be given to another one

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def named(self, name: str, value: Any) -> None:
        """Digests a value that has a name, which an error would tell."""
        self._path.append(f"{self._path[-1]}.{name}".lstrip("."))
        self.word("named", name)
        self.value(value)
        self._path.pop()

    def word(self, *words: Any) -> None:
        for word in words:
            text = str(word).encode("utf-8", "surrogatepass")
            self._hash.update(f"{len(text)}:".encode() + text)

    def value(self, value: Any) -> None:
        kind = type(value)
        if kind in _WORDS:
            self.word(kind.__name__, repr(value))
        elif kind is int:
            self.word("int", hex(value))
        elif kind is str:
            self.word("str", value)
        elif kind in (bytes, bytearray):
            self.word(kind.__name__, value.hex())
        elif kind is tuple:
            self._items("tuple", value)
        elif kind in (set, frozenset):
            self._set(value)
        elif kind is types.CodeType:
            self._code(value)
        elif isinstance(value, (types.ModuleType, logging.Logger)):
            self.word("module", getattr(value, "__name__", None) or value.name)
        elif self._is_new(value):
            self._object(value)

    def _is_new(self, value: Any) -> bool:
        """Whether an object is met for the first time. If it is not, its number is digested."""
        number = self._visits.setdefault(id(value), len(self._visits))
        if number < len(self._alive):
            self.word("again", number)
            return False
        self._alive.append(value)
        return True

    def _object(self, value: Any) -> None:
        if type(value) is list:
            return self._items("list", value)
        if type(value) in (dict, types.MappingProxyType):
            return self._dict(value)
        for kinds, write in _WRITERS:
            if isinstance(value, kinds):
                return write(self, value)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, (torch.Tensor, torch.nn.Module)):
            from fedbits import torch_digest  # imports PyTorch, which is there only where it is used
            return torch_digest.write(self, value)
        self.state(value)

    # ---- containers

    def _items(self, word: str, items: Iterable[Any]) -> None:
        found = list(items)
        self.word(word, len(found))
        for place, item in enumerate(found):
            self.entry(place, item)

    def entry(self, key: Any, value: Any) -> None:
        """Digests an item of a container; `key` names it in an error."""
        self._path.append(f"{self._path[-1]}[{key!r:.40}]")
        self.value(value)
        self._path.pop()

    def _dict(self, value: Mapping[Any, Any]) -> None:
        items = list(value.items())
        self.word("dict", len(items))
        for key, item in items:
            self.value(key)
            self.entry(key, item)

    def _set(self, value: Any) -> None:
        """Digests the digests of the items in their order, whatever the order of the set."""
        if id(value) in self._open_sets:
            return self.word("set above")
        digests = []
        for item in list(value):
            walk = Walk(self._open_sets | {id(value)})
            walk._path = [f"an item of {self._path[-1]}"]
            walk.value(item)
            digests.append(walk.hexdigest())
        self.word(type(value).__name__, *sorted(digests))

    def _array(self, value: np.ndarray) -> None:
        if type(value) not in (np.ndarray, np.memmap):
            return self.state(value)
        self.word("array", value.dtype.str, value.dtype.names, value.shape)
        if value.dtype.hasobject:
            return self._items("objects", value.tolist())
        self.numbers(value)

    def numbers(self, value: np.ndarray) -> None:
        """Digests the bytes of an array. One that is not contiguous is copied row by row."""
        for piece in [value] if value.flags.c_contiguous else value:
            if piece.nbytes > 0:
                self._hash.update(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)

    # ---- code

    def _function(self, function: types.FunctionType) -> None:
        self.word("function")
        module = function.__globals__.get("__name__")  # functools.wraps copies __module__ from another function
        has_name = module != "builtins" and is_library(module)
        if has_name:
            self.word(module, function.__code__.co_qualname)
        else:
            self._code(function.__code__)
        for name, value in _captured_by(function):  # also of a decorator of a library, which captures the function
            self.named(name, value)
        if has_name:
            return
        self.named("__defaults__", function.__defaults__)
        self.named("__kwdefaults__", function.__kwdefaults__)
        self.named("__dict__", vars(function))
        for name, value in _globals_of(function):
            self.named(name, value)

    def _code(self, code: types.CodeType) -> None:
        """Digests what a function does: its instructions, the names that it uses and its constants."""
        self.word("code", code.co_code.hex(), getattr(code, "co_exceptiontable", b"").hex(), code.co_flags, code.co_argcount, code.co_posonlyargcount,
                  code.co_kwonlyargcount, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._items("constants", code.co_consts)

    def _class(self, part: type) -> None:
        library = _is_class_of_library(part)
        self.word("class", part.__module__ if library else "", part.__name__)
        for cls in part.__mro__[1:]:
            if cls is not object and not (library and _is_class_of_library(cls)):
                self.value(cls)
        if library:
            return
        for name, value in sorted(vars(part).items()):
            if name not in _BOOKKEEPING:
                self.named(name, value)

    def _property(self, value: property) -> None:
        self._items("property", (value.fget, value.fset, value.fdel))

    def _wrapped(self, value: Any) -> None:
        self.word(type(value).__name__)
        self.value(value.__func__)

    def _method(self, value: types.MethodType) -> None:
        self.word("method")
        self.value(value.__func__)
        self.named("__self__", value.__self__)

    def _c_function(self, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        self.word("built-in function", getattr(value, "__module__", None), value.__qualname__)
        if owner is not None and not isinstance(owner, types.ModuleType):
            self.named("__self__", owner)

    def _descriptor(self, value: Any) -> None:
        self.word("descriptor", value.__objclass__.__module__, value.__objclass__.__qualname__, value.__name__)

    def _reference(self, value: weakref.ref[Any]) -> None:
        self.word("weak reference")
        self.value(value())

    def _type_alone(self, value: Any) -> None:
        self.word(type(value).__module__, type(value).__qualname__)

    # ---- other objects

    def state(self, value: Any) -> None:
        """Digests an object as `pickle` reads it: its class, the arguments that make it and its state."""
        if hasattr(value, "__wrapped__") and hasattr(value, "cache_info"):  # functools.lru_cache, which keeps what its function would return
            self.word("cached")
            return self.value(value.__wrapped__)
        if type(value).__module__ == "fedbits" and hasattr(value, "as_table"):  # a compressor, whose operators are made from its table
            self.word("compressor")
            return self.value(value.as_table())
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            found: Any = reduce(value) if reduce is not None else value.__reduce_ex__(2)
        except Exception as error:  # of any type: the object's own code runs
            raise self.refusal(value) from error
        if isinstance(found, str):
            place = pickle.whichmodule(value, found)  # type: ignore[attr-defined]  # the stubs lack it
            if getattr(sys.modules.get(place), found, None) is not value:
                raise self.refusal(value)
            return self.word("name", type(value).__module__, found)
        make, arguments, state, items, pairs = [*found, None, None, None][:5]
        self.word("object")
        self.value(type(value))
        self.value(make)
        self._items("arguments", arguments)
        self._state(state)
        self._items("items", items or ())
        self._items("pairs", pairs or ())

    def _state(self, state: Any) -> None:
        if not isinstance(state, dict):
            return self.value(state)
        self.word("state", len(state))
        for name, value in list(state.items()):
            self.named(str(name), value)

    def refusal(self, value: Any) -> TypeError:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        return TypeError(f"{self._path[-1] or 'the value'} is of type {kind}, whose value cannot be read. A change of it would not be seen, and a "
                         "stored result would be taken for that of other code; make it where it is used, as in a function that opens a file")


def _captured_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _globals_of(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Returns the global variables that a function names, and those of the functions in it. Those of installed packages are left out."""
    if any(place in function.__code__.co_filename for place in _PLACES_OF_PACKAGES):
        return []
    names = sorted(set(_global_names(function.__code__)))
    return [(name, function.__globals__[name]) for name in names if name in function.__globals__]


def _global_names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


_WRITERS: list[tuple[Any, Callable[[Walk, Any], None]]] = [
    (types.FunctionType, Walk._function), (type, Walk._class), (types.MethodType, Walk._method), (_C_FUNCTIONS, Walk._c_function),
    (_DESCRIPTORS, Walk._descriptor), ((staticmethod, classmethod), Walk._wrapped), (property, Walk._property), (_NAMED_BY_TYPE, Walk._type_alone),
    (weakref.ref, Walk._reference), (np.ndarray, Walk._array)]
