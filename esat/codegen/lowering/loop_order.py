"""How loops nest: an order of axes in which every reduction comes after what it is computed for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from esat.base.records import record
from esat.codegen.kernel.loop_ir import Index, axes_of
from esat.codegen.lowering.axes import AxisNames
from esat.codegen.lowering.unsupported import UnsupportedError
from esat.graph import Apply, Variable
from esat.ops.index.part import part_of
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction


@record(frozen=True)
class LoopOrder:
    """The order of loop axes, outermost first.

    Attributes
    ----------
    order
        All axes.
    lane
        The axis along which memory runs, where reductions run over others: such a kernel keeps a
        vector of accumulators along it. None where memory runs along the innermost loop.
    """

    order: tuple[int, ...]
    lane: int | None

    def renumbered(self) -> LoopOrder:
        """The same with each axis called by its place in the order."""
        lane = None if self.lane is None else self.order.index(self.lane)
        return LoopOrder(tuple(range(len(self.order))), lane)


@record(frozen=True)
class _Fold:
    """A node that reduces: the axes its result has, and those it runs over, in order."""

    kept: frozenset[int]
    bound: tuple[int, ...]
    reached: frozenset[int]
    """Index of everything computed from the result."""
    argument: bool


def reduced_axes(node: Apply) -> tuple[int, ...]:
    """The axes of its operand that a node reduces over; empty for other nodes."""
    if isinstance(node.op, Reduction | Normalization):
        return node.op.axes
    return ()


def order_axes(nodes: Sequence[Apply], names: AxisNames) -> LoopOrder:
    """Choose how the loops of a group nest.

    Raises
    ------
    UnsupportedError
        When no order computes every reduction once and along memory.
    """
    accesses = _accesses(nodes, names)
    natural = _natural_order(accesses)
    folds = _folds(nodes, names)
    fastest = _fastest_axis(accesses, natural)
    lane = fastest if any(fastest in fold.kept and fold.bound for fold in folds) else None
    rank = {axis: place for place, axis in enumerate(natural)}
    constraints = _constraints(folds) | _order_of_writes(nodes, names)
    order = _sorted(natural, constraints, lambda axis: (axis == fastest, rank[axis]))
    if lane is not None:
        _check_lane(lane, folds, order)
    _check_indices(folds, order)
    return LoopOrder(order, lane)


def _accesses(nodes: Sequence[Apply], names: AxisNames) -> list[Index]:
    """How inputs are read and final results written; those of highest rank first."""
    used = {variable for node in nodes for variable in node.inputs}
    final = [index for variable, index in names.computed.items() if variable not in used]
    found = final + list(names.uses.values()) + list(names.parts.values())
    return sorted(found, key=lambda index: -len(axes_of(index)))


def _natural_order(accesses: Iterable[Index]) -> list[int]:
    """All axes in an order that keeps, as far as it can, that of each array's own axes."""
    order: list[int] = []
    for index in accesses:
        place = 0
        for axis in axes_of(index):
            if axis in order:
                place = max(place, order.index(axis) + 1)
            else:
                order.insert(place, axis)
                place += 1
    return order


def _fastest_axis(accesses: Iterable[Index], natural: list[int]) -> int | None:
    """The axis along which most arrays, weighted by rank, lie in memory."""
    votes: dict[int, int] = {}
    for index in accesses:
        if index and index[-1] is not None:
            votes[index[-1]] = votes.get(index[-1], 0) + 10 ** len(axes_of(index))
    if not votes:
        return None
    return max(votes, key=lambda axis: (votes[axis], natural.index(axis)))


def _folds(nodes: Sequence[Apply], names: AxisNames) -> list[_Fold]:
    readers: dict[Variable, list[int]] = {}
    for position, node in enumerate(nodes):
        for variable in node.inputs:
            readers.setdefault(variable, []).append(position)
    reached: list[frozenset[int]] = [frozenset()] * len(nodes)
    folds: list[_Fold] = []
    for position in range(len(nodes) - 1, -1, -1):
        node = nodes[position]
        own = frozenset(axes_of(names.computed[node.outputs[0]]))
        later = [reached[reader] for output in node.outputs for reader in readers.get(output, ())]
        reached[position] = own.union(*later)
        if reduced_axes(node):
            operand = names.operand(node, (position, 0))
            bound = tuple(axes_of(tuple(operand[axis] for axis in reduced_axes(node))))
            kept = frozenset(axes_of(operand)) - frozenset(bound)
            argument = node.op.typing == "argreduce"
            folds.append(_Fold(kept, bound, reached[position], argument))
    return folds


def _check_lane(lane: int, folds: Sequence[_Fold], order: tuple[int, ...]) -> None:
    """Loops inside a tile stand side by side: no reduction may need one inside another."""
    inside = set(order[order.index(lane) + 1 :])
    for fold in folds:
        if lane in fold.bound:
            raise UnsupportedError("reductions both along memory and across it")
        if fold.kept & inside:
            raise UnsupportedError("a reduction inside another loop across memory")


def _check_indices(folds: Sequence[_Fold], order: tuple[int, ...]) -> None:
    """The index of an extremum counts the iterations of one nest of loops, with nothing between them."""
    for fold in folds:
        if not fold.argument or len(fold.bound) < 2:
            continue
        places = [order.index(axis) for axis in fold.bound]
        if places != sorted(places):
            raise UnsupportedError("the index of an extremum needs loops in the order of its axes")
        if any(other.kept & set(fold.bound) for other in folds):
            raise UnsupportedError("a reduction between the loops of the index of an extremum")


def _constraints(folds: Sequence[_Fold]) -> set[tuple[int, int]]:
    """Pairs of axes, the first outside the second: what a result varies with is outside all else.

    So each reduction is computed once, before the loops that use its result.
    """
    return {
        (outer, inner)
        for fold in folds
        for outer in fold.kept
        for inner in (fold.reached | set(fold.bound)) - fold.kept
    }


def _order_of_writes(nodes: Sequence[Apply], names: AxisNames) -> set[tuple[int, int]]:
    """Pairs of axes, the first outside the second: what is written to one place comes in NumPy's order."""
    pairs: set[tuple[int, int]] = set()
    for position, index in names.parts.items():
        part = part_of(nodes[position])
        assert part is not None
        own = sorted({axis for axes in part.arrays.values() for axis in axes})
        pairs |= {*pairwise(axes_of(tuple(index[axis] for axis in own)))}
    return pairs


def _sorted(
    natural: Sequence[int], constraints: set[tuple[int, int]], preference: Callable[[int], tuple[bool, int]]
) -> tuple[int, ...]:
    remaining = list(natural)
    order: list[int] = []
    while remaining:
        inner = {second for first, second in constraints if first in remaining and second in remaining}
        ready = [axis for axis in remaining if axis not in inner]
        if not ready:
            raise UnsupportedError("reductions whose loops would have to nest in both orders")
        chosen = min(ready, key=preference)
        order.append(chosen)
        remaining.remove(chosen)
    return tuple(order)
