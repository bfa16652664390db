"""Draws of numbers, by the names of the methods of ``numpy.random.Generator``, and states of generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.op import as_variable
from esat.graph.random_type import RandomState, RandomType
from esat.graph.types import normalize_dtype
from esat.graph.variables import Constant, SharedVariable, Variable
from esat.ops.inference.vectors import as_sizes
from esat.ops.random.distributions import Integers, NumberVariable
from esat.ops.random.variable import RandomVariable

Draw = tuple[Variable, Variable]
"""The state after a draw, and the sample."""


# ---- states


def generator_of(seed: Any) -> RandomState:
    """The state of a generator with a seed, as ``numpy.random.default_rng`` takes it."""
    try:
        return RandomType().filter(np.random.default_rng(seed))
    except (TypeError, ValueError) as error:
        raise DtypeError(describe("random", [repr(seed)], f"this is no seed: {error}")) from error


def state(name: str | None = None) -> Variable:
    """A Variable that holds the state of a generator: an input that takes a ``numpy.random.Generator``."""
    return RandomType().make_variable(name)


def constant_state(seed: Any) -> Constant:
    """The state of a generator with this seed (as ``numpy.random.default_rng`` takes it), for good."""
    return Constant(RandomType(), generator_of(seed).copy())


def shared_state(seed: Any = None, name: str | None = None) -> SharedVariable:
    """A shared variable with the state of a generator with this seed; None takes one from the system."""
    return SharedVariable(RandomType(), generator_of(seed), name)


# ---- draws


def drawn(make: Callable[[int | None], RandomVariable], state: Any, parameters: Any, size: Any) -> Draw:
    """What an op draws, which ``make`` builds for the number of sizes; None for a size that is not given."""
    if not isinstance(state, Variable):
        state = constant_state(state)
    if size is None:
        after, sample = make(None)(state, *parameters)
    else:
        sizes = as_sizes("size", size)
        after, sample = make(len(sizes))(state, *parameters, *sizes)
    return after, sample


def _number(name: str, state: Any, parameters: Any, size: Any) -> Draw:
    return drawn(lambda rank: NumberVariable(rank, name=name), state, parameters, size)


def uniform(state: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Draw:
    """Real numbers from ``low`` up to but without ``high``, equally likely.

    Parameters
    ----------
    state
        The state of a generator, or a seed.
    low, high
        Numbers or arrays, which broadcast; the sample can be differentiated by them.
    size
        Shape of the sample; by default that of the parameters.

    Returns
    -------
    The state after the draw, and the sample, float64.

    Raises
    ------
    ParameterError
        At run time, for parameters outside the domain of the distribution.
    ShapeError
        When the parameters do not broadcast to ``size``.
    """
    return _number("uniform", state, (low, high), size)


def normal(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Draw:
    """Normal numbers of mean ``loc`` and standard deviation ``scale``; see :func:`uniform`."""
    return _number("normal", state, (loc, scale), size)


def laplace(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Draw:
    """Numbers of density ``exp(-abs(x - loc) / scale) / (2 * scale)``; see :func:`uniform`."""
    return _number("laplace", state, (loc, scale), size)


def gumbel(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Draw:
    """Numbers of the extreme value distribution of type I; see :func:`uniform`."""
    return _number("gumbel", state, (loc, scale), size)


def logistic(state: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Draw:
    """Numbers whose distribution function is ``sigmoid((x - loc) / scale)``; see :func:`uniform`."""
    return _number("logistic", state, (loc, scale), size)


def exponential(state: Any, scale: Any = 1.0, size: Any = None) -> Draw:
    """Numbers of density ``exp(-x / scale) / scale``; see :func:`uniform`."""
    return _number("exponential", state, (scale,), size)


def gamma(state: Any, shape: Any, scale: Any = 1.0, size: Any = None) -> Draw:
    """Gamma distributed numbers of mean ``shape * scale``; see :func:`uniform`.

    A gradient takes a ``shape`` that is constant.
    """
    return _number("gamma", state, (shape, scale), size)


def beta(state: Any, a: Any, b: Any, size: Any = None) -> Draw:
    """Beta distributed numbers, which have no gradient by their parameters; see :func:`uniform`."""
    return _number("beta", state, (a, b), size)


def lognormal(state: Any, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Draw:
    """Exponentials of normal numbers of mean ``mean`` and deviation ``sigma``; see :func:`uniform`."""
    return _number("lognormal", state, (mean, sigma), size)


def rayleigh(state: Any, scale: Any = 1.0, size: Any = None) -> Draw:
    """Numbers of density ``x / scale**2 * exp(-(x / scale)**2 / 2)``; see :func:`uniform`."""
    return _number("rayleigh", state, (scale,), size)


def weibull(state: Any, a: Any, size: Any = None) -> Draw:
    """Numbers of density ``a * x**(a - 1) * exp(-x**a)``, without a gradient; see :func:`uniform`."""
    return _number("weibull", state, (a,), size)


def pareto(state: Any, a: Any, size: Any = None) -> Draw:
    """Numbers of density ``a / (1 + x)**(a + 1)``, without a gradient; see :func:`uniform`."""
    return _number("pareto", state, (a,), size)


def power(state: Any, a: Any, size: Any = None) -> Draw:
    """Numbers below 1 of density ``a * x**(a - 1)``, without a gradient; see :func:`uniform`."""
    return _number("power", state, (a,), size)


def standard_t(state: Any, df: Any, size: Any = None) -> Draw:
    """Numbers of Student's distribution of ``df`` degrees, without a gradient; see :func:`uniform`."""
    return _number("standard_t", state, (df,), size)


def chisquare(state: Any, df: Any, size: Any = None) -> Draw:
    """Sums of ``df`` squares of normal numbers, without a gradient; see :func:`uniform`."""
    return _number("chisquare", state, (df,), size)


def f(state: Any, dfnum: Any, dfden: Any, size: Any = None) -> Draw:
    """Quotients of two of :func:`chisquare`, each by its degrees, without a gradient; see :func:`uniform`."""
    return _number("f", state, (dfnum, dfden), size)


def wald(state: Any, mean: Any, scale: Any, size: Any = None) -> Draw:
    """Inverse Gaussian numbers, which have no gradient by their parameters; see :func:`uniform`."""
    return _number("wald", state, (mean, scale), size)


def vonmises(state: Any, mu: Any, kappa: Any, size: Any = None) -> Draw:
    """Angles of density ``exp(kappa * cos(x - mu))`` up to a factor; see :func:`uniform`.

    A gradient takes a ``kappa`` that is constant.
    """
    return _number("vonmises", state, (mu, kappa), size)


def triangular(state: Any, left: Any, mode: Any, right: Any, size: Any = None) -> Draw:
    """Numbers whose density is a triangle, highest at ``mode``, without a gradient; see :func:`uniform`."""
    return _number("triangular", state, (left, mode, right), size)


def negative_binomial(state: Any, n: Any, p: Any, size: Any = None) -> Draw:
    """How many trials fail before ``n`` succeed with probability ``p``, int64; see :func:`uniform`."""
    return _number("negative_binomial", state, (n, p), size)


def hypergeometric(state: Any, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Draw:
    """How many of ``nsample`` elements drawn without replacement are good, int64; see :func:`uniform`."""
    return _number("hypergeometric", state, (ngood, nbad, nsample), size)


def logseries(state: Any, p: Any, size: Any = None) -> Draw:
    """Integers of probability ``-(p**k) / (k * log(1 - p))``, int64; see :func:`uniform`."""
    return _number("logseries", state, (p,), size)


def zipf(state: Any, a: Any, size: Any = None) -> Draw:
    """Integers of probability ``k**-a / zeta(a)``, int64; see :func:`uniform`."""
    return _number("zipf", state, (a,), size)


def poisson(state: Any, lam: Any = 1.0, size: Any = None) -> Draw:
    """Poisson distributed numbers of mean ``lam``, int64; see :func:`uniform`."""
    return _number("poisson", state, (lam,), size)


def binomial(state: Any, n: Any, p: Any, size: Any = None) -> Draw:
    """How many of ``n`` trials succeed that each do with probability ``p``, int64; see :func:`uniform`."""
    return _number("binomial", state, (n, p), size)


def geometric(state: Any, p: Any, size: Any = None) -> Draw:
    """How many trials it takes until one succeeds with probability ``p``, int64; see :func:`uniform`."""
    return _number("geometric", state, (p,), size)


def bernoulli(state: Any, p: Any = 0.5, size: Any = None) -> Draw:
    """True with probability ``p``: whether NumPy's ``random(size)`` is less than it; see :func:`uniform`."""
    return _number("bernoulli", state, (p,), size)


def integers(
    state: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False
) -> Draw:
    """Integers from ``low`` up to but without ``high`` (with it, if ``endpoint``), equally likely.

    With one bound they start at 0. See :func:`uniform`.
    """
    if high is None:
        low, high = 0, low
    target = normalize_dtype(dtype)
    if np.dtype(target).kind not in "iub":
        raise DtypeError(describe("integers", [target], "the dtype is one of integers"))
    bound = as_variable(high) + 1 if endpoint else high
    return drawn(lambda rank: Integers(rank, integer_dtype=target), state, (low, bound), size)
