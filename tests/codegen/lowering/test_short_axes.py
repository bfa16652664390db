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


def test_rows_of_known_sizes_are_written_out_within_one_loop():
    x = esat.TensorType("float64", shape=(None, 3))("x")
    rows = esat.logsumexp(x, axis=1)
    text = esat.compile(esat.Graph([x], [rows])).source()
    assert "for rows of 3" in text
    kernel = text.partition("# kernel_0\n")[2].partition("# kernel_0_in_threads")[0]
    assert kernel.count("for i") == 1


def test_squares_of_rows_that_elements_need_and_a_sum():
    x = esat.TensorType("float64", shape=(None, 3))("x")
    square = esat.max(x, axis=1) ** 2
    function = esat.compile(esat.Graph([x], [square.sum(), x * square[:, None]]))
    values = np.random.default_rng(3).normal(size=(50, 3))
    expected = values.max(axis=1) ** 2
    total, products = function(values)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-13)
    np.testing.assert_allclose(products, values * expected[:, None], rtol=1e-13)


def test_what_is_reduced_alone_beside_rows():
    x = esat.TensorType("float64", shape=(None, 3))("x")
    weights = esat.TensorType("float64", shape=(3,))("weights")
    shares = esat.log(esat.softmax(weights, axis=0))
    function = esat.compile(esat.Graph([x, weights], [esat.logsumexp(x + shares, axis=1).sum()]))
    rng = np.random.default_rng(4)
    for rows in (0, 1, 40, 700):
        values, logits = rng.normal(size=(rows, 3)), rng.normal(size=3)
        expected = scipy.special.logsumexp(values + scipy.special.log_softmax(logits), axis=1).sum()
        np.testing.assert_allclose(function(values, logits), expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [3, 4000])
def test_what_is_added_at_places_by_rows(rows):
    """Gradients of windows: no loop of them is written out."""
    x = esat.TensorType("float64", shape=(rows + 2,))("x")
    windows = esat.sliding_window_view(x, 3)
    gradient = esat.grad((windows.sum(axis=-1) ** 2).sum(), x)
    values = np.random.default_rng(5).normal(size=rows + 2)
    sums = np.lib.stride_tricks.sliding_window_view(values, 3).sum(axis=-1)
    computed = esat.compile(esat.Graph([x], [gradient]))(values)
    np.testing.assert_allclose(computed, np.convolve(2 * sums, np.ones(3)), rtol=1e-12)
