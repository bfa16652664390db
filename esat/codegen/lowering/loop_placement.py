"""Values placed in loops: each as far out as it can be, each reduction before what reads it.

At every level the values and stores that are wanted fall into phases, separated by the reductions
that end there. One loop nest a phase computes everything that can run along the same axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from esat.base.records import record
from esat.codegen.kernel.loop_ir import (
    Check,
    Index,
    Load,
    LoadAt,
    Loop,
    Places,
    Scatter,
    Statement,
    Store,
    Tile,
    Update,
    axes_of,
    places_of,
)
from esat.codegen.lowering.loop_order import LoopOrder
from esat.codegen.lowering.scalar_values import COSTLY_FLOPS, Fold, Node, Values, operands
from esat.codegen.lowering.unsupported import UnsupportedError


@record(frozen=True)
class StoreSink:
    """A value to be written to an output."""

    array: int
    index: Index
    value: int
    dtype: str
    comment: str = ""
    kept: bool = False


@record(frozen=True)
class ScatterSink:
    """A value to be written to an output at places that values say.

    Attributes
    ----------
    axes
        Of the loops that run through all of them, outermost first.
    """

    array: int
    index: Places
    value: int
    adds: bool
    axes: tuple[int, ...]
    comment: str = ""


@record(frozen=True)
class CheckSink:
    """A bool value that says whether the kernel must not go on."""

    value: int
    comment: str = ""


@record(frozen=True)
class _UpdateSink:
    """A value that an accumulator of the loop just opened takes in."""

    accumulator: int
    value: int


@record(frozen=True)
class _FoldSink:
    """A reduction to be computed at this level."""

    fold: Fold

    @property
    def value(self) -> int:
        return self.fold.operand


Sink: TypeAlias = StoreSink | ScatterSink | CheckSink | _UpdateSink | _FoldSink


@record(frozen=True)
class _Level:
    """What holds at one place in the nest.

    Attributes
    ----------
    open
        Axes of the loops around it.
    available
        Values that are defined.
    kept
        Loads that stand for values kept in an output by an earlier loop.
    in_tile
        Whether the innermost axis is that of a tile.
    """

    open: frozenset[int]
    available: frozenset[int]
    kept: Mapping[int, Load]
    in_tile: bool = False


class LoopScheduler:
    """Places the values of a group in loops.

    Parameters
    ----------
    values
        The values; folds over parts of axes are added to them.
    nest
        How loops nest.
    """

    def __init__(self, values: Values, nest: LoopOrder) -> None:
        self.values = values
        self.nest = nest
        self.place = {axis: position for position, axis in enumerate(nest.order)}

    def run(
        self, sinks: Sequence[StoreSink | ScatterSink | CheckSink], available: frozenset[int] = frozenset()
    ) -> tuple[Statement, ...]:
        """Statements that compute all of ``sinks`` and store them; values that are available are defined."""
        return self._block(tuple(sinks), _Level(frozenset(), available, {}))

    # ---- what is wanted

    def _node(self, value: int, level: _Level) -> Node:
        return level.kept.get(value) or self.values.nodes[value]

    def _needed(self, sinks: Iterable[Sink], level: _Level) -> list[int]:
        """Values that sinks depend on and that are not available, each after its operands."""
        found: set[int] = set()
        pending = [value for sink in sinks for value in _read(sink)]
        while pending:
            value = pending.pop()
            if value not in found and value not in level.available:
                found.add(value)
                pending += operands(self._node(value, level))
        return sorted(found)

    def _depends(self, value: int) -> frozenset[int]:
        return self.values.depends[value]

    def _remaining(self, sink: Sink, level: _Level) -> tuple[int, ...]:
        """Axes of the loops a sink still needs around it, outermost first."""
        if isinstance(sink, StoreSink):
            wanted = set(axes_of(sink.index))
        elif isinstance(sink, ScatterSink):
            wanted = set(sink.axes)
        elif isinstance(sink, _FoldSink):
            wanted = set(sink.fold.bound)
        else:
            wanted = set()
        return tuple(sorted(wanted - level.open, key=self.place.__getitem__))

    # ---- one level

    def _block(self, sinks: tuple[Sink, ...], level: _Level) -> tuple[Statement, ...]:
        needed = self._needed(sinks, level)
        folds = [
            node
            for node in (self._node(value, level) for value in needed)
            if isinstance(node, Fold) and self._depends(node.value) <= level.open
        ]
        everything = (*sinks, *(_FoldSink(fold) for fold in folds))
        phases = self._phases(needed, {fold.value for fold in folds}, level)
        phase_of = {sink: max(phases.get(value, 0) for value in _read(sink)) for sink in everything}
        last = max(phase_of.values(), default=0)
        everything, phase_of, spills = self._keep_costly(everything, phase_of, last, level)
        statements: list[Statement] = []
        for phase in range(last + 1):
            here = [sink for sink in everything if phase_of[sink] == phase]
            for value in needed:
                node = self._node(value, level)
                if (
                    phases[value] == phase
                    and self._depends(value) <= level.open
                    and not isinstance(node, Fold)
                ):
                    statements.append(node)
                    level = replace(level, available=level.available | {value})
            loops, direct = self._part(here, level)
            for group in loops:
                statements += self._loops(group, level)
            statements += direct
            done = {sink.fold.value for sink in here if isinstance(sink, _FoldSink)}
            level = replace(
                level, available=level.available | done, kept={**level.kept, **spills.get(phase, {})}
            )
        return tuple(statements)

    def _phases(self, needed: Sequence[int], here: set[int], level: _Level) -> dict[int, int]:
        """For each needed value, how many reductions of this level must be complete before it."""
        phases: dict[int, int] = {}
        for value in needed:
            before = [phases.get(operand, 0) for operand in operands(self._node(value, level))]
            phases[value] = max(before, default=0) + (value in here)
        return phases

    def _part(self, sinks: Sequence[Sink], level: _Level) -> tuple[list[list[Sink]], list[Statement]]:
        """Sinks that share their loops, group by group, and what is done without a loop."""
        groups: dict[object, list[Sink]] = {}
        direct: list[Statement] = []
        for sink in sinks:
            remaining = self._remaining(sink, level)
            if remaining:
                groups.setdefault(self._group_key(sink, remaining, level), []).append(sink)
            elif isinstance(sink, StoreSink):
                direct.append(Store(sink.array, sink.index, sink.value, sink.comment, sink.kept))
            elif isinstance(sink, ScatterSink):
                direct.append(Scatter(sink.array, sink.index, sink.value, sink.adds, sink.comment))
            elif isinstance(sink, CheckSink):
                direct.append(Check(sink.value, sink.comment))
            elif isinstance(sink, _UpdateSink):
                direct.append(Update(sink.accumulator, sink.value))
            else:
                raise UnsupportedError("a reduction over no axes")
        return list(groups.values()), direct

    def _group_key(self, sink: Sink, remaining: tuple[int, ...], level: _Level) -> object:
        if _is_index(sink):
            return (remaining, "index")
        return remaining if level.in_tile else remaining[0]

    # ---- loops

    def _loops(self, sinks: Sequence[Sink], level: _Level) -> list[Statement]:
        axes = self._axes_to_open(sinks, level)
        opened = replace(level, open=level.open | set(axes))
        inner: list[Sink] = []
        accumulators = []
        for sink in sinks:
            if not isinstance(sink, _FoldSink):
                inner.append(sink)
                continue
            accumulators.append(sink.fold.accumulator)
            rest = tuple(axis for axis in sink.fold.bound if axis not in opened.open)
            operand = sink.fold.operand
            if rest:
                operand = self.values.add_fold(replace(sink.fold, bound=rest))
            inner.append(_UpdateSink(sink.fold.value, operand))
        if axes == (self.nest.lane,) and self._needs_loops(inner, opened):
            if accumulators:
                raise UnsupportedError("a reduction along a tile")
            return [Tile(axes[0], self._block(tuple(inner), replace(opened, in_tile=True)))]
        return [Loop(axes, self._block(tuple(inner), opened), tuple(accumulators))]

    def _needs_loops(self, sinks: Sequence[Sink], opened: _Level) -> bool:
        """Whether sinks need further loops inside those just opened."""
        if any(self._remaining(sink, opened) for sink in sinks):
            return True
        return any(isinstance(self._node(value, opened), Fold) for value in self._needed(sinks, opened))

    def _axes_to_open(self, sinks: Sequence[Sink], level: _Level) -> tuple[int, ...]:
        """As many axes at once as all sinks share, up to where a value can be computed further out."""
        paths = [self._remaining(sink, level) for sink in sinks]
        if level.in_tile or any(_is_index(sink) for sink in sinks):
            return paths[0]
        shared = 1
        while all(len(path) > shared and path[shared] == paths[0][shared] for path in paths):
            shared += 1
        path = paths[0][:shared]
        for value in self._needed(sinks, level):
            inside = [path.index(axis) + 1 for axis in self._depends(value) if axis in path]
            if inside:
                path = path[: max(inside)]
        if self.nest.lane in path:
            place = path.index(self.nest.lane)
            path = path[: max(place, 1)]
        return path

    # ---- keeping costly values

    def _keep_costly(
        self, sinks: tuple[Sink, ...], phase_of: dict[Sink, int], last: int, level: _Level
    ) -> tuple[tuple[Sink, ...], dict[Sink, int], dict[int, dict[int, Load]]]:
        """Let outputs hold costly values that loops of several phases need.

        A loop that needs such a value first stores it where the last loop will store the output; loops
        of later phases load it from there. An output that loops around these keep a value in holds no other.
        """
        spills: dict[int, dict[int, Load]] = {}
        if last == 0:
            return sinks, phase_of, spills
        needed = set(self._needed(sinks, level))
        taken = {load.array for value, load in level.kept.items() if value in needed}
        added: list[Sink] = []
        uses = self._uses(sinks, phase_of, level)
        for value, phases in sorted(uses.items(), reverse=True):
            first, final = min(phases), max(phases)
            if first == final or not self._is_costly(value, level):
                continue
            for sink in sinks:
                if (
                    isinstance(sink, StoreSink)
                    and sink.array not in taken
                    and phase_of[sink] >= final
                    and self._is_last(sink, value, sinks, phase_of, level)
                    and sink.dtype == self._dtype(value)
                    and frozenset(axes_of(sink.index)) == self._depends(value)
                ):
                    taken.add(sink.array)
                    comment = "kept for the loops that follow"
                    spill = StoreSink(sink.array, sink.index, value, sink.dtype, comment, kept=True)
                    added.append(spill)
                    phase_of[spill] = first
                    spills.setdefault(first, {})[value] = Load(value, sink.array, sink.index, "kept above")
                    break
        return (*sinks, *added), phase_of, spills

    def _is_last(
        self,
        store: StoreSink,
        value: int,
        sinks: Sequence[Sink],
        phase_of: Mapping[Sink, int],
        level: _Level,
    ) -> bool:
        """Whether nobody reads a value in a loop that may come after the one that writes over it.

        Loops of a phase are in no order. Stores at the same places share one, unless they need inner loops.
        """
        for sink in sinks:
            if sink is store or phase_of[sink] < phase_of[store]:
                continue
            needed = self._needed_in_phase(sink, level)
            if value not in needed:
                continue
            has_inner = any(isinstance(self._node(one, level), Fold) for one in needed)
            if not isinstance(sink, StoreSink) or axes_of(sink.index) != axes_of(store.index) or has_inner:
                return False
        return True

    def _uses(
        self, sinks: Sequence[Sink], phase_of: Mapping[Sink, int], level: _Level
    ) -> dict[int, set[int]]:
        """For each value inside loops of this level, the phases that need it."""
        uses: dict[int, set[int]] = {}
        for sink in sinks:
            for value in self._needed_in_phase(sink, level):
                if not self._depends(value) <= level.open:
                    uses.setdefault(value, set()).add(phase_of[sink])
        return uses

    def _needed_in_phase(self, sink: Sink, level: _Level) -> set[int]:
        """Values that the loop of one sink computes: reductions complete before it end the search."""
        found: set[int] = set()
        pending = [*_read(sink)]
        while pending:
            value = pending.pop()
            node = self._node(value, level)
            complete = isinstance(node, Fold) and self._depends(value) <= level.open
            if value not in found and value not in level.available and not complete:
                found.add(value)
                pending += operands(node)
        return found

    def _is_costly(self, value: int, level: _Level) -> bool:
        node = self._node(value, level)
        return not isinstance(node, Fold | Load | LoadAt) and self.values.flops[value] >= COSTLY_FLOPS

    def _dtype(self, value: int) -> str:
        node = self.values.nodes[value]
        return "" if isinstance(node, Fold | Load | LoadAt) else node.dtype


def _read(sink: Sink) -> tuple[int, ...]:
    """The values a sink takes in."""
    return (sink.value, *places_of(sink.index)) if isinstance(sink, ScatterSink) else (sink.value,)


def _is_index(sink: Sink) -> bool:
    """Whether a sink is the index of an extremum, which counts the iterations of one loop of its own."""
    return isinstance(sink, _FoldSink) and sink.fold.accumulator.kind in ("argmax", "argmin")
