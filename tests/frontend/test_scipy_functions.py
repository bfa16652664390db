"""Filters, transforms and densities of SciPy's in traced functions, against SciPy, with gradients."""

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.spatial
import scipy.stats
from scipy.spatial.distance import cdist, pdist
from scipy.stats import multivariate_normal, norm, poisson

import esat
from esat.errors import CallError, DtypeError, EsatError

RNG = np.random.default_rng(3)
X, K = RNG.normal(size=12), RNG.normal(size=4)
IMAGE, WINDOW = RNG.normal(size=(6, 7)), RNG.normal(size=(3, 2))
CUBE = RNG.normal(size=(3, 4, 5))


def check(function, *arguments, rtol=1e-11):
    expected = function(*arguments)
    for mode in ("fast_run", "strict"):
        result = esat.jit(function, mode=mode)(*arguments)
        np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-13)
        assert np.asarray(result).dtype == np.asarray(expected).dtype
        assert type(result) is type(expected)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
def test_convolutions(name, mode):
    function = getattr(scipy.signal, name)
    check(lambda x, k: function(x, k, mode=mode), X, K)
    check(lambda x, k: function(x, k, mode), IMAGE, WINDOW)
    check(lambda x, k: function(x, k, mode), CUBE, CUBE[:2, :2, :3])
    check(lambda x, k: function(x, k, mode), IMAGE + 1j, WINDOW - 2j)


def test_convolution_with_a_large_kernel():
    large = RNG.normal(size=(13, 12))
    check(lambda x, k: scipy.signal.convolve(x, k, "full"), IMAGE, large, rtol=1e-9)


@pytest.mark.parametrize("b", [[1.0, 0.5], [2.0], [0.5, -0.25, 1.0, 3.0]])
@pytest.mark.parametrize("a", [[1.0], [2.0, -0.5], [1.0, -1.2, 0.5]])
def test_recursive_filters(b, a):
    check(lambda x: scipy.signal.lfilter(b, a, x), X)
    check(lambda x: scipy.signal.lfilter(b, a, x, axis=0), IMAGE)
    check(scipy.signal.lfilter, np.array(b), np.array(a), X)


@pytest.mark.parametrize("mode", ["reflect", "nearest", "mirror", "constant", "wrap"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_images(name, mode):
    function = getattr(scipy.ndimage, name)
    check(lambda x, w: function(x, w, mode=mode, cval=0.5), IMAGE, WINDOW)
    check(lambda x, w: function(x, w, mode=mode), X, K)
    check(lambda x, w: function(x, w, mode=mode, origin=(1, 0)), IMAGE, WINDOW)
    one = getattr(scipy.ndimage, f"{name}1d")
    check(lambda x, w: one(x, w, axis=0, mode=mode), IMAGE, K)
    check(lambda x, w: one(x, w, mode=mode, origin=1), IMAGE, K[:3])
    check(lambda x, w: function(x, w, mode=mode), np.arange(20).reshape(4, 5), np.array([[1, 2], [3, 1]]))


def test_blurred_images():
    check(lambda x: scipy.ndimage.gaussian_filter(x, 0.8), IMAGE)
    check(lambda x: scipy.ndimage.gaussian_filter(x, (0.5, 1.1), order=(1, 0), mode="nearest"), IMAGE)
    check(lambda x: scipy.ndimage.gaussian_filter(x, 0.8, truncate=2.0, mode=("wrap", "mirror")), IMAGE)
    check(lambda x: scipy.ndimage.gaussian_filter1d(x, 0.6, axis=0, order=2), IMAGE)
    check(lambda x: scipy.ndimage.gaussian_filter1d(x, 0.6, radius=2), X.astype("float32"), rtol=1e-5)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("norm_", [None, "ortho", "forward"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_cosine_transforms(name, kind, norm_):
    function = getattr(scipy.fft, name)
    check(lambda x: function(x, type=kind, norm=norm_), IMAGE)
    check(lambda x: function(x, type=kind, norm=norm_, axis=0, n=4), IMAGE)
    check(lambda x: function(x, type=kind, n=16), X)


POINTS = np.array([-1.5, -0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 7.0, np.inf, np.nan])
SHAPES = {
    "norm": (), "t": (3.5,), "gamma": (2.5,), "chi2": (3.0,), "invgamma": (2.5,), "beta": (2.0, 1.5),
    "expon": (), "lognorm": (0.7,), "uniform": (), "laplace": (), "cauchy": (), "logistic": (),
    "poisson": (2.5,), "binom": (5.0, 0.3), "bernoulli": (0.3,),
}  # fmt: skip
DISCRETE = ("poisson", "binom", "bernoulli")


@pytest.mark.parametrize("kind", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize("name", SHAPES)
def test_distributions(name, kind):
    kind = kind.replace("pdf", "pmf") if name in DISCRETE else kind
    distribution = getattr(scipy.stats, name)
    shapes = SHAPES[name]
    function = getattr(distribution, kind)
    points = POINTS[:-2] if name in DISCRETE else POINTS
    with np.errstate(all="ignore"):
        check(lambda x: function(x, *shapes), points, rtol=2e-9)
        if name in DISCRETE:
            check(lambda x, loc: function(x, *shapes, loc), points, 1)
        else:
            check(
                lambda x, loc, scale: function(x, *shapes, loc=loc, scale=scale), points, 0.25, 1.5, rtol=2e-9
            )
            check(lambda x, scale: function(x, *shapes, 0.0, scale), points[:3], -1.0)
        if shapes:
            check(lambda x, p: function(x, *p), points, [np.float64(one) for one in shapes], rtol=2e-9)
        if shapes and kind in ("logpdf", "logpmf", "cdf"):
            check(lambda x, p: function(x, *p), points[:3], [-1.0 for _ in shapes])


def test_distributions_with_parameters_kept():
    check(lambda x, m, s: norm(m, s).logpdf(x).sum(), X, 0.5, 2.0)
    check(lambda x, m, s: norm(loc=m, scale=s).cdf(x), X, np.float64(0.5), np.float64(2.0))
    rates = poisson(3.0)
    check(lambda k: rates.logpmf(k) + 0.0, np.arange(4))
    fixed = scipy.stats.gamma(2.0, scale=0.5)
    check(lambda x: fixed.logpdf(x) + 0.0, np.abs(X), rtol=1e-9)


COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 0.75]])
CENTER = np.array([0.5, -1.0, 0.0])


def test_normal_vectors():
    points = RNG.normal(size=(4, 3))
    check(lambda x, m, c: multivariate_normal.logpdf(x, m, c) + 0.0, points[0], CENTER, COVARIANCE)
    check(lambda x, m, c: multivariate_normal.logpdf(x, mean=m, cov=c), points, CENTER, COVARIANCE)
    check(
        lambda x, m, c: multivariate_normal.pdf(x, m, c) + 0.0, RNG.normal(size=(2, 5, 3)), CENTER, COVARIANCE
    )
    check(lambda x: multivariate_normal.logpdf(x, CENTER, [1.0, 2.0, 3.0]), points)
    check(lambda x, c: multivariate_normal.logpdf(x, cov=c), points[0, :1], COVARIANCE)
    check(lambda x: multivariate_normal.logpdf(x) + 0.0, points[0])
    check(lambda x, c: multivariate_normal.logpdf(x, 0.5, c), X, 2.0)
    check(lambda x, c: multivariate_normal.logpdf(x, [0.5], c), X[:1], np.array([[2.0]]))
    check(lambda x, c: multivariate_normal.logpdf(x, CENTER, c, True), points[:1], COVARIANCE)
    check(lambda x, c: multivariate_normal.logpdf(x, CENTER, c, allow_singular=True), points, COVARIANCE)
    flat = np.outer([1.0, 2.0, 0.0], [1.0, 2.0, 0.0]) + np.outer([0.0, 0.0, 1.0], [0.0, 0.0, 1.0])
    on_support = np.array([[1.0, 2.0, 3.0], [0.5, 1.0, 0.0], [1.0, 0.0, 0.0]])
    check(lambda x, c: multivariate_normal.logpdf(x, np.zeros(3), c, True), on_support, flat)
    with pytest.raises(np.linalg.LinAlgError):
        esat.jit(lambda x, c: multivariate_normal.logpdf(x, CENTER, c))(points, flat)


LIKELIHOODS = {
    "norm": lambda p, x: norm.logpdf(x, p[0], p[1]).sum(),
    "t": lambda p, x: scipy.stats.t.logpdf(x, 3.0 + p[0], 0.0, p[1]).sum(),
    "gamma": lambda p, x: scipy.stats.gamma.logpdf(np.abs(x), p[0], scale=p[1]).sum(),
    "beta": lambda p, x: scipy.stats.beta.logpdf(1 / (1 + x**2), p[0], p[1]).sum(),
    "poisson": lambda p, x: poisson.logpmf(np.floor(np.abs(x)), p[0] * p[1]).sum(),
    "binom": lambda p, x: scipy.stats.binom.logpmf(np.floor(np.abs(x)), 5, 1 / (1 + p[0] ** 2)).sum(),
    "cdf": lambda p, x: norm.logcdf(x, p[0], p[1]).sum(),
    "vectors": lambda p, x: multivariate_normal.logpdf(
        x.reshape(4, 3), CENTER * p[0], COVARIANCE * p[1]
    ).sum(),
    "filter": lambda p, x: (scipy.signal.lfilter([1.0, p[0]], [1.0, 0.1 * p[1]], x) ** 2).sum(),
    "blur": lambda p, x: (scipy.ndimage.convolve(x, p) ** 2).sum(),
    "transform": lambda p, x: (scipy.fft.dct(x * p[0])[:5] * p[1]).sum(),
    "outside": lambda p, x: norm.logpdf(x, p[0], p[1]).sum() + scipy.stats.expon.pdf(x, scale=p[1]).sum(),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradients(name):
    f = LIKELIHOODS[name]
    p = np.array([0.8, 1.3])
    gradient = esat.grad(f)(p, X)
    for place in range(2):
        step = np.zeros(2)
        step[place] = 1e-6
        slope = (f(p + step, X) - f(p - step, X)) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_what_is_not_known_is_refused():
    with pytest.raises(DtypeError, match=r"scipy\.stats\.norm\.fit"):
        esat.jit(lambda x: norm.fit(x)[0])(X)
    with pytest.raises(EsatError, match="butter"):
        esat.jit(lambda x: scipy.signal.butter(x[0], 0.5))(X)
    with pytest.raises(CallError, match="mode='none'"):
        esat.jit(lambda x: scipy.ndimage.convolve(x, K, mode="none"))(X)
    with pytest.raises(CallError, match="axes"):
        esat.jit(lambda x: scipy.signal.fftconvolve(x, IMAGE, axes=0))(IMAGE)


PERMUTED = np.array(
    [[0.5, 2.0, 1.0, 0.0], [4.0, 1.0, -1.0, 2.0], [1.0, 6.0, 0.5, 1.0], [2.0, 0.0, 3.0, -5.0]]
)


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_factors_of_general_matrices(trans):
    b = np.arange(8.0).reshape(4, 2)
    factor, solve = scipy.linalg.lu_factor, scipy.linalg.lu_solve
    for a in (PERMUTED, PERMUTED[::-1].copy(), PERMUTED @ PERMUTED, PERMUTED + 1j * PERMUTED.T):
        result = esat.jit(factor)(a)
        for part, expected in zip(result, factor(a), strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-14)
            assert part.dtype == expected.dtype
        check(lambda a, b: solve(factor(a), b, trans), a, b)
        check(lambda a, b: solve(factor(a), b, trans), a, b[:, 0].copy())

    def cost(a):
        return (solve(factor(a), b, trans) ** 2).sum()

    gradient = esat.grad(cost)(PERMUTED)
    step = np.zeros((4, 4))
    step[1, 2] = 1e-6
    slope = (cost(PERMUTED + step) - cost(PERMUTED - step)) / 2e-6
    assert gradient[1, 2] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "dct", "dst", "fft2", "ifft2", "fftn", "fftshift", "ifftshift"]
)
def test_transforms_of_fftpack(name):
    function = getattr(scipy.fftpack, name)
    check(function, IMAGE)
    check(function, IMAGE.astype("float32"), rtol=1e-5)


def test_sizes_of_fftpack():
    check(lambda x: scipy.fftpack.fft(x, 5, axis=0)[:3], IMAGE)
    check(lambda x: scipy.fftpack.fft2(x, shape=(4, 5)), IMAGE)
    with pytest.raises(DtypeError, match="rfft"):
        esat.jit(scipy.fftpack.rfft)(X)


def test_discrete_lyapunov_equations():
    a, q = RNG.normal(size=(4, 4)) / 4, RNG.normal(size=(4, 4))
    check(scipy.linalg.solve_discrete_lyapunov, a, q, rtol=1e-9)
    check(scipy.linalg.solve_discrete_lyapunov, a + 0.1j * a.T, q, rtol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "cosine"])
def test_distances(metric):
    points = RNG.normal(size=(5, 7))
    check(lambda x, y: cdist(x, y, metric), IMAGE, points)
    check(lambda x: scipy.spatial.distance.cdist(x, points.astype("float32"), metric=metric), IMAGE)
    check(lambda x: pdist(x, metric), points)
    one = getattr(scipy.spatial.distance, metric)
    assert esat.jit(lambda x: one(x, points[0]))(points[1]) == pytest.approx(one(*points[1::-1]), rel=1e-12)
    slope = esat.grad(lambda x: (cdist(x, points, metric) ** 2).sum())(IMAGE)
    step = 1e-6 * RNG.normal(size=IMAGE.shape)
    ends = [(cdist(IMAGE + s * step, points, metric) ** 2).sum() for s in (1, -1)]
    np.testing.assert_allclose((slope * step).sum(), (ends[0] - ends[1]) / 2, rtol=1e-5)


def test_distances_that_are_not_known():
    with pytest.raises(CallError, match="metrics for traced arrays are euclidean"):
        esat.jit(lambda x: cdist(x, x, "jaccard"))(IMAGE)
    with pytest.raises(CallError, match=r"w=\.\.\.\): it is not known here"):
        esat.jit(lambda x: cdist(x, x, w=np.ones(7)))(IMAGE)
    with pytest.raises(esat.errors.ShapeError, match="7 and 3 coordinates"):
        esat.jit(lambda x: cdist(x, np.ones((2, 3))))(IMAGE)
    with pytest.raises(esat.errors.ShapeError, match="a matrix is wanted"):
        esat.jit(pdist)(X)
