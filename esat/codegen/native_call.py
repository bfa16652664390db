"""A whole call as one native function: checks of arguments, new arrays, and every step.

For small arrays the interpreter takes longer between kernels than the kernels themselves. For one
combination of shapes all that a call does is known: which arguments it admits, what it allocates, and what
it passes to each kernel. That is written as LLVM IR without a loop in it and called by Python like any
built-in function. Arguments of other types, shapes or layouts go to the function it stands in for.

It reads array objects as C programs do, through the layout of ``PyArrayObject`` and NumPy's table of C
functions. A call of microseconds holds the interpreter's lock from end to end. One that takes longer gives
it up while steps run. That pays, too: large arrays drive the interpreter out of the caches, and its way from
one step to the next then takes ten microseconds instead of one.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import os
import struct
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from llvmlite import binding

_NEW_FROM_DESCRIPTOR = 94
"""Place of ``PyArray_NewFromDescr`` in NumPy's table of functions, part of its stable interface."""
_TYPE, _DATA, _RANK, _SIZES, _DESCRIPTOR, _FLAGS = 8, 16, 24, 32, 56, 64
"""Bytes from the start of an array object to its fields."""
_CONTIGUOUS_AND_ALIGNED = 0x101
_DEFINITION = struct.Struct("PPiP")
"""``PyMethodDef``: name, function, flags and documentation."""
_FLAGS_AND_TEXT = (0x82, 0)
"""A fast call with keywords; no documentation."""

_numbers = itertools.count(1)
_claims: weakref.WeakValueDictionary[int, np.ndarray] = weakref.WeakValueDictionary()
"""For each native function that gives the lock up, whether a call of it is in progress."""


@dataclass(frozen=True)
class Place:
    """Where elements are: those of an argument or of a result, by number, or at a fixed address.

    Attributes
    ----------
    offset
        Bytes from there to the first element.
    """

    kind: Literal["input", "output", "fixed"]
    number: int
    offset: int = 0


@dataclass(frozen=True)
class ArraySpecification:
    """An argument that is admitted, or a result to be made: C-contiguous and aligned."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class KernelStep:
    """A kernel compiled by numba, called with arrays and, after them, integers.

    Attributes
    ----------
    address
        Of its native function.
    arrays
        Where each array is, and what it is like.
    """

    address: int
    arrays: tuple[tuple[Place, ArraySpecification], ...]
    integers: tuple[int, ...] = ()


@dataclass(frozen=True)
class RoutineStep:
    """A function that takes pointers only, as BLAS does."""

    address: int
    pointers: tuple[Place, ...]


Step = KernelStep | RoutineStep


def native_call(
    inputs: Sequence[ArraySpecification],
    outputs: Sequence[ArraySpecification],
    steps: Sequence[Step],
    otherwise: Callable[..., Any],
    kept: object,
    libraries: Sequence[tuple[int, int]] = (),
    unlocked: bool = False,
) -> Callable[..., Any]:
    """A built-in function that runs the steps.

    Parameters
    ----------
    inputs
        The arguments it admits.
    outputs
        The results it makes; one is returned as it is, several in a tuple.
    steps
        What is done, in order.
    otherwise
        Called with the arguments when they are not admitted.
    kept
        What must live as long as the function: owners of code and memory that steps refer to.
    libraries
        Addresses of what tells and of what sets the threads of each library that routines belong to, if it is
        to have one only while steps run: its others are not waited for. A call that holds the lock sees to
        that, and nobody notices. Another one goes to ``otherwise`` where a library has more.
    unlocked
        Whether other Python threads run while steps do. Steps may use memory at fixed addresses all the same:
        a call that comes while another is in progress goes to ``otherwise``.

    Raises
    ------
    RuntimeError
        When :func:`is_available` denies it.
    """
    if not is_available():
        raise RuntimeError("arrays of this interpreter have an unknown layout")
    memory = _Memory(kept)
    text = _Text(inputs, outputs, steps, otherwise, memory)
    module = binding.parse_assembly(text.unlocked(libraries) if unlocked else text.locked(libraries))
    engine = binding.create_mcjit_compiler(module, _target_machine())
    memory.kept.append(engine)
    engine.finalize_object()
    definition = memory.record(
        _DEFINITION.pack(memory.record(b"run\0"), engine.get_function_address("run"), *_FLAGS_AND_TEXT)
    )
    made: Callable[..., Any] = _new_function()(definition, (otherwise, memory.sealed()), None)
    return made


@functools.cache
def is_available() -> bool:
    """Whether array objects are laid out as expected and the interpreter's lock protects a call."""
    locked = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
    plain = sys.implementation.name == "cpython" and struct.calcsize("P") == 8
    if not (locked and plain and object.__basicsize__ == 16 and np.ndarray.__basicsize__ >= 72):
        return False
    array = np.zeros((3, 5), np.float32)

    def field(offset: int, kind: Any) -> int:
        return int(kind.from_address(id(array) + offset).value or 0)

    word = ctypes.c_size_t
    sizes = (word * 2).from_address(field(_SIZES, word))
    return (
        field(_TYPE, word) == id(np.ndarray)
        and field(_DATA, word) == array.ctypes.data
        and field(_RANK, ctypes.c_int) == 2
        and tuple(sizes) == array.shape
        and field(_DESCRIPTOR, word) == id(array.dtype)
        and field(_FLAGS, ctypes.c_int) == array.flags.num
    )


class _Memory:
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


@functools.cache
def _new_function() -> Any:
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def _target_machine() -> Any:
    """A machine of its own for each engine, which frees it.

    There is nothing to optimize in a row of calls with known numbers: it takes LLVM four times as long with
    optimization as without, and a call is no faster.
    """
    # Numba does this when it is first used, which a program of library calls alone never does.
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(opt=0, jit=True)


@functools.cache
def _python_function(name: str) -> str:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    return _pointer(int(address or 0))


@functools.cache
def _new_array() -> str:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_size_t * (_NEW_FROM_DESCRIPTOR + 1)).from_address(
        get(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    )
    return _pointer(table[_NEW_FROM_DESCRIPTOR])


def _pointer(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"


class _Text:
    """The IR of one function."""

    def __init__(
        self,
        inputs: Sequence[ArraySpecification],
        outputs: Sequence[ArraySpecification],
        steps: Sequence[Step],
        otherwise: Callable[..., Any],
        memory: _Memory,
    ) -> None:
        self.inputs, self.outputs, self.steps = inputs, outputs, steps
        self.otherwise, self.memory = otherwise, memory
        self.lines: list[str] = []
        self._names = itertools.count()

    def locked(self, libraries: Sequence[tuple[int, int]]) -> str:
        """The module of a function that holds the interpreter's lock."""
        self._check_arguments()
        result = self._make_outputs()
        found = [self._value(f"call i32 {_pointer(count)}()") for count, _ in libraries]
        for _, limit in libraries:
            self._line(f"call void {_pointer(limit)}(i32 1)")
        self._run_steps()
        for threads, (_, limit) in zip(found, libraries, strict=True):
            self._line(f"call void {_pointer(limit)}(i32 {threads})")
        self._line(f"ret ptr {result}")
        return self._module()

    def unlocked(self, libraries: Sequence[tuple[int, int]]) -> str:
        """The module of a function that gives the lock up while steps run.

        It has the lock where it looks at the word that tells whether a call is in progress, and where it
        changes that. The caller's references keep arguments alive, and the function with all that it uses.
        """
        self._check_arguments()
        for count, _ in libraries:
            threads = self._value(f"call i32 {_pointer(count)}()")
            self._require([self._value(f"icmp eq i32 {threads}, 1")], "otherwise")
        claim = _pointer(self.memory.claim())
        in_progress = self._value(f"load i64, ptr {claim}")
        self._require([self._value(f"icmp eq i64 {in_progress}, 0")], "otherwise")
        self._line(f"store i64 1, ptr {claim}")
        result = self._make_outputs()
        self._line(f"%state = call ptr {_python_function('PyEval_SaveThread')}()")
        self._run_steps()
        self._line(f"call void {_python_function('PyEval_RestoreThread')}(ptr %state)")
        self._line(f"store i64 0, ptr {claim}")
        self._line(f"ret ptr {result}")
        return self._module(f"  store i64 0, ptr {claim}\n")

    def _module(self, before_failure: str = "") -> str:
        body = "\n".join(self.lines)
        called = f"call ptr {_python_function('PyObject_Vectorcall')}(ptr {_pointer(id(self.otherwise))}"
        return (
            f"; call {next(_numbers)}\n"
            "define ptr @run(ptr %self, ptr %arguments, i64 %count, ptr %names) {\n"
            "  %nothing = alloca ptr\n"
            f"{body}\n"
            "otherwise:\n"
            f"  %other = {called}, ptr %arguments, i64 %count, ptr %names)\n"
            "  ret ptr %other\n"
            "failed:\n"
            f"{before_failure}"
            "  ret ptr null\n"
            "}\n"
        )

    def _run_steps(self) -> None:
        for step in self.steps:
            if isinstance(step, KernelStep):
                self._call_kernel(step)
            else:
                pointers = ", ".join(f"ptr {self._address(place)}" for place in step.pointers)
                self._line(f"call void {_pointer(step.address)}({pointers})")

    def _line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _value(self, text: str) -> str:
        name = f"%v{next(self._names)}"
        self._line(f"{name} = {text}")
        return name

    def _field(self, base: str, offset: int, type_: str) -> str:
        place = self._value(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self._value(f"load {type_}, ptr {place}")

    def _require(self, conditions: Sequence[str], unless: str) -> None:
        """Go on where all conditions hold."""
        joint = conditions[0]
        for condition in conditions[1:]:
            joint = self._value(f"and i1 {joint}, {condition}")
        label = f"next{next(self._names)}"
        self._line(f"br i1 {joint}, label %{label}, label %{unless}")
        self.lines.append(f"{label}:")

    def _check_arguments(self) -> None:
        self._require(
            [self._value(f"icmp eq i64 %count, {len(self.inputs)}"), self._value("icmp eq ptr %names, null")],
            "otherwise",
        )
        for number, wanted in enumerate(self.inputs):
            slot = self._value(f"getelementptr ptr, ptr %arguments, i64 {number}")
            self._line(f"%x{number} = load ptr, ptr {slot}")
            kind = self._field(f"%x{number}", _TYPE, "ptr")
            self._require([self._value(f"icmp eq ptr {kind}, {_pointer(id(np.ndarray))}")], "otherwise")
            descriptor = self._field(f"%x{number}", _DESCRIPTOR, "ptr")
            flags = self._field(f"%x{number}", _FLAGS, "i32")
            masked = self._value(f"and i32 {flags}, {_CONTIGUOUS_AND_ALIGNED}")
            rank = self._field(f"%x{number}", _RANK, "i32")
            self._require(
                [
                    self._value(f"icmp eq ptr {descriptor}, {_pointer(id(wanted.dtype))}"),
                    self._value(f"icmp eq i32 {masked}, {_CONTIGUOUS_AND_ALIGNED}"),
                    self._value(f"icmp eq i32 {rank}, {len(wanted.shape)}"),
                ],
                "otherwise",
            )
            if wanted.shape:
                sizes = self._field(f"%x{number}", _SIZES, "ptr")
                found = [self._field(sizes, 8 * axis, "i64") for axis in range(len(wanted.shape))]
                self._require(
                    [
                        self._value(f"icmp eq i64 {one}, {size}")
                        for one, size in zip(found, wanted.shape, strict=True)
                    ],
                    "otherwise",
                )
            place = self._value(f"getelementptr i8, ptr %x{number}, i64 {_DATA}")
            self._line(f"%input{number} = load ptr, ptr {place}")
            self.memory.kept.append(wanted.dtype)

    def _make_outputs(self) -> str:
        """Allocate everything before any element is touched: allocation may run code of the user's."""
        several = len(self.outputs) != 1
        if several:
            self._line(f"%tuple = call ptr {_python_function('PyTuple_New')}(i64 {len(self.outputs)})")
            self._require([self._value("icmp ne ptr %tuple, null")], "failed")
        for number, made in enumerate(self.outputs):
            descriptor = _pointer(id(made.dtype))
            self.memory.kept.append(made.dtype)
            self._line(f"call void {_python_function('Py_IncRef')}(ptr {descriptor})")
            sizes = _pointer(self.memory.sizes(made.shape))
            self._line(
                f"%y{number} = call ptr {_new_array()}(ptr {_pointer(id(np.ndarray))}, ptr {descriptor},"
                f" i32 {len(made.shape)}, ptr {sizes}, ptr null, ptr null, i32 0, ptr null)"
            )
            there = self._value(f"icmp ne ptr %y{number}, null")
            if several:
                self._drop_tuple_unless(there)
                setter = _python_function("PyTuple_SetItem")
                self._value(f"call i32 {setter}(ptr %tuple, i64 {number}, ptr %y{number})")
            else:
                self._require([there], "failed")
            place = self._value(f"getelementptr i8, ptr %y{number}, i64 {_DATA}")
            self._line(f"%output{number} = load ptr, ptr {place}")
        return "%tuple" if several else "%y0"

    def _drop_tuple_unless(self, condition: str) -> None:
        name = next(self._names)
        self._line(f"br i1 {condition}, label %made{name}, label %lost{name}")
        self.lines.append(f"lost{name}:")
        self._line(f"call void {_python_function('Py_DecRef')}(ptr %tuple)")
        self._line("br label %failed")
        self.lines.append(f"made{name}:")

    def _address(self, place: Place) -> str:
        if place.kind == "fixed":
            return _pointer(place.number + place.offset)
        base = f"%{place.kind}{place.number}"
        return self._value(f"getelementptr i8, ptr {base}, i64 {place.offset}") if place.offset else base

    def _call_kernel(self, step: KernelStep) -> None:
        """By numba's convention: where results and errors would go, then each array's fields one by one."""
        arguments = ["ptr %nothing", "ptr %nothing"]
        for place, array in step.arrays:
            itemsize = array.dtype.itemsize
            strides = [itemsize]
            for size in reversed(array.shape[1:]):
                strides.insert(0, strides[0] * size)
            count = int(np.prod(array.shape, dtype=np.int64))
            arguments += ["ptr null", "ptr null", f"i64 {count}", f"i64 {itemsize}"]
            arguments.append(f"ptr {self._address(place)}")
            arguments += [f"i64 {size}" for size in array.shape]
            arguments += [f"i64 {stride}" for stride in strides[: len(array.shape)]]
        arguments += [f"i64 {number}" for number in step.integers]
        self._value(f"call i32 {_pointer(step.address)}({', '.join(arguments)})")
