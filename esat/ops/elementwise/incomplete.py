"""Incomplete gamma and beta functions, with their derivatives by all operands.

Those by parameters have no closed form: the logarithm of a series of positive terms is differentiated term
by term, on the side of the mean where the series is short. NIST Digital Library of Mathematical Functions,
8.7.1, 8.9.2 and 8.17.8.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.graph.variables import Variable
from esat.ops.elementwise.exponential import exp, log, log1p, xlogy
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.record import Elementwise, no_gradient
from esat.ops.elementwise.records.scipy_functions import Special
from esat.ops.elementwise.special import digamma, gammaln
from esat.ops.inference.promotion import SciPyLoops, special

_FLOATS = SciPyLoops("", ("float64", "float32"))
_MOST_TERMS = 20_000


def _functions() -> Any:
    return importlib.import_module("scipy.special")


def _as_given(result: Any, operands: Sequence[Any]) -> Any:
    """A result in the dtype of the operands, float64 or float32."""
    return result.astype(np.result_type(*operands))


def _summed(first: Any, advance: Callable[[int, Any], tuple[Any, ...]], count: int) -> list[Any]:
    """A series of positive terms, and sums of them times the derivatives of their logarithms.

    ``advance(n, term)`` gives the factor from term ``n - 1`` to ``n``, and by how much the derivatives of the
    logarithm of that term are larger.
    """
    term = first
    slopes = [np.zeros_like(first) for _ in range(count)]
    sums = [term.copy(), *(np.zeros_like(first) for _ in range(count))]
    for n in range(1, _MOST_TERMS):
        factor, *changes = advance(n, term)
        term = term * factor
        sums[0] += term
        largest = np.abs(term)
        for place, change in enumerate(changes):
            slopes[place] = slopes[place] + change
            added = term * slopes[place]
            sums[place + 1] += added
            largest = np.maximum(largest, np.abs(added))
        if not np.any(largest > 1e-17 * np.abs(sums[0])):
            break
    return sums


def _gamma_by_order(order: Any, x: Any) -> Any:
    """The derivative of ``gammainc(a, x)`` by ``a``: by a series up to the mean, by a fraction beyond."""
    with np.errstate(all="ignore"):
        a, y = np.broadcast_arrays(np.asarray(order, np.float64), np.asarray(x, np.float64))
        valid = (a > 0) & (y > 0) & np.isfinite(a) & np.isfinite(y)
        low = valid & (y <= a + 1)
        result = np.where((a > 0) & ((y == 0) | (y == np.inf)), 0.0, np.nan)
        result[low] = _gamma_series(a[low], y[low])
        high = valid & ~low
        result[high] = _gamma_fraction(a[high], y[high])
    return _as_given(result, (order, x))


def _gamma_series(a: Any, x: Any) -> Any:
    functions = _functions()
    total, slope = _summed(np.ones_like(a), lambda n, term: (x / (a + n), -1 / (a + n)), 1)
    return functions.gammainc(a, x) * (np.log(x) - functions.psi(a + 1) + slope / total)


def _gamma_fraction(a: Any, x: Any) -> Any:
    """By the continued fraction of Q, evaluated from its tail, with its derivative."""
    functions = _functions()
    terms = int(min(_MOST_TERMS, 60 + 12 * np.sqrt(np.max(x, initial=1.0))))
    value, slope = np.zeros_like(a), np.zeros_like(a)
    for n in range(terms, 0, -1):
        # n (a - n) / (x + 2 n + 1 - a + the rest): the rest and its derivative are carried along.
        below = x + 2 * n + 1 - a + value
        value, slope = n * (a - n) / below, n / below - n * (a - n) / below**2 * (slope - 1)
    below = x + 1 - a + value
    slope = (1 - slope) / below
    return -functions.gammaincc(a, x) * (np.log(x) - functions.psi(a) + slope)


def _beta_slope(by_first: bool) -> Callable[[Any, Any, Any], Any]:
    """The derivative of ``betainc(a, b, x)`` by ``a`` or by ``b``."""

    def slope(first: Any, second: Any, x: Any) -> Any:
        with np.errstate(all="ignore"):
            operands = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in (first, second, x)))
            a, b, y = operands
            valid = (a > 0) & (b > 0) & (y > 0) & (y < 1) & np.isfinite(a) & np.isfinite(b)
            low = valid & (y <= (a + 1) / (a + b + 2))
            result = np.where((a > 0) & (b > 0) & ((y == 0) | (y == 1)), 0.0, np.nan)
            result[low] = _beta_series(a[low], b[low], y[low])[0 if by_first else 1]
            high = valid & ~low
            result[high] = -_beta_series(b[high], a[high], 1 - y[high])[1 if by_first else 0]
        return _as_given(result, (first, second, x))

    return slope


def _beta_series(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    functions = _functions()

    def advance(n: int, term: Any) -> tuple[Any, ...]:
        upper, lower = a + b + n - 1, a + n
        return x * upper / lower, 1 / upper - 1 / lower, 1 / upper

    total, by_a, by_b = _summed(np.ones_like(a), advance, 2)
    value, both = functions.betainc(a, b, x), functions.psi(a + b)
    return (
        value * (np.log(x) - functions.psi(a + 1) + both + by_a / total),
        value * (np.log1p(-x) - functions.psi(b) + both + by_b / total),
    )


def _once_only(name: str) -> Callable[..., Sequence[Variable | None]]:
    """No second derivatives by parameters."""

    def gradient(
        inputs: Sequence[Variable], output: Variable, cotangent: Variable
    ) -> Sequence[Variable | None]:
        reason = "the incomplete gamma and beta functions have no second derivatives by their parameters here"
        raise no_gradient(name, inputs, reason, output.owner)

    return gradient


gammainc_by_order = Elementwise(
    "gammainc_by_order",
    2,
    _gamma_by_order,
    None,
    _once_only("gammainc_by_order"),
    _FLOATS,
    flops=2000.0,
    formula="The derivative of gammainc by its first operand",
)
betainc_by_first = Elementwise(
    "betainc_by_first",
    3,
    _beta_slope(True),
    None,
    _once_only("betainc_by_first"),
    _FLOATS,
    flops=2000.0,
    formula="The derivative of betainc by its first operand",
)
betainc_by_second = Elementwise(
    "betainc_by_second",
    3,
    _beta_slope(False),
    None,
    _once_only("betainc_by_second"),
    _FLOATS,
    flops=2000.0,
    formula="The derivative of betainc by its second operand",
)


def _gamma_gradient(sign: int) -> Callable[..., Sequence[Variable | None]]:
    def gradient(
        inputs: Sequence[Variable], output: Variable, cotangent: Variable
    ) -> Sequence[Variable | None]:
        order, x = inputs
        density = exp(xlogy(order - 1, x) - x - gammaln(order))
        scaled = cotangent if sign > 0 else -cotangent
        return [scaled * gammainc_by_order(order, x), scaled * density]

    return gradient


# The part of the gamma function's integral from 0 to the second operand, and the rest of it.
gammainc = Elementwise(
    "gammainc",
    2,
    Special("gammainc"),
    floats("gammainc({0}, {1})"),
    _gamma_gradient(1),
    special("gammainc"),
    flops=200.0,
    formula="The integral of t**(x1 - 1) * exp(-t) from 0 to x2, over gamma(x1)",
)
gammaincc = Elementwise(
    "gammaincc",
    2,
    Special("gammaincc"),
    floats("gammaincc({0}, {1})"),
    _gamma_gradient(-1),
    special("gammaincc"),
    flops=200.0,
    formula="1 - gammainc(x1, x2), without cancellation",
)


def _betaln_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    a, b = inputs
    both = digamma(a + b)
    return [cotangent * (digamma(a) - both), cotangent * (digamma(b) - both)]


betaln: Elementwise = Elementwise(
    "betaln",
    2,
    Special("betaln"),
    floats("betaln({0}, {1})"),
    _betaln_gradient,
    special("betaln"),
    flops=200.0,
    formula="log(abs(gamma(x1) * gamma(x2) / gamma(x1 + x2)))",
)


def _beta_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    a, b = inputs
    both, scaled = digamma(a + b), cotangent * output
    return [scaled * (digamma(a) - both), scaled * (digamma(b) - both)]


# gamma(a) gamma(b) / gamma(a + b).
beta = Elementwise(
    "beta", 2, Special("beta"), floats("beta({0}, {1})"), _beta_gradient, special("beta"), flops=200.0,
    formula="gamma(x1) * gamma(x2) / gamma(x1 + x2)",
)  # fmt: skip


def _betainc_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    a, b, x = inputs
    density = exp((a - 1) * log(x) + (b - 1) * log1p(-x) - betaln(a, b))
    return [
        cotangent * betainc_by_first(a, b, x),
        cotangent * betainc_by_second(a, b, x),
        cotangent * density,
    ]


# The part of the beta function's integral from 0 to the third operand.
betainc = Elementwise(
    "betainc",
    3,
    Special("betainc"),
    floats("betainc({0}, {1}, {2})"),
    _betainc_gradient,
    special("betainc"),
    flops=300.0,
    formula="The integral of t**(x1 - 1) * (1 - t)**(x2 - 1) from 0 to x3, over the one from 0 to 1",
)


def _inverse_gamma_gradient(sign: int) -> Callable[..., Sequence[Variable | None]]:
    """Of the inverse by the second operand: implicitly, from ``gammainc(order, output) = p``."""

    def gradient(
        inputs: Sequence[Variable], output: Variable, cotangent: Variable
    ) -> Sequence[Variable | None]:
        order, _ = inputs
        by_share = cotangent * exp(output + gammaln(order) - xlogy(order - 1, output))
        by_order = -by_share * gammainc_by_order(order, output)
        return [by_order, by_share if sign > 0 else -by_share]

    return gradient


gammaincinv = Elementwise(
    "gammaincinv", 2, Special("gammaincinv"), floats("gammaincinv({0}, {1})"), _inverse_gamma_gradient(1),
    special("gammaincinv"), flops=600.0,
    formula="The x with gammainc(x1, x) equal to x2",
)  # fmt: skip
gammainccinv = Elementwise(
    "gammainccinv", 2, Special("gammainccinv"), floats("gammainccinv({0}, {1})"), _inverse_gamma_gradient(-1),
    special("gammainccinv"), flops=600.0,
    formula="The x with gammaincc(x1, x) equal to x2",
)  # fmt: skip


def _inverse_beta_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    a, b, _ = inputs
    by_share = cotangent * exp(betaln(a, b) - (a - 1) * log(output) - (b - 1) * log1p(-output))
    return [
        -by_share * betainc_by_first(a, b, output),
        -by_share * betainc_by_second(a, b, output),
        by_share,
    ]


# Without code: SciPy's of float32 computes in float32, where it finds none for some that float64 finds.
betaincinv = Elementwise(
    "betaincinv", 3, Special("betaincinv"), None, _inverse_beta_gradient,
    special("betaincinv"), flops=800.0,
    formula="The x with betainc(x1, x2, x) equal to x3",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (
    beta,
    betaln,
    gammainc,
    gammaincc,
    betainc,
    gammaincinv,
    gammainccinv,
    betaincinv,
    gammainc_by_order,
    betainc_by_first,
    betainc_by_second,
)
