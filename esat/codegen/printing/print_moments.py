"""Moments in one pass as source text: see :mod:`esat.codegen.kernel.moments`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numba.core import types

from esat.codegen.kernel.moments import CHUNK_BITS, GROUP_BITS, Moments, accumulator_of
from esat.codegen.kernel.partition import SUM_BLOCK_BITS
from esat.codegen.llvm import views
from esat.codegen.printing.print_prefetches import runs_ahead
from esat.codegen.printing.scalars import Names, ScalarPrinter, size_name
from esat.codegen.printing.source import Source
from esat.codegen.vector_math import reduction

_BLOCK = 1 << SUM_BLOCK_BITS
_RUN = 1024
"""Bytes that are read of each quarter of a group before its partial sums, a vector of them, are taken in: the
longer the runs, the less accurate are sums."""
_TURNS = 1 << GROUP_BITS - CHUNK_BITS
"""Chunks of a group."""
_TURN = 1 << CHUNK_BITS - 2
"""Elements of each quarter of a group that are part of one chunk."""
_TOGETHER = """
def moments_together_{real}(pivots, sums, squares, size):
    total = lost = mean = low = spread = slack = count = {real}(0)
    for chunk in range((size + {chunk} - 1) >> {bits}):
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
    """Print the loop over groups of chunks from ``begin`` to ``end``."""
    printer = _ChunkPrinter(moments, scalars)
    if scalars.target.tuning.reading_places > 1:
        printer.groups()
    else:
        printer.chunks(f"begin * {_TURNS}", f"min(end * {_TURNS}, {printer.count})")


class _ChunkPrinter:
    """Prints what leaves the pivot, the sum and the squares of each chunk."""

    def __init__(self, moments: Moments, scalars: ScalarPrinter) -> None:
        self.moments, self.scalars, self.source = moments, scalars, scalars.source
        self.axis = moments.total.statement.axes[0]
        self.size = size_name(self.axis)
        self.count = f"({self.size} + {(1 << CHUNK_BITS) - 1}) >> {CHUNK_BITS}"
        self.real = self.source.expression(moments.dtype, moments.dtype)
        self.run = _RUN // np.dtype(moments.dtype).itemsize
        self.uintp = self.source.use("uintp", types.uintp)
        self.add = self.source.use("reassociating_add", reduction.reassociating_add)
        self.source.use("rounding_error", views.rounding_error)
        self.source.use("corrected", views.corrected)
        self.add_product = self.source.use("reassociating_multiply_add", reduction.reassociating_multiply_add)

    def chunks(self, begin: str, after: str) -> None:
        """Chunks that lie behind one another, from the first one of a group on."""
        self.source.line(f"pivot = {self.real}(0)")
        with self.source.block(f"for chunk in range({begin}, {after})"):
            self.source.line(f"first = chunk << {CHUNK_BITS}")
            self.source.line(f"last = min(first + {1 << CHUNK_BITS}, {self.size})")
            with self.source.block(f"if chunk & {_TURNS - 1} == 0"):
                self._pivot()
            self.source.line(f"total = lost = square = slack = {self.real}(0)")
            with self.source.block(f"for block in range((last - first + {_BLOCK - 1}) >> {SUM_BLOCK_BITS})"):
                self.source.line(f"start = first + (block << {SUM_BLOCK_BITS})")
                block = "start", f"min(start + {_BLOCK}, last)"
                for first, end in runs_ahead([self.moments.load], self.scalars, Names(), block, _BLOCK):
                    self.source.line(f"part = part_square = {self.real}(0)")
                    with self._elements(first, end):
                        self._take("")
                    self._add_to_total("part")
                    self.source.line("slack += rounding_error(square, part_square)")
                    self.source.line("square += part_square")
            self.source.line("square = corrected(square, slack)")
            self._leave()
            self.source.line(f"pivot += total / {self.real}(last - first)")

    def groups(self) -> None:
        """Groups of chunks; those of one that is not whole lie behind one another."""
        with self.source.block("for group in range(begin, end)"):
            self.source.line(f"first = group << {GROUP_BITS}")
            with self.source.block(f"if first + {1 << GROUP_BITS} > {self.size}"):
                self.chunks(f"group * {_TURNS}", self.count)
                self.source.line("break")
            self._pivot_from_first()
            with self.source.block(f"for turn in range({_TURNS})"):
                self.source.line(f"chunk = group * {_TURNS} + turn")
                self.source.line(f"total = lost = square = {self.real}(0)")
                with self.source.block(f"for run in range({_TURN // self.run})"):
                    self._runs(f"first + turn * {_TURN} + run * {self.run}")
                self._leave()
                self.source.line(f"pivot += total / {self.real}({1 << CHUNK_BITS})")

    def _runs(self, start: str) -> None:
        """One run from each quarter of a group, the first one from ``start`` on."""
        self.source.line(f"start = {self.uintp}({start})")
        for quarter in range(4):
            self.source.line(f"part{quarter} = part_square{quarter} = {self.real}(0)")
        with self._elements("0", str(self.run)):
            for quarter in range(4):
                apart = quarter << GROUP_BITS - 2
                self._take(str(quarter), f"start + {self.uintp}({apart}) + i{self.axis}")
        self.source.line("run_total = (part0 + part1) + (part2 + part3)")
        self._add_to_total("run_total")
        self.source.line("square += (part_square0 + part_square1) + (part_square2 + part_square3)")

    def _pivot(self) -> None:
        """The mean of a quarter of the elements, in whole vectors, from ``first`` on."""
        value = Names().value(self.moments.load.value)
        self.source.line("ahead = min(first + (last - first + 127 >> 7 << 5), last)")
        self.source.line(f"part = {self.real}(0)")
        with self._elements("first", "ahead"):
            self.scalars.definition(self.moments.load, Names())
            self.source.line(f"part = {self.add}(part, {value})")
        self.source.line(f"pivot = part / {self.real}(ahead - first)")

    def _pivot_from_first(self) -> None:
        """The mean of a block from ``first`` on, of elements that may lie far from zero.

        Pivots that differ only by what was rounded in them make running means less accurate.
        """
        load = self.moments.load
        value = Names().value(load.value)
        at_first = Names({load.value: "origin"}, {self.axis: f"{self.uintp}(first)"})
        self.scalars.definition(load, at_first)
        self.source.line(f"part = {self.real}(0)")
        with self._elements("first", f"first + {_TURN}"):
            self.scalars.definition(load, Names())
            self.source.line(f"part = {self.add}(part, {value} - origin)")
        self.source.line(f"pivot = origin + part / {self.real}({_TURN})")

    def _elements(self, first: str, end: str) -> AbstractContextManager[None]:
        return self.source.block(f"for i{self.axis} in range({self.uintp}({first}), {self.uintp}({end}))")

    def _take(self, block: str, place: str = "") -> None:
        """Add one element, and its square, to what belongs to a block."""
        names = Names().with_position(self.axis, place) if place else Names()
        value = names.value(self.moments.load.value)
        part, square = f"part{block}", f"part_square{block}"
        self.scalars.definition(self.moments.load, names)
        self.source.line(f"difference = {value} - pivot")
        self.source.line(f"{part} = {self.add}({part}, difference)")
        self.source.line(f"{square} = {self.add_product}({square}, difference, difference)")

    def _add_to_total(self, term: str) -> None:
        """Add to the sum of a chunk, about a pivot that may be far from all elements but one."""
        self.source.line(f"lost += rounding_error(total, {term})")
        self.source.line(f"total += {term}")

    def _leave(self) -> None:
        self.source.line("total = corrected(total, lost)")
        for name, result in zip(results_names(self.moments), ("pivot", "total", "square"), strict=True):
            self.source.line(f"{name}[chunk] = {result}")


def print_row(moments: Moments, scalars: ScalarPrinter) -> None:
    """Print the loop over the chunks of a row, and what takes them in; the arrays are on the stack."""
    for name in results_names(moments):
        new = scalars.source.use("scratch", views.scratch)
        scalars.source.line(f"{name} = {new}({scalars.source.expression(moments.dtype, moments.dtype)})")
    printer = _ChunkPrinter(moments, scalars)
    printer.chunks("0", printer.count)
    print_total(moments, scalars.source)


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
