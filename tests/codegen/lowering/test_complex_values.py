"""Kernels of complex numbers: NumPy's values, at the ends of the range too, and its speed at least."""

import re
import warnings

import numpy as np
import pytest

import esat
from esat.codegen.ground.blas_library import LETTERS
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.registry import op_named
from esat.ops.table import ELEMENTWISE
from esat.runtime.native.direct import CALLS

NAMES = [op.name for op in ELEMENTWISE if op.complex_form is not None]
PARTS = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-300, 709.9, 745.0, -745.0, 5e-324)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    POINTS = {
        dtype: np.array([complex(a, b) for a in PARTS for b in PARTS]).astype(dtype)
        for dtype in ("complex64", "complex128")
    }
UNITS = {"exp": 4, "abs": 2, "angle": 2, "sqrt": 2} | dict.fromkeys(
    ("log", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh"), 4
)


def parts(array):
    return [array.real, array.imag] if array.dtype.kind == "c" else [array]


def operands_of(name, points):
    """Each point with each, a condition for both ways."""
    arity = op_named(name).arity
    if arity == 1:
        return [points]
    grid = [one.ravel() for one in np.meshgrid(points, points)]
    return grid if arity == 2 else [np.arange(grid[0].size) % 3 > 0, *grid]


def compiled(outputs, inputs, *, mode="fast_run"):
    return esat.compile(esat.Graph(inputs, list(outputs)), mode)


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("name", NAMES)
def test_values_are_numpys_at_the_ends_of_the_range(name, dtype):
    op, arrays = op_named(name), operands_of(name, POINTS[dtype])
    inputs = [esat.vector(f"x{place}", dtype=one.dtype) for place, one in enumerate(arrays)]
    function = compiled([op(*inputs)], inputs)
    if name not in ("fill", "switch"):  # which are simplified
        assert [step.kind for step in function.steps] == ["kernel"]
    (wanted,) = op.perform(arrays)
    found = function(*arrays)
    assert found.dtype == wanted.dtype
    with np.errstate(all="ignore"):
        for one, other in zip(parts(found), parts(wanted), strict=True):
            if one.dtype.kind == "f":
                units = UNITS.get(name, 0)
                small = 4 * np.finfo(one.dtype).smallest_subnormal if units else 0
                rough = np.abs(arrays[0].real) > 700 if name == "exp" else np.zeros(one.shape, bool)
                np.testing.assert_allclose(
                    one[~rough], other[~rough], rtol=units * np.finfo(one.dtype).eps, atol=small
                )
                # Where C scales twice it loses bits of what is below the normal numbers.
                np.testing.assert_allclose(one[rough], other[rough], rtol=1e-4)
                if name not in ("exp", "angle"):
                    np.testing.assert_array_equal(np.signbit(one[other == 0]), np.signbit(other[other == 0]))
            else:
                np.testing.assert_array_equal(one, other)


def test_iterated_products_are_numpys_to_the_last_bit():
    """Points at the edge of a Julia set go elsewhere if one product is rounded otherwise."""

    def iterated(z):
        for _ in range(12):
            z = z * z + 0.25
        return z

    rng = np.random.default_rng(0)
    for dtype in POINTS:
        z = (rng.normal(size=600) + 1j * rng.normal(size=600)).astype(dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(esat.jit(iterated)(z), iterated(z))


Z, W = esat.vector("z", "complex128"), esat.vector("w", "complex64")
M, X = esat.matrix("m", "complex128"), esat.vector("x")
K = esat.vector("k", "int64")
T = esat.tensor("t", shape=(None, None, None), dtype="complex128")
PROGRAMS = {
    "sums": ([M], [esat.sum(M), esat.sum(M, axis=0), esat.sum(M.T, axis=0), esat.mean(M, axis=1)], 3),
    "variance": ([M], [esat.var(M), esat.std(M, axis=0)], 2),
    "transposed": ([M], [M.T * 2 + 1j, esat.exp(M.T) * esat.sum(M[0])], 2),
    "strided": ([M], [M[::2, ::-1] * 2j, esat.sum(esat.abs(M[:, ::2]), axis=1)], 2),
    "broadcast": ([M, Z], [M * Z + Z[:, None] * 1j], 1),
    "a tensor": ([T], [esat.sum(T * esat.conj(T), axis=(0, 2)), esat.real(esat.sum(T, axis=1))], 2),
    "gathered": ([Z, K], [esat.exp(Z)[K] * 2, Z[K] + 1j], 1),
    "with real numbers": ([X, Z], [X * Z + 1, esat.exp(1j * X) * Z], 1),
    "casts": ([X, Z, W], [X.astype("complex64") * W, Z.astype("complex64"), W.astype("complex128") + Z], 1),
    "numbers": ([Z], [Z * (2 + 3j), (2 - 1j) / Z, esat.zeros_like(Z) + 1j, Z**3], 1),
    "chosen": ([Z], [esat.where(esat.abs(Z) <= 1.0, Z * Z + Z, Z)], 1),
    "real results": ([M], [esat.real(M) * esat.imag(M), esat.abs(M) ** 2, esat.eq(M, M.T)], 1),
    "one element": ([Z], [Z[0] * Z], 1),
}


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "debug"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_complex_numbers_are_numpys(name, mode):
    inputs, outputs, kernels = PROGRAMS[name]
    rng = np.random.default_rng(0)
    shapes = {K: (4,), M: (5, 5), T: (3, 4, 5)}
    arrays = [
        np.array([0, 2, 2, 4])
        if one is K
        else (rng.normal(size=shapes.get(one, (5,))) + (0 if one is X else 1j)).astype(one.type.dtype)
        for one in inputs
    ]
    function = compiled(outputs, inputs, mode=mode)
    wanted = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
    for call in range(260 if mode == "fast_run" else 2):
        found = function(*arrays)
        for one, other in zip(found if len(outputs) > 1 else [found], wanted, strict=True):
            assert one.dtype == other.dtype
            tolerance = 1e-12 if one.dtype.itemsize == 16 or one.dtype.kind != "c" else 1e-5
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=1e-13, err_msg=f"call {call}")
    if mode == "fast_run":
        assert sum(step.kind == "kernel" for step in function.steps) == kernels
        assert not any(step.kind == "library" for step in function.steps)


def _added(z, w, places):
    z = z.copy()
    np.add.at(z, places, w)
    return z


def _subtracted(z, w, places):
    z = z.copy()
    np.subtract.at(z, places, w)
    return z


def _increased(z, w, places):
    z = z.copy()
    z[places] += w
    return z


def _replaced(z, w, places):
    z = z.copy()
    z[places] = w
    return z


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("function", [_added, _subtracted, _increased, _replaced])
def test_writes_at_places_that_a_call_tells_are_kernels(function, dtype):
    z, places = POINTS[dtype], np.random.default_rng(0).integers(0, 100, POINTS[dtype].size)
    jitted = esat.jit(function)
    with np.errstate(all="ignore"):
        wanted, found = function(z, z[::-1].copy(), places), jitted(z, z[::-1].copy(), places)
    for one, other in zip(parts(found), parts(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=4 * np.finfo(one.dtype).eps)
    assert found.dtype == dtype
    assert all(step.kind == "kernel" for step in jitted.latest.steps)


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda a, b: a @ b, [(3, 4), (4, 5)]),
        (lambda a, b: a @ b, [(30,), (30,)]),
        (lambda a, b: a @ b, [(12, 30), (30,)]),
        (lambda a, b: a.conj().T @ b + 1j, [(9, 4), (9, 5)]),
        (lambda a, b: a.T @ b.T, [(9, 4), (5, 9)]),
        (lambda a, b: a[::2, ::2] @ b[::2], [(12, 12), (12, 3)]),
        (lambda a, b: a @ b, [(4, 3, 5), (4, 5, 2)]),
        (np.vdot, [(30,), (30,)]),
    ],
)
def test_products_of_complex_matrices_are_native(function, shapes, dtype):
    rng = np.random.default_rng(0)
    arrays = [(rng.normal(size=one) + 1j * rng.normal(size=one)).astype(dtype) for one in shapes]
    jitted = esat.jit(function)
    for _ in range(CALLS + 3):
        found, wanted = jitted(*arrays), function(*arrays)
        np.testing.assert_allclose(found, wanted, rtol=200 * np.finfo(dtype).eps)
        assert found.dtype == dtype
    arrays[0].flat[0], arrays[1].flat[1] = np.inf, np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(jitted(*arrays)), np.isnan(function(*arrays)))
    assert re.search(f"{LETTERS[dtype]}gem[mv]", jitted.source())


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("exponent", [0.5, -1, 2])
def test_roots_and_reciprocals_by_powers_are_numpys(exponent, dtype):
    points = POINTS[dtype]
    with np.errstate(all="ignore"):
        found, wanted = esat.jit(lambda z: z**exponent)(points), points**exponent
        for one, other in zip(parts(found), parts(wanted), strict=True):
            np.testing.assert_allclose(one, other, rtol=4 * np.finfo(one.dtype).eps)


def test_writes_of_complex_numbers_by_index_are_right():
    added = esat.inc_subtensor(esat.exp(Z)[K], 1j)
    function = compiled([added, esat.set_subtensor(Z[K], 2.0)], [Z, K])
    z, places = np.linspace(0.0, 1.0, 5) * 1j, np.array([0, 3, 3])
    wanted, other = np.exp(z), z.copy()
    np.add.at(wanted, places, 1j)
    other[places] = 2.0
    for _ in range(5):
        found = function(z, places)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-15)
        np.testing.assert_array_equal(found[1], other)


@pytest.mark.parametrize("dtype", POINTS)
@pytest.mark.parametrize("name", ["log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"])
def test_functions_are_accurate_between_the_ends(name, dtype):
    rng = np.random.default_rng(1)
    plain = rng.normal(size=500) + 1j * rng.normal(size=500)
    z = np.concatenate([plain, np.exp(1j * rng.uniform(-4, 4, 500)), 1e-3 * plain, 8.0 * plain]).astype(dtype)
    variable = esat.vector("z", dtype)
    found = compiled([getattr(esat, name)(variable)], [variable])(z)
    wanted = getattr(np, name)(z.astype("clongdouble"))
    for one, other in zip(parts(found), parts(wanted), strict=True):
        # Sizes of about 1 have logarithms that are as small as the square of what they are rounded by.
        np.testing.assert_allclose(one, other, rtol=(300 if name == "log" else 6) * np.finfo(one.dtype).eps)
