"""Jacobians and Hessians of Variables, by one pass for all of their rows or columns at once."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Literal

from esat.errors import GradientError, describe
from esat.frontend.arrays.creation import eye
from esat.frontend.arrays.shaping import moveaxis
from esat.frontend.derivatives.batching import vectorize
from esat.frontend.derivatives.forward import push_forward
from esat.frontend.derivatives.gradient import check_continuous, grad, vjp
from esat.graph.algorithms.copying import clone
from esat.graph.variables import Variable
from esat.ops.arrays.shape import element_count, sizes_of
from esat.ops.arrays.view import expand_dims, reshape
from esat.ops.cast import cast
from esat.ops.inference.batching import repeated

Direction = Literal["forward", "reverse"]


def jacobian_of(y: Variable, x: Variable, direction: Direction | None = None) -> Variable:
    """The derivatives of each element of ``y`` by each element of ``x``, of shape ``y.shape + x.shape``.

    As :func:`jacobians_of`, of one result by one Variable.
    """
    return jacobians_of([y], [x], direction)[0][0]


def jacobians_of(
    ys: Sequence[Variable], xs: Sequence[Variable], direction: Direction | None = None
) -> list[list[Variable]]:
    """The derivatives of each element of some results by each element of some Variables.

    Parameters
    ----------
    ys, xs
        Variables of one float dtype, of any rank.
    direction
        ``forward`` takes one column at a time, ``reverse`` one row, all of them in a batch; by default what
        there are fewer of, where sizes are known, or else rows.

    Returns
    -------
    A list for each result, with one of shape ``y.shape + x.shape`` for each Variable.

    Raises
    ------
    GradientError
        For Variables that are not continuous, of complex numbers among others.
    """
    for role, variables in (("the result", ys), ("the Variable to differentiate by", xs)):
        for variable in variables:
            check_continuous(role, variable)
            if variable.tensor_type.kind == "c":
                reason = f"{role} is complex; differentiate by real and imaginary parts"
                raise GradientError(describe("jacobian", [variable.type], reason))
    if direction is not None and not (isinstance(direction, str) and direction in ("forward", "reverse")):
        shown = f"direction={reprlib.repr(direction)}"
        raise GradientError(describe("jacobian", [shown], 'a direction is "forward" or "reverse"'))
    found: dict[tuple[int, int], Variable] = {}
    pairs = [(row, column) for row in range(len(ys)) for column in range(len(xs))]
    forward = {
        (row, column)
        for row, column in pairs
        if direction == "forward" or (direction is None and _count(xs[column]) < _count(ys[row]))
    }
    # One pass by each Variable has the columns of all results, one of each result the rows by all Variables.
    for column, x in enumerate(xs):
        rows = [row for row in range(len(ys)) if (row, column) in forward]
        if rows:
            seed = x.tensor_type.make_variable()
            pushed = push_forward([ys[row] for row in rows], [x], [seed])
            for row, columns in zip(rows, _of_each(pushed, seed, x), strict=True):
                shape = (*sizes_of(ys[row]), *sizes_of(x))
                found[row, column] = reshape(moveaxis(columns, 0, -1), shape)
    for row, y in enumerate(ys):
        places = [column for column in range(len(xs)) if (row, column) not in forward]
        if places:
            seed = y.tensor_type.make_variable()
            pulled = vjp([y], [xs[column] for column in places], [seed], "zero")
            for column, rows_of in zip(places, _of_each(pulled, seed, y), strict=True):
                found[row, column] = reshape(rows_of, (*sizes_of(y), *sizes_of(xs[column])))
    return [[found[row, column] for column in range(len(xs))] for row in range(len(ys))]


def _count(variable: Variable) -> float:
    shape = variable.tensor_type.shape
    return math.inf if None in shape else math.prod(size for size in shape if size is not None)


def _of_each(values: Sequence[Variable], seed: Variable, like: Variable) -> list[Variable]:
    """Linear functions of a seed for each seed of one element 1, in a batch."""
    if _count(like) == 1:  # nothing to batch: operations on one matrix stay such
        one = reshape(cast(1, seed.dtype), tuple(1 for _ in range(seed.tensor_type.ndim)))
        return [expand_dims(value, 0) for value in clone(values, {seed: one})[0]]
    count = element_count(like)
    units = reshape(eye(count, dtype=seed.dtype), (count, *sizes_of(like)))
    return [
        batch if depends else repeated(batch, count) for batch, depends in vectorize(values, {seed: units})
    ]


def hessian_of(cost: Variable, x: Variable) -> Variable:
    """The second derivatives of a scalar, of shape ``x.shape + x.shape``: the Jacobian of the gradient.

    Raises
    ------
    GradientError
        As of :func:`jacobian_of`, and for a cost that is no scalar.
    """
    return jacobian_of(grad(cost, x, "zero"), x, "forward")
