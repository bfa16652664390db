"""Log-densities and gradients as somebody would write them for numba."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from benchmarks.peers.model_cases import (
    FEATURES,
    FLOOR,
    GROUP,
    GROUPS,
    LABELS,
    OBSERVATIONS,
    RADON,
)

_EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
Array = Any


@numba.njit(fastmath=True, cache=True)
def eight_schools(mean_: Array, log_scale_: Array, offsets: Array) -> Array:
    mean, log_scale = mean_.item(), log_scale_.item()
    scale = math.exp(log_scale)
    total = -0.5 * (mean / 5.0) ** 2 - math.log1p((scale / 5.0) ** 2) + log_scale
    by_mean = -mean / 25.0
    by_scale = 1.0 - 2.0 * scale * scale / (25.0 + scale * scale)
    gradient = np.empty(8)
    for i in range(8):
        rest = (_EFFECTS[i] - mean - scale * offsets[i]) / _ERRORS[i]
        total -= 0.5 * offsets[i] ** 2 + 0.5 * rest * rest
        by_mean += rest / _ERRORS[i]
        by_scale += rest / _ERRORS[i] * offsets[i] * scale
        gradient[i] = rest / _ERRORS[i] * scale - offsets[i]
    return np.asarray(total), np.asarray(by_mean), np.asarray(by_scale), gradient


@numba.njit(fastmath=True, cache=True)
def logistic(weights: Array, bias_: Array) -> Array:
    bias = bias_.item()
    count = len(weights)
    gradient = -weights.copy()
    total, by_bias = -0.5 * bias * bias, -bias
    for j in range(count):
        total -= 0.5 * weights[j] ** 2
    scores = FEATURES @ weights
    for i in range(len(FEATURES)):
        score = scores[i] + bias
        power = math.exp(score)
        total += LABELS[i] * score - math.log1p(power)
        rest = LABELS[i] - power / (1.0 + power)
        by_bias += rest
        scores[i] = rest
    gradient += scores @ FEATURES
    return np.asarray(total), gradient, np.asarray(by_bias)


@numba.njit(fastmath=True, cache=True)
def hierarchical(
    mean_a_: Array,
    log_scale_a_: Array,
    mean_b_: Array,
    log_scale_b_: Array,
    a: Array,
    b: Array,
    log_scale_: Array,
) -> Array:
    mean_a, log_scale_a, mean_b, log_scale_b, log_scale = (
        mean_a_.item(),
        log_scale_a_.item(),
        mean_b_.item(),
        log_scale_b_.item(),
        log_scale_.item(),
    )
    scale_a, scale_b, scale = math.exp(log_scale_a), math.exp(log_scale_b), math.exp(log_scale)
    total = -0.005 * (mean_a**2 + mean_b**2) - scale_a - scale_b - math.log1p((scale / 5.0) ** 2) + log_scale
    total += (1 - GROUPS) * (log_scale_a + log_scale_b) - OBSERVATIONS * log_scale
    by_mean_a, by_mean_b = -0.01 * mean_a, -0.01 * mean_b
    by_scale_a, by_scale_b = 1.0 - scale_a - GROUPS, 1.0 - scale_b - GROUPS
    by_scale = 1.0 - 2.0 * scale * scale / (25.0 + scale * scale) - OBSERVATIONS
    by_a, by_b = np.empty(GROUPS), np.empty(GROUPS)
    for j in range(GROUPS):
        rest_a, rest_b = (a[j] - mean_a) / scale_a, (b[j] - mean_b) / scale_b
        total -= 0.5 * rest_a * rest_a + 0.5 * rest_b * rest_b
        by_a[j], by_b[j] = -rest_a / scale_a, -rest_b / scale_b
        by_mean_a += rest_a / scale_a
        by_mean_b += rest_b / scale_b
        by_scale_a += rest_a * rest_a
        by_scale_b += rest_b * rest_b
    for i in range(OBSERVATIONS):
        group = GROUP[i]
        rest = (RADON[i] - a[group] - b[group] * FLOOR[i]) / scale
        square = rest * rest / 4.0
        total -= 2.5 * math.log1p(square)
        slope = 1.25 * rest / (1.0 + square)
        by_scale += slope * rest
        by_a[group] += slope / scale
        by_b[group] += slope / scale * FLOOR[i]
    return (
        np.asarray(total),
        np.asarray(by_mean_a),
        np.asarray(by_scale_a),
        np.asarray(by_mean_b),
        np.asarray(by_scale_b),
        by_a,
        by_b,
        np.asarray(by_scale),
    )
