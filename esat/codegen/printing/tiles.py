"""Tiles as source text: loops over rows outside, one loop along the rows innermost.

What a tile computes for each of its places lives in scratch arrays. Plain sums take four rows at a
time, so that the scratch is read and written once for four rows of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from numba.core import types

from esat.codegen.kernel.loop_ir import (
    Accumulator,
    Definition,
    Literal,
    Load,
    LoadAt,
    Loop,
    Statement,
    Store,
    Tile,
    Update,
    operands_of,
)
from esat.codegen.llvm import views
from esat.codegen.printing.loops import is_float_sum, is_index
from esat.codegen.printing.scalars import Names, ScalarPrinter, size_name
from esat.codegen.printing.source import Source

WIDTH = views.TILE_WIDTH
_WIDTH_BITS = WIDTH.bit_length() - 1
_ROWS = 4
"""Rows of a tile whose sums are computed side by side."""
_LONGEST_UNROLLED = 8
"""Statements of a loop body that is written out for each row of a tile, at most."""

_Segment = list[Definition | Store]


class TilePrinter:
    """Prints tiles."""

    def __init__(self, scalars: ScalarPrinter) -> None:
        self.source = scalars.source
        self.scalars = scalars

    def tile(self, tile: Tile, names: Names) -> None:
        """Print a tile; the scratch arrays it names must exist."""
        plan = _Plan(tile)
        first, size = "", size_name(tile.axis)
        if tile.axis in names.bounds:
            begin, end = names.bounds[tile.axis]
            first, size = f"{begin} + ", f"({end} - {begin})"
        uintp = self.source.use("uintp", types.uintp)
        with self.source.block(f"for tile in range(({size} + {WIDTH - 1}) >> {_WIDTH_BITS})"):
            self.source.line(f"start = {uintp}({first}(tile << {_WIDTH_BITS}))")
            self.source.line(f"width = {uintp}(min({size} - (tile << {_WIDTH_BITS}), {WIDTH}))")
            names = names.with_position(tile.axis, "start + place")
            for part in plan.parts:
                if isinstance(part, Loop):
                    self._loop(part, plan, names)
                else:
                    self._segment(part, plan, names)

    def _places(self) -> str:
        return f"for place in range({self.source.use('uintp', types.uintp)}(width))"

    def _segment(self, statements: _Segment, plan: _Plan, names: Names) -> None:
        with self.source.block(self._places()):
            self._read_scratch(statements, plan, names)
            for statement in statements:
                if isinstance(statement, Store):
                    self.scalars.store(statement, names)
                    continue
                self.scalars.definition(statement, names)
                if statement.value in plan.crossing:
                    self.source.line(f"scratch{statement.value}[place] = {names.value(statement.value)}")

    def _read_scratch(self, statements: Sequence[Statement], plan: _Plan, names: Names) -> None:
        """Define what statements read that other parts of the tile have computed."""
        for value in plan.read_from_elsewhere(statements):
            load = plan.loads.get(value)
            if load is not None:
                self.scalars.definition(load, names)
            else:
                self.source.line(f"{names.value(value)} = scratch{value}[place]")

    # ---- loops over rows

    def _loop(self, loop: Loop, plan: _Plan, names: Names) -> None:
        if loop.accumulators:
            with self.source.block(self._places()):
                for accumulator in loop.accumulators:
                    self._start(accumulator)
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in range({size_name(axis)})"))
            last = loop.axes[-1]
            size = size_name(last)
            if not _is_unrolled(loop):
                with self.source.block(f"for i{last} in range({size})"), self.source.block(self._places()):
                    self._rows(loop, plan, [names])
                return
            uintp = self.source.use("uintp", types.uintp)
            rows = [
                replace(
                    _suffixed(loop.body, names, number), positions={**names.positions, last: f"row{number}"}
                )
                for number in range(_ROWS)
            ]
            with self.source.block(f"for quad in range({uintp}({size} // {_ROWS}))"):
                for number in range(_ROWS):
                    self.source.line(f"row{number} = quad * {uintp}({_ROWS}) + {uintp}({number})")
                with self.source.block(self._places()):
                    self._rows(loop, plan, rows)
            span = f"range({uintp}({size} - {size} % {_ROWS}), {uintp}({size}))"
            with self.source.block(f"for i{last} in {span}"), self.source.block(self._places()):
                self._rows(loop, plan, [names])

    def _start(self, accumulator: Accumulator) -> None:
        value, start = accumulator.value, self.scalars.start(accumulator)
        if is_index(accumulator):
            self.source.line(f"best{value}[place] = {start}", accumulator.comment)
            start = "0"
        self.source.line(f"scratch{value}[place] = {start}", accumulator.comment)

    def _rows(self, loop: Loop, plan: _Plan, rows: Sequence[Names]) -> None:
        """The body of a loop for one row, or for several at once."""
        self._read_scratch(loop.body, plan, rows[0])
        for names in rows:
            for statement in loop.body:
                if isinstance(statement, Store):
                    self.scalars.store(statement, names)
                elif isinstance(statement, Definition):
                    self.scalars.definition(statement, names)
        accumulators = {accumulator.value: accumulator for accumulator in loop.accumulators}
        for statement in loop.body:
            if isinstance(statement, Update):
                operands = [names.value(statement.operand) for names in rows]
                self._update(accumulators[statement.accumulator], operands, loop, rows[0])

    def _update(self, accumulator: Accumulator, operands: Sequence[str], loop: Loop, names: Names) -> None:
        gathered = f"scratch{accumulator.value}[place]"
        if is_index(accumulator):
            self._update_index(accumulator, operands[0], loop, names)
            return
        parts = list(operands)
        while len(parts) > 1:
            parts = [
                f"({self.scalars.combination(accumulator, left, right)})"
                for left, right in zip(parts[::2], parts[1::2], strict=True)
            ]
        self.source.line(f"{gathered} = {self.scalars.combination(accumulator, gathered, parts[0])}")

    def _update_index(self, accumulator: Accumulator, operand: str, loop: Loop, names: Names) -> None:
        value = accumulator.value
        best, found = f"best{value}[place]", f"scratch{value}[place]"
        (axis,) = loop.axes
        relation = ">" if accumulator.kind == "argmax" else "<"
        self.source.line(f"old = {best}")
        condition = f"{operand} {relation} old"
        if accumulator.dtype.startswith("float"):
            condition = f"({condition}) | (({operand} != {operand}) & (old == old))"
        select = self.source.expression("select", accumulator.dtype)
        row = f"{self.source.use('int64', types.int64)}({names.position(axis)})"
        self.source.line(f"better = {condition}")
        self.source.line(f"{best} = {select}(better, {operand}, old)")
        self.source.line(f"{found} = {select}(better, {row}, {found})")


class _Plan:
    """The parts of a tile, and the values that go from one part to another.

    Attributes
    ----------
    parts
        Loops, and runs of statements between them.
    crossing
        Values kept in scratch: what loops gather, and what is computed in one part and read in another.
    loads
        Definitions that a part repeats instead: reading memory costs no more than reading scratch.
    """

    def __init__(self, tile: Tile) -> None:
        self.parts: list[Loop | _Segment] = []
        for statement in tile.body:
            if isinstance(statement, Loop):
                self.parts.append(statement)
                continue
            assert isinstance(statement, Definition | Store)
            if not self.parts or isinstance(self.parts[-1], Loop):
                self.parts.append([])
            segment = self.parts[-1]
            assert isinstance(segment, list)
            segment.append(statement)
        self.loads: dict[int, Definition] = {}
        self.dtypes: dict[int, str] = {}
        for statement in tile.body:
            if isinstance(statement, Load | LoadAt | Literal):
                self.loads[statement.value] = statement
            elif isinstance(statement, Loop):
                for accumulator in statement.accumulators:
                    self.dtypes[accumulator.value] = accumulator.result_dtype
            elif isinstance(statement, Definition):
                self.dtypes[statement.value] = statement.dtype
        gathered = {part.value for loop in self.parts if isinstance(loop, Loop) for part in loop.accumulators}
        read = {value for part in self.parts for value in self.read_from_elsewhere(_statements(part))}
        self.crossing = gathered | (read & set(self.dtypes))

    def read_from_elsewhere(self, statements: Iterable[Statement]) -> list[int]:
        """Values of other parts of the tile that statements read, in order of first use."""
        own: set[int] = set()
        found: dict[int, None] = {}

        def read(value: int) -> None:
            if value in own or not (value in self.dtypes or value in self.loads):
                return
            if value in self.loads:
                for place in operands_of(self.loads[value]):
                    read(place)
            found[value] = None

        for statement in statements:
            for operand in operands_of(statement):
                read(operand)
            if isinstance(statement, Definition):
                own.add(statement.value)
        return list(found)


def scratch_of(tile: Tile) -> list[tuple[str, str]]:
    """Names and dtypes of the scratch arrays of a tile."""
    plan = _Plan(tile)
    found = [(f"scratch{value}", plan.dtypes[value]) for value in sorted(plan.crossing)]
    for statement in tile.body:
        if isinstance(statement, Loop):
            found += [(f"best{part.value}", part.dtype) for part in statement.accumulators if is_index(part)]
    return found


def declare_scratch(tile: Tile, source: Source) -> None:
    """Print the allocation of a tile's scratch arrays."""
    scratch = source.use("scratch", views.scratch)
    for name, dtype in scratch_of(tile):
        source.line(f"{name} = {scratch}({source.expression(dtype, dtype)})")


def _statements(part: Loop | _Segment) -> Sequence[Statement]:
    return part.body if isinstance(part, Loop) else part


def _is_unrolled(loop: Loop) -> bool:
    """Whether a loop takes several rows at once: it only sums, and computes little for it."""
    return (
        bool(loop.accumulators)
        and all(is_float_sum(accumulator) for accumulator in loop.accumulators)
        and len(loop.body) <= _LONGEST_UNROLLED
        and not any(isinstance(statement, Store) for statement in loop.body)
    )


def _suffixed(body: Sequence[Statement], names: Names, number: int) -> Names:
    """Names for one of several rows computed side by side."""
    own = {
        statement.value: f"v{statement.value}_{number}"
        for statement in body
        if isinstance(statement, Definition)
    }
    return replace(names, values={**names.values, **own})
