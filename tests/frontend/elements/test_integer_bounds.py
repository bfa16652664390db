"""Bounds of integers that follow from how they are computed, and counts whose length they tell."""

import numpy as np
import pytest

import esat
from esat.errors import ParameterError
from esat.frontend.elements.integer_bounds import integer_bounds
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.op import as_variable

rng = np.random.default_rng(0)
LABELS, BYTES, ROWS = rng.integers(-9, 9, 60), rng.integers(0, 256, 60), rng.normal(size=(60, 4))
WAYS = {
    "uint8": (lambda k, x: esat.cast(k, "uint8"), (0, 255)),
    "bool": (lambda k, x: k > 3, (0, 1)),
    "int8": (lambda k, x: esat.cast(k, "int8"), (-128, 127)),
    "mod": (lambda k, x: k % 5, (0, 4)),
    "mod of a negative number": (lambda k, x: k % -5, (-(2**63), 2**63 - 1)),
    "clip": (lambda k, x: esat.clip(k, -1, 5), (-1, 5)),
    "minimum": (lambda k, x: esat.minimum(esat.maximum(k, 0), 5), (0, 5)),
    "argmin": (lambda k, x: x.argmin(axis=1), (0, 3)),
    "moved": (lambda k, x: (k % 7)[::-2].reshape((5, 6)).T[as_variable(np.array([0, 1]))], (0, 6)),
    "wrapped": (lambda k, x: esat.cast(k % 300, "uint8"), (0, 255)),
    "constant": (lambda k, x: as_variable(np.array([3, -2])), (-2, 3)),
    "sum": (lambda k, x: k % 5 + 1, (-(2**63), 2**63 - 1)),
}


@pytest.mark.parametrize("name", WAYS)
def test_bounds_hold_and_are_close(name):
    make, wanted = WAYS[name]
    labels, rows = (
        esat.tensor("k", dtype="int64", shape=(60,)),
        esat.tensor("x", dtype="float64", shape=(60, 4)),
    )
    found = make(labels, rows)
    assert integer_bounds(found) == wanted
    for given in (LABELS, BYTES, BYTES - 400):
        values = evaluate(found, {labels: given, rows: ROWS})
        assert wanted[0] <= values.min() <= values.max() <= wanted[1]


@pytest.mark.parametrize(("count", "given"), [
    (lambda q: np.bincount(q.ravel(), minlength=256), BYTES.astype(np.uint8).reshape(6, 10)),
    (lambda q: np.bincount(q, minlength=3), BYTES.astype(np.uint8)),
    (lambda q: np.bincount(q, minlength=300), BYTES.astype(np.int16)),
    (lambda k: np.bincount(k % 7, minlength=7), LABELS),
    (lambda k: np.bincount(k % 7, minlength=6), LABELS),
    (lambda x: np.bincount(x.argmax(axis=1), weights=x[:, 0], minlength=4), ROWS),
    (lambda x: np.bincount(x[:, 0] > 0, minlength=2), ROWS),
    (lambda k: np.bincount(np.clip(k, 0, 5), minlength=8), LABELS),
])  # fmt: skip
def test_counts_are_numpys(count, given):
    found, wanted = esat.jit(count)(given), count(given)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_negative_numbers_are_refused():
    with pytest.raises(ParameterError, match="negative"):
        esat.jit(lambda k: np.bincount(k.astype(np.int8), minlength=128))(LABELS)


def test_counts_of_bytes_have_a_known_length():
    counts = esat.jit(lambda q: np.bincount(q, minlength=256))
    counts(BYTES.astype(np.uint8))
    (output,) = counts.latest.graph.outputs
    assert output.tensor_type.shape == (256,)
