"""Memory that is prefetched into the caches before it is read.

Processors notice that memory is read from one end to the other, and fetch what comes next by themselves.
Some processors read a single array sooner where each of its lines is prefetched (``prefetch_distance``), into
the first-level cache, if that has room for it: and no sooner where there are several arrays.

Rows that are read several times come from memory only the first time, and for the rest memory is idle.
Where the last time is a loop that writes past the caches, that loop prefetches the next row, or that of the
next group of rows. Where rows go one by one (``groups_rows``), memory has to be busy while sums are taken,
too: the loops that take them prefetch the next row, and the loop that writes one further below if rows are
shorter than :data:`ROWS_AHEAD`.

Loops that prefetch lines read runs of a fixed length, which LLVM writes out, and no load is moved to before
the prefetches.

Everything else goes into the second-level cache: what is fetched into the first drives out what a loop works
on. Addresses behind the end of an array do no harm, whoever owns them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen.ground.memory_access import LINE, item_size, pointer_to, word

_CGUTILS: Any = cgutils
ROWS_AHEAD = 15 << 10
"""Bytes of rows between the next one and the one that is prefetched while a row is written."""
RUN = 512
"""Bytes that are prefetched at a time: while lines of 2048 are, the loop itself waits."""


def fetch(builder: Any, pointer: Any, level: int) -> None:
    """Fetch the line of an address into the caches from this level on."""
    number = ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], function_type)
    to_read, locality, data = (ir.Constant(number, value) for value in (0, 4 - level, 1))
    builder.call(function, [pointer, to_read, locality, data])


def _let_no_load_pass(builder: Any) -> None:
    """Keep LLVM from moving loads that follow to before what was prefetched: they may wait for memory."""
    builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], True)


def _lines_into(level: int, array: Any, index: Any, count: Any) -> Any:
    """The typing and the code of what fetches lines into the caches from a level on."""
    if not (isinstance(array, types.Array) and isinstance(index, types.BaseTuple)):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = pointer_to(context, builder, array, arguments[0], index, arguments[1])
        number = context.cast(builder, arguments[2], count, types.int64)
        length = builder.mul(number, word(item_size(context, array)))
        with _CGUTILS.for_range_slice(builder, word(0), length, word(LINE), inc=True) as (place, _):
            fetch(builder, builder.gep(pointer, [place]), level)
        if level == 1:
            _let_no_load_pass(builder)
        return context.get_dummy_value()

    return types.void(array, index, count), generate


@intrinsic
def prefetch_lines(typing_context: Any, array: Any, index: Any, count: Any) -> Any:
    """Fetch ``count`` elements from a tuple of places on, along contiguous memory."""
    return _lines_into(2, array, index, count)


@intrinsic
def prefetch_near(typing_context: Any, array: Any, index: Any, count: Any) -> Any:
    """The same into the first-level cache."""
    return _lines_into(1, array, index, count)
