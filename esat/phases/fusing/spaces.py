"""Iteration spaces: which axes of different variables have the same size, whatever it is.

An axis of unknown size never broadcasts, so an elementwise op makes the sizes of its operands' axes
equal. From that, fusion knows which nodes can run in one loop nest before any size is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from esat.base.union_find import UnionFind
from esat.graph import Apply, Family, TensorType, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MatMul
from esat.ops.index.part import part_of
from esat.ops.index.write import PartWrite
from esat.ops.reduction import Reduction

Space: TypeAlias = tuple[int, ...]
"""One number an axis: equal numbers mean equal sizes. Axes of size 1 are left out."""


class Spaces:
    """The sizes of all axes in a graph, as numbers of classes of axes known to be equal.

    Parameters
    ----------
    nodes
        The nodes of a graph in topological order.
    """

    def __init__(self, nodes: Sequence[Apply]) -> None:
        self._equal = UnionFind[int]()
        self._size: list[int | None] = []
        self._axes: dict[Variable, tuple[int, ...]] = {}
        self._parts: dict[Apply, tuple[int, ...]] = {}
        self._spaces: dict[Variable | Apply, Space] = {}
        for node in nodes:
            if all(isinstance(variable.type, TensorType) for variable in (*node.inputs, *node.outputs)):
                self._relate(node)

    def of_variable(self, variable: Variable) -> Space:
        """The space a variable's elements fill."""
        known = self._spaces.get(variable)
        if known is None:
            known = self._spaces[variable] = self._named(self._numbers(variable))
        return known

    def of_node(self, node: Apply) -> Space:
        """The space a node's loops run over: of a reduction its operand's, of a write to a part that of the
        part, else its result's."""
        known = self._spaces.get(node)
        if known is None:
            looped = node.inputs[0] if node.op.family is Family.REDUCTION else node.outputs[0]
            part = self._parts.get(node)
            known = self.of_variable(looped) if part is None else self._named(part)
            self._spaces[node] = known
        return known

    def _named(self, numbers: Iterable[int]) -> Space:
        roots = [self._equal.find(number) for number in numbers]
        sizes = [self._size[root] for root in roots]
        # Sizes that are known compare by value: -1 - size cannot be the number of a class.
        return tuple(
            root if size is None else -1 - size for root, size in zip(roots, sizes, strict=True) if size != 1
        )

    def _numbers(self, variable: Variable) -> tuple[int, ...]:
        known = self._axes.get(variable)
        if known is None:
            known = self._axes[variable] = self._new(variable.tensor_type.shape)
        return known

    def _new(self, shape: Sequence[int | None]) -> tuple[int, ...]:
        start = len(self._size)
        numbers = tuple(range(start, start + len(shape)))
        self._size.extend(shape)
        return numbers

    def _equate(self, first: int, second: int) -> None:
        first, second = self._equal.find(first), self._equal.find(second)
        self._equal.unite(first, second)
        if self._size[first] is None:
            self._size[first] = self._size[second]

    def _relate(self, node: Apply) -> None:
        op = node.op
        operands = [self._numbers(variable) for variable in node.inputs]
        result = self._numbers(node.outputs[0])
        if op.family is Family.ELEMENTWISE:
            for variable, numbers in zip(node.inputs, operands, strict=True):
                self._relate_stretched(variable, numbers, result)
        elif isinstance(op, DimShuffle):
            for place, axis in enumerate(op.order):
                if axis != "x":
                    self._equate(operands[0][int(axis)], result[place])
        elif isinstance(op, Reduction):
            kept = [axis for axis in range(len(operands[0])) if op.keepdims or axis not in op.axes]
            for place, axis in enumerate(kept):
                if axis not in op.axes:
                    self._equate(operands[0][axis], result[place])
        elif isinstance(op, MatMul):
            self._equate(operands[0][-1], operands[1][-2])
            self._equate(operands[0][-2], result[-2])
            self._equate(operands[1][-1], result[-1])
        elif op.typing == "same":
            for number, place in zip(operands[0], result, strict=True):
                self._equate(number, place)
        else:
            self._relate_part(node, operands, result)

    def _relate_part(self, node: Apply, operands: Sequence[tuple[int, ...]], result: Sequence[int]) -> None:
        """Relate the axes of what index arrays choose, if that is what the node does."""
        part = part_of(node)
        if part is None:
            return
        if isinstance(node.op, PartWrite):
            for number, place in zip(operands[0], result, strict=True):
                self._equate(number, place)
            result = self._parts[node] = self._new((None,) * part.rank)
            self._relate_stretched(node.inputs[1], operands[1], result)
        for number, along in zip(operands[0], part.axes, strict=True):
            if isinstance(along, int):
                self._equate(number, result[along])
        for position, axes in part.arrays.items():
            wide = [result[axis] for axis in axes]
            self._relate_stretched(node.inputs[position], operands[position], wide)

    def _relate_stretched(self, variable: Variable, numbers: Sequence[int], result: Sequence[int]) -> None:
        for flag, number, place in zip(variable.tensor_type.broadcastable, numbers, result, strict=True):
            if not flag:
                self._equate(number, place)


def contains(space: Space, other: Space) -> bool:
    """Whether a loop nest over ``space`` has the axes of ``other`` among its own."""
    return len(other) <= len(space) and not Counter(other) - Counter(space)


def stretched_inside(operand: TensorType, result: TensorType) -> bool:
    """Whether broadcasting repeats an operand over an outer axis of loops in which it varies further in.

    Computing such an operand inside those loops computes each element many times; one that varies
    with the outer axes alone is computed once for each of them.
    """
    repeated = False
    for flag, wide in zip(operand.broadcastable, result.broadcastable, strict=True):
        if repeated and not flag:
            return True
        repeated = repeated or (flag and not wide)
    return False
