"""Moments in one pass as source text: see :mod:`esat.codegen.moments`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from numba.core import types

from esat.codegen import views
from esat.codegen.moments import CHUNK_BITS, Moments, accumulator_of
from esat.codegen.partition import SUM_BLOCK_BITS
from esat.codegen.printing.prefetches import print_pages
from esat.codegen.printing.scalars import Names, ScalarPrinter, size_name
from esat.codegen.printing.source import Source
from esat.codegen.vector_math import reduction

_TOGETHER = """
def moments_together_{real}(pivots, sums, squares, size):
    total = lost = mean = low = spread = slack = count = {real}(0)
    for chunk in range(pivots.shape[0]):
        pivot, part = pivots[chunk], sums[chunk]
        length = {real}(min(size - (chunk << {bits}), {chunk}))
        for term in (length * pivot, part):
            lost += rounding_error(total, term)
            total += term
        own = part / length
        own_spread = squares[chunk] - part * own
        if own_spread < 0:  # by rounding
            own_spread = {real}(0)
        if chunk == 0:
            mean, low, spread, count = pivot, own, own_spread, length
            continue
        both = count + length
        share = length / both
        difference = (pivot - mean) + (own - low)
        term = own_spread + difference * difference * (count * share)
        slack += rounding_error(spread, term)
        spread += term
        step = difference * share
        low += rounding_error(mean, step)
        mean += step
        count = both
    return corrected(total, lost), mean, low, corrected(spread, slack)
"""
"""The sum of all, their mean as a double word, and the sum of squares about it."""


def results_names(moments: Moments) -> list[str]:
    """Names of the arrays that chunks leave their pivots, sums and squares in."""
    return [f"{name}{moments.value}" for name in ("pivots", "sums", "squares")]


def print_helpers(moments: Sequence[Moments], source: Source) -> None:
    """Print the functions that take in what chunks leave."""
    for dtype in dict.fromkeys(one.dtype for one in moments):
        source.use("rounding_error", views.rounding_error)
        source.use("corrected", views.corrected)
        real = source.expression(dtype, dtype)
        text = _TOGETHER.format(real=real, bits=CHUNK_BITS, chunk=1 << CHUNK_BITS)
        for line in text.strip().split("\n"):
            source.line(line)
        source.line("")


def print_chunks(moments: Moments, scalars: ScalarPrinter) -> None:
    """Print the loop over the chunks from ``begin`` to ``end``."""
    source, axis, block = scalars.source, moments.total.statement.axes[0], 1 << SUM_BLOCK_BITS
    real = source.expression(moments.dtype, moments.dtype)
    uintp = source.use("uintp", types.uintp)
    add = source.use("reassociating_add", reduction.reassociating_add)
    add_product = source.use("reassociating_multiply_add", reduction.reassociating_multiply_add)
    value = Names().value(moments.load.value)

    def elements(first: str, end: str) -> AbstractContextManager[None]:
        return source.block(f"for i{axis} in range({uintp}({first}), {uintp}({end}))")

    with source.block("for chunk in range(begin, end)"):
        source.line(f"first = chunk << {CHUNK_BITS}")
        source.line(f"last = min(first + {1 << CHUNK_BITS}, {size_name(axis)})")
        source.line(f"ahead = min(first + {block}, last)")
        source.line(f"part = {real}(0)")
        with elements("first", "ahead"):
            scalars.definition(moments.load, Names())
            source.line(f"part = {add}(part, {value})")
        source.line(f"pivot = part / {real}(ahead - first)")
        source.line(f"total = square = {real}(0)")
        with source.block(f"for block in range((last - first + {block - 1}) >> {SUM_BLOCK_BITS})"):
            source.line(f"start = first + (block << {SUM_BLOCK_BITS})")
            source.line(f"part = part_square = {real}(0)")
            print_pages([moments.load], scalars, Names().with_position(axis, "start"), str(block))
            with elements("start", f"min(start + {block}, last)"):
                scalars.definition(moments.load, Names())
                source.line(f"difference = {value} - pivot")
                source.line(f"part = {add}(part, difference)")
                source.line(f"part_square = {add_product}(part_square, difference, difference)")
            source.line("total += part")
            source.line("square += part_square")
        for name, result in zip(results_names(moments), ("pivot", "total", "square"), strict=True):
            source.line(f"{name}[chunk] = {result}")


def print_total(moments: Moments, source: Source) -> None:
    """Print what takes in the chunks: the sum, and what the squares will follow from."""
    number = moments.value
    real, axis = source.expression(moments.dtype, moments.dtype), moments.total.statement.axes[0]
    arguments = ", ".join([*results_names(moments), size_name(axis)])
    results = f"v{number}, mean{number}, low{number}, spread{number}"
    source.line(f"{results} = moments_together_{real}({arguments})", accumulator_of(moments.total).comment)


def print_squares(moments: Moments, source: Source) -> None:
    """Print the sum of the squares about the centre, which is known by then."""
    number, accumulator = moments.value, accumulator_of(moments.squares)
    real, axis = source.expression(moments.dtype, moments.dtype), moments.total.statement.axes[0]
    source.line(f"shift = (mean{number} - v{moments.centre}) + low{number}")
    text = f"v{accumulator.value} = spread{number} + {real}({size_name(axis)}) * (shift * shift)"
    source.line(text, accumulator.comment)
