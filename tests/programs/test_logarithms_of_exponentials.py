"""Logarithms of what over- and underflows, behind scale factors, powers, views, sums and choices: at random.

A program draws an exponential or a probability whose logarithm is known, and wraps it in ops of which the
logarithm is known as well; the expected value is computed in logarithms. As written, each gives Inf, NaN or
zeros in the far rows.
"""

import numpy as np
import pytest
from scipy import special

import esat

ROWS = np.array([
    [-1000.0, -3.0, 800.0, 0.5],
    [-760.0, -800.0, -900.0, -1000.0],
    [1000.0, 900.0, 720.0, 800.0],
    [0.25, -0.5, 1e-3, 2.0],
])  # fmt: skip


def log_softmax(x):
    return special.log_softmax(x, axis=1)


# Name -> (as written, its logarithm).
SOURCES = {
    "exp": (esat.exp, lambda x: x),
    "exp2": (esat.exp2, lambda x: x * np.log(2)),
    "sigmoid": (esat.sigmoid, special.log_expit),
    "logistic": (lambda x: 1 / (1 + esat.exp(-x)), special.log_expit),
    "one minus sigmoid": (lambda x: 1 - esat.sigmoid(x), lambda x: special.log_expit(-x)),
    "softmax": (lambda x: esat.softmax(x, axis=1), log_softmax),
    "cosh": (esat.cosh, lambda x: np.logaddexp(x, -x) - np.log(2)),
    "density": (lambda x: esat.exp(-x * x / 2) / 2.5, lambda x: -x * x / 2 - np.log(2.5)),
}  # fmt: skip

# Name -> (wrapper of the value, the same of its logarithm); both take a scale.
WRAPPERS = {
    "scaled": (lambda v, c: v * c, lambda v, c: v + np.log(c)),
    "divided": (lambda v, c: v / c, lambda v, c: v - np.log(c)),
    "divides": (lambda v, c: c / v, lambda v, c: np.log(c) - v),
    "squared": (lambda v, c: v**2, lambda v, c: 2 * v),
    "root": (lambda v, c: esat.sqrt(v), lambda v, c: v / 2),
    "reversed": (lambda v, c: v[::-1], lambda v, c: v[::-1]),
    "part": (lambda v, c: v[1:, ::2], lambda v, c: v[1:, ::2]),
    "transposed": (lambda v, c: v.T, lambda v, c: v.T),
    "reshaped": (lambda v, c: v.reshape((-1, 2)), lambda v, c: v.reshape((-1, 2))),
    "gathered": (lambda v, c: v[[1, 0, 1]], lambda v, c: v[[1, 0, 1]]),
    "summed": (
        lambda v, c: v.sum(axis=1, keepdims=True),
        lambda v, c: special.logsumexp(v, axis=1, keepdims=True),
    ),
    "mean": (
        lambda v, c: v.mean(axis=0, keepdims=True),
        lambda v, c: special.logsumexp(v, axis=0, keepdims=True) - np.log(v.shape[0]),
    ),
    "weighted": (
        lambda v, c: (v * np.array([[c]], v.type.dtype)).sum(axis=1, keepdims=True),
        lambda v, c: special.logsumexp(v, axis=1, keepdims=True) + np.log(c),
    ),
    "product": (lambda v, c: esat.prod(v, axis=1, keepdims=True), lambda v, c: v.sum(axis=1, keepdims=True)),
    "chosen": (
        lambda v, c: esat.where(np.arange(2)[:, None] < 1, v[:2], c * v[:2]),
        lambda v, c: np.where(np.arange(2)[:, None] < 1, v[:2], np.log(c) + v[:2]),
    ),
}  # fmt: skip

LOGARITHMS = {
    "log": (esat.log, 1.0),
    "log2": (esat.log2, 1 / np.log(2)),
    "log10": (esat.log10, 1 / np.log(10)),
}


def program(seed):
    """A description, and functions of a Variable and of an array."""
    generator = np.random.default_rng(seed)
    source = sorted(SOURCES)[seed % len(SOURCES)]
    names = [str(name) for name in generator.choice(sorted(WRAPPERS), 2)]
    scales = [float(scale) for scale in generator.uniform(0.2, 7.0, 2).round(3)]
    logarithm = str(generator.choice(sorted(LOGARITHMS)))

    def written(x):
        value = SOURCES[source][0](x)
        for name, scale in zip(names, scales, strict=True):
            value = WRAPPERS[name][0](value, scale)
        return LOGARITHMS[logarithm][0](value)

    def expected(x):
        value = SOURCES[source][1](x)
        for name, scale in zip(names, scales, strict=True):
            value = WRAPPERS[name][1](value, scale)
        return value * LOGARITHMS[logarithm][1]

    return f"{logarithm} of {source}, {', '.join(names)} by {scales}", written, expected


def require_right(result, wanted, dtype, what):
    tolerance = 64 * float(np.finfo(dtype).eps)
    scale = np.maximum(np.abs(wanted), 1)
    assert np.isfinite(result).all(), f"{what}: {result}"
    assert (np.abs(result - wanted) <= tolerance * scale).all(), f"{what}: {result}, not {wanted}"


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "Stabilization"])
@pytest.mark.parametrize("seed", [*range(16), 109, 203])
def test_logarithms_in_modes_that_stabilize(seed, mode):
    what, written, expected = program(seed)
    dtype = ("float64", "float32", "float16")[seed % 3]
    rows = (ROWS / 40 if dtype == "float16" else ROWS).astype(dtype)
    x = esat.tensor("x", dtype=dtype, shape=(None, None) if seed % 2 else ROWS.shape)
    function = esat.compile(esat.Graph([x], [written(x)]), mode=mode)
    require_right(function(rows), expected(rows.astype(float)), dtype, what)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "Stabilization"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            lambda x: esat.log10(((1 - esat.sigmoid(x)) * 5.694).sum(axis=1)),
            lambda x: (special.logsumexp(special.log_expit(-x), axis=1) + np.log(5.694)) / np.log(10),
        ),
        (
            lambda x: esat.log(esat.mean(esat.exp(-x), axis=0)),
            lambda x: special.logsumexp(-x, axis=0) - np.log(4),
        ),
        (
            lambda x: esat.log1p(esat.sum(esat.exp(x), axis=1)),
            lambda x: np.logaddexp(0, special.logsumexp(x, axis=1)),
        ),
    ],
    ids=["probabilities", "mean", "log1p"],
)
def test_sums_of_exponentials_of_each_format(written, expected, dtype, mode):
    """Of halves, whose means are added up in another format, too; rows lie far on one side."""
    rows = (ROWS / 10 if dtype == "float16" else ROWS).astype(dtype)
    x = esat.matrix("x", dtype=dtype)
    result = esat.compile(esat.Graph([x], [written(x)]), mode=mode)(rows)
    require_right(result, expected(rows.astype(float)), dtype, mode)


@pytest.mark.parametrize("mode", ["o3", "unsafe"])
def test_logarithms_in_modes_by_the_same_rules(mode):
    for seed in (3, 21, 30):
        what, written, expected = program(seed)
        x = esat.matrix("x")
        require_right(
            esat.compile(esat.Graph([x], [written(x)]), mode=mode)(ROWS), expected(ROWS), float, what
        )


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "Stabilization"])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (lambda x: esat.log(2 + esat.exp(x)), lambda x: np.logaddexp(np.log(2), x)),
        (lambda x: esat.log(1 + 2 * esat.exp(x)), lambda x: np.logaddexp(0, x + np.log(2))),
        (lambda x: esat.log1p(esat.exp(x) * 3.5), lambda x: np.logaddexp(0, x + np.log(3.5))),
        (lambda x: esat.log(1 - esat.tanh(x) ** 2), lambda x: 2 * (np.log(2) - np.logaddexp(x, -x))),
        (lambda x: (esat.exp(x) - 1) / (esat.exp(x) + 1), lambda x: np.tanh(x / 2)),
        (lambda x: esat.log(1 - esat.sigmoid(x)[::-1]), lambda x: special.log_expit(-x)[::-1]),
        (lambda x: esat.log(esat.exp(abs(x) + 1) - 1), lambda x: abs(x) + 1 + np.log(-np.expm1(-abs(x) - 1))),
        (lambda x: esat.log(0.5 * esat.erfc(x / 30)), lambda x: special.log_ndtr(-x / 30 * np.sqrt(2))),
    ],
    ids=["2+e", "1+2e", "log1p", "tanh", "quotient", "reversed", "difference", "erfc"],
)
def test_sums_with_exponentials(written, expected, mode):
    x = esat.matrix("x")
    result = esat.compile(esat.Graph([x], [written(x)]), mode=mode)(ROWS)
    require_right(result, expected(ROWS), "float64", mode)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "Stabilization"])
def test_a_multiple_of_unknown_sign(mode):
    x, w = esat.vector("x"), esat.scalar("w")
    function = esat.compile(esat.Graph([x, w], [esat.log(1 + esat.exp(x) * w)]), mode=mode)
    points = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    np.testing.assert_allclose(function(points, np.array(3.0)), np.logaddexp(0, points + np.log(3.0)), 1e-12)
    np.testing.assert_array_equal(function(points, np.array(0.0)), np.zeros(5))
    np.testing.assert_allclose(
        function(points[:2], np.array(-0.5)), np.log1p(-0.5 * np.exp(points[:2])), 1e-12
    )


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "Stabilization"])
def test_weights_of_unknown_sign(mode):
    """The larger exponential is taken out, whatever the signs of the weights are."""
    x, y, w, v = map(esat.vector, "xywv")
    sums = w * esat.exp(x) + v * esat.exp(y), w * esat.exp(x) + esat.exp(y), w * esat.exp(x) - v * esat.exp(y)
    function = esat.compile(esat.Graph([x, y, w, v], [esat.log(value) for value in sums]), mode=mode)
    points = np.array([-900.0, 900, 3, 800]), np.array([-901.0, 890, 3, -800])
    weights = np.array([0.3, 0.3, 2.0, 2.0]), np.array([0.25, -0.5, -0.5, -3.0])
    top = np.maximum(*points)
    (p, q), (a, b) = (np.exp(point - top) for point in points), weights
    for result, share in zip(
        function(*points, *weights), (a * p + b * q, a * p + q, a * p - b * q), strict=True
    ):
        np.testing.assert_allclose(result, top + np.log(share), rtol=1e-14)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_gradients_of_sums_with_exponentials(mode):
    x = esat.vector("x")
    points = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
    for c in (1.0, 2.0, 0.3):
        value = esat.log(c + esat.exp(x)).sum()
        result = esat.compile(esat.Graph([x], [esat.grad(value, x)]), mode=mode)(points)
        np.testing.assert_allclose(result, special.expit(points - np.log(c)), 1e-12)
