"""Calls of machine code with the addresses of arrays, as built-in functions of Python.

To ask an array for its address takes Python about as long as NumPy takes for a product of small matrices, and
ctypes needs three of them and a call: 3.5 us, where these functions take 0.03 (x86-64, Python 3.11).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from esat.codegen.ground.builtin_function import (
    DATA,
    ITEMS,
    BodyWriter,
    Memory,
    builtin_function,
    compiled_definition,
)
from esat.codegen.ground.machine_text import compiled

MOST_LOCKED = 100
"""Matrices up to which a call holds the interpreter's lock: some take ten microseconds each."""


def array_call(
    address: int,
    order: Sequence[int | None],
    numbers: Sequence[int],
    starts: Sequence[Sequence[int]],
    count: int = 1,
    returns_status: bool = False,
    kept: object = None,
) -> Callable[..., bool]:
    """A function of arrays that calls code with their addresses; it returns whether it was never refused.

    Parameters
    ----------
    address
        Of the code.
    order
        What the code takes: places of arrays among those the function is called with, and None for the next
        of the numbers.
    numbers
        Integers and addresses.
    starts
        Bytes from the first element of each array to where the code is called, for each time it is. It stops
        where it is refused.
    count
        How many matrices a call of the code has.
    returns_status
        Whether the code returns 0, or another number where it refuses.
    kept
        What the numbers are addresses of.
    """
    names = ("Py_IncRef", "PyEval_SaveThread", "PyEval_RestoreThread")
    refer, unlock, lock = (ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p) for name in names)
    if len(starts) * count <= MOST_LOCKED:
        unlock = ctypes.c_void_p()
    functions = [one.value or 0 for one in (refer, unlock, lock)]
    offsets = [step for start in starts for step in start]
    plan = [address, id(True), id(False), *functions, len(starts), *numbers, *offsets]
    entry, _ = _entry(tuple(order), returns_status)
    return builtin_function(entry, (np.array(plan, np.int64), kept))


@functools.cache
def _entry(order: tuple[int | None, ...], returns_status: bool) -> tuple[int, Memory]:
    memory = Memory(None)
    return compiled_definition(compiled(_text(order, returns_status)), "run", memory), memory


def _text(order: Sequence[int | None], returns_status: bool) -> str:
    """The built-in function of a plan: the words of an array, which are in the order they are read in.

    No address of this process is part of it, so that its code may come from disk.
    """
    body, integers = BodyWriter(), order.count(None)
    arrays = len(order) - integers
    plan = body.field(body.field("%self", ITEMS, "ptr"), DATA, "ptr")
    given = [body.field("%arguments", 8 * place, "ptr") for place in range(arrays)]
    firsts = [body.field(array, DATA, "ptr") for array in given]
    code, true, false, refer, unlock, lock = (body.field(plan, 8 * word, "ptr") for word in range(6))
    places = body.field(plan, 48, "i64")
    words = [body.field(plan, 56 + 8 * place, "i64") for place in range(integers)]
    starts = body.value(f"getelementptr i64, ptr {plan}, i64 {7 + integers}")
    held = body.value(f"icmp eq ptr {unlock}, null")
    body.line(f"br i1 {held}, label %begin, label %release")
    body.begin("release")
    saved = body.value(f"call ptr {unlock}()")
    body.line("br label %begin")
    body.begin("begin")
    state = body.value(f"phi ptr [ null, %entry ], [ {saved}, %release ]")
    body.line("br label %one")
    body.begin("one")
    body.line("%place = phi i64 [ 0, %begin ], [ %next_place, %one ]")
    body.line(f"%start = phi ptr [ {starts}, %begin ], [ %next_start, %one ]")
    steps = [body.field("%start", 8 * place, "i64") for place in range(arrays)]
    pointers = [
        body.value(f"getelementptr i8, ptr {first}, i64 {step}")
        for first, step in zip(firsts, steps, strict=True)
    ]
    next_words = iter(words)
    arguments = [f"i64 {next(next_words)}" if place is None else f"ptr {pointers[place]}" for place in order]
    called, status = f"{code}({', '.join(arguments)})", "0"
    if returns_status:
        status = body.value(f"call i32 {called}")
    else:
        body.line(f"call void {called}")
    refused = body.value(f"icmp ne i32 {status}, 0")
    body.line("%next_place = add nuw i64 %place, 1")
    body.line(f"%next_start = getelementptr i64, ptr %start, i64 {arrays}")
    last = body.value(f"icmp eq i64 %next_place, {places}")
    ends = body.value(f"or i1 {refused}, {last}")
    body.line(f"br i1 {ends}, label %done, label %one")
    body.begin("done")
    body.line(f"br i1 {held}, label %end, label %take")
    body.begin("take")
    body.line(f"call void {lock}(ptr {state})")
    body.line("br label %end")
    body.begin("end")
    result = body.value(f"select i1 {refused}, ptr {false}, ptr {true}")
    body.line(f"call void {refer}(ptr {result})")
    body.line(f"ret ptr {result}")
    head = "define ptr @run(ptr %self, ptr %arguments, i64 %count, ptr %names) {\nentry:\n"
    return head + "\n".join([*body.lines, "}"])
