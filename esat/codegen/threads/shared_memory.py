"""Primitives on memory that threads share: words at addresses, locks, tasks and processors.

Every access to a word is sequentially consistent, but for those that say otherwise: the protocol rests on one
order of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from esat.base.native import Primitive

_WORD, _NUMBER, _NOTHING = ir.IntType(64), ir.IntType(32), ir.VoidType()
_ORDER = "seq_cst"
_ALIGNMENT = 8
TASK = ir.FunctionType(_NOTHING, [_WORD, _WORD, _WORD])
"""A task: called with the address of its data, the first of its units, and the one after the last."""
SHARE = ir.FunctionType(_NOTHING, [_WORD] * 6)
"""The compiled ``share`` of the protocol."""
_ACQUIRE = ir.FunctionType(_NUMBER, [_WORD, _NUMBER])
_RELEASE = ir.FunctionType(_NOTHING, [_WORD])
_HERE = ir.FunctionType(_NUMBER, [])
_ALLOW = ir.FunctionType(_NUMBER, [_NUMBER, _WORD, _WORD])


def _pointer(build: Any, address: Any, pointee: Any = _WORD) -> Any:
    return build.inttoptr(address, pointee.as_pointer())


def _load(build: Any, operands: Sequence[Any]) -> Any:
    return build.load_atomic(_pointer(build, operands[0]), _ORDER, _ALIGNMENT)


def _storing(order: str) -> Callable[[Any, Sequence[Any]], None]:
    def write(build: Any, operands: Sequence[Any]) -> None:
        build.store_atomic(operands[1], _pointer(build, operands[0]), order, _ALIGNMENT)

    return write


def _changing(operation: str) -> Callable[[Any, Sequence[Any]], Any]:
    def write(build: Any, operands: Sequence[Any]) -> Any:
        return build.atomic_rmw(operation, _pointer(build, operands[0]), operands[1], _ORDER)

    return write


def _acquire(build: Any, operands: Sequence[Any]) -> None:
    build.call(_pointer(build, operands[0], _ACQUIRE), [operands[1], _NUMBER(1)])


def _release(build: Any, operands: Sequence[Any]) -> None:
    build.call(_pointer(build, operands[0], _RELEASE), [operands[1]])


def _here(build: Any, operands: Sequence[Any]) -> Any:
    return build.sext(build.call(_pointer(build, operands[0], _HERE), []), _WORD)


def _allow(build: Any, operands: Sequence[Any]) -> None:
    function, thread, size, mask = operands
    build.call(_pointer(build, function, _ALLOW), [build.trunc(thread, _NUMBER), size, mask])


def _call_task(build: Any, operands: Sequence[Any]) -> None:
    build.call(_pointer(build, operands[0], TASK), list(operands[1:]))


load = Primitive(1, _load)
"""The word at an address."""
store = Primitive(2, _storing(_ORDER))
"""Write the word at an address."""
put = Primitive(2, _storing("release"))
"""Write the word at an address, before what this thread stores next, but without waiting for it."""
exchange = Primitive(2, _changing("xchg"))
"""Write the word at an address; the old one is returned."""
add = Primitive(2, _changing("add"))
"""Add to the word at an address; the old one is returned."""
acquire = Primitive(2, _acquire)
"""Wait for one of Python's locks, by the address of PyThread_acquire_lock."""
release = Primitive(2, _release)
"""Release one of Python's locks, by the address of PyThread_release_lock."""
here = Primitive(1, _here)
"""The processor that this thread runs on, by the address of sched_getcpu; negative if it is unknown."""
allow = Primitive(4, _allow)
"""Let a thread run on the processors of a mask of so many bytes, by the address of sched_setaffinity.

Where the system refuses, it runs where it did.
"""
call_task = Primitive(4, _call_task)
"""Call the task at an address, with its data, for units from one up to another."""
