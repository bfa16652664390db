"""Memory that is prefetched into the caches before it is read.

Processors notice that memory is read from one end to the other, and fetch what comes next, some of them only
up to the end of a page, whose neighbours may lie anywhere. At the start of each page those wait, and begin
anew. For them loops that read more than caches hold prefetch the first lines of the pages some way ahead; the
processor then fetches the rest of these by itself. Others go on to the next page by themselves, and do not if
its first line is there already: so pages are prefetched only where that was measured to be faster
(``page_prefetch_distance`` of a target's tuning).

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

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen.ground.memory_access import LINE, WORD, item_size, pointer_to, word

_CGUTILS: Any = cgutils
_PAGE = 4096
_FIRST_LINES = 4
"""Lines of a page that are fetched; a processor has noticed by then that more will follow."""
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


def _is_place(array: Any, index: Any) -> bool:
    return isinstance(array, types.Array) and isinstance(index, types.BaseTuple)


def _run(context: Any, builder: Any, kinds: Sequence[Any], arguments: Sequence[Any]) -> tuple[Any, Any]:
    """The first address of so many elements of an array from a place on, and their length in bytes."""
    pointer = pointer_to(context, builder, kinds[0], arguments[0], kinds[1], arguments[1])
    number = context.cast(builder, arguments[2], kinds[2], types.int64)
    return pointer, builder.mul(number, word(item_size(context, kinds[0])))


def _lines_into(level: int, array: Any, index: Any, count: Any) -> Any:
    """The typing and the code of what fetches lines into the caches from a level on."""
    if not _is_place(array, index):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, length = _run(context, builder, signature.args, arguments)
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


@intrinsic
def prefetch_pages(typing_context: Any, array: Any, index: Any, count: Any, distance: Any) -> Any:
    """Fetch the first lines of pages that start ``distance`` bytes behind one of ``count`` elements.

    The elements are those from a tuple of places on, along contiguous memory.
    """
    if not _is_place(array, index):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, length = _run(context, builder, signature.args, arguments)
        # As many bytes as are missing to the end of a page lie before the next one.
        far = context.cast(builder, arguments[3], distance, types.int64)
        missing = builder.and_(builder.neg(builder.ptrtoint(pointer, WORD)), word(_PAGE - 1))
        with _CGUTILS.for_range_slice(builder, missing, length, word(_PAGE), inc=True) as (place, _):
            for line in range(_FIRST_LINES):
                ahead = builder.add(place, builder.add(far, word(line * LINE)))
                fetch(builder, builder.gep(pointer, [ahead]), level=2)
        return context.get_dummy_value()

    return types.void(array, index, count, distance), generate
