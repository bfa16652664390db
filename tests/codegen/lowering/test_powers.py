"""Kernels of powers with whole exponents: NumPy's values but for a few ulp, exact for integers."""

import numpy as np
import pytest
from codegen.kernel_cases import group_of, run, variable
from codegen.targets import HOST

from esat.codegen import lower, print_kernel
from esat.graph.registry import op_named
from esat.ops.elementwise.whole_power import MOST_HALVES

EXPONENTS = (2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 64, 100, -1, -2, -3, -5, -8, -9, -16, -33, -64)
ULP = MOST_HALVES  # half a unit of the rounding is a whole ulp just above a power of two


def powers(values: np.ndarray, exponents: tuple[int, ...]) -> list[np.ndarray]:
    x = variable(values.dtype.name, None)
    outputs = [op_named("pow")(x, np.array(exponent, values.dtype)) for exponent in exponents]
    group = group_of(outputs, [x])
    assert "pow(v" not in print_kernel(lower(group), HOST)
    return run(group, {x: values})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_few_ulp(dtype: str) -> None:
    values = np.random.default_rng(4).normal(size=3000).astype(dtype) * 1.3
    wide = np.float64 if dtype == "float32" else np.longdouble
    for exponent, found in zip(EXPONENTS, powers(values, EXPONENTS), strict=True):
        with np.errstate(over="ignore", under="ignore"):
            exact = values.astype(wide) ** exponent
            nearest = exact.astype(dtype)
        normal = np.isfinite(nearest) & (np.abs(nearest) > 4 * np.finfo(dtype).tiny)
        ulp = np.spacing(np.abs(nearest[normal])).astype(wide)
        error = np.abs(found[normal] - exact[normal]) / ulp
        assert error.max() < ULP
        assert error.mean() < 1.3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_values(dtype: str) -> None:
    limits = np.finfo(dtype)
    edges = [0.0, 1.0, np.inf, limits.max, limits.tiny, limits.smallest_subnormal, 3e-19, 2e19, 1e-5, 1e5]
    values = np.array([*edges, *(-edge for edge in edges), np.nan], dtype)
    for exponent, found in zip(EXPONENTS, powers(values, EXPONENTS), strict=True):
        with np.errstate(all="ignore"):
            expected = np.power(values, np.array(exponent, dtype))
        np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-13)
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_integers_wrap_around(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([0, 1, 2, 3, 7, 100, limits.min, limits.max, limits.max // 3], dtype)
    exponents = (0, 1, 2, 3, 9, 31, 64, 100)
    for exponent, found in zip(exponents, powers(values, exponents), strict=True):
        np.testing.assert_array_equal(found, values**exponent)


def test_other_exponents_remain_powers() -> None:
    x = variable("float64", None)
    for exponent in (2.5, 1e6):
        assert "pow_float64(v" in print_kernel(lower(group_of([op_named("pow")(x, exponent)], [x])), HOST)
