"""Loops along short axes of known sizes, which kernels are told."""

import numpy as np
import pytest
import scipy.special

import esat


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("known", [True, False])
def test_rows_of_few_elements(size, known):
    x = esat.TensorType("float64", shape=(None, size if known else None))("x")
    y = esat.TensorType("float64", shape=(size if known else None,))("y")
    total = esat.log(esat.exp(x - y).sum(axis=1)).sum()
    outputs = [esat.softmax(x * y, axis=1), total, *esat.grad(total, [x, y])]
    function = esat.compile(esat.Graph([x, y], outputs))
    rng = np.random.default_rng(size)
    for rows in (0, 1, 7, 100):
        values = rng.normal(size=(rows, size)), rng.normal(size=size)
        shares = scipy.special.softmax(values[0] - values[1], axis=1)
        expected = [
            scipy.special.softmax(values[0] * values[1], axis=1) if rows else values[0],
            scipy.special.logsumexp(values[0] - values[1], axis=1).sum() if rows else 0.0,
            shares,
            -shares.sum(axis=0),
        ]
        for one, wanted in zip(function(*values), expected, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-13)
    if known and size > 1:
        short = np.ones((4, size + 1)), np.ones(size + 1)
        with pytest.raises(esat.InputError, match="a size differs"):
            function(*short)
