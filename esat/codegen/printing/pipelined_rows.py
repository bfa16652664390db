"""Loops over rows that write a row once the next one has been looked at, as source text.

What is stored along a row often waits for what was gathered from it: a layer normalisation for the sum, and
then for the squares. After each of these loops a processor adds up lanes, divides and takes roots, one step
after another, and on rows of a few hundred elements that takes as long as the loops themselves. Meanwhile it
could work on other rows, but these are too many instructions ahead. So here the loops are pipelined::

    gather from row r + 1; store row r; gather what is left from row r + 1; ...

Two rows must stay in the first-level cache for that. Longer ones are done one after another, by the same
code.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numba.core import types

from esat.codegen.kernel.loop_ir import (
    Compute,
    Convert,
    Literal,
    Load,
    Loop,
    Statement,
    Store,
    Tile,
    operands_of,
    walk,
)
from esat.codegen.printing.loops import LoopPrinter
from esat.codegen.printing.scalars import Names, size_name
from esat.records import record


@record(frozen=True)
class Stages:
    """The body of a loop over rows in three: a loop that gathers, what lies between, and the last loop.

    Attributes
    ----------
    first, middle
        What comes before the last loop: up to the first loop, and behind it.
    last
        The last loop and what follows it.
    """

    first: tuple[Statement, ...]
    middle: tuple[Statement, ...]
    last: tuple[Statement, ...]

    @property
    def waiting(self) -> Loop:
        """The last loop."""
        loop = self.last[0]
        assert isinstance(loop, Loop)
        return loop


def stages_of(loop: Loop) -> Stages | None:
    """The stages of a loop over rows that can be pipelined; None for other loops.

    Each row has its own places in all that the loop stores, so it makes no difference in which order rows are
    written, and what is loaded of them was stored by their own stages.
    """
    places = [place for place, inner in enumerate(loop.body) if isinstance(inner, Loop)]
    if len(places) < 2 or loop.accumulators:
        return None
    first, last = loop.body[places[0]], loop.body[places[-1]]
    assert isinstance(first, Loop)
    assert isinstance(last, Loop)
    inside = tuple(walk(loop.body))
    if (
        not first.accumulators
        or last.accumulators
        or any(isinstance(inner, Tile) for inner in inside)
        or any(isinstance(inner, Loop) for inner in (*first.body, *last.body))
        or any(isinstance(inner, Store) and loop.axes[-1] not in inner.index for inner in inside)
    ):
        return None
    begin, end = places[0] + 1, places[-1]
    return Stages(loop.body[:begin], loop.body[begin:end], loop.body[end:])


class RowsPrinter(LoopPrinter):
    """Prints loops; those over rows of which one can wait while the next one is looked at, pipelined."""

    def loop(self, loop: Loop, names: Names) -> None:
        """Print a loop and what follows from its accumulators."""
        stages = self.stages(loop)
        if stages is None:
            super().loop(loop, names)
            return
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            self._pipelined(stages, loop, names)

    def stages(self, loop: Loop) -> Stages | None:
        """The stages of a loop that is to be pipelined."""
        return stages_of(loop)

    def _pipelined(self, stages: Stages, loop: Loop, names: Names) -> None:
        """Two steps a row: the first loop in even ones, and what lies between the loops in odd ones.

        The last loop comes in the even steps of the next row, or in the odd ones of its own.
        """
        axis = loop.axes[-1]
        first, rows = "turn", size_name(axis)
        if axis in names.bounds:
            begin, end = names.bounds[axis]
            self.source.line(f"rows = {end} - {begin}")
            first, rows = f"{begin} + turn", "rows"
        uintp = self.source.use("uintp", types.uintp)
        early, late = self._passed(stages)
        for value, dtype in early.items():
            self.source.line(f"v{value} = {self._zero(dtype)}")
        for value, dtype in late.items():
            self.source.line(f"late{value} = {self._zero(dtype)}")
        length = " * ".join(map(size_name, stages.waiting.axes))
        self.source.line(f"late = {length} * {self._bytes(loop, stages)} <= {self.scalars.target.near_bytes}")
        with self.source.block(f"for step in range(2 * ({rows} + late))"):
            self.source.line("turn = step >> 1")
            with self.source.block(f"if turn < {rows}"):
                self.source.line(f"i{axis} = {uintp}({first})")
                with self.source.block("if step & 1 == 0"):
                    self.block(stages.first, names, loop, flat=False)
                with self.source.block("else"):
                    self.block(stages.middle, names, loop, flat=False)
                    for value in late:
                        self.source.line(f"late{value} = v{value}")
            with self.source.block("if step & 1 != late and turn >= late"):
                self.source.line(f"i{axis} = {uintp}({first} - late)")
                renamed = {**names.values, **{value: f"late{value}" for value in late}}
                self.block(stages.last, replace(names, values=renamed), loop, flat=False)

    def _passed(self, stages: Stages) -> tuple[dict[int, str], dict[int, str]]:
        """Values of the first stage that later ones read, and all that the last stage reads; their dtypes."""
        first, middle = self._defined(stages.first), self._defined(stages.middle)
        late = {value: dtype for value, dtype in (first | middle).items() if value in _read(stages.last)}
        read = _read(stages.middle).union(late)
        return {value: dtype for value, dtype in first.items() if value in read}, late

    def _defined(self, stage: tuple[Statement, ...]) -> dict[int, str]:
        """Values that a stage defines outside of its loops, and their dtypes."""
        defined: dict[int, str] = {}
        for statement in stage:
            if isinstance(statement, Loop):
                defined |= {one.value: one.result_dtype for one in statement.accumulators}
            elif isinstance(statement, Load):
                defined[statement.value] = self.scalars.kernel.arrays[statement.array].dtype
            elif isinstance(statement, Literal | Compute | Convert):
                defined[statement.value] = statement.dtype
        return defined

    def _zero(self, dtype: str) -> str:
        return "False" if dtype == "bool" else f"{self.source.expression(dtype, dtype)}(0)"

    def _bytes(self, loop: Loop, stages: Stages) -> int:
        """Bytes for each place along a row: what is loaded of rows counts twice, for two of them."""
        row, inner = loop.axes[-1], stages.waiting.axes[-1]
        counts: dict[int, int] = {}
        for statement in walk(loop.body):
            if isinstance(statement, Load | Store) and inner in statement.index:
                count = 2 if isinstance(statement, Load) and row in statement.index else 1
                counts[statement.array] = max(count, counts.get(statement.array, 0))
        arrays = self.scalars.kernel.arrays
        return sum(count * np.dtype(arrays[array].dtype).itemsize for array, count in counts.items())


def _read(statements: tuple[Statement, ...]) -> set[int]:
    return {value for inner in walk(statements) for value in operands_of(inner)}
