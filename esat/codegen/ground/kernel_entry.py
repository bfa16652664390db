"""Kernels as built-in functions of Python.

Numba would make a wrapper for each function that Python calls: a third of what it takes to compile a kernel.
Wrappers differ in what they take and in the address they call. So there is one for each kind of signature,
written as LLVM IR that LLVM does not optimize, which finds the address in what it is bound to.

It lets go of the interpreter's lock and calls the kernel by numba's convention.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
from numba.core import types
from numba.core.typing.templates import Signature

from esat.codegen.ground.builtin_function import (
    DATA,
    OUT_OF_BOUNDS,
    RANK,
    SIZES,
    STRIDES,
    TYPE,
    BodyWriter,
    Memory,
    builtin_function,
    definition,
    is_available,
    pointer,
    python_function,
)

_DEFINITIONS = 256
"""Kinds of signatures whose definitions are kept when no kernel uses them."""

Kind = tuple[int, int] | None
"""Rank and bytes of an element of an array; None for an integer of 64 bits."""


def kinds_of(signature: Signature) -> tuple[Kind, ...] | None:
    """The kinds of a signature's parameters; None where only numba's own wrapper will do."""
    kinds: list[Kind] = []
    for one in signature.args:
        if isinstance(one, types.Array):
            kinds.append((one.ndim, np.dtype(str(one.dtype)).itemsize))
        elif one == types.int64:
            kinds.append(None)
        else:
            return None
    return tuple(kinds) if signature.return_type == types.void and is_available() else None


def entry_function(address: int, kinds: Sequence[Kind], kept: object) -> Callable[..., None]:
    """The native function at an address, callable by Python.

    It raises a TypeError unless it is called with arrays of the right ranks and integers, an IndexError where
    a check of the kernel says so, and a MemoryError where it fails otherwise: nothing else makes one fail.
    Dtypes, sizes and layouts are not checked.

    Parameters
    ----------
    address
        Of a native function that is called by numba's convention and returns nothing.
    kinds
        Of its parameters, from :func:`kinds_of`.
    kept
        What must live as long as the function: the owner of the code.
    """
    defined, memory = _definition(tuple(kinds))
    owner = np.empty(3, object)
    owner[:] = np.array([address], np.int64), kept, memory
    return builtin_function(defined, owner)


@functools.lru_cache(maxsize=_DEFINITIONS)
def _definition(kinds: tuple[Kind, ...]) -> tuple[int, np.ndarray]:
    """The address of the definition of a function with parameters of these kinds, and what it lives in."""
    memory = Memory(kinds)
    return definition("kernel", _Text(kinds, memory).module(), memory), memory.sealed()


class _Text(BodyWriter):
    """The IR of a function for parameters of some kinds."""

    def __init__(self, kinds: Sequence[Kind], memory: Memory) -> None:
        super().__init__()
        self.kinds = kinds
        expected = ", ".join(
            "an integer" if kind is None else f"an array of {kind[0]} axes" for kind in kinds
        )
        self.expected = pointer(memory.record(f"a kernel takes {expected}".encode() + b"\0"))
        self.failed = pointer(memory.record(b"a kernel found no memory\0"))
        self.outside = pointer(memory.record(b"an index of a kernel is out of bounds\0"))

    def module(self) -> str:
        """The function as a module."""
        self.require(
            [self.value(f"icmp eq i64 %count, {len(self.kinds)}"), self.value("icmp eq ptr %names, null")],
            "wrong",
        )
        arguments = ["ptr %nothing", "ptr %nothing"]
        for number, kind in enumerate(self.kinds):
            slot = self.value(f"getelementptr ptr, ptr %arguments, i64 {number}")
            argument = self.value(f"load ptr, ptr {slot}")
            arguments += self._integer(argument) if kind is None else self._array(argument, *kind)
        # Bound to an array of objects, the first of which is an array of the address.
        objects = self.field("%self", DATA, "ptr")
        address = self.field(self.field(self.value(f"load ptr, ptr {objects}"), DATA, "ptr"), 0, "ptr")
        state = self.value(f"call ptr {python_function('PyEval_SaveThread')}()")
        status = self.value(f"call i32 {address}({', '.join(arguments)})")
        self.line(f"call void {python_function('PyEval_RestoreThread')}(ptr {state})")
        complete, incomplete = self.name("complete"), self.name("incomplete")
        self.line(f"br i1 {self.value(f'icmp eq i32 {status}, 0')}, label %{complete}, label %{incomplete}")
        self.begin(incomplete)
        left = self.value(f"icmp eq i32 {status}, {OUT_OF_BOUNDS}")
        self.line(f"br i1 {left}, label %outside, label %failed")
        self.begin(complete)
        self.line(f"call void {python_function('Py_IncRef')}(ptr {pointer(id(None))})")
        self.line(f"ret ptr {pointer(id(None))}")
        body = "\n".join(self.lines)
        raising = f"call void {python_function('PyErr_SetString')}(ptr"
        return (
            "define ptr @run(ptr %self, ptr %arguments, i64 %count, ptr %names) {\n"
            "  %nothing = alloca ptr\n"
            f"{body}\n"
            "wrong:\n"
            f"  {raising} {pointer(id(TypeError))}, ptr {self.expected})\n"
            "  br label %raised\n"
            "failed:\n"
            f"  {raising} {pointer(id(MemoryError))}, ptr {self.failed})\n"
            "  br label %raised\n"
            "outside:\n"
            f"  {raising} {pointer(id(IndexError))}, ptr {self.outside})\n"
            "  br label %raised\n"
            "raised:\n"
            "  ret ptr null\n"
            "}\n"
        )

    def _integer(self, argument: str) -> list[str]:
        """Read an integer of Python or NumPy."""
        value = self.value(f"call i64 {python_function('PyLong_AsLongLong')}(ptr {argument})")
        read, doubtful = self.name("read"), self.name("doubtful")
        self.line(f"br i1 {self.value(f'icmp eq i64 {value}, -1')}, label %{doubtful}, label %{read}")
        self.begin(doubtful)
        error = self.value(f"call ptr {python_function('PyErr_Occurred')}()")
        self.line(f"br i1 {self.value(f'icmp eq ptr {error}, null')}, label %{read}, label %raised")
        self.begin(read)
        return [f"i64 {value}"]

    def _array(self, argument: str, rank: int, itemsize: int) -> list[str]:
        """Read an array, of NumPy's type or one that inherits from it: fields one by one, owned by none."""
        kind, checked, other = self.field(argument, TYPE, "ptr"), self.name("checked"), self.name("other")
        plain = self.value(f"icmp eq ptr {kind}, {pointer(id(np.ndarray))}")
        self.line(f"br i1 {plain}, label %{checked}, label %{other}")
        self.begin(other)
        inherits = python_function("PyType_IsSubtype")
        found = self.value(f"call i32 {inherits}(ptr {kind}, ptr {pointer(id(np.ndarray))})")
        self.line(f"br i1 {self.value(f'icmp ne i32 {found}, 0')}, label %{checked}, label %wrong")
        self.begin(checked)
        self.require([self.value(f"icmp eq i32 {self.field(argument, RANK, 'i32')}, {rank}")], "wrong")
        count, sizes, strides = "1", list[str](), list[str]()
        if rank:
            at_sizes, at_strides = self.field(argument, SIZES, "ptr"), self.field(argument, STRIDES, "ptr")
            sizes = [self.field(at_sizes, 8 * axis, "i64") for axis in range(rank)]
            strides = [self.field(at_strides, 8 * axis, "i64") for axis in range(rank)]
        for size in sizes:
            count = self.value(f"mul i64 {count}, {size}")
        fields = ["ptr null", "ptr null", f"i64 {count}", f"i64 {itemsize}"]
        fields.append(f"ptr {self.field(argument, DATA, 'ptr')}")
        return [*fields, *[f"i64 {size}" for size in sizes], *[f"i64 {stride}" for stride in strides]]
