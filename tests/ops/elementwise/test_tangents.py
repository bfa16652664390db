"""Tangents are what gradients say, at masked, infinite, undefined and tied points, of every op."""

import itertools

import numpy as np
import pytest

import esat
from esat.frontend.derivatives.forward import push_forward
from esat.frontend.derivatives.gradient import vjp
from esat.ops.reduction import REDUCERS, reduce
from esat.ops.table import ELEMENTWISE

from .samples import ONCE

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e200, 5e-324, np.inf, -np.inf, np.nan)
FEW = (0.0, 1.0, -1.5, np.inf, np.nan)


def points_of(op):
    """Operands of an op: all combinations of special values, ties among them."""
    rows = list(itertools.product(SPECIAL if op.arity < 3 else FEW, repeat=op.arity))
    return [np.array(column) for column in zip(*rows, strict=True)]


def variables_of(op):
    """Variables of an op's operands; None of one without a gradient."""
    if not callable(op.gradient) or op.name in ONCE or op.admits("float64") is None:
        return None
    made = [esat.vector(f"x{place}") for place in range(op.arity)]
    try:
        output = op(*made)
    except esat.errors.EsatError:  # takes integers or booleans alone
        return None
    return made if output.tensor_type.dtype == "float64" else None


def both(output, wrt, points, inputs):
    """Derivatives of an elementwise output by one operand, forward and in reverse."""
    ones = np.ones_like(points[0])
    (forward,) = push_forward([output], [wrt], [ones])
    reverse = vjp([output], wrt, [ones], "zero")
    with np.errstate(all="ignore"):
        found = esat.evaluate([forward, reverse], dict(zip(inputs, points, strict=True)))
    return [np.broadcast_to(one, ones.shape) for one in found]


DIFFERENTIABLE = [op for op in ELEMENTWISE if variables_of(op) is not None]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_tangents_are_what_gradients_say(op):
    inputs = variables_of(op)
    points = points_of(op)
    odd = np.arange(points[0].size) % 2 == 0
    for place, wrt in enumerate(inputs):
        if place < op.parameters:  # by which there is no derivative
            continue
        forward, reverse = both(op(*inputs), wrt, points, inputs)
        np.testing.assert_allclose(forward, reverse, 1e-12, err_msg=f"operand {place}")
        # Behind a mask: where it does not hold nothing changes, whatever the op makes of it.
        masked = list(inputs)
        masked[place] = esat.where(odd, wrt, points[place])
        results = (
            both(op(*masked), wrt, points, inputs),
            both(esat.where(odd, op(*inputs), 0), wrt, points, inputs),
        )
        for name, (inside, back) in zip(("operand", "result"), results, strict=True):
            message = f"operand {place}, a mask of the {name}"
            np.testing.assert_array_equal(inside[~odd], 0, message)
            np.testing.assert_array_equal(back[~odd], 0, message)
            np.testing.assert_allclose(inside[odd], forward[odd], 1e-12, err_msg=message)
            np.testing.assert_allclose(back[odd], forward[odd], 1e-12, err_msg=message)


VECTORS = ((0.0, 0.0, 2.0), (0.0, -0.0, 0.0), (1.0, 1.0, -3.0), (np.inf,), (-np.inf,), (0.0,), (np.nan,))
"""Ties and zeros. Infinities alone: a tangent of another element that is 0 would be multiplied with them."""
OTHERS = {
    "logsumexp": esat.logsumexp,
    "softmax": esat.softmax,
    "log_softmax": esat.log_softmax,
    "cumsum": esat.cumsum,
    "cumprod": esat.cumprod,
    "sort": esat.sort,
    "norm": esat.linalg.norm,
    "mean": esat.mean,
    "var": esat.var,
    "std": esat.std,
    "dot": lambda x: esat.dot(x, x),
    "take": lambda x: x[np.zeros(1, int)],
}
REDUCTIONS = {
    **{one.name: lambda x, one=one: reduce(one, x) for one in REDUCERS if one.gradient is not None},
    **OTHERS,
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
@pytest.mark.parametrize("path", ["plain", "operand", "result"])
def test_tangents_of_what_mixes_elements(name, vector, path):
    x, point = esat.vector("x"), np.array(vector)
    mask = np.arange(point.size) != 1
    result = REDUCTIONS[name](esat.where(mask, x, point) if path == "operand" else x)
    result = esat.where(result.sum() > 1e300, result, 0) if path == "result" else result
    rows = np.eye(point.size)
    cotangents = np.eye(1 if name == "take" else point.size) if result.ndim else np.ones(1)
    columns = [push_forward([result], [x], [row])[0] for row in rows]
    lines = [vjp([result], x, [one], "zero") for one in cotangents]
    with np.errstate(all="ignore"):
        found = esat.evaluate([*columns, *lines], {x: point})
    forward = np.stack(found[: point.size], axis=-1).reshape(-1, point.size)
    reverse = np.stack(found[point.size :])
    if path == "plain":
        np.testing.assert_allclose(forward, reverse, 1e-12)
        return
    # Masks end in reverse at ops that mix elements, and what is undefined there is zero forward.
    known = ~np.isnan(reverse)
    np.testing.assert_allclose(forward[known], reverse[known], 1e-12)
    np.testing.assert_array_equal(forward[~known & (forward == forward)], 0)
    if path == "operand":
        np.testing.assert_array_equal(forward[:, ~mask], 0)
        np.testing.assert_array_equal(reverse[:, ~mask], 0)
