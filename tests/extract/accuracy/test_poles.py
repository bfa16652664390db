"""What is infinite by a written division has the sign that was written, and nothing else has to."""

import numpy as np
import pytest

import esat
from esat.extract.accuracy.judge import evaluated


def poles(build, count=2):
    """The values of terms by poles, and the inputs there, of a graph of some scalars."""
    inputs = [esat.scalar(name) for name in "xyz"[:count]]
    extraction = esat.compile(esat.Graph(inputs, [build(*inputs)])).report.extraction
    assert extraction is not None
    sample = evaluated(extraction.graph).sample
    return list(sample.poles.values()), list(sample.inputs.values())


@pytest.mark.parametrize(
    ("build", "root"),
    [
        (lambda x, y: y / (1 - x), lambda x, y: x == 1),
        (lambda x, y: 1 / (x - y) * 3, lambda x, y: x == y),
        (lambda x, y: (x * (y + 2)) ** -3.0, lambda x, y: (x == 0) | (y == -2)),
        (lambda x, y: esat.where(y > 0, 2.0, y) / x - y, lambda x, y: x == 0),
        (lambda x, y: 1 / (1 - esat.exp(x)) + y, lambda x, y: x == 0),
        (lambda x, y: y / esat.log(x), lambda x, y: x == 1),
        (lambda x, y: y / (1 - x**y), lambda x, y: x == 1),
        (lambda x, y: y / (1 - esat.sqrt(x)), lambda x, y: x == 1),
    ],
)
def test_values_at_zeros_of_written_divisors(build, root):
    values, inputs = poles(build)
    assert values
    for one in values:
        known = ~np.isnan(one)
        assert known.any()
        assert root(*inputs)[known].all()
        assert (np.isinf(one[known]) | (one[known] == 0)).all()


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: esat.log(1 - x) + y,
        lambda x, y: esat.log(1 - esat.erf(x)) + y,
        lambda x, y: 1 / (1 - esat.erf(x)) + y,
        lambda x, y: 1 / (esat.exp(2) - esat.exp(x)) + y / esat.exp(x),
        lambda x, y: x + y / 3,
    ],
)
def test_logarithms_and_zeros_that_rounded_functions_make_are_none(build):
    assert poles(build)[0] == []


def test_assumed_signs_exclude_points():
    """Where x is positive, x + 1 is not zero, nor is x."""
    assert poles(lambda x, y: y / (esat.assume(x, "positive") + 1))[0] == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("formula", "root"),
    [
        (lambda x: (x + 2) / (1 - np.exp(x)), 0),
        (lambda x: np.exp(x) / (1 - np.exp(x)), 0),
        (lambda x: -1 / (np.exp(x) - 1), 0),
        (lambda x: 1 / np.log(1 - x), 0),
        (lambda x: 1 / (1 - np.sqrt(x)), 1),
        (lambda x: (x + 1) / (1 - x**x), 1),
        (lambda x: 1 / (1 - x * np.exp(x - 1)), 1),
    ],
)
def test_infinities_where_functions_are_exact_are_those_of_numpy(formula, root, dtype):
    """``expm1(0)`` is 0, and its opposite -0, where ``1 - exp(0)`` is 0."""
    at = np.array([root, 2.5], dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = formula(at)
    assert np.isinf(expected[0])
    for rank in (0, 1):
        found = esat.jit(formula)(at if rank else at[0])
        np.testing.assert_allclose(found, expected if rank else expected[0], rtol=1e-5)
