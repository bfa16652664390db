"""How large the terms are that a sum over axes adds up: what its errors are measured by.

A sum over an axis, or a product of matrices, may cancel whatever its form; another order of the same
additions is no other form, and none is to be chosen for its luck at the sample points. So errors of such
values count against the sum of the sizes of their terms (the bound of backward stable summation: Higham,
"Accuracy and Stability of Numerical Algorithms", 2002, section 3.1), and so do those of what is linear in
them. Sums that are written out, as ``x - y``, are measured by their value: their forms do differ.
At extreme points, where some order of additions and factors overflows, nothing is said of such values; where
all inputs are large and of one size, that is what is asked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.sample import Sample
from esat.extract.accuracy.stacks import IntArray, Numbering, UnitGroup
from esat.extract.accuracy.truths import Truths
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.units import LEAVES
from esat.extract.accuracy.wide_format.operations import UNFIT, aligned, fitted
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]

_JOINING = ("ReduceSum", "MatMul")
_MOVING = ("DimShuffle", "Cast", "Fill", "Neg", "Abs", "Identity")
_PRODUCTS = ("Mul", "Sqr", "Div", "NaryProd")
_SUMS = ("Add", "Sub", "NarySum")
_LINEAR = frozenset((*_JOINING, *_MOVING, *_PRODUCTS, *_SUMS))
_LARGEST = np.finfo(np.float64).max
_EXCESS = 4.0
"""Times its value that a scale has to be before it says anything."""


def scales_of(order: Order, truths: Truths, sample: Sample) -> list[Array]:
    """Scales of all values, float64, by stack: at least their size, and infinite where nothing is said."""
    with quiet():
        sizes = [np.minimum(np.abs(value), _LARGEST).astype(np.float64) for value in truths.value]
        leaves = {unit.result for unit in order.units if unit.name in LEAVES}
        found = _Scales(order.numbering, sizes, sample, leaves)
        if any(unit.name in _JOINING for unit in order.units):
            order.run(found.spread)
    return found.scale


class _Scales:
    def __init__(
        self, numbering: Numbering, sizes: list[Array], sample: Sample, leaves: Collection[int]
    ) -> None:
        self._numbering, self._sizes = numbering, sizes
        # A number is no sum, though a sum of softmax is one.
        self._is_leaf = [np.isin(members, list(leaves)) for members in numbering.members]
        self._is_extreme = sample.is_extreme & ~sample.is_topmost
        self._is_topmost = sample.is_topmost
        self.scale = [size.copy() for size in sizes]
        self._exceeds = [np.zeros(count, np.bool_) for count in numbering.counts]

    def spread(self, group: UnitGroup) -> list[int]:
        """Let the results of a group have the scales that those of the operands make; the new large ones."""
        name = group.example.name
        if name not in _LINEAR:
            return []
        if name not in _JOINING:
            moves = np.zeros(len(group.units), np.bool_)
            for stack, rows in group.operands:
                moves |= self._exceeds[stack][rows]
            if not moves.any():
                return []
            if not moves.all():
                group = group.part(np.flatnonzero(moves))
        try:
            value = fitted(self._computed(group), self._numbering.shapes[group.result])
        except UNFIT:  # its values are unknown, too
            return []
        value = np.where(np.isnan(value), np.inf, value)
        if name in _JOINING:
            value[:, self._is_extreme] = np.inf
        top = value[:, self._is_topmost]
        value[:, self._is_topmost] = np.where(np.isinf(top), 0.0, top)
        parts = [(group, value)]
        if group.repeats:
            parts = [(group.part(places), value[places]) for places in group.rounds()]
        return [klass for part, values in parts for klass in self._take(part, values).tolist()]

    def _take(self, group: UnitGroup, value: Array) -> IntArray:
        stack, rows = group.result, group.rows
        is_leaf = self._is_leaf[stack][rows].reshape(-1, *[1] * (value.ndim - 1))
        new = np.maximum(self.scale[stack][rows], np.where(is_leaf, 0.0, value))
        self.scale[stack][rows] = new
        axes = tuple(range(1, new.ndim))
        exceeds = (new > _EXCESS * self._sizes[stack][rows]).any(axis=axes)
        fresh = exceeds & ~self._exceeds[stack][rows]
        self._exceeds[stack][rows] = exceeds
        return self._numbering.members[stack][rows][fresh]

    def _computed(self, group: UnitGroup) -> Array:
        name = group.example.name
        scales = [self.scale[stack][rows] for stack, rows in group.operands]
        if name in _JOINING or name in ("DimShuffle", "Fill"):
            assert group.operation is not None
            return group.operation.own(scales)
        if name in _MOVING:
            return scales[0]
        scales = aligned(scales)
        sizes = aligned([self._sizes[stack][rows] for stack, rows in group.operands])
        if name in _SUMS:
            parts = (np.where(s > _EXCESS * size, s, 0.0) for s, size in zip(scales, sizes, strict=True))
            return np.asarray(sum(parts))
        positives = {"Mul": 2, "Sqr": 1, "Div": 1}.get(name) or int(group.example.attributes[0])
        result: Any = 1.0
        for place, (scale, size) in enumerate(zip(scales, sizes, strict=True)):
            result = result * (scale if place < positives else scale / (size * size))
        return np.asarray(result * scales[0] if name == "Sqr" else result)
