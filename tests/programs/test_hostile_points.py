"""Formulas as users write them, at points where the formula itself overflows, underflows or cancels.

The values expected are those of the stable forms, or of 60 digits' arithmetic done by hand in the comments.
"""

import itertools

import numpy as np
import pytest
import scipy.special as special

import esat

FAR = np.array([-1000.0, -745.0, -40.0, -1.0, -1e-20, 0.0, 1e-20, 1.0, 40.0, 709.0, 1000.0])
TINY = np.array([-1e-5, -1e-20, -1e-300, 0.0, 1e-300, 1e-20, 1e-5, 0.5])
TAILS = np.array([-30.0, -6.0, -1.0, 0.5, 2.0, 6.0, 10.0, 26.0, 30.0, 200.0])
POSITIVE = np.array([1e-300, 1e-20, 1e-3, 0.5, 1.0, 30.0, 745.0, 1000.0])
ROWS = np.array([[1000.0, 0.0, -1000.0], [-1000.0, -1000.0, -1000.0], [1e-20, 710.0, 709.0]])
# Large values with small differences: rounding log(sum(exp(x))) at their size would lose the result.
SHIFTED = np.array([[1e20, 1e20, 1.0], [1e8, 1e8 + 1, 1e8 + 2], [-1e12, -1e12 + 0.5, -1e12 + 0.25]])

MODES = ["fast_run", "greedy", "Stabilization"]


def softplus(x):
    return np.logaddexp(0.0, x)


def log1mexp(x):
    """log(1 - exp(x)) for x < 0: Maechler, "Accurately computing log(1 - exp(-|a|))"."""
    with np.errstate(all="ignore"):
        return np.where(x > -np.log(2), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def log_erfc(x):
    with np.errstate(all="ignore"):
        return np.where(x < 0, np.log(special.erfc(x)), np.log(special.erfcx(np.abs(x))) - x * x)


def log_cosh(x):
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < 1, np.log1p(2 * np.sinh(x / 2) ** 2), np.logaddexp(x, -x) - np.log(2))


def columns(f):
    return lambda x: f(x, axis=1)


UNARY = {
    "log(1 + exp(x))": (lambda x: esat.log(1 + esat.exp(x)), softplus, FAR),
    "log1p(exp(x))": (lambda x: esat.log1p(esat.exp(x)), softplus, FAR),
    "softplus(x)": (esat.softplus, softplus, FAR),
    "log(sigmoid(x))": (lambda x: esat.log(esat.sigmoid(x)), special.log_expit, FAR),
    "log(1 - sigmoid(x))": (lambda x: esat.log(1 - esat.sigmoid(x)), lambda x: special.log_expit(-x), FAR),
    "log(1 / (1 + exp(-x)))": (lambda x: esat.log(1 / (1 + esat.exp(-x))), special.log_expit, FAR),
    "1 / (1 + exp(-x))": (lambda x: 1 / (1 + esat.exp(-x)), special.expit, FAR),
    "exp(x) / (1 + exp(x))": (lambda x: esat.exp(x) / (1 + esat.exp(x)), special.expit, FAR),
    "1 - sigmoid(x)": (lambda x: 1 - esat.sigmoid(x), lambda x: special.expit(-x), FAR),
    "log(cosh(x))": (lambda x: esat.log(esat.cosh(x)), log_cosh, FAR),
    "log(2 cosh(x))": (lambda x: esat.log(2 * esat.cosh(x)), lambda x: np.logaddexp(x, -x), FAR),
    "log(1 - exp(-x))": (lambda x: esat.log(1 - esat.exp(-x)), lambda x: log1mexp(-x), POSITIVE),
    "log1p(-exp(-x))": (lambda x: esat.log1p(-esat.exp(-x)), lambda x: log1mexp(-x), POSITIVE),
    "log(1 + x)": (lambda x: esat.log(1 + x), np.log1p, TINY),
    "log(1 - x)": (lambda x: esat.log(1 - x), lambda x: np.log1p(-x), TINY),
    "exp(x) - 1": (lambda x: esat.exp(x) - 1, np.expm1, TINY),
    "1 - exp(x)": (lambda x: 1 - esat.exp(x), lambda x: -np.expm1(x), TINY),
    "1 - erf(x)": (lambda x: 1 - esat.erf(x), special.erfc, TAILS),
    "erf(x) - 1": (lambda x: esat.erf(x) - 1, lambda x: -special.erfc(x), TAILS),
    "1 + erf(x)": (lambda x: 1 + esat.erf(x), lambda x: special.erfc(-x), TAILS),
    "log(erfc(x))": (lambda x: esat.log(esat.erfc(x)), log_erfc, TAILS),
    "log(1 - erf(x))": (lambda x: esat.log(1 - esat.erf(x)), log_erfc, TAILS),
    "log(softmax(x))": (lambda x: esat.log(esat.softmax(x, axis=1)), columns(special.log_softmax), ROWS),
    "exp(x) / sum(exp(x))": (
        lambda x: esat.exp(x) / esat.sum(esat.exp(x), axis=1, keepdims=True),
        columns(special.softmax),
        ROWS,
    ),
    "log(sum(exp(x)))": (
        lambda x: esat.log(esat.sum(esat.exp(x), axis=1)),
        columns(special.logsumexp),
        ROWS,
    ),
    "log(exp(x) / sum(exp(x)))": (
        lambda x: esat.log(esat.exp(x) / esat.sum(esat.exp(x), axis=1, keepdims=True)),
        columns(special.log_softmax),
        ROWS,
    ),
    "-log(softmax(x)[rows, labels])": (
        lambda x: -esat.log(esat.softmax(x, axis=1)[esat.arange(3), esat.constant([2, 0, 1])]),
        lambda x: -special.log_softmax(x, axis=1)[np.arange(3), [2, 0, 1]],
        ROWS,
    ),
}


def shifted(x):
    """x with the largest of each row taken off."""
    return x - esat.max(x, axis=1, keepdims=True)


def log_sum_exp(x):
    """log(sum(exp(x))) of each row, as written."""
    return esat.log(esat.sum(esat.exp(x), axis=1, keepdims=True))


WRITTEN_STABLY = {
    "x - max(x) - log(sum(exp(x - max(x))))": (
        lambda x: x - esat.max(x, axis=1, keepdims=True) - log_sum_exp(shifted(x)),
        columns(special.log_softmax),
    ),
    "z - log(sum(exp(z)))": (
        lambda x: shifted(x) - log_sum_exp(shifted(x)),
        columns(special.log_softmax),
    ),
    "2 (log(sum(exp(z))) - z)": (
        lambda x: 2 * (log_sum_exp(shifted(x)) - shifted(x)),
        lambda x: -2 * special.log_softmax(x, axis=1),
    ),
    "log(sum(exp(z))) + max(x)": (
        lambda x: log_sum_exp(shifted(x)) + esat.max(x, axis=1, keepdims=True),
        lambda x: special.logsumexp(x, axis=1, keepdims=True),
    ),
    "z[:, 0] - log(sum(exp(z)))": (
        lambda x: shifted(x)[:, 0] - log_sum_exp(shifted(x))[:, 0],
        lambda x: special.log_softmax(x, axis=1)[:, 0],
    ),
    "z[rows, labels] - log(sum(exp(z)))": (
        lambda x: (
            shifted(x)[esat.arange(3), esat.constant([2, 0, 1])]
            - esat.log(esat.sum(esat.exp(shifted(x)), axis=1))
        ),
        lambda x: special.log_softmax(x, axis=1)[np.arange(3), [2, 0, 1]],
    ),
    "x - logsumexp(x)": (
        lambda x: x - esat.logsumexp(x, axis=1, keepdims=True),
        columns(special.log_softmax),
    ),
    "exp(z) / sum(exp(z))": (
        lambda x: esat.exp(shifted(x)) / esat.sum(esat.exp(shifted(x)), axis=1, keepdims=True),
        columns(special.softmax),
    ),
}


@pytest.mark.parametrize("shape", [(None, None), (3, 3)])
@pytest.mark.parametrize("mode", ["fast_run", "Stabilization", "o3"])
@pytest.mark.parametrize("name", WRITTEN_STABLY)
def test_what_was_written_stably_stays_accurate(name, mode, shape):
    build, expected = WRITTEN_STABLY[name]
    x = esat.tensor("x", shape=shape)
    function = esat.compile(esat.Graph([x], [build(x)]), mode)
    np.testing.assert_allclose(function(SHIFTED), expected(SHIFTED), rtol=1e-12)


def test_a_log_softmax_is_more_accurate_than_the_difference_beside_its_logarithm():
    x = esat.matrix("x")
    total = esat.logsumexp(x, axis=1, keepdims=True)
    function = esat.compile(esat.Graph([x], [total, x - total, esat.exp(x - total)]))
    _, logarithms, probabilities = function(SHIFTED)
    np.testing.assert_allclose(logarithms, special.log_softmax(SHIFTED, axis=1), rtol=1e-12)
    np.testing.assert_allclose(probabilities, special.softmax(SHIFTED, axis=1), rtol=1e-12)


def variable_for(values):
    return esat.matrix("x") if values.ndim == 2 else esat.vector("x")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name, mode):
    build, expected, points = UNARY[name]
    x = variable_for(points)
    function = esat.compile(esat.Graph([x], [build(x)]), mode)
    np.testing.assert_allclose(function(points), expected(points), rtol=1e-9, atol=1e-307)


def log_erfc_slope(x):
    """-2 / sqrt(pi) exp(-x^2) / erfc(x)."""
    return -2 / np.sqrt(np.pi) / special.erfcx(x)


def identity_at(labels):
    return np.eye(3)[labels]


LABELS = np.array([2, 0, 1])
SLOPES = {
    "log(1 + exp(x))": special.expit,
    "log1p(exp(x))": special.expit,
    "softplus(x)": special.expit,
    "log(sigmoid(x))": lambda x: special.expit(-x),
    "log(1 - sigmoid(x))": lambda x: -special.expit(x),
    "log(1 / (1 + exp(-x)))": lambda x: special.expit(-x),
    "1 / (1 + exp(-x))": lambda x: special.expit(x) * special.expit(-x),
    "exp(x) / (1 + exp(x))": lambda x: special.expit(x) * special.expit(-x),
    "log(cosh(x))": np.tanh,
    "1 - sigmoid(x)": lambda x: -special.expit(x) * special.expit(-x),
    "log(1 - exp(-x))": lambda x: 1 / np.expm1(x),
    "log1p(-exp(-x))": lambda x: 1 / np.expm1(x),
    "1 - erf(x)": lambda x: -2 / np.sqrt(np.pi) * np.exp(-x * x),
    "log(erfc(x))": log_erfc_slope,
    "log(1 - erf(x))": log_erfc_slope,
    "log(softmax(x))": lambda x: 1 - 3 * special.softmax(x, axis=1),
    "log(exp(x) / sum(exp(x)))": lambda x: 1 - 3 * special.softmax(x, axis=1),
    "exp(x) / sum(exp(x))": np.zeros_like,
    "log(sum(exp(x)))": columns(special.softmax),
    "-log(softmax(x)[rows, labels])": lambda x: special.softmax(x, axis=1) - identity_at(LABELS),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SLOPES)
def test_gradients_of_functions_of_one(name, mode):
    build, _, points = UNARY[name]
    x = variable_for(points)
    function = esat.compile(esat.Graph([x], [esat.grad(esat.sum(build(x)), x)]), mode)
    with np.errstate(over="ignore"):
        expected = SLOPES[name](points)
    np.testing.assert_allclose(function(points), expected, rtol=1e-9, atol=1e-15)


def chosen_by_quotient(x, rows, labels):
    powers = esat.exp(x)
    return esat.log((powers / esat.sum(powers, axis=1)[:, None])[rows, labels])


LOG_LIKELIHOODS = {
    "log_softmax(x)[rows, labels]": lambda x, rows, labels: esat.log_softmax(x, axis=1)[rows, labels],
    "log(softmax(x))[rows, labels]": lambda x, rows, labels: esat.log(esat.softmax(x, axis=1))[rows, labels],
    "log(softmax(x)[rows, labels])": lambda x, rows, labels: esat.log(esat.softmax(x, axis=1)[rows, labels]),
    "log((exp(x) / sum(exp(x)))[rows, labels])": chosen_by_quotient,
    "targets * log(softmax(x))": lambda x, rows, labels: (
        esat.log(esat.softmax(x, axis=1)) * esat.constant(identity_at(LABELS))
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LOG_LIKELIHOODS)
def test_gradient_of_log_softmax_at_labels(name, mode):
    """Also where the probability of the label is 0 in float64, which the gradient is first divided by."""
    x = esat.matrix("x")
    likelihood = LOG_LIKELIHOODS[name](x, esat.arange(3), esat.constant(LABELS))
    function = esat.compile(esat.Graph([x], [esat.grad(esat.sum(likelihood), x)]), mode)
    expected = identity_at(LABELS) - special.softmax(ROWS, axis=1)
    np.testing.assert_allclose(function(ROWS), expected, rtol=1e-9, atol=1e-15)


SIGMOIDS = {"sigmoid(x)": esat.sigmoid, "1 / (1 + exp(-x))": lambda x: 1 / (1 + esat.exp(-x))}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SIGMOIDS)
def test_gradient_of_the_cross_entropy_of_sigmoids(name, mode):
    x, y = esat.vector("x"), esat.vector("y")
    p = SIGMOIDS[name](x)
    loss = -esat.sum(y * esat.log(p) + (1 - y) * esat.log(1 - p))
    function = esat.compile(esat.Graph([x, y], [esat.grad(loss, x)]), mode)
    for target in (0.0, 0.25, 1.0):
        targets = np.full(FAR.shape, target)
        expected = (1 - target) * special.expit(FAR) - target * special.expit(-FAR)
        np.testing.assert_allclose(function(FAR, targets), expected, rtol=1e-9, atol=1e-15)


PAIRS = np.array([[1000.0, 999.0], [-1000.0, -1001.0], [709.0, -709.0], [1e-20, -1e-20], [800.0, 10.0]])
BINARY = {
    "log(exp(x) + exp(y))": (lambda x, y: esat.log(esat.exp(x) + esat.exp(y)), np.logaddexp),
    "log(exp(x) - exp(y))": (
        lambda x, y: esat.log(esat.exp(x) - esat.exp(y)),
        lambda x, y: x + log1mexp(y - x),
    ),
    "exp(x) / (exp(x) + exp(y))": (
        lambda x, y: esat.exp(x) / (esat.exp(x) + esat.exp(y)),
        lambda x, y: special.expit(x - y),
    ),
    "logaddexp(x, y)": (esat.logaddexp, np.logaddexp),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name, mode):
    build, expected = BINARY[name]
    x, y = esat.vector("x"), esat.vector("y")
    function = esat.compile(esat.Graph([x, y], [build(x, y)]), mode)
    np.testing.assert_allclose(function(*PAIRS.T), expected(*PAIRS.T), rtol=1e-9, atol=1e-307)


SLOPES_OF_TWO = {
    "log(exp(x) + exp(y))": lambda x, y: special.expit(x - y),
    "log(exp(x) - exp(y))": lambda x, y: -1 / np.expm1(y - x),
    "exp(x) / (exp(x) + exp(y))": lambda x, y: special.expit(x - y) * special.expit(y - x),
    "logaddexp(x, y)": lambda x, y: special.expit(x - y),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BINARY)
def test_gradients_of_functions_of_two(name, mode):
    x, y = esat.vector("x"), esat.vector("y")
    function = esat.compile(esat.Graph([x, y], [esat.grad(esat.sum(BINARY[name][0](x, y)), x)]), mode)
    np.testing.assert_allclose(function(*PAIRS.T), SLOPES_OF_TWO[name](*PAIRS.T), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("mode", MODES)
def test_log_determinant_of_a_large_matrix(mode):
    a = esat.matrix("a")
    function = esat.compile(
        esat.Graph([a], [esat.log(abs(esat.linalg.det(a))), esat.log(esat.linalg.det(a))]), mode
    )
    matrix = np.random.default_rng(0).normal(size=(400, 400)) * 1e10
    sign, expected = np.linalg.slogdet(matrix)
    absolute, plain = function(matrix if sign > 0 else matrix[::-1].copy())
    np.testing.assert_allclose(absolute, expected, rtol=1e-9)
    signed = np.linalg.slogdet(matrix if sign > 0 else matrix[::-1])
    np.testing.assert_allclose(plain, expected if signed[0] > 0 else np.nan, rtol=1e-9)


def student_slope(xp, value, nu, mu, sigma):
    """Of a density in its value, as PyTensor differentiates it."""
    precision = sigma**-2.0 * xp.sign(sigma)
    spread = 1 + precision * (value - mu) ** 2 / nu
    return -1.0 * ((nu + 1) / 2) / spread / nu * precision * 2 * (value - mu)


def skew_student_slope(xp, value, a, b, sigma):
    """One of its parts: the root of a sum beside a square, and the sum beside its root."""
    scaled = value / sigma
    root = xp.sqrt(a + b + scaled**2)
    return (a + 0.5) * (1 / root - scaled * scaled / root**3) / (1 + scaled / root) / sigma


def skew_normal_density(xp, value, mu, sigma, alpha):
    """Finite only where the precision is positive, also where its inverse is out of range."""
    precision = sigma**-2
    density = -precision * (value - mu) ** 2 + xp.log(precision) + alpha * 0
    return xp.where(precision > 0, density, -np.inf)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "build",
    [
        student_slope,
        skew_student_slope,
        skew_normal_density,
        lambda _, x, y, z, t: x / y / z / t,
        lambda _, x, y, z, t: x * y * y * z + t,
        lambda _, x, y, z, t: x * y / t * y / t - x / t + z,
        lambda _, x, y, z, t: x * y / z * t,
        lambda _, x, y, z, t: (x - y) / z / (1 + (x - y) / z / t),
    ],
)
def test_numbers_stay_numbers_where_two_inputs_are_near_the_ends_of_the_range(build, mode):
    """Wherever NumPy's value is one, in the order in which the formula is written."""
    sizes = (1.0, 1e160, 1e-160, 1e300, 1e-300, 0.0)
    inputs = [esat.scalar(name) for name in ("x", "y", "z", "t")]
    function = esat.compile(esat.Graph(inputs, [build(esat, *inputs)]), mode)
    random = np.random.default_rng(4)
    lost = []
    for one, other in itertools.combinations(range(4), 2):
        for levels in itertools.product(sizes, sizes):
            values = random.uniform(0.5, 2.0, 4)
            values[[one, other]] *= levels
            with np.errstate(all="ignore"):
                expected = build(np, *values)
            if np.isfinite(expected) and not np.isfinite(function(*values)):
                lost.append((values, expected))
    assert not lost


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_stay_numbers_where_the_double_of_a_quotient_leaves_the_range(dtype):
    """Slopes of Cauchy's density: what is doubled before it is divided by its square is no number."""

    def slopes(value, alpha, beta):
        scaled = (value - alpha) / beta
        slope = -1.0 / (1 + scaled**2) * 2 * scaled
        return slope / beta, -1.0 / beta - slope * (value - alpha) / (beta * beta)

    inputs = [esat.scalar(name, dtype=dtype) for name in ("value", "alpha", "beta")]
    function = esat.compile(esat.Graph(inputs, list(slopes(*inputs))))
    largest = np.finfo(dtype).max
    for numbers in ((0.8 * largest, 1.0, 0.9), (1.0, -0.9 * largest, 0.95)):
        point = [np.dtype(dtype).type(number) for number in numbers]
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(function(*point), slopes(*point), rtol=1e-6)


WITH_POLES = {
    "1 / (1 - x)": lambda x, y, b: 1 / (1 - x),
    "1 / (x - y)": lambda x, y, b: 1 / (x - y),
    "x / (y - x)": lambda x, y, b: x / (y - x),
    "-x / (y - x)": lambda x, y, b: -x / (y - x),
    "(b - 1) / (1 - x) * -1": lambda x, y, b: (b - 1) / (1 - x) * -1.0,
    "-((b - 1) / (1 + -x))": lambda x, y, b: -((b - 1) / (1 + -x)),
    "(y - 1) / x - (b - 1) / (1 - x)": lambda x, y, b: (y - 1) / x - (b - 1) / (1 - x),
    "3 * (-1 / (x - y))": lambda x, y, b: 3.0 * (-1.0 / (x - y)),
    "b * (1 - x)**-3": lambda x, y, b: b * (1 - x) ** -3.0,
    "(x - 2) / (1 - x) + (2 - x) / (y - x)": lambda x, y, b: (x - 2) / (1 - x) + (2 - x) / (y - x),
}


@pytest.mark.parametrize("mode", [*MODES, "strict", "unsafe", "fast_compile"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WITH_POLES)
def test_infinities_by_division_have_the_sign_that_was_written(name, dtype, mode):
    """Of numbers and of vectors, wherever NumPy's value is infinite."""
    points = np.array(list(itertools.product([0.0, 1.0, -1.0, 2.0, 0.5], repeat=3)), dtype)
    with np.errstate(all="ignore"):
        expected = WITH_POLES[name](*points.T)
    infinite = np.isinf(expected)
    assert infinite.any()
    for shape in ((), (None,)):
        inputs = [esat.tensor(one, dtype=dtype, shape=shape) for one in "xyb"]
        graph = esat.Graph(inputs, [WITH_POLES[name](*inputs)], on_unused_input="ignore")
        function = esat.compile(graph, mode)
        with np.errstate(all="ignore"):
            found = function(*points.T.copy()) if shape else np.array([function(*point) for point in points])
        np.testing.assert_array_equal(found[infinite], expected[infinite])
