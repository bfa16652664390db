"""Memory announced to the caches before it is read.

Processors notice that memory is read from one end to the other, and fetch what comes next, some of them only
up to the end of a page, whose neighbours may lie anywhere. At the start of each page those wait, and begin
anew. So for them loops that read more than caches hold fetch the first lines of the pages some way ahead; the
processor then fetches the rest of these by itself. On a Zen 4 server a float32 ``sum((x - y)**2)`` of 80 MB
takes 0.8 to 0.96 of the time, and ``a * x + b`` of 160 MB, written past the caches, 0.9. A Zen 3 server goes
on to the next page by itself, and if its first line is there already, it does not: the same programs take 1.3
and 1.15 times as long. So pages are announced only to processors that were seen to gain from it
(:func:`esat.codegen.processor.waits_at_pages`).

A Zen 5 server reads one array at 35 GB/s, and at 48 where each line of it is announced 8 KB ahead, 512 bytes
at a time; two arrays it reads at 45, and at 40 to 43 if they are announced. There a loop that reads a single
array announces all of it (:func:`esat.codegen.processor.fetches_little`), into the first-level cache, which
has room for it in 48 KB. The mean and variance of 80 MB take 0.8 of the time, and ``(M + r) * c`` takes 0.75
of what it does in groups of rows (:mod:`esat.codegen.printing.streams`), for which there is no need then. An
Emerald Rapids server takes 0.8 of the time for the mean and variance, and as much for a polynomial of 80 MB.

Rows that are read several times come from memory only the first time, and for the rest memory is idle. Where
the last time is a loop that writes past the caches, that loop fetches the next row, or that of the next group
of rows: a layer normalisation of 80 MB takes 0.7 to 0.8 of the time. On a Zen 5 server memory has to be busy
while sums are taken, too (:func:`esat.codegen.processor.reads_rows_one_by_one`): the loops that take them
announce the next row, which takes 0.93 of the time. There the loop that writes announces a row further below
if rows are shorter than :data:`ROWS_AHEAD`: rows of 6400 bytes take 0.88 of the time, and such of 8000 take
0.9.

Loops that announce lines read runs of a fixed length, which LLVM writes out, and no load is moved to before
the announcements: a mean and variance takes 0.95 of the time.

Everything else goes into the second-level cache: what is fetched into the first drives out what a loop works
on.
Addresses behind the end of an array do no harm, whoever owns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from esat.codegen.loop_ir import Kernel, Load, Loop, walk
from esat.codegen.memory_access import LINE, WORD, item_size, pointer_to, word
from esat.codegen.streaming import stores_along

_CGUTILS: Any = cgutils
_PAGE = 4096
_FIRST_LINES = 4
"""Lines of a page that are fetched; a processor has noticed by then that more will follow."""
ROWS_AHEAD = 15 << 10
"""Bytes of rows between the next one and the one that is announced while a row is written."""
RUN = 512
"""Bytes that are announced at a time: while lines of 2048 are, the loop itself waits."""


def loads_along(loop: Loop, axes: Sequence[int]) -> list[Load]:
    """The loads of an innermost loop that run along memory, and through all of the given axes."""
    return [
        statement
        for statement in loop.body
        if isinstance(statement, Load)
        and statement.index
        and statement.index[-1] == loop.axes[-1]
        and set(axes) <= set(statement.index)
    ]


def read_before(load: Load, loop: Loop, around: Loop) -> bool:
    """Whether an earlier loop beside ``loop``, in the body of a loop over rows, reads the same row."""
    if loop not in around.body or len(load.index) < 2 or load.index[-2] != around.axes[-1]:
        return False
    before = around.body[: around.body.index(loop)]
    return any(
        isinstance(inner, Load) and (inner.array, inner.index) == (load.array, load.index)
        for other in before
        if isinstance(other, Loop)
        for inner in other.body
    )


def rereads_rows(kernel: Kernel, outputs: Sequence[int]) -> bool:
    """Whether a loop that stores one of the outputs along memory reads rows that were read before."""
    return any(
        read_before(load, loop, around)
        for around in walk(kernel.body)
        if isinstance(around, Loop)
        for loop in around.body
        if isinstance(loop, Loop) and set(stores_along(loop)).intersection(outputs)
        for load in loads_along(loop, ())
    )


def fetch(builder: Any, pointer: Any, level: int) -> None:
    """Fetch the line of an address into the caches from this level on."""
    number = ir.IntType(32)
    function_type = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], function_type)
    to_read, locality, data = (ir.Constant(number, value) for value in (0, 4 - level, 1))
    builder.call(function, [pointer, to_read, locality, data])


def _let_no_load_pass(builder: Any) -> None:
    """Keep LLVM from moving loads that follow to before what was announced: they may wait for memory."""
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
