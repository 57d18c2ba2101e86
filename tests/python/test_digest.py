"""Digests: what changes a result changes them, and nothing else does."""
import collections
import contextlib
import dataclasses
import decimal
import enum
import functools
import os
import pathlib
import re
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import fedbits
from fedbits.digest import digest_of

HERE = pathlib.Path(__file__).resolve().parent
SCALE = 1.0
TABLE = {"kind": "huber", "at": [1, 2]}


def digest(value) -> str:
    return digest_of(value=value)


def capturing(value):
    def function(x):
        return x, value

    return function


def with_default(value):
    def function(x, y=value):
        return x, y

    return function


def with_keyword(value):
    def function(x, *, y=value):
        return x, y

    return function


def with_attribute(value):
    class Part:
        attribute = value

        def __call__(self):
            return self.attribute

    return Part


def of_object(value):
    class Part:
        def __init__(self):
            self.attribute = value

    return Part()


def of_subclass(value):
    return type("Derived", (with_attribute(value),), {})


def with_property(value):
    return type("Part", (), {"attribute": property(capturing(value)), "other": staticmethod(capturing(value))})


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    x: int


VALUES = [None, False, 0, 0.0, -0.0, 1, 1.0, "1", b"1", "", (), [], {}, set(), frozenset(), (1, 2), [1, 2], (2, 1), ((1,), 2), ((1, 2),), {"a": 1}, {"a": 2},
          {"a": [1]}, {1, 2}, {1, 3}, {(1, 2), "text"}, Colour.RED, Colour.BLUE, np.zeros(3), np.zeros(3, np.float32), np.zeros((1, 3)), np.arange(3.0),
          np.arange(3), np.array(["a", None], object), np.float64(2), np.random.default_rng(1), np.random.default_rng(2), len, np.tanh, np.sin, np.mean, np.linalg.norm, np.einsum, [].append,
          capturing(1), capturing(2), lambda x: x, lambda x: x + 1, functools.partial(divmod, 1), functools.partial(divmod, 2), np, os, int, dict, with_attribute(1),
          collections.OrderedDict(a=1), collections.deque([1]), of_object(1), complex(1, 2), range(3), range(4), slice(1), 10**5000, threading.Lock(),
          re.compile("a"), re.compile("b"), fedbits.TopK(k=3), fedbits.TopK(k=4), np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[1, 0]), vars(dict),
          decimal.Decimal(1), Frozen(1), Frozen(2), Frozen, threading.Event()]


def test_values_that_differ_have_digests_that_differ():
    digests = [digest(value) for value in VALUES]
    assert [VALUES[i] for i, one in enumerate(digests) if one in digests[:i]] == []


@pytest.mark.parametrize("make", [capturing, with_default, with_keyword, with_attribute, of_object, of_subclass, with_property])
@pytest.mark.parametrize("one, other", [(1.0, 5.0), ([1, 2], [1, 3]), ({"a": 1}, {"a": 2}), (np.zeros(3), np.ones(3)), (capturing(1), capturing(2)),
                                        (with_attribute(1), with_attribute(2)), (of_object([1]), of_object([2])), (Colour.RED, Colour.BLUE)])
def test_what_code_holds_is_digested(make, one, other):
    assert digest(make(one)) == digest(make(one)) != digest(make(other))


def test_changes_of_mutable_values_are_seen():
    values, array = [1], np.zeros((4, 3))
    part, view = with_attribute(values), capturing(array[:, ::2])
    before = digest(part), digest(view)
    values.append(2)
    array[3, 2] = 1
    assert digest(part) != before[0] and digest(view) != before[1]


def test_global_variables_that_a_function_names_are_digested(monkeypatch):
    def outer(x):
        return [TABLE["kind"] for _ in x], helper

    def helper(x):
        return SCALE * x

    for name, value in (("SCALE", 2.0), ("TABLE", {"kind": "square"})):
        before = digest(outer)
        monkeypatch.setitem(globals(), name, value)
        assert digest(outer) != before


def wrapped(function, factor):
    @functools.wraps(function)
    def wrapper(x):
        return factor * function(x)

    return wrapper


def test_decorators_do_not_hide_code():
    assert digest(wrapped(os.path.join, 1)) != digest(wrapped(os.path.join, 2)), "a wrapper has the name of what it wraps"
    assert digest(contextlib.contextmanager(capturing(1))) != digest(contextlib.contextmanager(capturing(2))), "Python's wrapper captures the function"


def test_code_in_a_module_named_like_one_of_pythons_is_read(tmp_path, monkeypatch):
    digests = []
    for number in (1, 2):
        code = f"class Part:\n    value = {number}\n\ndef function():\n    return {number}\n"
        this = types.ModuleType("this")
        this.__file__ = str(tmp_path / "this.py")
        exec(code, vars(this))
        monkeypatch.setitem(sys.modules, "this", this)
        digests.append((digest(this.Part), digest(this.function)))
        nameless: dict = {}
        exec(code, nameless)
        digests[-1] += (digest(nameless["Part"]), digest(nameless["function"]))
    assert all(one != other for one, other in zip(*digests))


def test_a_value_that_is_too_deep_is_named():
    values: list = []
    for _ in range(10_000):
        values = [values]
    with pytest.raises(TypeError, match="value holds values in values, too deep"):
        digest(values)


def test_cycles_end():
    values: list = [1]
    values.append(values)
    part = with_attribute(values)
    part.itself = part
    part.items = {part, "text"}

    def function():
        return function, part

    assert digest(part) == digest(part)
    assert digest(function) == digest(function)


def test_a_compressor_is_its_options():
    used = fedbits.TopK(k=3)
    used.compress(np.ones(5))
    assert digest(used) == digest(fedbits.TopK(k=3))


def test_a_cache_and_a_lock_are_no_values():
    @functools.lru_cache
    def cached(x):
        return x

    lock = threading.Lock()
    before = digest(cached), digest(lock)
    cached(1)
    lock.acquire()
    assert (digest(cached), digest(lock)) == before


def test_a_value_that_cannot_be_read_is_named(tmp_path):
    with open(tmp_path / "log", "w") as file:
        with pytest.raises(TypeError, match=r"part.settings\['log'\] is of type _io.TextIOWrapper, whose value cannot be read"):
            digest_of(part=type("Part", (), {"settings": {"log": file}}))
        with pytest.raises(TypeError, match="part.loss.file is of type _io.TextIOWrapper"):
            digest_of(part=type("Part", (), {"loss": lambda self: file.write("x")}))
        with pytest.raises(TypeError, match="Logging.log is of type _io.TextIOWrapper"):
            class Logging(fedbits.Model, kind="digest_logging"):
                log = file
    with pytest.raises(TypeError, match="value is of type numpy.ufunc"):
        digest(np.frompyfunc(lambda x: x, 1, 1))


PROGRAM = '''
import sys
sys.path.insert(0, {here!r})
import numpy as np
import test_digest
from fedbits.digest import digest_of

for value in test_digest.VALUES:
    print(digest_of(value=value))
print(digest_of(a=test_digest.test_cycles_end, b=lambda x: x in {{"a", "b", "c", "d"}}, c={{"x", "y", "z", ("x", "y")}}))
'''


def test_another_process_has_the_same_digests():
    printed = {subprocess.run([sys.executable, "-c", PROGRAM.format(here=str(HERE))], capture_output=True, text=True, check=True,
                              env=os.environ | {"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2", "3")}
    assert len(printed) == 1 and len(printed.pop().split()) == len(VALUES) + 1
