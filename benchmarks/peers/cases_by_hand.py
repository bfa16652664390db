"""Programs as somebody would write them for numba: loops that read their arrays once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

Array = Any
_ROOT_OF_HALF = math.sqrt(0.5)
_compiled = numba.njit(fastmath=True, cache=True)


@_compiled
def linear(a: Array, x: Array, b: Array) -> Array:
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = a[i] * x[i] + b[i]
    return result


@_compiled
def mixed(x: Array, y: Array, z: Array) -> Array:
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = math.tanh(x[i]) * y[i] + math.exp(-z[i] * z[i] / 2)
    return result


@_compiled
def softmax(x: Array) -> Array:
    result = np.empty_like(x)
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            result[i, j] = math.exp(x[i, j] - largest)
            total += result[i, j]
        for j in range(x.shape[1]):
            result[i, j] /= total
    return result


@_compiled
def black_scholes(price: Array, strike: Array, time: Array) -> Array:
    call, put = np.empty_like(price), np.empty_like(price)
    for i in range(price.size):
        deviation = 0.3 * math.sqrt(time[i])
        d1 = (math.log(price[i] / strike[i]) + (0.02 + 0.3 * 0.3 / 2) * time[i]) / deviation
        d2 = d1 - deviation
        discounted = strike[i] * math.exp(-0.02 * time[i])
        below1, below2 = 0.5 * (1 + math.erf(d1 * _ROOT_OF_HALF)), 0.5 * (1 + math.erf(d2 * _ROOT_OF_HALF))
        call[i] = price[i] * below1 - discounted * below2
        put[i] = call[i] - price[i] + discounted
    return call, put


@_compiled
def pairwise_distances(x: Array, y: Array) -> Array:
    result = np.empty((len(x), len(y)), x.dtype)
    for i in range(len(x)):
        for j in range(len(y)):
            total = 0.0
            for k in range(x.shape[1]):
                rest = x[i, k] - y[j, k]
                total += rest * rest
            result[i, j] = math.sqrt(total)
    return result


@_compiled
def training_step(x: Array, target: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    hidden = x @ w1
    for i in range(hidden.shape[0]):
        for j in range(hidden.shape[1]):
            hidden[i, j] = math.tanh(hidden[i, j] + b1[0, j])
    slope = hidden @ w2
    new_b2 = b2.copy()
    for i in range(slope.shape[0]):
        for j in range(slope.shape[1]):
            slope[i, j] = 2 * (slope[i, j] + b2[0, j] - target[i, j]) / 1000
            new_b2[0, j] -= 0.01 * slope[i, j]
    back = slope @ w2.T
    new_b1 = b1.copy()
    for i in range(back.shape[0]):
        for j in range(back.shape[1]):
            back[i, j] *= 1 - hidden[i, j] * hidden[i, j]
            new_b1[0, j] -= 0.01 * back[i, j]
    return w1 - 0.01 * (x.T @ back), new_b1, w2 - 0.01 * (hidden.T @ slope), new_b2


@_compiled
def log_density(x: Array, mean: Array, deviation: Array) -> Array:
    total = 0.0
    for i in range(x.size):
        scaled = (x[i] - mean[i]) / deviation[i]
        total += -0.5 * scaled * scaled - math.log(deviation[i]) - 0.5 * math.log(2 * math.pi)
    return np.asarray(total)


BY_HAND: Mapping[str, Callable[..., Any]] = {
    "a*x+b": linear,
    "tanh(x)*y+exp(-z*z/2)": mixed,
    "softmax": softmax,
    "Black-Scholes": black_scholes,
    "pairwise distances": pairwise_distances,
    "MLP training step": training_step,
    "Gaussian log-density": log_density,
}
"""By the names of :data:`benchmarks.peers.cases.CASES`."""
