"""Jacobians and Hessians of Variables, by one pass for all of their rows or columns at once."""

from __future__ import annotations

import math
import reprlib
from typing import Literal

from esat.errors import GradientError, describe
from esat.frontend.batching import vectorize
from esat.frontend.creation import eye
from esat.frontend.forward import push_forward
from esat.frontend.gradient import check_continuous, grad, vjp
from esat.frontend.shaping import moveaxis
from esat.graph.variables import Variable
from esat.ops.batching import repeated
from esat.ops.shape import element_count, sizes_of
from esat.ops.view import reshape

Direction = Literal["forward", "reverse"]


def jacobian_of(y: Variable, x: Variable, direction: Direction | None = None) -> Variable:
    """The derivatives of each element of ``y`` by each element of ``x``, of shape ``y.shape + x.shape``.

    Parameters
    ----------
    y, x
        Variables of one float dtype, of any rank.
    direction
        ``forward`` takes one column at a time, ``reverse`` one row, all of them in a batch; by default what
        there are fewer of, where sizes are known, or else rows.

    Raises
    ------
    GradientError
        For Variables that are not continuous, of complex numbers among others.
    """
    for role, variable in (("the result", y), ("the Variable to differentiate by", x)):
        check_continuous(role, variable)
        if variable.tensor_type.kind == "c":
            reason = f"{role} is complex; differentiate by real and imaginary parts"
            raise GradientError(describe("jacobian", [variable.type], reason))
    if direction is not None and not (isinstance(direction, str) and direction in ("forward", "reverse")):
        shown = f"direction={reprlib.repr(direction)}"
        raise GradientError(describe("jacobian", [shown], 'a direction is "forward" or "reverse"'))
    if direction is None:
        direction = "forward" if _count(x) < _count(y) else "reverse"
    if direction == "reverse":
        seed = y.tensor_type.make_variable()
        pulled = vjp([y], x, [seed], "zero")
        rows = _of_each(pulled, seed, y)
        return reshape(rows, (*sizes_of(y), *sizes_of(x)))
    seed = x.tensor_type.make_variable()
    (pushed,) = push_forward([y], [x], [seed])
    columns = moveaxis(_of_each(pushed, seed, x), 0, -1)
    return reshape(columns, (*sizes_of(y), *sizes_of(x)))


def _count(variable: Variable) -> float:
    shape = variable.tensor_type.shape
    return math.inf if None in shape else math.prod(size for size in shape if size is not None)


def _of_each(value: Variable, seed: Variable, like: Variable) -> Variable:
    """A linear function of a seed for each seed of one element 1, in a batch."""
    count = element_count(like)
    units = reshape(eye(count, dtype=seed.dtype), (count, *sizes_of(like)))
    ((batch, depends),) = vectorize([value], {seed: units})
    return batch if depends else repeated(batch, count)


def hessian_of(cost: Variable, x: Variable) -> Variable:
    """The second derivatives of a scalar, of shape ``x.shape + x.shape``: the Jacobian of the gradient.

    Raises
    ------
    GradientError
        As of :func:`jacobian_of`, and for a cost that is no scalar.
    """
    return jacobian_of(grad(cost, x, "zero"), x, "forward")
