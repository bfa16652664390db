"""Differences of near numbers are computed in forms that keep their digits; other programs keep theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import esat
from esat.graph import Variable

mp = mpmath.mp.clone()
mp.dps = 200

SMALL = (1e-12, -1e-9, 1e-7, 1e-5, 1e-3)
LARGE = (1e2, 1e5, 1e7, 1e10)

CASES: dict[str, tuple[Callable[[Any], Variable], Callable[[Any], Any], Sequence[float]]] = {
    "sqrt(1 + x^2) - 1": (lambda x: esat.sqrt(1 + x**2) - 1, lambda x: mp.sqrt(1 + x**2) - 1, SMALL),
    "1 - sqrt(1 - x^2)": (lambda x: 1 - esat.sqrt(1 - x**2), lambda x: 1 - mp.sqrt(1 - x**2), SMALL),
    "1/sqrt(1 - x^2) - 1": (
        lambda x: 1 / esat.sqrt(1 - x**2) - 1, lambda x: 1 / mp.sqrt(1 - x**2) - 1, SMALL,
    ),
    "cbrt(x + 1) - cbrt(x)": (
        lambda x: esat.cbrt(x + 1) - esat.cbrt(x), lambda x: mp.cbrt(x + 1) - mp.cbrt(x), LARGE,
    ),
    "(1 + x)^(1/4) - 1": (lambda x: (1 + x) ** 0.25 - 1, lambda x: mp.expm1(mp.log1p(x) / 4), SMALL),
    "(1 + x)^12 - 1": (lambda x: (1 + x) ** 12 - 1, lambda x: (1 + x) ** 12 - 1, (*SMALL, -1, -3, 7)),
    "exp(x + c) - exp(x)": (
        lambda x: esat.exp(x + 2.0**-20) - esat.exp(x), lambda x: mp.exp(x) * mp.expm1(mp.mpf(2) ** -20),
        (0.5, 1, 2, -3),
    ),
    "1 - tanh^2 x": (lambda x: 1 - esat.tanh(x) ** 2, lambda x: mp.sech(x) ** 2, (-40, -1, 1e-3, 0, 25)),
    "sqrt(x^2 + 3) - x": (
        lambda x: esat.sqrt(x**2 + 3) - x, lambda x: mp.sqrt(x**2 + 3) - x, (*LARGE, *(-v for v in LARGE), 0),
    ),
    "x - sqrt(x^2 - 3)": (
        lambda x: x - esat.sqrt(x * x - 3), lambda x: x - mp.sqrt(x * x - 3),
        (*LARGE, *(-v for v in LARGE), 2),
    ),
    "(x + 1)^(1/4) - x^(1/4)": (
        lambda x: (x + 1) ** 0.25 - x**0.25, lambda x: (x + 1) ** (mp.mpf(1) / 4) - x ** (mp.mpf(1) / 4),
        (*LARGE, 0, 1e-12, 1),
    ),
    "log(x + 1) - log x": (
        lambda x: esat.log(x + 1) - esat.log(x), lambda x: mp.log1p(1 / x), (1e-12, 1, *LARGE),
    ),
    "cos x - 1": (lambda x: esat.cos(x) - 1, lambda x: -2 * mp.sin(x / 2) ** 2, SMALL),
    "1/cos x - 1": (lambda x: 1 / esat.cos(x) - 1, lambda x: 1 / mp.cos(x) - 1, SMALL),
    "1/x - 1/(x + 2)": (lambda x: 1 / x - 1 / (x + 2), lambda x: 2 / (x * (x + 2)), LARGE),
    "1/(x - 2) - 1/x": (lambda x: 1 / (x - 2) - 1 / x, lambda x: 2 / (x * (x - 2)), LARGE),
    "1/x - 1/(x + tanh x)": (
        lambda x: 1 / x - 1 / (x + esat.tanh(x)), lambda x: mp.tanh(x) / (x * (x + mp.tanh(x))), LARGE,
    ),
    "1/(x + 1) - 2/x + 1/(x - 1)": (
        lambda x: 1 / (x + 1) - 2 / x + 1 / (x - 1), lambda x: 2 / (x * (x + 1) * (x - 1)), LARGE,
    ),
    "arctan(x + 1) - arctan(x)": (
        lambda x: esat.arctan(x + 1) - esat.arctan(x), lambda x: mp.atan(x + 1) - mp.atan(x), LARGE,
    ),
    "log(x + sqrt(x^2 + 1))": (lambda x: esat.log(x + esat.sqrt(x * x + 1)), mp.asinh, SMALL),
    "tan(x + c) - tan x": (
        lambda x: esat.tan(x + 2.0**-20) - esat.tan(x), lambda x: mp.tan(x + 2.0**-20) - mp.tan(x),
        (0.3, 1, 2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_digits_are_kept(name: str, dtype: str) -> None:
    build, exact, points = CASES[name]
    x = esat.vector("x", dtype=dtype)
    values = np.array(points, dtype)
    result = esat.compile(esat.Graph([x], [build(x)]))(values)
    wanted = [float(exact(mp.mpf(float(value)))) for value in values]
    assert result.dtype == dtype
    np.testing.assert_allclose(result, wanted, rtol=8 * float(np.finfo(dtype).eps))


def test_what_has_no_logarithm_keeps_none() -> None:
    """log(x + 1) - log(x) is no number below 0, although log(1 + 1/x) is one below -1."""
    x = esat.vector("x")
    values = np.array([-5.0, -1.5, -1.0, -0.5, -0.0, 0.0, np.nan, np.inf])
    function = esat.compile(esat.Graph([x], [esat.log(x + 1) - esat.log(x), (x + 1) ** 0.3 - x**0.3]))
    logarithms, powers = function(values)
    np.testing.assert_array_equal(logarithms[:7], [*[np.nan] * 4, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(powers[:7], [*[np.nan] * 4, 1, 1, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cosm1_and_powm1_in_kernels(dtype: str) -> None:
    """Near multiples of 2 pi, too, and powers of bases near one."""
    x, y = esat.vector("x", dtype=dtype), esat.vector("y", dtype=dtype)
    function = esat.compile(esat.Graph([x, y], [esat.cosm1(x), esat.powm1(abs(y), x)]))
    angles = np.array([1e-6, -1e-3, 0.7, 6.2831855, 12.566371, -40.0], dtype)
    bases = np.array([3.0, 1.001, 0.999, 1.0, -1.0001, 2.0], dtype)
    exact = [(mp.mpf(float(a)), mp.mpf(abs(float(b)))) for a, b in zip(angles, bases, strict=True)]
    of_angles, of_powers = function(angles, bases)
    rounding = 8 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(of_angles, [float(mp.cos(a) - 1) for a, _ in exact], rtol=rounding)
    np.testing.assert_allclose(of_powers, [float(b**a - 1) for a, b in exact], rtol=rounding)


def test_norms_are_written_with_squares_where_nothing_is_gained() -> None:
    """The function that cannot overflow takes longer: only who writes it pays for it."""
    x, y = esat.vector("x"), esat.vector("y")
    norm = esat.sqrt(x * x + y * y)
    function = esat.compile(esat.Graph([x, y], [norm, esat.hypot(x, y)]))
    alone = esat.compile(esat.Graph([x, y], [norm]))
    at = np.array([3.0, 1e200]), np.array([4.0, 1e200])
    np.testing.assert_allclose(function(*at)[1], [5, np.sqrt(2) * 1e200], rtol=1e-15)
    assert "hypot" not in {node.op.name for node in alone.optimized.toposort()}
