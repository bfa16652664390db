"""Functions of the elements along an axis in machine code: sorting, running sums and products, searching."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Literal

import numpy as np

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction

_GET_FUNCTIONS = 365
"""The place of ``_PyDataType_GetArrFuncs`` in NumPy's table of functions."""
_STABLE_SORT, _STABLE_ARGSORT = 35, 38
"""Places in what it gives: the functions of a dtype, part of the stable interface of NumPy 2."""
_KINDS = {
    "float32": "float",
    "float64": "double",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@record(frozen=True)
class StableSort(HostFunction):
    """NumPy's function ``(elements, count, 0)`` that sorts in place, or ``(elements, places, count, 0)`` that
    sorts places; it returns 0 unless it found no memory."""

    name: Literal["sort", "argsort"]
    dtype: str

    def text(self) -> str:
        return ""

    def make(self) -> int:
        return _functions_of(self.dtype)[_STABLE_SORT if self.name == "sort" else _STABLE_ARGSORT]

    @property
    def is_available(self) -> bool:
        """Whether NumPy has such a function, and where it is expected."""
        return np.lib.NumpyVersion(np.__version__) < "3.0.0" and bool(self.make())


@functools.cache
def _functions_of(dtype: str) -> tuple[int, ...]:
    """Addresses of the functions of a dtype."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = get(importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API, None)
    table = (ctypes.c_size_t * (_GET_FUNCTIONS + 1)).from_address(start)
    functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(table[_GET_FUNCTIONS])
    return tuple((ctypes.c_size_t * (_STABLE_ARGSORT + 1)).from_address(functions(np.dtype(dtype))))


@record(frozen=True)
class RunningLine(HostFunction):
    """The function ``(target, source, count, target stride, source stride)``: sums or products up to each
    element. The count is positive; strides are in bytes."""

    name: Literal["cumsum", "cumprod"]
    dtype: str

    @property
    def is_available(self) -> bool:
        """Whether there are running sums or products of the dtype."""
        return self.dtype in _KINDS

    def text(self) -> str:
        kind = _KINDS[self.dtype]
        operation = {"cumsum": "add", "cumprod": "mul"}[self.name]
        if self.dtype.startswith("float"):
            operation = "f" + operation
        align = np.dtype(self.dtype).itemsize
        lines = [
            "define void @run(ptr %target, ptr %source, i64 %count, i64 %down, i64 %across) {",
            "entry:",
            f"  %first = load {kind}, ptr %source, align {align}",
            f"  store {kind} %first, ptr %target, align {align}",
            "  %alone = icmp eq i64 %count, 1",
            "  br i1 %alone, label %done, label %loop",
            "loop:",
            "  %i = phi i64 [ 1, %entry ], [ %next, %loop ]",
            f"  %before = phi {kind} [ %first, %entry ], [ %now, %loop ]",
            "  %t_bytes = mul i64 %i, %down",
            "  %s_bytes = mul i64 %i, %across",
            "  %t = getelementptr i8, ptr %target, i64 %t_bytes",
            "  %s = getelementptr i8, ptr %source, i64 %s_bytes",
            f"  %x = load {kind}, ptr %s, align {align}",
            f"  %now = {operation} {kind} %before, %x",
            f"  store {kind} %now, ptr %t, align {align}",
            "  %next = add nuw i64 %i, 1",
            "  %ends = icmp eq i64 %next, %count",
            "  br i1 %ends, label %done, label %loop",
            "done:",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


@record(frozen=True)
class SortedSearch(HostFunction):
    """The function ``(sorted, keys, places, count, number of keys)``: ``numpy.searchsorted`` of contiguous
    elements. NaN comes last."""

    side: Literal["left", "right"]
    dtype: str

    @property
    def is_available(self) -> bool:
        """Whether elements of the dtype are searched for."""
        return self.dtype in _KINDS

    def text(self) -> str:
        kind = _KINDS[self.dtype]
        lines = [
            "define void @run(ptr %sorted, ptr %keys, ptr %places, i64 %count, i64 %number) {",
            "entry:",
            "  %none = icmp eq i64 %number, 0",
            "  br i1 %none, label %done, label %key",
            "key:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %found ]",
            f"  %k_place = getelementptr {kind}, ptr %keys, i64 %i",
            f"  %k = load {kind}, ptr %k_place",
            "  br label %test",
            "test:",
            "  %low = phi i64 [ 0, %key ], [ %new_low, %halve ]",
            "  %high = phi i64 [ %count, %key ], [ %new_high, %halve ]",
            "  %more = icmp ult i64 %low, %high",
            "  br i1 %more, label %halve, label %found",
            "halve:",
            "  %width = sub i64 %high, %low",
            "  %half = lshr i64 %width, 1",
            "  %middle = add i64 %low, %half",
            f"  %x_place = getelementptr {kind}, ptr %sorted, i64 %middle",
            f"  %x = load {kind}, ptr %x_place",
            *self._goes_up(kind),
            "  %after = add i64 %middle, 1",
            "  %new_low = select i1 %up, i64 %after, i64 %low",
            "  %new_high = select i1 %up, i64 %high, i64 %middle",
            "  br label %test",
            "found:",
            "  %place = getelementptr i64, ptr %places, i64 %i",
            "  store i64 %low, ptr %place",
            "  %next = add nuw i64 %i, 1",
            "  %ends = icmp eq i64 %next, %number",
            "  br i1 %ends, label %done, label %key",
            "done:",
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _goes_up(self, kind: str) -> list[str]:
        """``%up``: whether the element comes before the place of the key."""
        before, other = ("%x", "%k") if self.side == "left" else ("%k", "%x")
        if self.dtype.startswith("float"):
            lines = [
                f"  %less = fcmp olt {kind} {before}, {other}",
                f"  %is_last = fcmp uno {kind} {other}, {other}",
                f"  %is_number = fcmp ord {kind} {before}, {before}",
                "  %before_nan = and i1 %is_last, %is_number",
                "  %precedes = or i1 %less, %before_nan",
            ]
        else:
            sign = "ult" if self.dtype.startswith("u") else "slt"
            lines = [f"  %precedes = icmp {sign} {kind} {before}, {other}"]
        return [*lines, f"  %up = xor i1 %precedes, {'false' if self.side == 'left' else 'true'}"]
