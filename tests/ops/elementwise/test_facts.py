"""What the records claim about their functions, at many points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from esat.ops.elementwise.records.facts import (
    ANY,
    NEGATIVE,
    NO_FACTS,
    NONNEGATIVE,
    NONPOSITIVE,
    POSITIVE,
    Facts,
)
from esat.ops.table import ELEMENTWISE

from .samples import DTYPES, special_values

WITH_FACTS = [op for op in ELEMENTWISE if op.facts != NO_FACTS]
ON_FLOATS = [op for op in WITH_FACTS if op.admits("float64") == "float64"]
floats_only = pytest.mark.parametrize("op", ON_FLOATS, ids=lambda op: op.name)
SATISFIES = {
    ANY: lambda x: x == x,
    POSITIVE: lambda x: x > 0,
    NEGATIVE: lambda x: x < 0,
    NONNEGATIVE: lambda x: x >= 0,
    NONPOSITIVE: lambda x: x <= 0,
}
# In floats a product of positive numbers may be zero.
ROUNDED = {POSITIVE: NONNEGATIVE, NEGATIVE: NONPOSITIVE}


def values(dtype="float64"):
    rng = np.random.default_rng(11)
    return np.concatenate([special_values(dtype), rng.normal(0, 3, 40).astype(dtype)])


def apply(op, *operands):
    arrays = np.broadcast_arrays(*operands)
    typed = [a.astype(bool) if t == "bool" else a for a, t in zip(arrays, op.operand_typing, strict=True)]
    return op.perform(typed)[0]


def grid(op, dtype="float64", step=1):
    columns = [values(dtype)[:: step if op.arity == 3 else 1]] * op.arity
    return [np.array(column, dtype) for column in zip(*itertools.product(*columns), strict=True)]


@floats_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_and_integrality(op, dtype):
    facts = op.facts
    result = apply(op, *grid(op, dtype, step=5))
    result = result[~np.isnan(result)] if result.dtype.kind == "f" else result.astype(float)
    assert len(result)
    # A bound that is no float of this dtype is met by its rounded value.
    assert np.all(result >= result.dtype.type(facts.lowest))
    assert np.all(result <= result.dtype.type(facts.highest))
    if facts.integral:
        finite = result[np.isfinite(result)]
        np.testing.assert_array_equal(finite, np.round(finite))
    if facts.positive:
        moderate = apply(op, *[np.linspace(-5, 5, 101)] * op.arity)
        assert np.all(moderate > 0)
        assert facts.nonnegative


@floats_only
def test_symmetries_of_one_operand(op):
    facts = op.facts
    if op.arity != 1:
        assert not facts.parity
        assert not facts.monotone
        return
    x = values()
    if facts.parity:
        sign = {"odd": -1, "even": 1}[facts.parity]
        np.testing.assert_array_equal(apply(op, -x), sign * apply(op, x))
    if facts.idempotent:
        np.testing.assert_array_equal(apply(op, apply(op, x)), apply(op, x))
    if facts.monotone:
        ordered = apply(
            op, np.sort(np.concatenate([x[~np.isnan(x)], np.linspace(-0.99, 0.99, 50), np.linspace(1, 2, 9)]))
        )
        ordered = ordered[~np.isnan(ordered)]
        direction = {"increasing": 1, "decreasing": -1}[facts.monotone]
        with np.errstate(invalid="ignore"):
            steps = np.diff(ordered) * direction
        slack = 1e-14 * np.abs(ordered[1:])
        assert np.all((steps >= 0) | (np.abs(steps) <= slack) | np.isnan(steps))


@pytest.mark.parametrize("op", [op for op in WITH_FACTS if op.arity == 2], ids=lambda op: op.name)
def test_symmetries_of_two_operands(op):
    facts = op.facts
    for dtype in DTYPES:
        if op.admits(dtype) != dtype or op.name == "fill":
            continue
        x = special_values(dtype)
        with np.errstate(all="ignore"):
            if facts.commutative:
                np.testing.assert_array_equal(apply(op, x[:, None], x), apply(op, x, x[:, None]))
            if facts.idempotent and dtype[:7] != "complex":
                np.testing.assert_array_equal(apply(op, x, x), x)
            if facts.associative:
                small = np.array([0, 1, 1, 2, 3]).astype(dtype)
                a, b, c = small[:, None, None], small[:, None], small
                left, right = apply(op, apply(op, a, b), c), apply(op, a, apply(op, b, c))
                tolerance = 0 if np.dtype(dtype).kind in "biu" else 8 * np.finfo(dtype).eps
                np.testing.assert_allclose(left, right, rtol=tolerance)


@floats_only
def test_signs(op):
    for signs, result_sign in op.facts.signs:
        assert len(signs) == op.arity
        columns = grid(op, step=4)
        # A NaN satisfies every claim about an operand.
        kept = np.all(
            [SATISFIES[sign](c) | np.isnan(c) for sign, c in zip(signs, columns, strict=True)], axis=0
        )
        result = apply(op, *[column[kept] for column in columns])
        result = result[~np.isnan(result)]
        assert len(result)
        assert np.all(SATISFIES[ROUNDED.get(result_sign, result_sign)](result)), (signs, result_sign)
        moderate = [np.array([-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.5])] * op.arity
        columns = [np.array(column) for column in zip(*itertools.product(*moderate), strict=True)]
        kept = np.all([SATISFIES[sign](c) for sign, c in zip(signs, columns, strict=True)], axis=0)
        result = apply(op, *[column[kept] for column in columns])
        assert np.all(SATISFIES[result_sign](result) | np.isnan(result)), (signs, result_sign)


def test_derived_facts():
    assert Facts(lowest=0).nonnegative
    assert not Facts(lowest=0).bounded
    assert Facts(lowest=-1, highest=0).nonpositive
    assert Facts(lowest=-1, highest=0).bounded
    assert not NO_FACTS.nonnegative
