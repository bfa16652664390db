"""How far the vector functions are from the true values, measured with mpmath.

Used by the tests and by the benchmark that writes ``docs/vector_math.md``; mpmath is not needed otherwise.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from esat.base.records import record

Array = npt.NDArray[Any]

_PRECISION = 180
"""Bits of the reference values."""


@record(frozen=True)
class Reference:
    """The truth about one function.

    Attributes
    ----------
    value
        The function on mpmath numbers; it may raise, or be complex or NaN, outside the domain.
    interval
        Where its float64 values are neither trivial nor out of range.
    cancelling
        A quantity that cancels inside the function: errors are measured in units of its last place
        where it is larger than the result.
    """

    value: Callable[..., Any]
    interval: tuple[float, float] = (-100.0, 100.0)
    cancelling: Callable[..., Any] | None = None


def _erfcx(mp: Any, x: Any) -> Any:
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    terms = sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(1, 8))
    return (1 + terms) / (x * mp.sqrt(mp.pi))


def _gammaln(mp: Any, x: Any) -> Any:
    if x == mp.floor(x) and x <= 0:
        return mp.inf
    if x > 0:
        return mp.loggamma(x)
    with mp.workprec(_PRECISION + 1100):
        return mp.log(mp.pi / abs(x * mp.sin(mp.pi * x))) - mp.loggamma(-x)


def _digamma(mp: Any, x: Any) -> Any:
    if x == mp.floor(x) and x < 0:
        return mp.nan
    if x > 0:
        return mp.psi(0, x)
    if x == 0:
        return -mp.inf
    with mp.workprec(_PRECISION + 1100):
        return mp.psi(0, 1 - x) - mp.pi * mp.cot(mp.pi * x)


@functools.cache
def references() -> Mapping[str, Reference]:
    """The references by the names of the functions."""
    mp: Any = importlib.import_module("mpmath").mp
    return {
        "exp": Reference(mp.exp, (-760, 720)),
        "exp2": Reference(lambda x: mp.mpf(2) ** x, (-1090, 1030)),
        "expm1": Reference(mp.expm1, (-50, 720)),
        "sigmoid": Reference(lambda x: 1 / (1 + mp.exp(-x)), (-760, 50)),
        "log": Reference(mp.log, (0, 1000)),
        "log1p": Reference(mp.log1p, (-1, 10)),
        "log2": Reference(lambda x: mp.log(x) / mp.log(2), (0, 1000)),
        "log10": Reference(mp.log10, (0, 1000)),
        "softplus": Reference(lambda x: mp.log1p(mp.exp(x)), (-760, 100)),
        "log1mexp": Reference(lambda x: mp.log1p(-mp.exp(x)) if x < -1 else mp.log(-mp.expm1(x)), (-50, 0)),
        "logaddexp": Reference(
            lambda a, b: max(a, b) + mp.log1p(mp.exp(-abs(a - b))),
            cancelling=max,
        ),
        "tanh": Reference(mp.tanh, (-21, 21)),
        "sinh": Reference(mp.sinh, (-715, 715)),
        "cosh": Reference(mp.cosh, (-715, 715)),
        "asinh": Reference(mp.asinh),
        "acosh": Reference(mp.acosh, (1, 100)),
        "atanh": Reference(mp.atanh, (-1, 1)),
        "sin": Reference(mp.sin),
        "cos": Reference(mp.cos),
        "tan": Reference(mp.tan),
        "asin": Reference(mp.asin, (-1, 1)),
        "acos": Reference(mp.acos, (-1, 1)),
        "atan": Reference(mp.atan),
        "atan2": Reference(mp.atan2),
        "sqrt": Reference(mp.sqrt, (0, 100)),
        "reciprocal_sqrt": Reference(lambda x: 1 / mp.sqrt(x), (0, 100)),
        "cbrt": Reference(lambda x: mp.sign(x) * mp.cbrt(abs(x))),
        "pow": Reference(mp.power, (0, 100)),
        "erf": Reference(mp.erf, (-7, 7)),
        "erfc": Reference(lambda x: mp.erfc(x) if x < 200 else mp.mpf(0), (-7, 28)),
        "erfcx": Reference(lambda x: _erfcx(mp, x), (-27, 100)),
        "gammaln": Reference(
            lambda x: _gammaln(mp, x),
            (-5, 20),
            cancelling=lambda x: max(1, abs(mp.loggamma(-x))) if x < 0 else mp.mpf(0),
        ),
        "digamma": Reference(
            lambda x: _digamma(mp, x),
            (-5, 20),
            cancelling=lambda x: max(abs(mp.psi(0, 1 - x)), abs(mp.pi * mp.cot(mp.pi * x))) if x < 0 else 0,
        ),
    }


def sample(name: str, dtype: npt.DTypeLike, arity: int, count: int, seed: int) -> tuple[Array, ...]:
    """About ``5 * count`` arguments: random bit patterns, the function's own range, and near 0 and 1."""
    random = np.random.default_rng(seed)
    bits = np.dtype(dtype).itemsize * 8
    low, high = references()[name].interval
    if bits == 32 and high - low > 500:
        low, high = low / 7, high / 7

    def one_argument() -> Array:
        patterns = random.integers(0, 2**bits - 1, count, dtype=f"u{bits // 8}").view(dtype)
        near_one = 1 + random.normal(size=count) * 0.1 ** random.uniform(0, 16, count)
        near_zero = random.normal(size=count) * 0.1 ** random.uniform(0, 10, count)
        ordinary = [random.uniform(low, high, count), random.uniform(-2, 2, count), near_one, near_zero]
        return np.concatenate([patterns, *(part.astype(dtype) for part in ordinary)])

    arguments = [one_argument() for _ in range(arity)]
    if arity == 1:
        return (arguments[0],)
    if name == "pow":
        # Exponents for which the results span all magnitudes.
        base = random.uniform(0, 100, 2 * count).astype(dtype)
        reach = 745 if bits == 64 else 104
        exponent = (random.uniform(-reach, reach * 0.95, 2 * count) / np.log(base)).astype(dtype)
        return np.concatenate([arguments[0], base]), np.concatenate([arguments[1], exponent])
    return arguments[0], random.permutation(arguments[1])


def errors(name: str, arguments: tuple[Array, ...], values: Array) -> npt.NDArray[np.float64]:
    """The error of each value in units in the last place (ulp) of the true result.

    It is infinite for a finite value where the true result overflows or is undefined, and the reverse.
    Arguments that are infinite or NaN count as right: they are compared with NumPy's results elsewhere.
    """
    mp: Any = importlib.import_module("mpmath").mp
    reference = references()[name]
    result = np.zeros(len(values))
    with mp.workprec(_PRECISION):
        for index, value in enumerate(values):
            point = [argument[index] for argument in arguments]
            if all(math.isfinite(number) for number in point):
                exact = [mp.mpf(float(number)) for number in point]
                result[index] = _error(mp, reference, exact, float(value), np.finfo(values.dtype))
    return result


def _error(mp: Any, reference: Reference, point: list[Any], value: float, format_: Any) -> float:
    try:
        true = reference.value(*point)
    except (ValueError, ZeroDivisionError):  # mpmath's word for a pole
        true = mp.nan
    if not mp.isfinite(true) or mp.im(true) != 0:
        return math.inf if math.isfinite(value) else 0.0
    if math.isnan(value):
        return math.inf
    overflow = mp.mpf(float(format_.max)) * (1 + mp.mpf(2) ** (-format_.nmant - 2))
    if math.isinf(value) or abs(true) >= overflow:
        return 0.0 if math.isinf(value) and abs(true) >= overflow else math.inf
    size = abs(true)
    if reference.cancelling is not None:
        size = max(size, abs(reference.cancelling(*point)))
    exponent = int(mp.floor(mp.log(size, 2))) if size > 0 else format_.minexp
    unit = mp.mpf(2) ** (max(exponent, format_.minexp) - format_.nmant)
    return float(abs(mp.mpf(value) - true) / unit)
