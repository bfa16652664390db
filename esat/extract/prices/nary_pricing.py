"""Prices of all n-ary sums and products of an e-graph at once.

What such an e-node costs is a sum over the ops of its plan (see :func:`esat.extract.prices.nary.plan_ops`):
so many of each op and shape of result. Here they are rows of arrays, in the order in which the cost model
adds them up for one e-node alone, so that the price is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from esat.egraph.analyses.distinct import distinct
from esat.extract.arrays import BoolArray, EGraphArrays, FloatArray, IntArray, starts_of
from esat.extract.kinds import examples_of, refined, renumbered, runs, spread
from esat.extract.prices.cost import INVERSE_SUM, CostModel
from esat.extract.prices.nary import Shape, is_pow, meetings
from esat.extract.prices.value import IMPOSSIBLE, Value

NARY = ("NarySum", "NaryProd")
_OPS = ("add", "mul", "sqr", "sub", "div", "neg", "reciprocal")
_ADD, _MUL, _SQR = range(3)
_POWERS = len(_OPS)
"""Numbers of ops from here on are powers, each with the exponent that is the rest."""


class _Rows(NamedTuple):
    """Ops of plans, as arrays: whose they are, their places among its ops, op, shape, and how many."""

    owner: IntArray
    place: IntArray
    op: IntArray
    shape: IntArray
    times: IntArray


def nary_costs(
    arrays: EGraphArrays, nodes: IntArray, value: IntArray, values: Sequence[Value | None], model: CostModel
) -> FloatArray:
    """Predicted seconds of n-ary e-nodes, float64; infinite where an operand or the result is unknown.

    Parameters
    ----------
    nodes
        int64: the e-nodes, ascending.
    value
        int64 ``(classes,)``: the number of the value of each class.
    values
        Shapes and dtypes by number; None for what is unknown.
    """
    unknown = np.array([entry is None for entry in values], np.bool_)[value]
    owner, edges = spread(arrays.operand_start[nodes], arrays.arity[nodes])
    lacking = np.bincount(owner, weights=unknown[arrays.operands[edges]], minlength=len(nodes)) > 0
    possible = ~lacking & ~unknown[arrays.class_of[nodes]] & (arrays.arity[nodes] > 0)
    costs = np.full(len(nodes), IMPOSSIBLE)
    if possible.any():
        costs[possible] = _Plans(arrays, nodes[possible], value, values, model).seconds()
    return costs


class _Plans:
    """The plans of e-nodes, which are numbered by their places among these."""

    def __init__(
        self,
        arrays: EGraphArrays,
        nodes: IntArray,
        value: IntArray,
        values: Sequence[Value | None],
        model: CostModel,
    ) -> None:
        self._model, self._count = model, len(nodes)
        # Numbered in the order in which a plan goes through them; results of other shapes come behind.
        self._shapes: list[Shape] = sorted({entry.shape for entry in values if entry is not None})
        self._number = {shape: number for number, shape in enumerate(self._shapes)}
        self._span = len(self._shapes)
        shape = np.array([-1 if entry is None else self._number[entry.shape] for entry in values], np.int64)
        dtype = np.array([-1 if entry is None else entry.dtype for entry in values], np.int64)
        turned = np.array([entry.size if entry and entry.transposed else 0.0 for entry in values])
        self._owner, edges = spread(arrays.operand_start[nodes], arrays.arity[nodes])
        self._operand = arrays.operands[edges]
        self._shape = shape[value[self._operand]]
        attributes = [arrays.attribute_values[index] for index in arrays.attribute[nodes].tolist()]
        positives = np.array([int(values[0]) for values in attributes], np.int64)
        self._side = (edges - arrays.operand_start[nodes][self._owner] >= positives[self._owner]).astype(
            np.int64
        )
        self._is_inverse = (positives == 0) & (arrays.arity[nodes] > 1)
        self._dtype = dtype[value[arrays.class_of[nodes]]]
        products = [name == "NaryProd" for name in arrays.operator_names]
        self._is_product: BoolArray = np.array(products, np.bool_)[arrays.operator[nodes]]
        weights = turned[value[self._operand]]
        self._against_order = np.bincount(self._owner, weights=weights, minlength=self._count)

    def seconds(self) -> FloatArray:
        """Predicted seconds of each e-node."""
        rows = _Rows(*map(np.concatenate, zip(*self._rows(), strict=True)))
        order = np.lexsort((rows.place, rows.owner))
        owner, op, shape, times = (column[order] for column in (rows.owner, rows.op, rows.shape, rows.times))
        kinds = int(op.max(initial=0)) + 1
        keys, key = distinct((self._dtype[owner] * kinds + op) * len(self._shapes) + shape)
        prices = np.array([self._price(number, kinds) for number in keys.tolist()], np.float64)
        seconds = np.bincount(owner, weights=times * prices[key], minlength=self._count)
        seconds[self._is_inverse] *= INVERSE_SUM
        total: FloatArray = seconds + self._against_order / self._model.machine.transposed_rate
        return total

    def _price(self, key: int, kinds: int) -> float:
        kind, number = divmod(key, len(self._shapes))
        dtype, op = divmod(kind, kinds)
        shape = self._shapes[number]
        if op < _POWERS:
            return self._model.step_seconds(_OPS[op], shape, dtype)
        return self._model.step_seconds("pow", shape, dtype, op - _POWERS)

    def _rows(self) -> Iterator[_Rows]:
        owner, side, shape, exponent = self._factors()
        first, counts = runs(owner, side, shape, exponent)
        yield from self._powers(owner[first], side[first], shape[first], exponent[first], counts)
        first, counts = runs(owner, side, shape)
        owner, side, shape = owner[first], side[first], shape[first]
        op = np.where(self._is_product[owner], _MUL, _ADD)
        place = (2 * side + 1) * self._span + shape
        yield _Rows(owner, place << 32, op, shape, counts - 1)
        yield self._meetings(owner, side, shape)

    def _factors(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Owner, side, shape and exponent of different factors, and of all terms of sums, in this order."""
        # Of a sum, equal operands are like any others: they count for themselves.
        apart = np.where(self._is_product[self._owner], 0, np.arange(len(self._owner)))
        order = np.lexsort((apart, self._operand, self._side, self._owner))
        owner, side, operand = self._owner[order], self._side[order], self._operand[order]
        first, exponent = runs(owner, side, operand, apart[order])
        owner, side, shape = owner[first], side[first], self._shape[order][first]
        order = np.lexsort((exponent, shape, side, owner))
        return owner[order], side[order], shape[order], exponent[order]

    def _powers(
        self, owner: IntArray, side: IntArray, shape: IntArray, exponent: IntArray, counts: IntArray
    ) -> Iterator[_Rows]:
        """Squares and products that make powers, for so many factors of each exponent."""
        powers = np.flatnonzero(exponent > 1)
        owner, side, shape, exponent = owner[powers], side[powers], shape[powers], exponent[powers]
        counts = counts[powers]
        place = (2 * side * self._span + shape << 32) + 2 * exponent
        whole = np.array([is_pow(number) for number in exponent.tolist()], np.bool_)
        yield _Rows(owner[whole], place[whole], _POWERS + exponent[whole], shape[whole], counts[whole])
        rest = ~whole
        owner, shape, place, counts, exponent = (
            column[rest] for column in (owner, shape, place, counts, exponent)
        )
        squares = np.array([number.bit_length() - 1 for number in exponent.tolist()], np.int64)
        products = np.array([number.bit_count() - 1 for number in exponent.tolist()], np.int64)
        for which, op, times in ((0, _SQR, squares), (1, _MUL, products)):
            yield _Rows(owner, place + which, np.full(len(owner), op), shape, counts * times)

    def _meetings(self, owner: IntArray, side: IntArray, shape: IntArray) -> _Rows:
        """What puts factors of all shapes and sides together, once they are one of each."""
        kinds = renumbered(refined(self._is_product.astype(np.int64), owner, side * self._span + shape))
        start = starts_of(owner, self._count)
        ops: list[int] = []
        shapes: list[int] = []
        ends = [0]
        for example in examples_of(kinds).tolist():
            rows = slice(start[example], start[example + 1])
            parts: tuple[list[Shape], list[Shape]] = [], []
            for place, number in zip(side[rows].tolist(), shape[rows].tolist(), strict=True):
                parts[place].append(self._shapes[number])
            constructor = NARY[int(self._is_product[example])]
            for step in meetings(constructor, tuple(parts[0]), tuple(parts[1])):
                ops.append(_OPS.index(step.op))
                shapes.append(self._shape_number(step.shape))
            ends.append(len(ops))
        limits = np.array(ends, np.int64)
        users, steps = spread(limits[kinds], np.diff(limits)[kinds])
        place = (4 * self._span << 32) + steps
        step_ops, step_shapes = np.array(ops, np.int64), np.array(shapes, np.int64)
        return _Rows(users, place, step_ops[steps], step_shapes[steps], np.ones(len(users), np.int64))

    def _shape_number(self, shape: Shape) -> int:
        if shape not in self._number:
            self._number[shape] = len(self._shapes)
            self._shapes.append(shape)
        return self._number[shape]
