"""The benchmark's cases: functions over a namespace of NumPy's names, and their inputs.

A function is called with a contender's namespace first. The namespace has ``exp log sqrt tanh erf abs
maximum where matmul`` and ``sum mean max`` with ``axis`` and ``keepdims``; arrays have NumPy's operators,
``[:, None]`` and ``.T``. Nothing is written the way one contender likes best: formulas stand as in a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any

import numpy as np

Shape = tuple[int, ...]

_CACHE_LINE, _HUGE_PAGE = 64, 1 << 21

FEATURES = 64
HIDDEN = 64
CLASSES = 10
DIMENSIONS = 8


@dataclass(frozen=True)
class Input:
    """One input of a case.

    Attributes
    ----------
    shape
        Its shape for a size n.
    low, high
        Values are uniform between them.
    structure
        The fact about the matrix that esat is told, by the name that ``esat.assume`` takes.
    """

    shape: Callable[[int], Shape]
    low: float = -1.0
    high: float = 1.0
    structure: str | None = None


@dataclass(frozen=True)
class Case:
    """One program, for any size.

    Attributes
    ----------
    name
        What tables call it.
    function
        ``function(namespace, *arrays)``: an array, or a tuple of arrays.
    inputs
        What it is called with.
    flops
        Floating-point operations of its matrix products for a size n; None where it has none.
    largest
        Size above which the case says nothing new.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...]
    flops: Callable[[int], float] | None = None
    largest: int = 10**7

    def at(self, size: int) -> Case:
        """The case as contenders are to prepare it for a size: most programs are for all sizes."""
        return self

    def arrays(self, size: int, dtype: str) -> tuple[np.ndarray, ...]:
        """Inputs for a size; the same in every process."""
        generator = np.random.default_rng(size)
        return tuple(_structured(one, _aligned(generator, one, size, dtype)) for one in self.inputs)

    def static_shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """Shapes as a program for all sizes knows them: 1 where an axis is always 1, else None."""
        pairs = [(one.shape(100), one.shape(10_000)) for one in self.inputs]
        return tuple(
            tuple(1 if small == large == 1 else None for small, large in zip(*pair, strict=True))
            for pair in pairs
        )


def _structured(one: Input, array: np.ndarray) -> np.ndarray:
    """The array with zeros where its structure has them, in place."""
    above = {"lower_triangular": 0, "tridiagonal": 1}
    if one.structure in above:
        array[np.triu_indices(len(array), above[one.structure] + 1)] = 0
        if one.structure == "tridiagonal":
            array[np.tril_indices(len(array), -2)] = 0
    return array


def _aligned(generator: np.random.Generator, one: Input, size: int, dtype: str) -> np.ndarray:
    """Uniform values on a cache line's boundary, where every contender can take them without a copy.

    Large ones on a huge page's: how much of an array huge pages hold makes up to a fifth of its reading time,
    and is to be the same in every process.
    """
    shape = one.shape(size)
    length = prod(shape) * np.dtype(dtype).itemsize
    boundary = _CACHE_LINE if length < 2 * _HUGE_PAGE else _HUGE_PAGE
    memory = np.empty(length + boundary, np.uint8)
    start = -memory.ctypes.data % boundary
    array = memory[start : start + length].view(dtype).reshape(shape)
    array[...] = generator.random(shape) * (one.high - one.low) + one.low
    return array


def flat(n: int) -> Shape:
    return (n,)


def square(n: int) -> Shape:
    return (isqrt(n), isqrt(n))


def side(n: int) -> Shape:
    return (isqrt(n),)


def column(n: int) -> Shape:
    return (isqrt(n), 1)


def samples(n: int) -> int:
    return max(2, n // FEATURES)


def linear(xp: Any, a: Any, x: Any, b: Any) -> Any:
    return a * x + b


def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def mixed(xp: Any, x: Any, y: Any, z: Any) -> Any:
    return xp.tanh(x) * y + xp.exp(-z * z / 2)


def logsumexp(xp: Any, x: Any) -> Any:
    largest = xp.max(x, axis=1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - largest), axis=1, keepdims=True)) + largest


def softmax(xp: Any, x: Any) -> Any:
    powers = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return powers / xp.sum(powers, axis=1, keepdims=True)


def layernorm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - xp.mean(x, axis=1, keepdims=True)
    variance = xp.mean(centred * centred, axis=1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5) * scale + shift


def mean_variance(xp: Any, x: Any) -> Any:
    mean = xp.mean(x)
    return mean, xp.mean((x - mean) ** 2)


def black_scholes(xp: Any, price: Any, strike: Any, time: Any) -> Any:
    rate, volatility = 0.02, 0.3
    deviation = volatility * xp.sqrt(time)
    d1 = (xp.log(price / strike) + (rate + volatility * volatility / 2) * time) / deviation
    d2 = d1 - deviation
    discounted = strike * xp.exp(-rate * time)
    call = price * _normal(xp, d1) - discounted * _normal(xp, d2)
    return call, call - price + discounted


def _normal(xp: Any, x: Any) -> Any:
    """The normal distribution function."""
    return 0.5 * (1 + xp.erf(x * math.sqrt(0.5)))


def squared_distance(xp: Any, x: Any, y: Any) -> Any:
    return xp.sum((x - y) ** 2)


def row_and_column(xp: Any, matrix: Any, row: Any, column: Any) -> Any:
    return (matrix + row) * column


def outer_sum(xp: Any, x: Any, y: Any) -> Any:
    return x[:, None] + y[None, :]


def polynomial(xp: Any, x: Any) -> Any:
    coefficients = (0.3, -1.2, 0.7, 2.0, -0.4, 0.9, -1.1, 0.2)
    return sum((c * x**power for power, c in enumerate(coefficients[1:], 1)), coefficients[0])


def iteration(xp: Any, real: Any, imaginary: Any) -> Any:
    """Twenty steps of z**2 + c, as for the Mandelbrot set but without a test for divergence."""
    a, b = real, imaginary
    for _ in range(20):
        a, b = a * a - b * b + real, 2 * a * b + imaginary
    return a * a + b * b


def pairwise_distances(xp: Any, x: Any, y: Any) -> Any:
    return xp.sqrt(xp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=2))


def perceptron(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return xp.matmul(xp.tanh(xp.matmul(x, w1) + b1), w2) + b2


def training_step(xp: Any, x: Any, target: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """One step of gradient descent on the squared error, written out; the new weights."""
    hidden = xp.tanh(xp.matmul(x, w1) + b1)
    slope = 2 * (xp.matmul(hidden, w2) + b2 - target) / 1000
    back = xp.matmul(slope, w2.T) * (1 - hidden * hidden)
    rate = 0.01
    return (
        w1 - rate * xp.matmul(x.T, back),
        b1 - rate * xp.sum(back, axis=0, keepdims=True),
        w2 - rate * xp.matmul(hidden.T, slope),
        b2 - rate * xp.sum(slope, axis=0, keepdims=True),
    )


def log_density(xp: Any, x: Any, mean: Any, deviation: Any) -> Any:
    scaled = (x - mean) / deviation
    return xp.sum(-0.5 * scaled * scaled - xp.log(deviation) - 0.5 * math.log(2 * math.pi))


def logistic_gradient(xp: Any, x: Any, y: Any, w: Any) -> Any:
    probability = 1 / (1 + xp.exp(-xp.matmul(x, w)))
    return xp.matmul(x.T, probability - y) + 0.01 * w


def twenty_kernels(xp: Any, x: Any) -> Any:
    """Ten times: centre the columns, then divide by the length of the rows; no two fuse."""
    for _ in range(10):
        x = x - xp.mean(x, axis=0, keepdims=True)
        x = x / xp.sqrt(1 + xp.sum(x * x, axis=1, keepdims=True))
    return x


def _products(*terms: tuple[int, int]) -> Callable[[int], float]:
    """Operations of products of n // FEATURES rows with matrices of the given shapes."""
    return lambda n: 2.0 * samples(n) * sum(rows * columns for rows, columns in terms)


_WEIGHTS = (
    Input(lambda n: (FEATURES, HIDDEN), -0.2, 0.2),
    Input(lambda n: (1, HIDDEN)),
    Input(lambda n: (HIDDEN, CLASSES), -0.2, 0.2),
    Input(lambda n: (1, CLASSES)),
)
_X = Input(lambda n: (samples(n), FEATURES))
_FIRST, _SECOND = (FEATURES, HIDDEN), (HIDDEN, CLASSES)

CASES: tuple[Case, ...] = (
    Case("a*x+b", linear, (Input(flat),) * 3),
    Case("sigmoid", sigmoid, (Input(flat, -8, 8),)),
    Case("tanh(x)*y+exp(-z*z/2)", mixed, (Input(flat, -3, 3),) * 3),
    Case("logsumexp", logsumexp, (Input(square, -5, 5),)),
    Case("softmax", softmax, (Input(square, -5, 5),)),
    Case("layernorm", layernorm, (Input(square), Input(side), Input(side))),
    Case("mean+var", mean_variance, (Input(flat),)),
    Case("Black-Scholes", black_scholes, (Input(flat, 50, 150), Input(flat, 50, 150), Input(flat, 0.1, 2))),
    Case("sum((x-y)**2)", squared_distance, (Input(flat),) * 2),
    Case("(M+r)*c", row_and_column, (Input(square), Input(side), Input(column))),
    Case("outer sum", outer_sum, (Input(side),) * 2),
    Case("polynomial", polynomial, (Input(flat),)),
    Case("20 iterations", iteration, (Input(flat, -0.3, 0.2),) * 2),
    Case("pairwise distances", pairwise_distances, (Input(lambda n: (isqrt(n), DIMENSIONS)),) * 2),
    Case("MLP forward", perceptron, (_X, *_WEIGHTS), _products(_FIRST, _SECOND)),
    Case(
        "MLP training step",
        training_step,
        (_X, Input(lambda n: (samples(n), CLASSES)), *_WEIGHTS),
        _products(_FIRST, _FIRST, _SECOND, _SECOND, _SECOND),
    ),
    Case("Gaussian log-density", log_density, (Input(flat), Input(flat), Input(flat, 0.5, 2))),
    Case(
        "logistic gradient",
        logistic_gradient,
        (_X, Input(lambda n: (samples(n), 1), 0, 1), Input(lambda n: (FEATURES, 1))),
        _products((FEATURES, 1), (FEATURES, 1)),
    ),
    Case("20 kernels", twenty_kernels, (Input(square),)),
)
