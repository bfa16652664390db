"""Machine code that moves elements: copies, sums into place, triangles; and determinants from factors.

Each function is written as LLVM's text and compiled when it is first needed in a process, in milliseconds.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.codegen.ground.machine_text import engine_of_text

AXES = 4
"""Axes of what is moved, at most."""
_ALIGNMENT = 8
_WORDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "<2 x i64>"}
_NUMBERS = {
    "float32": "float",
    "float64": "double",
    "complex64": "<2 x float>",
    "complex128": "<2 x double>",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_OPTIMIZATION = 2
"""Of instructions and registers. Passes over the text would take five times as long as all else."""


def can_move(dtype: np.dtype[Any], adds: bool) -> bool:
    """Whether there is machine code for elements of a dtype."""
    return dtype.name in _NUMBERS if adds else dtype.itemsize in _WORDS and not dtype.hasobject


@functools.cache
def move_function(dtype: np.dtype[Any], adds: bool, converted: np.dtype[Any] | None = None) -> int:
    """The address of ``(target, source, sizes, target strides, source strides)``: two pointers, three times
    :data:`AXES` integers of 64 bits; sizes are positive, strides are in bytes, and nothing overlaps.

    Elements of the source have the dtype ``converted``, if one is given: of float32, float64 and int32.
    """
    read = converted or dtype
    integers = ", ".join(f"i64 %{name}{axis}" for name in "nab" for axis in range(AXES))
    last = AXES - 1
    lines = [
        f"define void @run(ptr noalias %t, ptr noalias %s, {integers}) {{",
        "entry:",
        f"  %near = icmp eq i64 %a{last}, {dtype.itemsize}",
        f"  %far = icmp eq i64 %b{last}, {read.itemsize}",
        "  %dense = and i1 %near, %far",
        "  br label %l0",
    ]
    target, source, before = "%t", "%s", "entry"
    for axis in range(last):
        lines += [
            f"l{axis}:",
            f"  %i{axis} = phi i64 [ 0, %{before} ], [ %j{axis}, %e{axis} ]",
            *_offset(f"t{axis}", target, f"%a{axis}", f"%i{axis}"),
            *_offset(f"s{axis}", source, f"%b{axis}", f"%i{axis}"),
            f"  br label %l{axis + 1}"
            if axis < last - 1
            else "  br i1 %dense, label %fast_entry, label %slow_entry",
        ]
        target, source, before = f"%t{axis}", f"%s{axis}", f"l{axis}"
    for name, near, far in (
        ("fast", f"{dtype.itemsize}", f"{read.itemsize}"),
        ("slow", f"%a{last}", f"%b{last}"),
    ):
        lines += [
            f"{name}_entry:",
            f"  br label %{name}",
            f"{name}:",
            f"  %{name}_i = phi i64 [ 0, %{name}_entry ], [ %{name}_j, %{name} ]",
            *_offset(f"{name}_t", target, near, f"%{name}_i"),
            *_offset(f"{name}_s", source, far, f"%{name}_i"),
            *_moved(name, dtype, read, adds),
            *_next(f"{name}_j", f"%{name}_i", f"%n{last}", name, f"e{last - 1}"),
        ]
    for axis in reversed(range(last)):
        lines += [
            f"e{axis}:",
            *_next(f"j{axis}", f"%i{axis}", f"%n{axis}", f"l{axis}", f"e{axis - 1}" if axis else "done"),
        ]
    return _address("\n".join([*lines, "done:", "  ret void", "}"]))


def _offset(name: str, base: str, stride: str, index: str) -> list[str]:
    return [
        f"  %{name}_bytes = mul i64 {stride}, {index}",
        f"  %{name} = getelementptr i8, ptr {base}, i64 %{name}_bytes",
    ]


def _moved(name: str, dtype: np.dtype[Any], read: np.dtype[Any], adds: bool) -> list[str]:
    if read != dtype:
        return _converted(name, dtype, read)
    kind = _NUMBERS[dtype.name] if adds else _WORDS[dtype.itemsize]
    align = min(dtype.itemsize if dtype.kind != "c" else dtype.itemsize // 2, _ALIGNMENT)
    lines = [f"  %{name}_x = load {kind}, ptr %{name}_s, align {align}"]
    if adds:
        add = "fadd" if dtype.kind in "fc" else "add"
        lines += [
            f"  %{name}_y = load {kind}, ptr %{name}_t, align {align}",
            f"  %{name}_z = {add} {kind} %{name}_y, %{name}_x",
        ]
    return [*lines, f"  store {kind} %{name}_{'z' if adds else 'x'}, ptr %{name}_t, align {align}"]


def _converted(name: str, dtype: np.dtype[Any], read: np.dtype[Any]) -> list[str]:
    target, source = _NUMBERS[dtype.name], _NUMBERS[read.name]
    convert = "fpext" if dtype.itemsize > read.itemsize else "fptrunc"
    if "i" in (dtype.kind, read.kind):
        convert = "sitofp" if read.kind == "i" else "fptosi"
    return [
        f"  %{name}_x = load {source}, ptr %{name}_s, align {read.itemsize}",
        f"  %{name}_y = {convert} {source} %{name}_x to {target}",
        f"  store {target} %{name}_y, ptr %{name}_t, align {dtype.itemsize}",
    ]


def _next(name: str, index: str, count: str, again: str, after: str) -> list[str]:
    return [
        f"  %{name} = add nuw i64 {index}, 1",
        f"  %{name}_ends = icmp eq i64 %{name}, {count}",
        f"  br i1 %{name}_ends, label %{after}, label %{again}",
    ]


@functools.cache
def triangle_function(dtype: np.dtype[Any], part: Literal["lower", "unit lower", "upper"]) -> int:
    """The address of ``(target, source, rows, columns, two target strides, two source strides)``.

    Elements beyond the diagonal become 0; the diagonal of ``unit lower`` becomes 1, for real dtypes.
    """
    kind = _WORDS[dtype.itemsize]
    align = min(dtype.itemsize if dtype.kind != "c" else dtype.itemsize // 2, _ALIGNMENT)
    inside = {"lower": "ule", "unit lower": "ult", "upper": "uge"}[part]
    others = "%elsewhere" if part == "unit lower" else "zeroinitializer"
    integers = ", ".join(f"i64 %{name}" for name in ("rows", "columns", "a0", "a1", "b0", "b1"))
    lines = [
        f"define void @run(ptr noalias %t, ptr noalias %s, {integers}) {{",
        "entry:",
        "  br label %outer",
        "outer:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %ended ]",
        *_offset("t0", "%t", "%a0", "%i"),
        *_offset("s0", "%s", "%b0", "%i"),
        "  br label %inner",
        "inner:",
        "  %j = phi i64 [ 0, %outer ], [ %j_next, %inner ]",
        *_offset("t1", "%t0", "%a1", "%j"),
        *_offset("s1", "%s0", "%b1", "%j"),
        f"  %there = load {kind}, ptr %s1, align {align}",
        f"  %inside = icmp {inside} i64 %j, %i",
        "  %diagonal = icmp eq i64 %j, %i",
        f"  %elsewhere = select i1 %diagonal, {kind} {_one(dtype)}, {kind} zeroinitializer",
        f"  %kept = select i1 %inside, {kind} %there, {kind} {others}",
        f"  store {kind} %kept, ptr %t1, align {align}",
        *_next("j_next", "%j", "%columns", "inner", "ended"),
        "ended:",
        *_next("i_next", "%i", "%rows", "outer", "done"),
        "done:",
        "  ret void",
        "}",
    ]
    return _address("\n".join(lines))


def _one(dtype: np.dtype[Any]) -> str:
    """The bits of 1 as an integer, of a real dtype."""
    word = np.ones((), dtype).view(f"u{dtype.itemsize}") if dtype.kind == "f" else 0
    return str(int(word)) if dtype.itemsize < 16 else "zeroinitializer"


@functools.cache
def permutation_function(dtype: np.dtype[Any]) -> int:
    """The address of ``(target, rows, pivots, count, order)``: see :class:`PermutationStep`."""
    kind = _NUMBERS[dtype.name]
    lines = [
        "define void @run(ptr %target, i64 %rows, ptr %pivots, i64 %count, ptr %order) {",
        "entry:",
        f"  %row_bytes = mul i64 %rows, {dtype.itemsize}",
        "  %bytes = mul i64 %row_bytes, %rows",
        "  call void @llvm.memset.p0.i64(ptr %target, i8 0, i64 %bytes, i1 false)",
        "  br label %number",
        "number:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %number ]",
        "  %own = getelementptr i64, ptr %order, i64 %i",
        "  store i64 %i, ptr %own",
        *_next("i_next", "%i", "%rows", "number", "exchange"),
        "exchange:",
        "  %j = phi i64 [ 0, %number ], [ %j_next, %exchange ]",
        "  %pivot_place = getelementptr i32, ptr %pivots, i64 %j",
        "  %pivot = load i32, ptr %pivot_place",
        "  %one_based = sext i32 %pivot to i64",
        "  %other = sub i64 %one_based, 1",
        "  %first = getelementptr i64, ptr %order, i64 %j",
        "  %second = getelementptr i64, ptr %order, i64 %other",
        "  %x = load i64, ptr %first",
        "  %y = load i64, ptr %second",
        "  store i64 %y, ptr %first",
        "  store i64 %x, ptr %second",
        *_next("j_next", "%j", "%count", "exchange", "mark"),
        "mark:",
        "  %k = phi i64 [ 0, %exchange ], [ %k_next, %mark ]",
        "  %row_place = getelementptr i64, ptr %order, i64 %k",
        "  %row = load i64, ptr %row_place",
        "  %start = mul i64 %row, %rows",
        "  %place = add i64 %start, %k",
        f"  %element = getelementptr {kind}, ptr %target, i64 %place",
        f"  store {kind} 1.0, ptr %element",
        *_next("k_next", "%k", "%rows", "mark", "done"),
        "done:",
        "  ret void",
        "}",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ]
    return _address("\n".join(lines))


@functools.cache
def determinant_function(dtype: np.dtype[Any]) -> int:
    """The address of ``(factors, rows, pivots, info, sign, logarithm)``: what ``numpy.linalg`` makes of
    ``getrf``'s results. Without a sign, which is a null pointer then, the determinant is the result."""
    kind, letter = _NUMBERS[dtype.name], "f64" if dtype.itemsize == 8 else "f32"
    lines = [
        f"declare {kind} @llvm.log.{letter}({kind})",
        f"declare {kind} @llvm.exp.{letter}({kind})",
        "define void @run(ptr %factors, i64 %rows, ptr %pivots, ptr %info, ptr %sign, ptr %logarithm) {",
        "entry:",
        "  %status = load i64, ptr %info",
        "  %singular = icmp sgt i64 %status, 0",
        "  %step = add i64 %rows, 1",
        "  br i1 %singular, label %found, label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %loop ]",
        f"  %s = phi {kind} [ 1.0, %entry ], [ %s_new, %loop ]",
        f"  %l = phi {kind} [ 0.0, %entry ], [ %l_new, %loop ]",
        "  %pivot_place = getelementptr i64, ptr %pivots, i64 %i",
        "  %pivot = load i64, ptr %pivot_place",
        "  %one_based = add i64 %i, 1",
        "  %same = icmp eq i64 %pivot, %one_based",
        "  %place = mul i64 %i, %step",
        f"  %element = getelementptr {kind}, ptr %factors, i64 %place",
        f"  %x = load {kind}, ptr %element",
        f"  %negated = fneg {kind} %x",
        f"  %below = fcmp olt {kind} %x, 0.0",
        f"  %size = select i1 %below, {kind} %negated, {kind} %x",
        "  %kept = icmp ne i1 %same, %below",
        f"  %turned = fneg {kind} %s",
        f"  %s_new = select i1 %kept, {kind} %s, {kind} %turned",
        f"  %log = call {kind} @llvm.log.{letter}({kind} %size)",
        f"  %l_new = fadd {kind} %l, %log",
        *_next("i_next", "%i", "%rows", "loop", "found"),
        "found:",
        f"  %s_found = phi {kind} [ 0.0, %entry ], [ %s_new, %loop ]",
        f"  %l_found = phi {kind} [ 0xFFF0000000000000, %entry ], [ %l_new, %loop ]",
        "  %alone = icmp eq ptr %sign, null",
        "  br i1 %alone, label %product, label %pair",
        "product:",
        f"  %power = call {kind} @llvm.exp.{letter}({kind} %l_found)",
        f"  %determinant = fmul {kind} %s_found, %power",
        f"  store {kind} %determinant, ptr %logarithm",
        "  ret void",
        "pair:",
        f"  store {kind} %s_found, ptr %sign",
        f"  store {kind} %l_found, ptr %logarithm",
        "  ret void",
        "}",
    ]
    return _address("\n".join(lines))


@functools.cache
def all_true_function() -> int:
    """The address of ``(bools, count)``, which returns whether all are true."""
    lines = [
        "define i1 @run(ptr %bools, i64 %count) {",
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %i_next, %loop ]",
        "  %all = phi i8 [ 1, %entry ], [ %all_new, %loop ]",
        "  %place = getelementptr i8, ptr %bools, i64 %i",
        "  %one = load i8, ptr %place",
        "  %all_new = and i8 %all, %one",
        *_next("i_next", "%i", "%count", "loop", "done"),
        "done:",
        "  %found = icmp ne i8 %all_new, 0",
        "  ret i1 %found",
        "}",
    ]
    return _address("\n".join(lines))


_engines: list[Any] = []


def _address(text: str) -> int:
    """The address of the function ``run`` of a module; its code stays as long as the process."""
    engine = engine_of_text(text, _OPTIMIZATION)
    _engines.append(engine)
    return int(engine.get_function_address("run"))


def collapsed(sizes: Sequence[int], *strides: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Axes of size 1 dropped, and those made one that follow each other in all places: sizes, and the strides
    in each place."""
    axes: list[tuple[int, ...]] = []
    for size, *steps in zip(sizes, *strides, strict=True):
        if size == 1:
            continue
        if axes and list(axes[-1][1:]) == [size * step for step in steps]:
            axes[-1] = (axes[-1][0] * size, *steps)
        else:
            axes.append((size, *steps))
    return tuple(zip(*axes, strict=True)) if axes else ((),) * (1 + len(strides))
