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

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.arrays.indexing import take
from esat.frontend.elements.streams import StreamState
from esat.graph.op import as_variable
from esat.graph.random_type import RandomState, RandomType
from esat.graph.types import normalize_dtype
from esat.graph.variables import Constant, SharedVariable, Variable
from esat.ops.arrays.shape import size_of
from esat.ops.inference.axes import normalize_axis
from esat.ops.inference.vectors import as_sizes
from esat.ops.random.distributions import Integers, NumberVariable
from esat.ops.random.variable import RandomVariable
from esat.ops.random.vectors import Choice, Multinomial, MultivariateNormal, NormalMethod, Permutation

__all__ = [
    "RandomState",
    "RandomStream",
    "RandomType",
    "bernoulli",
    "beta",
    "binomial",
    "choice",
    "constant_state",
    "exponential",
    "gamma",
    "geometric",
    "gumbel",
    "integers",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "normal",
    "permutation",
    "poisson",
    "shared_state",
    "state",
    "uniform",
]

Draw = tuple[Variable, Variable]
"""The state after a draw, and the sample."""


# ---- states


def _generator(seed: Any) -> RandomState:
    try:
        return RandomType().filter(np.random.default_rng(seed))
    except (TypeError, ValueError) as error:
        raise DtypeError(describe("random", [repr(seed)], f"this is no seed: {error}")) from error


def state(name: str | None = None) -> Variable:
    """A Variable that holds the state of a generator: an input that takes a ``numpy.random.Generator``."""
    return RandomType().make_variable(name)


def constant_state(seed: Any) -> Constant:
    """The state of a generator with this seed (as ``numpy.random.default_rng`` takes it), for good."""
    return Constant(RandomType(), _generator(seed).copy())


def shared_state(seed: Any = None, name: str | None = None) -> SharedVariable:
    """A shared variable with the state of a generator with this seed; None takes one from the system."""
    return SharedVariable(RandomType(), _generator(seed), name)


# ---- draws


def _drawn(make: Callable[[int | None], RandomVariable], state: Any, parameters: Any, size: Any) -> Draw:
    if not isinstance(state, Variable):
        state = constant_state(state)
    if size is None:
        after, sample = make(None)(state, *parameters)
    else:
        sizes = as_sizes("size", size)
        after, sample = make(len(sizes))(state, *parameters, *sizes)
    return after, sample


def _number(name: str, state: Any, parameters: Any, size: Any) -> Draw:
    return _drawn(lambda rank: NumberVariable(rank, name=name), state, parameters, size)


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
    return _drawn(lambda rank: Integers(rank, integer_dtype=target), state, (low, bound), size)


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
    after, places = _drawn(
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
    after, order = _drawn(Permutation, state, (size_of(source, place) if rank else source,), None)
    return after, take(source, order, place) if rank else order


def multinomial(state: Any, n: Any, pvals: Any, size: Any = None) -> Draw:
    """How often each of ``k`` outcomes comes in ``n`` trials: ``(..., k)`` probabilities, int64 counts."""
    return _drawn(Multinomial, state, (n, pvals), size)


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
    return _drawn(lambda rank: MultivariateNormal(rank, method=method), state, (mean, cov), size)


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
        self.shared: SharedVariable = StreamState(RandomType(), _generator(seed), name)
        self._latest: Variable = self.shared

    def state(self) -> Variable:
        """The state after all draws so far."""
        return self._latest

    def updates(self) -> dict[SharedVariable, Variable]:
        """What leaves the stream after all draws so far, in whatever graph; empty before the first."""
        return {} if self._latest is self.shared else {self.shared: self._latest}

    def seed(self, seed: Any = None) -> None:
        """Start again: draws, those of compiled functions as well, come from a generator with this seed."""
        self.shared.set_value(_generator(seed))

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

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, method: NormalMethod = "svd"
    ) -> Variable:
        """See :func:`multivariate_normal`."""
        return self.draw(multivariate_normal, mean, cov, size, method)

    def __repr__(self) -> str:
        return f"RandomStream({self.shared})"
