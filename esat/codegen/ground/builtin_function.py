"""Built-in functions of Python in machine code, written as LLVM IR.

They read array objects as C programs do, through the layout of ``PyArrayObject``.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import struct
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.codegen.ground.machine_text import engine_of_text

REFERENCES, TYPE, DATA, RANK, SIZES, STRIDES, DESCRIPTOR, FLAGS = 0, 8, 16, 24, 32, 40, 56, 64
"""Bytes from the start of an array object to its fields."""
NUMBER = 16
"""Bytes from the start of one of NumPy's numbers, or of Python's floats, to its bits."""
LENGTH, ITEMS = 16, 24
"""Bytes from the start of a tuple to its length and to its items."""
OUT_OF_BOUNDS = 2
"""The status of a kernel that has left where a check said so; it has written nothing. Numba's own is 1."""
INTERRUPTED = 0x7FFF
"""What a function returns where a handler of a signal has raised an error."""
_DEFINITION = struct.Struct("PPiP")
"""``PyMethodDef``: name, function, flags and documentation."""
_FLAGS_AND_TEXT = (0x82, 0)
"""A fast call with keywords; no documentation."""

_claims: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""For each native function that gives the lock up, whether a call of it is in progress."""


@functools.cache
def is_available() -> bool:
    """Whether array objects are laid out as expected and the interpreter's lock protects a call."""
    locked = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
    plain = sys.implementation.name == "cpython" and struct.calcsize("P") == 8
    if not (locked and plain and object.__basicsize__ == 16 and np.ndarray.__basicsize__ >= 72):
        return False
    array = np.zeros((3, 5), np.float32)
    holder = np.empty(2, object)
    holder[:] = np.zeros(1), None

    def field(offset: int, kind: Any, address: int = id(array)) -> int:
        return int(kind.from_address(address + offset).value or 0)

    pair = (array, holder)

    def references(place: int) -> int:
        return field(REFERENCES, ctypes.c_uint32, id(holder[place]))

    word = ctypes.c_size_t
    sizes = (word * 2).from_address(field(SIZES, word))
    strides = (word * 2).from_address(field(STRIDES, word))
    return (
        field(TYPE, word) == id(np.ndarray)
        and field(DATA, word) == array.ctypes.data
        and field(RANK, ctypes.c_int) == 2
        and tuple(sizes) == array.shape
        and tuple(strides) == array.strides
        and field(DESCRIPTOR, word) == id(array.dtype)
        and field(FLAGS, ctypes.c_int) == array.flags.num
        and references(0) == 1 < references(1)
        and field(LENGTH, word, id(pair)) == 2
        and field(ITEMS + 8, word, id(pair)) == id(holder)
    )


@functools.cache
def scalar_types(dtype: np.dtype[Any]) -> tuple[type, ...]:
    """The types of objects that hold a number of a dtype where :data:`NUMBER` says: NumPy's, and of float64
    and complex128 Python's."""
    if dtype.kind not in "fiubc" or not is_available():
        return ()
    pythons = {"float64": (float,), "complex128": (complex,)}
    types = (dtype.type, *pythons.get(dtype.name, ()))
    samples = [type_(number) for type_ in types for number in (1, 0)]
    held = [ctypes.string_at(id(sample) + NUMBER, dtype.itemsize) for sample in samples]
    wanted = [np.array(sample, dtype).tobytes() for sample in samples]
    return types if held == wanted else ()


class Memory:
    """What a native function uses: its code, and what that has addresses of."""

    def __init__(self, kept: object) -> None:
        self.kept: list[object] = [kept]

    def sizes(self, shape: tuple[int, ...]) -> int:
        """The address of the sizes of an array."""
        return self._add(np.array(shape or (0,), np.intp))

    def record(self, content: bytes) -> int:
        """The address of a copy of some bytes."""
        return self._add(np.frombuffer(content, np.uint8).copy())

    def claim(self) -> int:
        """The address of a word that tells whether a call is in progress: none is in a forked child."""
        word = np.zeros(1, np.int64)
        _claims[id(word)] = word
        return self._add(word)

    def _add(self, array: np.ndarray) -> int:
        self.kept.append(array)
        return int(array.ctypes.data)

    def sealed(self) -> np.ndarray:
        """All of it as one object that Python's collector of cycles cannot take apart.

        A function is often part of a cycle: it holds what it stands in for, which holds it. The collector
        empties the objects of a cycle in any order, so that code and the definition would be gone while the
        function, which reads its definition to the last, is still there. It does not look into arrays of
        objects: these die with the function's last reference, after it.
        """
        box = np.empty((), object)
        box[()] = tuple(self.kept)
        return box


def _forget_claims() -> None:
    """In a forked child, where no thread is left that would end a call."""
    for word in _claims.values():
        word[0] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_claims)


def definition(name: str, text: str, memory: Memory) -> int:
    """The address of the definition of a built-in function, whose code is ``@run`` in a module of IR.

    The code, the definition and its name live as long as the memory.
    """
    # There is nothing to optimize in a row of calls with known numbers: it takes LLVM four times as long with
    # optimization as without, and a call is no faster.
    engine = engine_of_text(text, optimization=0)
    memory.kept.append(engine)
    return compiled_definition(engine.get_function_address("run"), name, memory)


def compiled_definition(code: int, name: str, memory: Memory) -> int:
    """The same for code at an address; the definition and its name live as long as the memory."""
    return memory.record(_DEFINITION.pack(memory.record(name.encode() + b"\0"), code, *_FLAGS_AND_TEXT))


def builtin_function(definition: int, owner: object) -> Callable[..., Any]:
    """The built-in function of a definition, bound to an owner: what its code finds in ``%self``."""
    made: Callable[..., Any] = _new_function()(definition, owner, None)
    return made


@functools.cache
def _new_function() -> Any:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


@functools.cache
def python_function(name: str) -> str:
    """A function of Python's C interface as an operand."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    return pointer(int(address or 0))


def pointer(address: int) -> str:
    """An address as an operand."""
    return f"inttoptr (i64 {address} to ptr)"


class BodyWriter:
    """Writes the body of a function, line by line.

    Values and blocks of a function share one space of names. Those that are numbered all come from
    :meth:`name` and have a dot; those that stand in the text of a writer have none.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names = itertools.count()

    def line(self, text: str) -> None:
        """Add an instruction."""
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        """Add an instruction; the name of its result."""
        name = f"%{self.name('v')}"
        self.line(f"{name} = {text}")
        return name

    def name(self, of: str) -> str:
        """A name of a new block or value that nothing else has."""
        return f"{of}.{next(self._names)}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")

    def field(self, base: str, offset: int, type_: str) -> str:
        """Load what is so many bytes from an address."""
        place = self.value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.value(f"load {type_}, ptr {place}")

    def require(self, conditions: Sequence[str], unless: str) -> None:
        """Go on where all conditions hold, else to a block."""
        joint = conditions[0]
        for condition in conditions[1:]:
            joint = self.value(f"and i1 {joint}, {condition}")
        label = self.name("next")
        self.line(f"br i1 {joint}, label %{label}, label %{unless}")
        self.begin(label)
