"""Sets, polynomials, and arrays of blocks and pieces: against NumPy's functions of these names."""

import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, CallError, ParameterError, ShapeError

rng = np.random.default_rng(4)
INTEGERS = np.array([[3, 1, 3, 0], [1, 7, 3, 0]])
FLOATS = np.array([2.5, np.nan, -1.0, 2.5, np.inf, np.nan, -0.0, 0.0])
DTYPES = ("bool", "int8", "uint64", "int64", "float32", "float64")


def both(function, *arrays, static=(True, False)):
    """The function of esat's namespace and of NumPy's agree."""
    agree(lambda *xs: function(esat, *xs), lambda *xs: function(np, *xs), *arrays, static=static)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    x = INTEGERS.astype(dtype)
    both(lambda m, x: m.unique(x), x)
    both(lambda m, x: m.unique(x, True, True, True), x)
    both(lambda m, x: m.unique(x, return_counts=True), x[:, :0])
    both(lambda m, x: list(m.unique_all(x)), x)
    both(lambda m, x: [*m.unique_counts(x), *m.unique_inverse(x), m.sort(m.unique_values(x))], x)


def test_unique_of_floats():
    for equal in (True, False):
        both(lambda m, x, e=equal: m.unique(x, True, True, True, equal_nan=e), FLOATS)
    assert esat.unique_all(FLOATS).counts.eval().tolist() == [1, 2, 2, 1, 1, 1]


def test_unique_of_a_known_size():
    x = esat.vector("x", dtype="int64")
    for size, fill, expected in (
        (6, None, [0, 1, 3, 7, 0, 0]),
        (6, -5, [0, 1, 3, 7, -5, -5]),
        (2, None, [0, 1]),
    ):
        found = esat.unique(x, size=size, fill_value=fill)
        assert found.type.shape == (size,)
        assert found.eval({x: INTEGERS.ravel()}).tolist() == expected
    found = esat.unique(x, True, True, True, size=6)
    wanted = np.unique(INTEGERS, True, True, True)
    values, first, numbers, counts = (one.eval({x: INTEGERS.ravel()}) for one in found)
    assert first.tolist() == [*wanted[1], *wanted[1][:1] * np.ones(2, int)]
    assert numbers.tolist() == wanted[2].ravel().tolist()
    assert counts.tolist() == [*wanted[3], 0, 0]
    assert values[:4].tolist() == wanted[0].tolist()
    shorter = esat.unique(x, return_counts=True, size=2)[1]
    assert shorter.eval({x: INTEGERS.ravel()}).tolist() == wanted[3][:2].tolist()
    with pytest.raises(ParameterError):
        esat.unique(x, size=0)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_parts_along_an_axis(axis):
    for x in (
        np.array([[2, 1, 2, 1], [0, 5, 0, 5], [2, 1, 2, 1]]),
        np.array([[[1, 2], [1, 2]], [[1, 2], [0, 3]], [[1, 2], [1, 2]]]),
        np.array([[1.0, np.nan], [1.0, np.nan], [0.5, 2.0]]),
        np.zeros((3, 0)),
    ):
        both(lambda m, x: m.unique(x, axis=axis), x, static=(True,))
        if x.size:
            both(lambda m, x: m.unique(x, True, True, True, axis=axis), x, static=(True,))
    rows = np.array([[2, 1], [0, 5], [2, 1]])
    values, counts = esat.unique(rows, return_counts=True, axis=0, size=3, fill_value=-1)
    assert values.eval().tolist() == [[0, 5], [2, 1], [-1, -1]]
    assert counts.eval().tolist() == [1, 2, 0]
    unknown = esat.matrix()
    with pytest.raises(ShapeError, match="known number"):
        esat.unique(unknown, axis=0)


def test_histograms_of_points():
    points = np.random.default_rng(3).normal(size=(20, 3))
    for options in (
        {"bins": 3},
        {"bins": (2, 3, [-1, 0, 1]), "density": True},
        {"bins": 2, "range": [(-1, 1), (0, 1), (-2, 2)], "weights": points[:, 0]},
    ):
        for columns in (lambda x: x, lambda x: [x[:, 0], x[:, 1], x[:, 2]]):

            def counted(m, x, o=options, c=columns):
                counts, bounds = m.histogramdd(c(x), **o)
                return [counts, *bounds]

            both(counted, points, static=(True,))
    with pytest.raises(ParameterError, match="3 coordinates"):
        esat.histogramdd(points, bins=(1, 2))


def test_places_of_known_sizes():
    for name, arguments in (
        ("diag_indices", (3,)), ("diag_indices", (2, 3)), ("tril_indices", (3, 1)),
        ("tril_indices", (2, -1, 4)), ("triu_indices", (4, 1, 3)), ("indices", ((2, 3),)),
        ("indices", ((2, 0, 1), np.float32)),
    ):  # fmt: skip
        both(lambda m, n=name, a=arguments: list(getattr(m, n)(*a)))
    both(lambda m: list(m.indices((2, 3), sparse=True)))
    x = esat.vector("x")
    assert esat.indices((x.shape[0], 2))[0].eval({x: np.zeros(2)}).tolist() == [[0, 0], [1, 1]]
    with pytest.raises(ParameterError):
        esat.tril_indices(1.5)


def test_roots_and_quotients_of_polynomials():
    for p in ([1.0, -6.0, 11.0, -6.0], [2, 0, 4], [1.0, 2.0], [3.0], np.array([1j, 2.0, 3.0])):
        np.testing.assert_allclose(esat.roots(p).eval(), np.roots(p), atol=1e-10)
    for zeros in ([1.0, 2.0, -3.0], [1, 2], np.array([1j, 2.0])):
        both(lambda m, z: m.poly(z), np.asarray(zeros), static=(True,))
    matrix = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(esat.poly(matrix).eval(), np.poly(matrix), atol=1e-12)
    for u, v in (
        ([1.0, 5.0, 2.0, 1.0], [2.0, 1.0]),
        ([1, 2, 4], [3]),
        ([1.0], [2.0, 1.0]),
        ([1j, 2, 3], [1, 1]),
    ):
        quotient, rest = (one.eval() for one in esat.polydiv(u, v))
        wanted, remains = np.polydiv(u, v)
        assert quotient.dtype == wanted.dtype
        np.testing.assert_allclose(quotient, wanted)
        np.testing.assert_allclose(rest[len(rest) - len(remains) :], remains, atol=1e-12)
    esat.verify_grad(lambda p: esat.real(esat.roots(p)), [np.array([1.0, -6.0, 11.0, -5.9])], tolerance=1e-4)


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_sets_of_two(name):
    for left, right in ((INTEGERS, np.array([3, 9, 0])), (INTEGERS.astype("int8"), np.array([1.0, 2.5]))):
        both(lambda m, x, y: getattr(m, name)(x, y), left, right)
    both(lambda m, x, y: m.setdiff1d(x, y, assume_unique=True), np.array([5, 1, 9]), np.array([1]))


def test_polynomials():
    p, q = np.array([1.5, -2, 0, 3]), np.array([2, 1])
    for name in ("polyadd", "polysub", "polymul"):
        both(lambda m, x, y, n=name: getattr(m, n)(x, y), p, q, static=(True,))
        both(lambda m, x, y, n=name: getattr(m, n)(y, x), p, q, static=(True,))
    both(lambda m, x: [m.polyder(x), m.polyder(x, 2), m.polyder(x, 5)], p, static=(True,))
    both(
        lambda m, x: [m.polyint(x), m.polyint(x, 2), m.polyint(x, 2, [1.0, 2.0]), m.polyint(x, k=3)],
        p,
        static=(True,),
    )
    with pytest.raises(ShapeError):
        esat.polymul(esat.vector(), p)


def test_fitted_polynomials():
    x, y = rng.uniform(-1, 2, 12), rng.normal(size=12)
    w = rng.uniform(0.5, 2, 12)
    both(lambda m, x, y, w: [m.polyfit(x, y, 3), m.polyfit(x, y, 2, w=w)], x, y, w, static=(True,))
    both(lambda m, x, y: m.polyfit(x, y, 1), x, np.stack([y, x], axis=1), static=(True,))
    with pytest.raises(ParameterError):
        esat.polyfit(x, y, -1)


def test_blocks():
    a, b = np.ones((2, 2)), np.arange(2.0)
    both(lambda m, a, b: m.block([[a, 2 * a], [3 * a, a]]), a, b, static=(True,))
    both(lambda m, a, b: [m.block([b, b, 5]), m.block(a), m.block([[b], [b]])], a, b, static=(True,))
    for wrong in ([], [a, [a]], (a, a)):
        with pytest.raises(ShapeError):
            esat.block(wrong)


def test_partitions():
    x = rng.permutation(20).reshape(4, 5)
    for axis in (-1, 0, None):
        found = esat.partition(x, 2, axis).eval()
        expected = np.partition(x, 2, axis)
        np.testing.assert_array_equal(np.take(found, 2, axis), np.take(expected, 2, axis))
        chosen = esat.argpartition(x, 2, axis).eval()
        np.testing.assert_array_equal(np.take_along_axis(x, chosen, axis), found)
    with pytest.raises(ParameterError):
        esat.partition(x, 5)
    with pytest.raises(CallError):
        esat.partition(x, 1.5)


def test_lexsort():
    keys = np.random.default_rng(2).integers(0, 3, (3, 4, 20))
    for axis in (0, -1):
        np.testing.assert_array_equal(esat.lexsort(keys, axis).eval(), np.lexsort(keys, axis))
        found = esat.jit(lambda a, b, axis=axis: np.lexsort((a, b), axis), mode="fast_compile")(*keys[:2])
        np.testing.assert_array_equal(found, np.lexsort(keys[:2], axis))
    with pytest.raises(ShapeError, match="one shape"):
        esat.lexsort(([1, 2], [1, 2, 3]))
    with pytest.raises(ParameterError, match="no key"):
        esat.lexsort([])


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_piecewise(dtype):
    x = np.arange(-3, 4).astype(dtype)
    both(lambda m, x: m.piecewise(x, [x < 0, x > 1], [lambda v: -v, 10]), x)
    both(lambda m, x: m.piecewise(x, [x < 0, x < 2], [1, lambda v: v * v, -1]), x)
    both(lambda m, x: m.piecewise(x, x > 0, [2.7]), x)
    with pytest.raises(ParameterError):
        esat.piecewise(x, [x < 0], [1, 2, 3])


def test_functions_along_an_axis():
    x = rng.normal(size=(2, 3, 4))
    for axis in (0, 1, -1):
        for function in (lambda v: v.sum(), lambda v: v[::-1] * 2, lambda v: v[:2]):
            both(lambda m, x, a=axis, f=function: m.apply_along_axis(f, a, x), x, static=(True,))
    both(lambda m, x: m.apply_along_axis(lambda v: v[:, None] * v[None], 1, x), x, static=(True,))
    with pytest.raises(ShapeError):
        esat.apply_along_axis(lambda v: v, 0, esat.matrix())


def test_choose_and_rollaxis():
    a, x = np.array([[0, 2], [1, 0]]), np.arange(12).reshape(3, 2, 2)
    both(lambda m, a, x: [m.choose(a, x), m.choose(a, [10, x[0], 2])], a, x, static=(True,))
    for mode in ("wrap", "clip"):
        both(lambda m, a, x, o=mode: m.choose(a * 5 - 3, x, mode=o), a, x, static=(True,))
    with pytest.raises(IndexError):
        esat.choose(np.array([-1]), [1, 2]).eval()
    with pytest.raises(ParameterError):
        esat.choose(a, [], mode="raise")
    for axis, start in ((2, 0), (0, 2), (1, 3), (-1, 1)):
        both(lambda m, x, a=axis, s=start: m.rollaxis(x, a, s), x)
    with pytest.raises(AxisError):
        esat.rollaxis(x, 0, 5)


def test_in_functions_of_arrays():
    def f(x, n):
        values, counts = np.unique(n, return_counts=True)
        pieces = np.piecewise(x, [x < 0], [lambda v: np.abs(v) * 2, 0.5])
        table = np.block([[x[None], pieces[None]], [pieces[None], x[None]]])
        return values, counts, np.apply_along_axis(lambda v: np.cumsum(v) * v.shape[0], 1, table)

    x, n = np.array([-1.5, 2.0, -3.0]), np.array([3, 1, 3])
    for found, expected in zip(esat.jit(f, mode="fast_compile")(x, n), f(x, n), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (0,)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_resized_arrays_may_be_empty(dtype, shape):
    both(lambda m, x: m.resize(x, (2, 3)), np.ones(shape, dtype))


@pytest.mark.parametrize(
    ("shape", "window", "axis"),
    [
        ((30,), 5, None),
        ((30,), 30, None),
        ((5, 7, 6), (2, 3), (0, 2)),
        ((5, 7, 6), (2, 3, 1), None),
        ((5, 7, 6), 3, -2),
        ((5, 7), (2, 2), (1, 1)),
        ((5, 7), (0,), (1,)),
    ],
)
def test_sliding_windows(shape, window, axis):
    def function(x):
        return np.lib.stride_tricks.sliding_window_view(x, window, axis=axis)

    x = rng.normal(size=shape)
    for shapes in ("static", "symbolic"):
        np.testing.assert_array_equal(esat.jit(function, shapes=shapes)(x), function(x))
    given = (window, axis) if axis is not None else (window,)
    np.testing.assert_array_equal(esat.sliding_window_view(x, *given).eval(), function(x))


def test_sliding_windows_are_read_only_views():
    view = np.lib.stride_tricks.sliding_window_view

    def written(x):
        windows = np.lib.stride_tricks.sliding_window_view(x, 3)
        x[0] = 5.0
        return windows.max(axis=-1)

    np.testing.assert_array_equal(esat.jit(written)(np.arange(6.0)), written(np.arange(6.0)))
    slopes = esat.grad(lambda x: (view(x, 3).sum(-1) ** 2).sum())
    x = np.arange(5.0)
    sums = 2 * np.array([3.0, 6.0, 9.0])
    np.testing.assert_allclose(slopes(x), np.convolve(sums, np.ones(3)))
    for wrong, error in ((6, ShapeError), ((2, 2), AxisError), (-1, ParameterError), (2.5, ParameterError)):
        with pytest.raises(error):
            esat.sliding_window_view(x, wrong)
    with pytest.raises(esat.errors.EsatError, match="read-only"):
        esat.jit(lambda x: view(x, 2).__setitem__(0, 1.0))(x)
