"""Statistical models: log-densities over a namespace of NumPy's names, which contenders differentiate.

A log-density is called with a contender's namespace and the parameters. The namespace has ``exp log log1p
sqrt tanh erf maximum sum max cumsum matmul concatenate stack cholesky solve_triangular solve logdet
diagonal``; arrays have NumPy's operators and indexing. Data are constants of the program. Formulas stand as
in a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
_STEP = 1e-5


@dataclass(frozen=True)
class Model:
    """A log-density and its gradient.

    Attributes
    ----------
    name
        What tables call it.
    size
        Observations.
    shapes
        Of the parameters.
    density
        ``density(namespace, *parameters)``: a scalar.
    by_hand
        Value and gradients as somebody would write them for numba; None where nobody did.
    """

    name: str
    size: int
    shapes: tuple[tuple[int, ...], ...]
    density: Callable[..., Any]
    by_hand: Callable[[], Callable[..., tuple[Any, ...]]] | None = None

    flops = None

    def at(self, size: int) -> Model:
        """The model: it has one size."""
        assert size == self.size
        return self

    def arrays(self, size: int, dtype: str) -> tuple[np.ndarray, ...]:
        """A point; the same in every process."""
        random = np.random.default_rng(size)
        return tuple(np.asarray(0.1 * random.normal(size=shape), dtype) for shape in self.shapes)

    def error(self, namespace: Any, found: Sequence[np.ndarray], at: Sequence[np.ndarray]) -> float:
        """How far a value and gradients are off: the value from NumPy's, the derivative in one direction from
        central differences of it."""
        value, *gradients = found
        if [array.shape for array in found] != [(), *self.shapes]:
            return math.inf
        wanted = float(self.density(namespace, *at))
        random = np.random.default_rng(0)
        along = [random.normal(size=array.shape) for array in at]
        ends = [
            float(self.density(namespace, *(x + side * _STEP * d for x, d in zip(at, along, strict=True))))
            for side in (1.0, -1.0)
        ]
        slope = (ends[0] - ends[1]) / (2.0 * _STEP)
        ours = sum(float(np.sum(g * d)) for g, d in zip(gradients, along, strict=True))
        scale = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, along, strict=True))
        off = max(abs(float(value) - wanted) / abs(wanted), 1e-5 * abs(ours - slope) / max(scale, 1e-3))
        return math.inf if math.isnan(off) else off


def _normal(xp: Any, x: Array, mean: Any, deviation: Any) -> Array:
    """The sum of log-densities of normal distributions, without constants."""
    return xp.sum(-0.5 * ((x - mean) / deviation) ** 2 - xp.log(deviation))


# ---- eight schools

_EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _eight_schools(xp: Any, mean: Array, log_scale: Array, offsets: Array) -> Array:
    scale = xp.exp(log_scale)
    effects = mean + scale * offsets
    prior = -0.5 * (mean / 5.0) ** 2 - xp.log1p((scale / 5.0) ** 2) + log_scale
    return prior - 0.5 * xp.sum(offsets**2) - 0.5 * xp.sum(((_EFFECTS - effects) / _ERRORS) ** 2)


# ---- logistic regression

_random = np.random.default_rng(1)
FEATURES = _random.normal(size=(2000, 20))
LABELS = (_random.random(2000) < 1 / (1 + np.exp(-FEATURES @ _random.normal(size=20)))).astype(float)


def _logistic(xp: Any, weights: Array, bias: Array) -> Array:
    scores = xp.matmul(FEATURES, weights) + bias
    likelihood = xp.sum(LABELS * scores - xp.log1p(xp.exp(scores)))
    return likelihood - 0.5 * xp.sum(weights**2) - 0.5 * bias**2


# ---- hierarchical regression with Student's t

OBSERVATIONS, GROUPS = 919, 85
GROUP = _random.integers(0, GROUPS, OBSERVATIONS)
FLOOR = _random.integers(0, 2, OBSERVATIONS).astype(float)
RADON = _random.normal(size=OBSERVATIONS)


def _hierarchical(
    xp: Any,
    mean_a: Array,
    log_scale_a: Array,
    mean_b: Array,
    log_scale_b: Array,
    a: Array,
    b: Array,
    log_scale: Array,
) -> Array:
    scale_a, scale_b, scale = xp.exp(log_scale_a), xp.exp(log_scale_b), xp.exp(log_scale)
    prior = -0.5 * (mean_a / 10.0) ** 2 - 0.5 * (mean_b / 10.0) ** 2
    prior = prior - scale_a + log_scale_a - scale_b + log_scale_b - xp.log1p((scale / 5.0) ** 2) + log_scale
    prior = prior + _normal(xp, a, mean_a, scale_a) + _normal(xp, b, mean_b, scale_b)
    rest = (RADON - (a[GROUP] + b[GROUP] * FLOOR)) / scale
    return prior - 2.5 * xp.sum(xp.log1p(rest * rest / 4.0)) - OBSERVATIONS * log_scale


# ---- varying intercepts, parameters in one vector

_URANIUM = _random.normal(size=GROUPS)


def _varying_intercepts(xp: Any, position: Array) -> Array:
    """Of a vector of all parameters: groups whose intercepts and slopes add up to zero."""
    intercept, slope, by_uranium = position[0], position[1], position[2]
    log_a, log_b, log_scale = position[3], position[4], position[5]
    free_a, free_b = position[6 : 5 + GROUPS], position[5 + GROUPS :]
    a = xp.concatenate([free_a, -xp.sum(free_a)[None]])
    b = xp.concatenate([free_b, -xp.sum(free_b)[None]])
    scale_a, scale_b, scale = xp.exp(log_a), xp.exp(log_b), xp.exp(log_scale)
    prior = xp.sum(-0.5 * position[:3] ** 2) - scale_a + log_a - scale_b + log_b - scale + log_scale
    prior = prior - 0.5 * xp.sum(free_a**2) - 0.5 * xp.sum(free_b**2)
    intercepts = intercept + by_uranium * _URANIUM + scale_a * a
    slopes = slope + scale_b * b
    expected = intercepts[GROUP] + slopes[GROUP] * FLOOR
    return prior + _normal(xp, RADON, expected, scale)


# ---- Gaussian process


def _gaussian_process(points: int) -> Callable[..., Any]:
    random = np.random.default_rng(2)
    place = np.linspace(0.0, 10.0, points)
    observed = np.sin(place) + 0.1 * random.normal(size=points)
    squares = (place[:, None] - place) ** 2
    diagonal = np.eye(points)

    def density(xp: Any, log_length: Array, log_height: Array, log_noise: Array) -> Array:
        length, height, noise = xp.exp(log_length), xp.exp(log_height), xp.exp(log_noise - 1.0)
        covariance = height**2 * xp.exp(-squares / (2.0 * length**2)) + noise**2 * diagonal
        factor = xp.cholesky(covariance)
        rest = xp.solve_triangular(factor, observed)
        likelihood = -0.5 * xp.sum(rest * rest) - xp.sum(xp.log(xp.diagonal(factor)))
        prior = log_length - length - height * height / 8.0 + log_height - noise * noise / 2.0 + log_noise
        return likelihood + prior

    return density


# ---- hidden Markov model

_STATES, _MOMENTS = 4, 20
_COUNTS = _random.poisson(3.0, _MOMENTS).astype(float)


def _hidden_markov(xp: Any, scores: Array, log_rates: Array) -> Array:
    """Poisson counts; the forward recursion, scaled at each step."""
    weights = xp.exp(scores)
    transitions = weights / xp.sum(weights, axis=1)[:, None]
    rates = xp.exp(log_rates + np.arange(_STATES) * 0.5)
    emissions = xp.exp(_COUNTS[:, None] * xp.log(rates) - rates)
    state = emissions[0] / _STATES
    total = -0.5 * xp.sum(scores**2) - 0.5 * xp.sum(log_rates**2)
    for moment in range(1, _MOMENTS):
        scale = xp.sum(state)
        total = total + xp.log(scale)
        state = xp.matmul(state / scale, transitions) * emissions[moment]
    return total + xp.log(xp.sum(state))


# ---- Kalman filter

_OBSERVED = np.cumsum(_random.normal(size=(8, 2)), axis=0)
_MOTION = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
_SEEN = np.eye(2, 4)


def _kalman(xp: Any, log_process: Array, log_noise: Array) -> Array:
    """A point that moves in the plane, seen with noise."""
    process, noise = xp.exp(log_process) * np.eye(4), xp.exp(log_noise) * np.eye(2)
    mean, covariance = np.zeros(4), np.eye(4)
    total = -0.5 * log_process**2 - 0.5 * log_noise**2
    for seen in _OBSERVED:
        mean = xp.matmul(_MOTION, mean)
        covariance = xp.matmul(xp.matmul(_MOTION, covariance), _MOTION.T) + process
        rest = seen - xp.matmul(_SEEN, mean)
        own = xp.matmul(xp.matmul(_SEEN, covariance), _SEEN.T) + noise
        gain = xp.solve(own, xp.matmul(_SEEN, covariance)).T
        total = total - 0.5 * xp.logdet(own) - 0.5 * xp.sum(rest * xp.solve(own, rest[:, None])[:, 0])
        mean = mean + xp.matmul(gain, rest)
        covariance = covariance - xp.matmul(xp.matmul(gain, _SEEN), covariance)
    return total


# ---- mixture of Gaussians

_MIXED = np.concatenate([_random.normal(-2.0, 0.7, 400), _random.normal(1.0, 1.2, 600)])


def _mixture(xp: Any, scores: Array, means: Array, log_scales: Array) -> Array:
    """Five components; the score of the last is zero."""
    every = xp.concatenate([scores, np.zeros(1)])
    log_weights = every - xp.log(xp.sum(xp.exp(every)))
    each = -0.5 * ((_MIXED[:, None] - means) / xp.exp(log_scales)) ** 2 - log_scales + log_weights
    largest = xp.max(each, axis=1)
    likelihood = xp.sum(largest + xp.log(xp.sum(xp.exp(each - largest[:, None]), axis=1)))
    return likelihood - 0.5 * xp.sum(means**2) / 9.0 - 0.5 * xp.sum(log_scales**2) - 0.5 * xp.sum(scores**2)


# ---- ordered probit

_LEVELS = 5
_PREDICTORS = _random.normal(size=(1000, 3))
_LEVEL = _random.integers(0, _LEVELS, 1000)


def _ordered_probit(xp: Any, weights: Array, first: Array, log_steps: Array) -> Array:
    inner = first - 1.0 + xp.concatenate([np.zeros(1), xp.cumsum(xp.exp(log_steps))])
    cuts = xp.concatenate([np.full(1, -20.0), inner, np.full(1, 20.0)])
    scores = xp.matmul(_PREDICTORS, weights)
    above, below = (cuts[_LEVEL + side] - scores for side in (1, 0))
    share = 0.5 * (xp.erf(above / math.sqrt(2.0)) - xp.erf(below / math.sqrt(2.0)))
    prior = -0.5 * xp.sum(weights**2) - 0.5 * first**2 - 0.5 * xp.sum(log_steps**2)
    return prior + xp.sum(xp.log(share))


# ---- Bayesian neural network

_POINTS = _random.normal(size=(200, 10))
_CLASSES = (_POINTS[:, 0] * _POINTS[:, 1] > 0).astype(float)


def _network(xp: Any, first: Array, first_bias: Array, second: Array, bias: Array) -> Array:
    hidden = xp.tanh(xp.matmul(_POINTS, first) + first_bias)
    scores = xp.matmul(hidden, second) + bias
    likelihood = xp.sum(_CLASSES * scores - xp.log1p(xp.exp(scores)))
    squares = xp.sum(first**2) + xp.sum(first_bias**2) + xp.sum(second**2) + bias**2
    return likelihood - 0.5 * squares


def _hand(name: str) -> Callable[[], Callable[..., tuple[Any, ...]]]:
    def made() -> Callable[..., tuple[Any, ...]]:
        from benchmarks.peers import models_by_hand

        found: Callable[..., tuple[Any, ...]] = getattr(models_by_hand, name)
        return found

    return made


_SCALAR: tuple[int, ...] = ()
_GROUPED = (GROUPS,)
MODELS: tuple[Model, ...] = (
    Model("eight schools", 8, (_SCALAR, _SCALAR, (8,)), _eight_schools, _hand("eight_schools")),
    Model("logistic regression", 2000, ((20,), _SCALAR), _logistic, _hand("logistic")),
    Model(
        "hierarchical t",
        OBSERVATIONS,
        (_SCALAR, _SCALAR, _SCALAR, _SCALAR, _GROUPED, _GROUPED, _SCALAR),
        _hierarchical,
        _hand("hierarchical"),
    ),
    Model("varying intercepts", OBSERVATIONS, ((4 + 2 * GROUPS,),), _varying_intercepts),
    Model("Gaussian process 80", 80, (_SCALAR,) * 3, _gaussian_process(80)),
    Model("Gaussian process 400", 400, (_SCALAR,) * 3, _gaussian_process(400)),
    Model("hidden Markov model", _MOMENTS, ((_STATES, _STATES), (_STATES,)), _hidden_markov),
    Model("Kalman filter", 8, (_SCALAR, _SCALAR), _kalman),
    Model("mixture", 1000, ((4,), (5,), (5,)), _mixture),
    Model("ordered probit", 1000, ((3,), _SCALAR, (_LEVELS - 2,)), _ordered_probit),
    Model("neural network", 200, ((10, 16), (16,), (16,), _SCALAR), _network),
)
