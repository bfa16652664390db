"""Functions composed of ops, against NumPy: values, shapes and dtypes, sizes known and unknown."""

import numpy as np
import pytest
from oracle import agree
from scipy import special

import esat
from esat.errors import AxisError, CallError, DtypeError, EsatError, ParameterError, ShapeError
from esat.graph.types import DTYPES

RNG = np.random.default_rng(77)
VECTOR = np.round(RNG.uniform(-3, 3, 6), 2)
MATRIX = np.round(RNG.uniform(-3, 3, (4, 5)), 2)
HOLES = MATRIX.copy()
HOLES[1, 2] = HOLES[0, 0] = np.nan
HOLES[:, 3] = np.nan
HOLES[3, :2] = np.inf
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5])
WEIGHTS = np.array([0.5, 1, 2, 1, 3])

NANS = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian")
QUANTILES = ("quantile", "nanquantile", "percentile", "nanpercentile")
METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased",
    "normal_unbiased", "interpolated_inverted_cdf",
)  # fmt: skip

OF_ONE = {
    "nansum": lambda m, x: m.nansum(x, axis=0),
    "nanprod": lambda m, x: m.nanprod(x, axis=1),
    "nancumsum": lambda m, x: m.nancumsum(x, axis=0),
    "nancumprod": lambda m, x: m.nancumprod(x[:2], axis=0),
    "nanmean": lambda m, x: m.nanmean(x, axis=0),
    "nanvar": lambda m, x: m.nanvar(x, axis=0, ddof=1),
    "nanmax": lambda m, x: m.nanmax(x, axis=1),
    "nanargmin": lambda m, x: m.nanargmin(x, axis=1),
    "median": lambda m, x: [m.median(x), m.median(x, axis=0), m.median(x, axis=(0, 1), keepdims=True)],
    "cov": lambda m, x: [m.cov(x), m.cov(x[0]), m.cov(x, rowvar=False, bias=True)],
    "polyval": lambda m, x: [m.polyval([3, 2, 1.5], x), m.polyval([2, 1], x)],
    "vander": lambda m, x: [m.vander(x[0]), m.vander(x[0], 3, True)],
    "trapezoid": lambda m, x: [m.trapezoid(x), m.trapezoid(x, dx=0.5, axis=0)],
    "diagflat": lambda m, x: m.diagflat(x, 1),
    "column_stack": lambda m, x: m.column_stack([x, x[:, 0]]),
    "append": lambda m, x: [m.append(x, x), m.append(x, x[:1], axis=0)],
    "insert": lambda m, x: [m.insert(x, 1, 5), m.insert(x, 2, 7, axis=0), m.insert(x, 1, x[:, 0], axis=1)],
    "nonzero": lambda m, x: [*m.nonzero(x), m.argwhere(x), m.flatnonzero(x)],
    "isin": lambda m, x: [m.isin(x, [1, 2]), m.isin(x, x[0], invert=True), m.isin(x, [])],
    "isreal": lambda m, x: [m.isreal(x), m.iscomplex(x)],
    "compress": lambda m, x: [m.compress([True, False, True, False], x, axis=0), m.compress([0, 1], x)],
    "pad": lambda m, x: [m.pad(x, ((1, 2), (0, 3)), constant_values=3), m.pad(x, 7, mode="reflect")],
    "aliases": lambda m, x: [m.amax(x), m.amin(x, 0), m.concat([x, x]), m.permute_dims(x)],
}  # fmt: skip

OF_REAL = {
    "corrcoef": lambda m, x: m.corrcoef(x * 1.0 + m.arange(5) ** 2),
    "searchsorted": lambda m, x: [m.searchsorted(m.sort(x[0]), x), m.searchsorted(m.sort(x[0]), x, "right")],
    "digitize": lambda m, x: [m.digitize(x, m.sort(x[0])[::s], r) for s in (1, -1) for r in (True, False)],
    "interp": lambda m, x: m.interp(x, [-1.0, 0, 0.5, 2], [1.0, 0, 3, 1]),
    "histogram": lambda m, x: [*m.histogram(x * 1.0, 7), *m.histogram(x * 1.0, [-2.0, 0, 1, 2])],
    "heaviside": lambda m, x: m.heaviside(x, x),
    "modf": lambda m, x: [*m.modf(x), m.fabs(x), m.fix(x), m.isposinf(x), m.isneginf(x)],
    "float_power": lambda m, x: m.float_power(x, x),
    "sinc": lambda m, x: m.sinc(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ONE)
def test_dtypes_and_values(name, dtype):
    array = (np.abs(MATRIX) if dtype.startswith("u") else MATRIX).astype(dtype)
    agree(lambda x: OF_ONE[name](esat, x), lambda x: OF_ONE[name](np, x), array)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if "complex" not in dtype])
@pytest.mark.parametrize("name", OF_REAL)
def test_dtypes_and_values_of_real_functions(name, dtype):
    array = (np.abs(MATRIX) if dtype.startswith("u") else MATRIX).astype(dtype)
    agree(lambda x: OF_REAL[name](esat, x), lambda x: OF_REAL[name](np, x), array)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*NANS, "nancumsum", "nancumprod"])
def test_nan_is_passed_over(name):
    for axis in (None, 0, 1):
        for array in (HOLES, HOLES.astype("float32")):
            agree(
                lambda x, a=axis: getattr(esat, name)(x, axis=a),
                lambda x, a=axis: getattr(np, name)(x, axis=a),
                array,
            )


def test_places_of_extrema_pass_over_nan():
    for axis in (0, 1):
        for name in ("nanargmax", "nanargmin"):
            agree(
                lambda x, n=name, a=axis: getattr(esat, n)(x, axis=a),
                lambda x, n=name, a=axis: getattr(np, n)(x, axis=a),
                HOLES[:, :3],
            )
    x = esat.matrix("x")
    with pytest.raises(EsatError, match="nanargmax: all elements along the axis are NaN"):
        esat.evaluate(esat.nanargmax(x, 0), {x: HOLES})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles(name, method):
    scale = 100 if "percentile" in name else 1
    for q in (0.3 * scale, np.array([0.0, 0.125, 0.25, 0.5, 0.95, 1.0]) * scale):
        for axis, keepdims in ((None, False), (0, True), ((0, 1), True)):
            agree(
                lambda x, q=q, a=axis, k=keepdims: getattr(esat, name)(x, q, a, method=method, keepdims=k),
                lambda x, q=q, a=axis, k=keepdims: getattr(np, name)(x, q, a, method=method, keepdims=k),
                MATRIX if axis is None else HOLES[:3],
            )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32"])
def test_dtypes_of_quantiles(dtype):
    for q in (0.25, 1.0, np.float64(0.25), [0.25, 0.5]):
        agree(lambda x, q=q: esat.quantile(x, q), lambda x, q=q: np.quantile(x, q), VECTOR.astype(dtype))


def test_weighted_covariances():
    for options in ({"fweights": [1, 2, 1, 3, 1]}, {"aweights": WEIGHTS}, {"aweights": WEIGHTS, "ddof": 0}):
        agree(lambda x, o=options: esat.cov(x, **o), lambda x, o=options: np.cov(x, **o), MATRIX)
    agree(esat.cov, np.cov, MATRIX, MATRIX[::-1].astype("complex64"))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for sizes in ((5, 3), (3, 5), (4, 4), (1, 3), (6, 2), (2, 6), (5, 4)):
        for dtype in ("float64", "complex128", "int8"):
            left, right = ((RNG.standard_normal(size) * 5).astype(dtype) for size in sizes)
            if dtype == "complex128":
                right = right * (1 + 2j)
            for name in ("convolve", "correlate"):
                agree(
                    lambda a, v, n=name: getattr(esat, n)(a, v, mode),
                    lambda a, v, n=name: getattr(np, n)(a, v, mode),
                    left,
                    right,
                )


def test_counts_of_integers():
    for dtype in ("bool", "int8", "uint64"):
        whole = np.array([0, 3, 1, 3, 0]).astype(dtype)
        agree(esat.bincount, np.bincount, whole)
        agree(lambda x, w: esat.bincount(x, w, 9), lambda x, w: np.bincount(x, w, 9), whole, WEIGHTS)
    agree(lambda x: esat.bincount(x, minlength=3), lambda x: np.bincount(x, minlength=3), np.zeros(0, int))
    x = esat.lvector("x")
    with pytest.raises(EsatError, match="bincount: an integer is negative"):
        esat.evaluate(esat.bincount(x), {x: np.array([1, -1])})


@pytest.mark.parametrize(
    "options",
    [{}, {"bins": 3}, {"bins": (3, [0.0, 0.5, 2.0])}, {"range": ((0, 1), (0, 2)), "density": True}],
    ids=str,
)
def test_histograms_of_pairs(options):
    x, y = np.random.default_rng(3).random((2, 40))
    for given in (options, {**options, "weights": x}):
        agree(
            lambda x, y, o=given: esat.histogram2d(x, y, **o),
            lambda x, y, o=given: np.histogram2d(x, y, **o),
            x,
            y,
        )


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", ["nanvar", "nanstd", "var", "std"])
def test_a_mean_of_another_dtype(name, dtype):
    ours, theirs = getattr(esat, name), getattr(np, name)
    x, mean = MATRIX[:, :2].astype(dtype), np.array([1.0, 2.0])
    agree(lambda x: ours(x, axis=-1, mean=mean), lambda x: theirs(x, axis=-1, mean=mean), x)


def test_histograms():
    for options in (
        {"bins": 5, "range": (-1, 2)}, {"bins": 4, "density": True}, {"bins": 3, "weights": np.arange(6.0)},
    ):  # fmt: skip
        agree(lambda x, o=options: esat.histogram(x, **o), lambda x, o=options: np.histogram(x, **o), VECTOR)
    for values in (np.ones(3), np.zeros(0), np.zeros(0, "int8"), np.zeros(0, "float32")):
        agree(lambda x: esat.histogram(x, 4), lambda x: np.histogram(x, 4), values)
    agree(
        lambda x: esat.histogram(x, 2, (0, 1)),
        lambda x: np.histogram(x, 2, (0, 1)),
        np.array([0.5, np.nan, 1, 0, 2]),
    )


def test_interpolation_at_the_ends_and_periodic():
    at = np.array([-1, 0, 0.5, 1, 2, 2.5, 3, 4, 5, np.nan, np.inf, -np.inf])
    for options in ({}, {"left": -9, "right": 9}, {"period": 2.5}):
        for points in ([0.0, 1, 2, 4], [4.0, 1, 3, 0] if "period" in options else [0.0, 1, 1.5, 2]):
            agree(
                lambda x, xp, fp, o=options: esat.interp(x, xp, fp, **o),
                lambda x, xp, fp, o=options: np.interp(x, xp, fp, **o),
                at[:9] if "period" in options else at,
                np.array(points),
                np.array([1.0, 3, -1, 2]),
            )


@pytest.mark.filterwarnings("ignore")
def test_special_values():
    for name in ("fabs", "fix", "isposinf", "isneginf", "sinc", "modf"):
        agree(getattr(esat, name), getattr(np, name), SPECIAL)
    agree(lambda x: esat.heaviside(x, 0.5), lambda x: np.heaviside(x, 0.5), SPECIAL)
    x = esat.vector("x")
    signs = esat.evaluate(esat.modf(x)[0], {x: SPECIAL})
    assert np.array_equal(np.signbit(signs), np.signbit(np.modf(SPECIAL)[0]))


def test_equal_arrays():
    for other in (VECTOR, VECTOR + 1, VECTOR[:3], MATRIX):
        agree(
            lambda x, y: [esat.array_equal(x, y), esat.array_equal(y, y, True)],
            lambda x, y: [np.array_equal(x, y), np.array_equal(y, y, True)],
            VECTOR,
            other,
        )
    agree(
        lambda x: [esat.array_equal(x, x, True), esat.array_equal(x, x), esat.allclose(x, x, equal_nan=True)],
        lambda x: [np.array_equal(x, x, True), np.array_equal(x, x), np.allclose(x, x, equal_nan=True)],
        SPECIAL,
    )


def test_phases():
    for options in ({}, {"period": 4.0}, {"discont": 5.0}):
        agree(
            lambda x, o=options: esat.unwrap(x * 3, **o), lambda x, o=options: np.unwrap(x * 3, **o), MATRIX
        )
    for period in (4, 5):
        agree(
            lambda x, p=period: esat.unwrap(x, period=p, axis=0),
            lambda x, p=period: np.unwrap(x, period=p, axis=0),
            MATRIX.astype("int8"),
        )


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_from_samples(order):
    places = np.array([0, 0.5, 2, 2.5, 4])
    for function in (
        lambda m, x: m.gradient(x, edge_order=order),
        lambda m, x: m.gradient(x, 0.5, axis=-1, edge_order=order),
        lambda m, x: m.gradient(x, places, axis=1, edge_order=order),
        lambda m, x: m.gradient(x, 2.0, places, edge_order=order),
        lambda m, x: m.gradient(x[0], edge_order=order),
    ):
        for dtype in ("float64", "float32", "int16"):
            agree(lambda x, f=function: f(esat, x), lambda x, f=function: f(np, x), MATRIX.astype(dtype))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_padding(mode):
    for width in (1, (1, 2), ((1, 0), (2, 3)), 0, (5, 9)):
        agree(lambda x, w=width: esat.pad(x, w, mode), lambda x, w=width: np.pad(x, w, mode), MATRIX)
    agree(lambda x: esat.pad(x, 2, mode), lambda x: np.pad(x, 2, mode), MATRIX[:1])


def test_products_of_vectors():
    vectors, other = RNG.standard_normal((4, 3)), RNG.standard_normal(3).astype("complex64")
    agree(esat.cross, np.cross, vectors, other)
    agree(
        lambda x, y: esat.cross(x, y, axis=0),
        lambda x, y: np.cross(x, y, axis=0),
        vectors.T,
        vectors.T[:, ::-1],
    )
    stack = RNG.standard_normal((2, 4, 3))
    agree(esat.matvec, np.matvec, stack, other)
    agree(esat.vecmat, np.vecmat, other, np.swapaxes(stack, 1, 2))
    x = esat.matrix()
    with pytest.raises(ShapeError):
        esat.cross(esat.matrix(shape=(2, 4)), x)
    with pytest.raises(EsatError):
        esat.evaluate(esat.cross(x, x), {x: np.ones((2, 4))})


def test_numbers_in_one_ratio():
    agree(
        lambda: [esat.logspace(0, 2, 5), esat.logspace(0, 2, 5, base=2), esat.geomspace(1, 1000, 4),
                 esat.geomspace(-1, -8, 4), esat.geomspace(1, 8, 3, endpoint=False)],
        lambda: [np.logspace(0, 2, 5), np.logspace(0, 2, 5, base=2), np.geomspace(1, 1000, 4),
                 np.geomspace(-1, -8, 4), np.geomspace(1, 8, 3, endpoint=False)],
    )  # fmt: skip


def test_choices_and_parts():
    agree(
        lambda x: [
            esat.select([x > 1, x > 0], [x, x * x], -1.5),
            *esat.unravel_index([[7, 3], [0, 11]], (3, 4)),
        ],
        lambda x: [np.select([x > 1, x > 0], [x, x * x], -1.5), *np.unravel_index([[7, 3], [0, 11]], (3, 4))],
        VECTOR,
    )
    agree(
        lambda x: [*esat.unstack(x, 1), esat.delete(x, [0, 2], 1), esat.delete(x, slice(1, 3), 0)],
        lambda x: [*np.unstack(x, axis=1), np.delete(x, [0, 2], 1), np.delete(x, slice(1, 3), 0)],
        MATRIX,
        static=(True,),
    )
    agree(
        lambda x: [esat.ediff1d(x), esat.ediff1d(x, [9, 8], 7)],
        lambda x: [np.ediff1d(x), np.ediff1d(x, [9, 8], 7)],
        MATRIX,
    )


ACTIVATIONS = {
    "relu": (esat.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (esat.leaky_relu, lambda x: np.where(x >= 0, x, 0.01 * x)),
    "elu": (esat.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "silu": (esat.silu, lambda x: x * special.expit(x)),
    "gelu": (esat.gelu, lambda x: x * special.ndtr(x)),
    "softsign": (esat.softsign, lambda x: x / (1 + np.abs(x))),
    "log_sigmoid": (esat.log_sigmoid, special.log_expit),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    ours, theirs = ACTIVATIONS[name]
    far = np.array([-1000.0, -30, -1, 0.5, 30, 1000])
    for array in (far, far.astype("float32")):
        agree(ours, theirs, array)
    assert ours(esat.vector(dtype="float16")).type.dtype == "float16"
    x = esat.vector("x")
    slopes = esat.evaluate(esat.grad(ours(x).sum(), x), {x: far})
    assert np.isfinite(slopes).all()
    esat.verify_grad(ours, [VECTOR])


def test_labels_and_odds():
    labels = np.array([[2, 0], [1, 5]], "int8")
    expected = np.where(labels[..., None] == np.arange(3), 1, 0).astype("float32")
    agree(lambda x: esat.one_hot(x, 3, "float32"), lambda x: expected, labels)
    agree(esat.logit, special.logit, np.array([0.0, 1e-20, 0.3, 1.0]))
    approximate = esat.gelu(VECTOR, approximate=True)
    np.testing.assert_allclose(esat.evaluate(approximate), VECTOR * special.ndtr(VECTOR), atol=1e-3)


GRADIENTS = {
    "nanmean": lambda x: esat.nanmean(esat.switch(esat.gt(x, 2), np.nan, x), 0),
    "nanstd": lambda x: esat.nanstd(esat.switch(esat.gt(x, 2), np.nan, x)),
    "nanmax": lambda x: esat.nanmax(x, 1),
    "median": lambda x: esat.median(x, 0),
    "quantile": lambda x: esat.quantile(x, [0.3, 0.8], 1),
    "nanquantile": lambda x: esat.nanquantile(x, 0.3, 1),
    "cov": esat.cov,
    "corrcoef": esat.corrcoef,
    "interp": lambda x: esat.interp(x, [-4.0, 0.1, 0.6, 4], [1.0, 0, 3, 1]),
    "interp points": lambda x: esat.interp([0.1, 0.7], [0.0, 0.2, 0.5, 0.8, 1.1], x[0]),
    "convolve": lambda x: esat.convolve(x[0], x[1, :3], "same"),
    "correlate": lambda x: esat.correlate(x[0, :2], x[1]),
    "gradient": lambda x: esat.gradient(x, 0.5, axis=0, edge_order=2),
    "trapezoid": lambda x: esat.trapezoid(x[0], x[1]),
    "unwrap": esat.unwrap,
    "polyval": lambda x: esat.polyval([1, -2, 3], x),
    "pad": lambda x: esat.pad(x, 3, "reflect"),
    "insert": lambda x: esat.insert(x, 1, x[0], 0),
    "sinc": esat.sinc,
    "cross": lambda x: esat.cross(x[:, :3], x[0, :3]),
    "weights": lambda x: esat.bincount([0, 2, 0, 1, 2], x[0]),
    "histogram": lambda x: esat.histogram([0.1, 0.2, 0.7, 0.9, 0.4], 3, weights=x[1])[0],
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    esat.verify_grad(GRADIENTS[name], [RNG.standard_normal((4, 5))])


def test_a_derivative_at_zero_is_a_number():
    x = esat.vector("x")
    assert esat.evaluate(esat.grad(esat.sinc(x).sum(), x), {x: np.zeros(2)}).tolist() == [0, 0]


def test_compiled():
    """What is one kernel, a library call or a choice in them, through the whole compiler."""
    x = esat.matrix("x")
    outputs = [
        esat.quantile(x, [0.2, 0.7], 0), esat.nanvar(x, 1), esat.histogram(x, 5, (-2, 2))[0],
        esat.interp(x, [-1.0, 0, 1], [1.0, 2, 0]), esat.convolve(x[0], x[1]), esat.array_equal(x, x[:3]),
        esat.bincount(esat.cast(abs(x[0]), "int64")), esat.pad(x, 2, "wrap"), esat.cov(x),
    ]  # fmt: skip
    results = esat.compile(esat.Graph([x], outputs))(MATRIX)
    expected = [
        np.quantile(MATRIX, [0.2, 0.7], 0), np.nanvar(MATRIX, 1), np.histogram(MATRIX, 5, (-2, 2))[0],
        np.interp(MATRIX, [-1.0, 0, 1], [1.0, 2, 0]), np.convolve(MATRIX[0], MATRIX[1]), False,
        np.bincount(abs(MATRIX[0]).astype(int)), np.pad(MATRIX, 2, "wrap"), np.cov(MATRIX),
    ]  # fmt: skip
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-13)


def test_constants_and_dtypes_have_numpys_names():
    for name in ("pi", "e", "inf", "nan", "euler_gamma", "newaxis", *DTYPES):
        assert getattr(esat, name) is getattr(np, name)
    x = esat.vector("x")
    assert x[esat.newaxis].type.shape == (1, None)
    assert esat.cast(x, esat.float32).type.dtype == esat.zeros(3, esat.float32).type.dtype == "float32"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: esat.quantile(x, 1.5), ParameterError, r"quantile\(fraction 1.5\): .* between 0 and 1"),
        (lambda x: esat.quantile(x, 0.5, method="best"), ParameterError, "method='best'"),
        (lambda x: esat.median(x, 2), AxisError, r"median\(axis=2\)"),
        (lambda x: esat.quantile(x * 1j, 0.5), DtypeError, "integers and floats"),
        (lambda x: esat.quantile(x, [[0.5]]), ShapeError, "a number or a vector"),
        (lambda x: esat.cov(esat.tensor3()), ShapeError, "at most two axes"),
        (lambda x: esat.searchsorted(x, x), ShapeError, "the sorted elements are a vector"),
        (lambda x: esat.searchsorted(x[0], x, "middle"), ParameterError, "side='middle'"),
        (lambda x: esat.digitize(x, x), ShapeError, "the bounds of bins are a vector"),
        (lambda x: esat.digitize(x * 1j, x[0]), DtypeError, "do not lie in bins"),
        (lambda x: esat.histogram(x, 0), ParameterError, "bins=0"),
        (lambda x: esat.bincount(x[0]), DtypeError, "counts integers"),
        (lambda x: esat.bincount(esat.lmatrix()), ShapeError, "takes a vector"),
        (lambda x: esat.interp(x, x, x), ShapeError, "the points are two vectors"),
        (lambda x: esat.nonzero(x[0, 0]), ShapeError, "at least one axis"),
        (lambda x: esat.convolve(x, x), ShapeError, "takes two vectors"),
        (lambda x: esat.convolve(x[0], np.zeros(0)), ShapeError, "without elements"),
        (lambda x: esat.correlate(x[0], x[0], "most"), ParameterError, "mode='most'"),
        (lambda x: esat.correlate(x, x), ShapeError, "takes two vectors"),
        (lambda x: esat.ediff1d(x > 0), DtypeError, "booleans"),
        (lambda x: esat.unwrap(x * 1j), DtypeError, "real numbers"),
        (lambda x: esat.unwrap(esat.vector(dtype="uint8"), period=4), DtypeError, "unsigned"),
        (lambda x: esat.gradient(x > 0), DtypeError, "booleans"),
        (lambda x: esat.gradient(x, edge_order=3), ParameterError, "edge_order=3"),
        (lambda x: esat.gradient(x, 1, 2, 3), CallError, "3 spacings for 2 axes"),
        (lambda x: esat.polyval(x[0], x), ShapeError, "number of coefficients"),
        (esat.vander, ShapeError, "takes a vector"),
        (esat.unstack, ShapeError, "size of axis 0 is not known"),
        (lambda x: esat.delete(x, 0, 0), ShapeError, "size of axis 0 is not known"),
        (lambda x: esat.pad(x, 1, "cut"), ParameterError, "mode='cut'"),
        (lambda x: esat.pad(x, -1), ParameterError, "negative"),
        (lambda x: esat.pad(x, (1, 2, 3)), ShapeError, "not one pair for each of 2 axes"),
        (lambda x: esat.isposinf(x * 1j), DtypeError, "isposinf"),
        (lambda x: esat.select([x > 0], []), ShapeError, "1 conditions for 0 choices"),
        (lambda x: esat.geomspace(1j, 2), DtypeError, "real numbers"),
        (lambda x: esat.one_hot(x, 3), DtypeError, "labels are integers"),
    ],
)
def test_errors_name_the_function(call, error, message):
    with pytest.raises(error, match=message):
        call(esat.matrix("x"))


@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod", "argsort", "squeeze"])
def test_a_number_has_an_axis_for_some_functions(name, axis):
    for number in (np.array(3.5), np.array(np.nan), np.array(-7)):
        agree(lambda x: getattr(esat, name)(x, axis=axis), lambda x: getattr(np, name)(x, axis=axis), number)
    with pytest.raises(AxisError):
        getattr(esat, name)(esat.scalar("x"), axis=1)
    with pytest.raises(AxisError):
        esat.sort(esat.scalar("x"))


def test_places_and_slopes_of_a_number():
    for number in (np.array(3.5), np.array(0.0)):
        agree(esat.argwhere, np.argwhere, number)
    assert esat.gradient(esat.scalar("x")) == np.gradient(np.array(3.5)) == ()


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_gradients_of_running_totals_of_a_number(name):
    esat.verify_grad(lambda x: getattr(esat, name)(x, axis=0), [np.array(1.5)])
