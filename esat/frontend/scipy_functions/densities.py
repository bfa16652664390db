"""Distributions of ``scipy.stats``: densities and probabilities as functions of Variables.

Formulas are those of the documents of ``scipy.stats``, each for the standard form of its distribution;
`Density` moves and scales them, and says what holds outside of the support.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from esat.base.records import record
from esat.frontend.arrays.shaping import matrix_transpose, squeeze
from esat.frontend.elements import elementwise as e
from esat.frontend.elements.searching import where
from esat.frontend.linear_algebra.eigenvalues import eigh
from esat.frontend.linear_algebra.linalg_functions import cholesky, solve_triangular
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.diagonal import diagonal
from esat.ops.cast import cast

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
Formula = Callable[..., Any]


@record(frozen=True, eq=False)
class Density:
    """A distribution of one number.

    Attributes
    ----------
    shapes
        Names of its parameters, but for ``loc`` and ``scale``.
    logpdf
        The logarithm of the density of the standard form, or of the probability of a whole number.
    cdf
        The probability of numbers up to one, of the standard form.
    supports
        From a number and the parameters to whether it can be one of the distribution's.
    allows
        From the parameters to whether there is such a distribution.
    is_discrete
        Whether it is one of whole numbers.
    others
        Formulas of other functions, for which those above lose digits.
    """

    shapes: tuple[str, ...]
    logpdf: Formula
    cdf: Formula
    supports: Formula
    allows: Formula
    is_discrete: bool = False
    others: Mapping[str, Formula] = field(default_factory=dict)

    def function(self, name: str) -> Callable[..., Variable] | None:
        """A function of SciPy's by its name: of ``x``, parameters, ``loc`` and ``scale``."""
        name = name.replace("pmf", "pdf") if self.is_discrete else name
        if name not in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"):
            return None
        return lambda *arguments, **named: self._of(name, arguments, named)

    def _of(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Variable:
        names = ("x", *self.shapes, "loc", *(() if self.is_discrete else ("scale",)))
        first = next((one for one in ("k", "q") if one in named), None)
        if first is not None:
            named["x"] = named.pop(first)
        given = dict(zip(names, arguments, strict=False))
        unknown = [one for one in named if one not in names or one in given]
        missing = [one for one in self.shapes if one not in {**given, **named}]
        if unknown or missing or len(arguments) > len(names):
            raise TypeError(f"{name}() takes ({', '.join(names)}), not {', '.join([*given, *named])}")
        given = {"loc": 0.0, "scale": 1.0, **given, **named}
        values = {key: _floating(value) for key, value in given.items()}
        scale = values["scale"]
        x = (values["x"] - values["loc"]) / scale
        shapes = [values[one] for one in self.shapes]
        result = self._standard(name, x, shapes)
        if name == "logpdf":
            result = result - e.log(scale)
        elif name == "pdf":
            result = result / scale
        return where((scale > 0.0) & self.allows(*shapes) & ~e.isnan(x), result, np.nan)

    def _standard(self, name: str, x: Variable, shapes: list[Variable]) -> Variable:
        inside = self.supports(x, *shapes)
        if self.is_discrete and name in ("logpdf", "pdf"):
            inside = inside & op_named("eq")(e.floor(x), x)
        place = e.floor(x) if self.is_discrete else x
        # What is outside is replaced before, so that gradients there are zero and no NaN.
        safe = where(inside, place, self._within(shapes))
        formula = self.others.get(name)
        if name in ("logpdf", "pdf"):
            value = self.logpdf(safe, *shapes) if formula is None else formula(safe, *shapes)
            value = e.exp(value) if name == "pdf" and formula is None else value
            return where(inside, value, -np.inf if name == "logpdf" else 0.0)
        is_above = ~inside & (x > self._within(shapes))
        if formula is not None:
            value = formula(safe, *shapes)
        else:
            value = self.cdf(safe, *shapes)
            value = 1.0 - value if name.endswith("sf") else value
            value = e.log(value) if name.startswith("log") else value
        least, most = (-np.inf, 0.0) if name.startswith("log") else (0.0, 1.0)
        above, below = (least, most) if name.endswith("sf") else (most, least)
        return where(inside, value, where(is_above, above, below))

    def _within(self, shapes: list[Variable]) -> Any:
        """A number of the support of every distribution here."""
        return 0.0 if self.is_discrete else 0.5


def _floating(value: Any) -> Variable:
    variable = as_variable(value)
    return variable if variable.tensor_type.dtype == "float64" else cast(variable, "float64")


def _everywhere(x: Variable, *shapes: Variable) -> Variable:
    return ~e.isnan(x)


def _always(*shapes: Variable) -> Any:
    return np.bool_(True)


def _positive(*shapes: Variable) -> Any:
    found: Any = np.bool_(True)
    for one in shapes:
        found = (one > 0.0) & found
    return found


def _xlog1py(x: Any, y: Any) -> Variable:
    is_zero = op_named("eq")(x, 0.0)
    return where(is_zero, 0.0, x * e.log1p(where(is_zero, 0.0, y)))


def _student_tail(x: Variable, df: Variable) -> Any:
    return 0.5 * op_named("betainc")(0.5 * df, 0.5, df / (df + x * x))


def _at_least(bound: float) -> Formula:
    return lambda x, *shapes: x >= bound


_NORMAL = Density(
    (), lambda x: -0.5 * x * x - _LOG_ROOT, e.ndtr, _everywhere, _always,
    others={"logcdf": e.log_ndtr, "sf": lambda x: e.ndtr(-x), "logsf": lambda x: e.log_ndtr(-x)},
)  # fmt: skip

DISTRIBUTIONS: dict[str, Density] = {
    "norm": _NORMAL,
    "t": Density(
        ("df",),
        lambda x, df: e.gammaln(0.5 * (df + 1.0)) - e.gammaln(0.5 * df) - 0.5 * e.log(math.pi * df)
        - 0.5 * (df + 1.0) * e.log1p(x * x / df),
        lambda x, df: where(x > 0.0, 1.0 - _student_tail(x, df), _student_tail(x, df)),
        _everywhere, _positive,
        others={"sf": lambda x, df: where(x > 0.0, _student_tail(x, df), 1.0 - _student_tail(x, df))},
    ),
    "gamma": Density(
        ("a",), lambda x, a: e.xlogy(a - 1.0, x) - x - e.gammaln(a), lambda x, a: op_named("gammainc")(a, x),
        _at_least(0.0), _positive, others={"sf": lambda x, a: op_named("gammaincc")(a, x)},
    ),
    "chi2": Density(
        ("df",),
        lambda x, df: e.xlogy(0.5 * df - 1.0, x) - 0.5 * x - e.gammaln(0.5 * df) - 0.5 * math.log(2.0) * df,
        lambda x, df: op_named("gammainc")(0.5 * df, 0.5 * x), _at_least(0.0), _positive,
        others={"sf": lambda x, df: op_named("gammaincc")(0.5 * df, 0.5 * x)},
    ),
    "invgamma": Density(
        ("a",), lambda x, a: -(a + 1.0) * e.log(x) - e.gammaln(a) - 1.0 / x,
        lambda x, a: op_named("gammaincc")(a, 1.0 / x), lambda x, a: x > 0.0, _positive,
        others={"sf": lambda x, a: op_named("gammainc")(a, 1.0 / x)},
    ),
    "beta": Density(
        ("a", "b"), lambda x, a, b: _xlog1py(b - 1.0, -x) + e.xlogy(a - 1.0, x) - op_named("betaln")(a, b),
        lambda x, a, b: op_named("betainc")(a, b, x), lambda x, a, b: (x >= 0.0) & (x <= 1.0), _positive,
        others={"sf": lambda x, a, b: op_named("betainc")(b, a, 1.0 - x)},
    ),
    "expon": Density(
        (), lambda x: -x, lambda x: -e.expm1(-x), _at_least(0.0), _always,
        others={"sf": lambda x: e.exp(-x), "logsf": lambda x: -x},
    ),
    "lognorm": Density(
        ("s",), lambda x, s: -0.5 * (e.log(x) / s) ** 2 - e.log(s * x) - _LOG_ROOT,
        lambda x, s: e.ndtr(e.log(x) / s), lambda x, s: x > 0.0, _positive,
        others={
            "logcdf": lambda x, s: e.log_ndtr(e.log(x) / s), "sf": lambda x, s: e.ndtr(-e.log(x) / s),
            "logsf": lambda x, s: e.log_ndtr(-e.log(x) / s),
        },
    ),
    "uniform": Density(
        (), lambda x: 0.0 * x, lambda x: x, lambda x: (x >= 0.0) & (x <= 1.0), _always
    ),
    "laplace": Density(
        (), lambda x: -e.abs(x) - math.log(2.0),
        lambda x: where(x > 0.0, 1.0 - 0.5 * e.exp(-e.abs(x)), 0.5 * e.exp(-e.abs(x))), _everywhere, _always,
        others={"sf": lambda x: where(x > 0.0, 0.5 * e.exp(-e.abs(x)), 1.0 - 0.5 * e.exp(-e.abs(x)))},
    ),
    "cauchy": Density(
        (), lambda x: -math.log(math.pi) - e.log1p(x * x), lambda x: 0.5 + e.arctan(x) / math.pi,
        _everywhere, _always, others={"sf": lambda x: 0.5 - e.arctan(x) / math.pi},
    ),
    "logistic": Density(
        (), lambda x: -e.abs(x) - 2.0 * e.log1p(e.exp(-e.abs(x))), e.sigmoid, _everywhere, _always,
        others={"sf": lambda x: e.sigmoid(-x)},
    ),
    "poisson": Density(
        ("mu",), lambda k, mu: e.xlogy(k, mu) - e.gammaln(k + 1.0) - mu,
        lambda k, mu: op_named("gammaincc")(k + 1.0, mu), _at_least(0.0), lambda mu: mu >= 0.0, True,
        others={"sf": lambda k, mu: op_named("gammainc")(k + 1.0, mu)},
    ),
    "binom": Density(
        ("n", "p"),
        lambda k, n, p: e.gammaln(n + 1.0) - e.gammaln(k + 1.0) - e.gammaln(n - k + 1.0) + e.xlogy(k, p)
        + _xlog1py(n - k, -p),
        lambda k, n, p: where(k >= n, 1.0, op_named("betainc")(where(k >= n, 1.0, n - k), k + 1.0, 1.0 - p)),
        lambda k, n, p: (k >= 0.0) & (k <= n),
        lambda n, p: (n >= 0.0) & op_named("eq")(e.floor(n), n) & (p >= 0.0) & (p <= 1.0), True,
    ),
    "bernoulli": Density(
        ("p",), lambda k, p: e.xlogy(k, p) + _xlog1py(1.0 - k, -p),
        lambda k, p: where(k >= 1.0, 1.0, 1.0 - p), lambda k, p: (k >= 0.0) & (k <= 1.0),
        lambda p: (p >= 0.0) & (p <= 1.0), True,
    ),
}  # fmt: skip


def multivariate_normal_logpdf(
    x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False
) -> Variable:
    """The logarithm of the density of normal vectors, the last axis of ``x``.

    Raises
    ------
    LinearAlgebraError
        At run time, where the covariance is not positive definite and that is not allowed.
    """
    points = _floating(x)
    covariance = _floating(cov)
    center = None if mean is None else _floating(mean)
    size = next(
        (one.tensor_type.shape[-1] for one in (center, covariance) if one is not None and one.ndim), None
    )
    size = size or 1
    if points.ndim == 0:
        points = points.reshape((1,))
    elif points.ndim == 1 and size == 1:
        points = points.reshape((-1, 1))
    if covariance.ndim == 0:
        covariance = covariance * np.eye(size)
    elif covariance.ndim == 1:
        covariance = covariance[:, None] * np.eye(size)
    if center is None:
        stretched = size > 1 and points.tensor_type.shape[-1] == 1
        offset = points - np.zeros(size) if stretched else points
    else:
        offset = points - center.reshape((-1,))
    if allow_singular:
        return _singular_logpdf(offset, covariance)
    factor = cholesky(covariance)
    rows = offset.reshape((-1, size))
    whitened = solve_triangular(factor, matrix_transpose(rows), lower=True)
    distance = (whitened * whitened).sum(axis=0)
    constant = size * _LOG_ROOT + e.log(diagonal(factor)).sum()
    return _squeezed((-0.5 * distance - constant).reshape(tuple(offset.tensor_type.shape[:-1])))


def _squeezed(result: Variable) -> Variable:
    """Without axes of one element, as SciPy has its results."""
    return squeeze(result, tuple(axis for axis, size in enumerate(result.tensor_type.shape) if size == 1))


def _singular_logpdf(offset: Variable, covariance: Variable) -> Variable:
    """With eigenvalues that are as good as zero left out, as SciPy has it."""
    values, vectors = eigh(covariance)
    least = 1e6 * np.finfo("float64").eps * e.abs(values).max()
    is_kept = values > least
    safe = where(is_kept, values, 1.0)
    along = offset @ vectors
    distance = (where(is_kept, along * along / safe, 0.0)).sum(axis=-1)
    rank = cast(is_kept, "float64").sum()
    outside = (where(is_kept, 0.0, along) ** 2).sum(axis=-1)
    result = -0.5 * (rank * math.log(2.0 * math.pi) + where(is_kept, e.log(safe), 0.0).sum() + distance)
    return _squeezed(where(outside < (1e3 * least) ** 2, result, -np.inf))


def multivariate_normal_pdf(
    x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False
) -> Variable:
    """The density of normal vectors; see :func:`multivariate_normal_logpdf`."""
    result: Variable = e.exp(multivariate_normal_logpdf(x, mean, cov, allow_singular))
    return result
