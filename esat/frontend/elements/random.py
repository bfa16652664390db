"""Random numbers, under the names of the methods of ``numpy.random.Generator``.

A draw is a function of a generator's state: it gives the state after the draw and the sample, and the
same state gives the same sample again. :class:`RandomStream` keeps track of states::

    stream = esat.random.RandomStream(seed=7)
    mask = stream.bernoulli(0.9, size=x.shape)
    step = esat.compile(esat.Graph([x], x * mask))      # every call draws another mask

Samples are those of NumPy for the same seed, parameters and order of draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.frontend.arrays.indexing import take
from esat.frontend.elements.number_draws import (
    Draw,
    bernoulli,
    beta,
    binomial,
    chisquare,
    constant_state,
    drawn,
    exponential,
    f,
    gamma,
    generator_of,
    geometric,
    gumbel,
    hypergeometric,
    integers,
    laplace,
    logistic,
    lognormal,
    logseries,
    negative_binomial,
    normal,
    pareto,
    poisson,
    power,
    rayleigh,
    shared_state,
    standard_t,
    state,
    triangular,
    uniform,
    vonmises,
    wald,
    weibull,
    zipf,
)
from esat.frontend.elements.streams import StreamState
from esat.graph.op import as_variable
from esat.graph.random_type import RandomState, RandomType
from esat.graph.variables import SharedVariable, Variable
from esat.ops.arrays.shape import size_of
from esat.ops.inference.axes import normalize_axis
from esat.ops.random.vectors import (
    Choice,
    Dirichlet,
    Multinomial,
    MultivariateNormal,
    NormalMethod,
    Permutation,
)

__all__ = [
    "RandomState",
    "RandomStream",
    "RandomType",
    "bernoulli",
    "beta",
    "binomial",
    "chisquare",
    "choice",
    "constant_state",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "gumbel",
    "hypergeometric",
    "integers",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rayleigh",
    "shared_state",
    "standard_t",
    "state",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]


def choice(
    state: Any,
    a: Any,
    size: Any = None,
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    shuffle: bool = True,
) -> Draw:
    """Numbers below ``a``, or elements of an array ``a`` along ``axis``.

    Parameters
    ----------
    state
        The state of a generator, or a seed.
    a
        An integer, an integer scalar, or an array.
    size
        Shape of the sample; by default one element.
    replace
        Whether an element can be drawn twice.
    p
        Probabilities of the elements; by default they are equal.
    axis
        Of the array.
    shuffle
        Whether elements drawn without replacement come in random order.

    Raises
    ------
    ParameterError
        At run time, when there are not enough elements, or probabilities do not sum to 1.
    """
    source = as_variable(a)
    rank = source.tensor_type.ndim
    place = normalize_axis("choice", axis, rank) if rank else 0
    parameters = (size_of(source, place) if rank else source, *([] if p is None else [p]))
    after, places = drawn(
        lambda ranks: Choice(ranks, False, bool(replace), p is not None, bool(shuffle)),
        state,
        parameters,
        size,
    )
    return after, take(source, places, place) if rank else places


def permutation(state: Any, x: Any, axis: int = 0) -> Draw:
    """The numbers below ``x`` in random order, or the elements of an array ``x`` along ``axis``."""
    source = as_variable(x)
    rank = source.tensor_type.ndim
    place = normalize_axis("permutation", axis, rank) if rank else 0
    after, order = drawn(Permutation, state, (size_of(source, place) if rank else source,), None)
    return after, take(source, order, place) if rank else order


def multinomial(state: Any, n: Any, pvals: Any, size: Any = None) -> Draw:
    """How often each of ``k`` outcomes comes in ``n`` trials: ``(..., k)`` probabilities, int64 counts."""
    return drawn(Multinomial, state, (n, pvals), size)


def multivariate_normal(
    state: Any, mean: Any, cov: Any, size: Any = None, method: NormalMethod = "svd"
) -> Draw:
    """Normal vectors of mean ``(k,)`` and covariance ``(k, k)``.

    Parameters
    ----------
    state
        The state of a generator, or a seed.
    mean, cov
        Arrays; the sample can be differentiated by the mean, and with ``method="cholesky"`` by ``cov``.
    size
        Shape of the sample without its last axis.
    method
        How the covariance is factored: "svd", "eigh" or "cholesky" (the fastest, for positive definite ones).

    Raises
    ------
    ParameterError
        At run time, when the covariance is not positive semidefinite.
    """
    return drawn(lambda rank: MultivariateNormal(rank, method=method), state, (mean, cov), size)


def dirichlet(state: Any, alpha: Any, size: Any = None) -> Draw:
    """Vectors of positive numbers whose sum is 1, of density ``prod(x**(alpha - 1))`` up to a factor.

    Parameters
    ----------
    state
        The state of a generator, or a seed.
    alpha
        Positive numbers ``(..., k)``; a gradient takes constant ones. NumPy takes one vector; of several,
        samples are drawn one after the other.
    size
        Shape of the sample without its last axis.

    Raises
    ------
    ParameterError
        At run time, for numbers that are not positive.

    Examples
    --------
    >>> esat.evaluate(esat.random.dirichlet(1, [1.0, 2.0])[1]).sum().round(12)
    np.float64(1.0)
    """
    return drawn(Dirichlet, state, (alpha,), size)


class RandomStream:
    """A shared random state that hands out samples, each drawn from the state the one before it left.

    Samples are those that ``numpy.random.default_rng(seed)`` would give in the same order. Every call of a
    compiled function starts from the state of :attr:`shared`, and leaves it after the last of its own draws:
    an ``esat.Graph`` updates it unless its ``updates`` say otherwise.

    Parameters
    ----------
    seed
        As ``numpy.random.default_rng`` takes it; None takes one from the system.
    name
        For printing.

    Attributes
    ----------
    shared
        The shared variable.
    """

    def __init__(self, seed: Any = None, name: str | None = None) -> None:
        self.shared: SharedVariable = StreamState(RandomType(), generator_of(seed), name)
        self._latest: Variable = self.shared

    def state(self) -> Variable:
        """The state after all draws so far."""
        return self._latest

    def updates(self) -> dict[SharedVariable, Variable]:
        """What leaves the stream after all draws so far, in whatever graph; empty before the first."""
        return {} if self._latest is self.shared else {self.shared: self._latest}

    def seed(self, seed: Any = None) -> None:
        """Start again: draws, those of compiled functions as well, come from a generator with this seed."""
        self.shared.set_value(generator_of(seed))

    def draw(self, function: Callable[..., Draw], *arguments: Any, **options: Any) -> Variable:
        """The sample of ``function(state, *arguments, **options)``, which is one of this module's draws."""
        self._latest, sample = function(self._latest, *arguments, **options)
        return sample

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`uniform`."""
        return self.draw(uniform, low, high, size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`normal`."""
        return self.draw(normal, loc, scale, size)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`laplace`."""
        return self.draw(laplace, loc, scale, size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`gumbel`."""
        return self.draw(gumbel, loc, scale, size)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`logistic`."""
        return self.draw(logistic, loc, scale, size)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`exponential`."""
        return self.draw(exponential, scale, size)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`gamma`."""
        return self.draw(gamma, shape, scale, size)

    def beta(self, a: Any, b: Any, size: Any = None) -> Variable:
        """See :func:`beta`."""
        return self.draw(beta, a, b, size)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`lognormal`."""
        return self.draw(lognormal, mean, sigma, size)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`rayleigh`."""
        return self.draw(rayleigh, scale, size)

    def weibull(self, a: Any, size: Any = None) -> Variable:
        """See :func:`weibull`."""
        return self.draw(weibull, a, size)

    def pareto(self, a: Any, size: Any = None) -> Variable:
        """See :func:`pareto`."""
        return self.draw(pareto, a, size)

    def power(self, a: Any, size: Any = None) -> Variable:
        """See :func:`power`."""
        return self.draw(power, a, size)

    def standard_t(self, df: Any, size: Any = None) -> Variable:
        """See :func:`standard_t`."""
        return self.draw(standard_t, df, size)

    def chisquare(self, df: Any, size: Any = None) -> Variable:
        """See :func:`chisquare`."""
        return self.draw(chisquare, df, size)

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Variable:
        """See :func:`f`."""
        return self.draw(f, dfnum, dfden, size)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Variable:
        """See :func:`wald`."""
        return self.draw(wald, mean, scale, size)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Variable:
        """See :func:`vonmises`."""
        return self.draw(vonmises, mu, kappa, size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Variable:
        """See :func:`triangular`."""
        return self.draw(triangular, left, mode, right, size)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Variable:
        """See :func:`negative_binomial`."""
        return self.draw(negative_binomial, n, p, size)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Variable:
        """See :func:`hypergeometric`."""
        return self.draw(hypergeometric, ngood, nbad, nsample, size)

    def logseries(self, p: Any, size: Any = None) -> Variable:
        """See :func:`logseries`."""
        return self.draw(logseries, p, size)

    def zipf(self, a: Any, size: Any = None) -> Variable:
        """See :func:`zipf`."""
        return self.draw(zipf, a, size)

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Variable:
        """See :func:`poisson`."""
        return self.draw(poisson, lam, size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Variable:
        """See :func:`binomial`."""
        return self.draw(binomial, n, p, size)

    def geometric(self, p: Any, size: Any = None) -> Variable:
        """See :func:`geometric`."""
        return self.draw(geometric, p, size)

    def bernoulli(self, p: Any = 0.5, size: Any = None) -> Variable:
        """See :func:`bernoulli`."""
        return self.draw(bernoulli, p, size)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = "int64", endpoint: bool = False
    ) -> Variable:
        """See :func:`integers`."""
        return self.draw(integers, low, high, size, dtype, endpoint)

    def choice(
        self,
        a: Any,
        size: Any = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Variable:
        """See :func:`choice`."""
        return self.draw(choice, a, size, replace, p, axis, shuffle)

    def permutation(self, x: Any, axis: int = 0) -> Variable:
        """See :func:`permutation`."""
        return self.draw(permutation, x, axis)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Variable:
        """See :func:`multinomial`."""
        return self.draw(multinomial, n, pvals, size)

    def dirichlet(self, alpha: Any, size: Any = None) -> Variable:
        """See :func:`dirichlet`."""
        return self.draw(dirichlet, alpha, size)

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, method: NormalMethod = "svd"
    ) -> Variable:
        """See :func:`multivariate_normal`."""
        return self.draw(multivariate_normal, mean, cov, size, method)

    def __repr__(self) -> str:
        return f"RandomStream({self.shared})"
