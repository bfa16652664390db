"""Intrinsics on memory that threads share: words at addresses, locks, tasks and structures.

Every access to a word is sequentially consistent, but for those that say otherwise: the protocol rests on one
order of all of them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_ORDER = "seq_cst"
_ALIGNMENT = 8
TASK = ir.FunctionType(ir.VoidType(), [_WORD, _WORD, _WORD])
"""A task: called with the address of its data, the first of its units, and the one after the last."""
_ACQUIRE = ir.FunctionType(ir.IntType(32), [_WORD, ir.IntType(32)])
_RELEASE = ir.FunctionType(ir.VoidType(), [_WORD])
_NUMBER = ir.IntType(32)
_HERE = ir.FunctionType(_NUMBER, [])
_ALLOW = ir.FunctionType(_NUMBER, [_NUMBER, _WORD, _WORD])


def _pointer(builder: Any, address: Any, pointee: Any = _WORD) -> Any:
    return builder.inttoptr(address, pointee.as_pointer())


@intrinsic
def load(typing_context: Any, address: Any) -> Any:
    """The word at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(builder, arguments[0]), _ORDER, _ALIGNMENT)

    return types.int64(types.int64), generate


@intrinsic
def store(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the word at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _pointer(builder, arguments[0]), _ORDER, _ALIGNMENT)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def put(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the word at an address, before what this thread stores next, but without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[1], _pointer(builder, arguments[0]), "release", _ALIGNMENT)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _changing(operation: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw(operation, _pointer(builder, arguments[0]), arguments[1], _ORDER)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def exchange(typing_context: Any, address: Any, value: Any) -> Any:
    """Write the word at an address; the old one is returned."""
    return _changing("xchg")


@intrinsic
def add(typing_context: Any, address: Any, value: Any) -> Any:
    """Add to the word at an address; the old one is returned."""
    return _changing("add")


@intrinsic
def acquire(typing_context: Any, function: Any, lock: Any) -> Any:
    """Wait for one of Python's locks, by the address of PyThread_acquire_lock."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wait = ir.Constant(ir.IntType(32), 1)
        builder.call(_pointer(builder, arguments[0], _ACQUIRE), [arguments[1], wait])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def release(typing_context: Any, function: Any, lock: Any) -> Any:
    """Release one of Python's locks, by the address of PyThread_release_lock."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(_pointer(builder, arguments[0], _RELEASE), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def here(typing_context: Any, function: Any) -> Any:
    """The processor that this thread runs on, by the address of sched_getcpu; negative if it is unknown."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.call(_pointer(builder, arguments[0], _HERE), []), _WORD)

    return types.int64(types.int64), generate


@intrinsic
def allow(typing_context: Any, function: Any, thread: Any, size: Any, mask: Any) -> Any:
    """Let a thread run on the processors of a mask of so many bytes, by the address of sched_setaffinity.

    Where the system refuses, it runs where it did.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function, thread, size, mask = arguments
        number = builder.trunc(thread, _NUMBER)
        builder.call(_pointer(builder, function, _ALLOW), [number, size, mask])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


@intrinsic
def call_task(typing_context: Any, task: Any, data: Any, begin: Any, end: Any) -> Any:
    """Call the task at an address for some of its units."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.call(_pointer(builder, arguments[0], TASK), list(arguments[1:]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate
