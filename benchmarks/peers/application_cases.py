"""Formulas of linear algebra as texts of statistics, filtering and optimization have them, and each by hand.

Nineteen are among the application problems of H. Barthels, C. Psarras, P. Bientinesi, "Linnea: automatic
generation of efficient linear algebra programs", 2021. ``n`` is the size; ``n/4`` and ``n/10`` stand for the
smaller ones. They are written as in a text, inverses included; by hand stands what somebody writes who knows
the algebra, LAPACK and which of two equal forms is smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.cases import Input
from benchmarks.peers.laab_cases import Expression

NOISE = 0.1
"""A known variance, or weight of a penalty."""


@dataclass(frozen=True)
class Application(Expression):
    """One formula. Its sizes are known to all: JAX sees them in the arrays, types of others say them."""

    def arrays(self, size: int, dtype: str) -> tuple[np.ndarray, ...]:
        """Inputs that keep condition numbers small, so that results of good forms agree."""
        arrays = super().arrays(size, dtype)
        for one, array in zip(self.inputs, arrays, strict=True):
            if array.ndim == 2:
                array[...] /= np.sqrt(array.shape[1])
                if one.structure == "positive_definite":
                    array[...] = array @ array.T
                if array.shape[0] == array.shape[1] and one.low < 0.0:
                    array[np.diag_indices(len(array))] += 2.0
        return arrays

    def static_shapes(self) -> tuple[tuple[int | None, ...], ...]:
        return (
            super().static_shapes() if self.size is None else tuple(i.shape(self.size) for i in self.inputs)
        )


# ---- inputs


def _input(*fractions: int, structure: str | None = None, low: float = -1.0) -> Input:
    return Input(lambda n: tuple(n // fraction for fraction in fractions), low, structure=structure)


VECTOR, SHORT = _input(1), _input(4)
POSITIVE, SHORT_POSITIVE = (_input(one, low=0.5, structure="positive") for one in (1, 4))
GENERAL, TALL, WIDE, SKETCH, COLUMNS = _input(1, 1), _input(1, 4), _input(4, 1), _input(1, 10), _input(1, 20)
SMALL, SMALL_COLUMNS = _input(4, 4), _input(4, 20)
GRAPH = _input(1, 1, low=0.0)
DEFINITE, SMALL_DEFINITE = (_input(one, one, structure="positive_definite") for one in (1, 4))
LOWER, SMALL_LOWER = (_input(one, one, structure="lower_triangular") for one in (1, 4))


# ---- LAPACK, for matrices by rows: the transpose of such a one is by columns


def _lapack(names: tuple[str, ...], *arrays: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    return get_lapack_funcs(names, arrays)


def _solved(definite: Any, sides: Any) -> Any:
    """``inv(definite) @ sides``; the matrix is written over."""
    (posv,) = _lapack(("posv",), definite, sides)
    return posv(definite.T, sides, lower=1, overwrite_a=1)[1]


def _factor(definite: Any) -> Any:
    """The lower Cholesky factor of what may not be written over."""
    (potrf,) = _lapack(("potrf",), definite)
    return potrf(definite.T, lower=1, clean=0)[0]


def _divided(lower: Any, sides: Any) -> Any:
    """``inv(lower) @ sides``."""
    from scipy.linalg import solve_triangular

    return solve_triangular(lower, sides, lower=True, check_finite=False)


def _times_divided(sides: Any, lower: Any) -> Any:
    """``sides @ inv(lower)``."""
    from scipy.linalg import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), (lower, sides))
    return trsm(1.0, lower.T, sides.T, side=0, lower=0).T


def _with_diagonal(matrix: Any, number: Any) -> Any:
    matrix.flat[:: len(matrix) + 1] += number
    return matrix


def _eye(np: Any, matrix: Any, axis: int = 0) -> Any:
    return np.eye(matrix.shape[axis], dtype=matrix.dtype)


# ---- the formulas


def _least_squares(np: Any, x: Any, y: Any) -> Any:
    return np.linalg.inv(x.T @ x) @ x.T @ y


def _generalized(np: Any, x: Any, m: Any, y: Any) -> Any:
    return np.linalg.inv(x.T @ np.linalg.inv(m) @ x) @ x.T @ np.linalg.inv(m) @ y


def _generalized_by_hand(x: Any, m: Any, y: Any) -> Any:
    factor = _factor(m)
    scaled, right = _divided(factor, x), _divided(factor, y)
    return _solved(scaled.T @ scaled, scaled.T @ right)


def _constrained(np: Any, w: Any, a: Any, b: Any, x: Any) -> Any:
    return np.diag(w) @ a.T @ np.linalg.inv(a @ np.diag(w) @ a.T) @ (b - a @ x)


def _constrained_by_hand(w: Any, a: Any, b: Any, x: Any) -> Any:
    scaled = a * np.sqrt(w)
    return w * (a.T @ _solved(scaled @ scaled.T, b - a @ x))


def _signal(np: Any, a: Any, b: Any, r: Any, levels: Any, y: Any) -> Any:
    product = np.linalg.inv(a).T @ b.T @ b @ np.linalg.inv(a)
    return np.linalg.inv(product + r.T @ np.diag(levels) @ r) @ product @ y


def _signal_by_hand(a: Any, b: Any, r: Any, levels: Any, y: Any) -> Any:
    (gesv,) = _lapack(("gesv",), a, b)
    quotient = gesv(a.T, b.T)[2].T
    weighted = r * np.sqrt(levels)[:, None]
    right = quotient.T @ (quotient @ y)
    return _solved(quotient.T @ quotient + weighted.T @ weighted, right)


def _blocks(np: Any, l00: Any, l10: Any, l11: Any, l20: Any, l21: Any, l22: Any) -> Any:
    inv = np.linalg.inv
    return (
        l10 @ inv(l00),
        l20 + inv(l22) @ l21 @ inv(l11) @ l10,
        inv(l11),
        -inv(l22) @ l21,
    )


def _blocks_by_hand(l00: Any, l10: Any, l11: Any, l20: Any, l21: Any, l22: Any) -> Any:
    (trtri,) = _lapack(("trtri",), l11)
    last = _divided(l22, l21)
    return (
        _times_divided(l10, l00),
        l20 + last @ _divided(l11, l10),
        trtri(l11.T, lower=0)[0].T,
        -last,
    )


def _ensemble(np: Any, x: Any, b: Any, h: Any, r: Any, y: Any) -> Any:
    inv = np.linalg.inv
    return x + inv(inv(b) + h.T @ inv(r) @ h) @ h.T @ inv(r) @ (y - h @ x)


def _ensemble_by_hand(x: Any, b: Any, h: Any, r: Any, y: Any) -> Any:
    across = h @ b
    return x + across.T @ _solved(across @ h.T + r, y - h @ x)


def _perturbations(np: Any, x: Any, s: Any, v: Any, r: Any, y: Any, h: Any) -> Any:
    return x + s @ v.T @ np.linalg.inv(r + v @ v.T) @ (y - h @ x)


def _perturbations_by_hand(x: Any, s: Any, v: Any, r: Any, y: Any, h: Any) -> Any:
    return x + s @ (v.T @ _solved(v @ v.T + r, y - h @ x))


def _restored(np: Any, h: Any, y: Any, v: Any, u: Any) -> Any:
    return np.linalg.inv(h.T @ h + NOISE * _eye(np, h)) @ (h.T @ y + NOISE * (v - u))


def _restored_by_hand(h: Any, y: Any, v: Any, u: Any) -> Any:
    return _solved(_with_diagonal(h.T @ h, NOISE), h.T @ y + NOISE * (v - u))


def _projected(np: Any, h: Any, y: Any, x: Any) -> Any:
    pseudoinverse = h.T @ np.linalg.inv(h @ h.T)
    return pseudoinverse @ y + (_eye(np, h, 1) - pseudoinverse @ h) @ x


def _projected_by_hand(h: Any, y: Any, x: Any) -> Any:
    return x + h.T @ _solved(h @ h.T, y - h @ x)


def _sketched(np: Any, x: Any, a: Any, w: Any, s: Any) -> Any:
    inverse = np.linalg.inv(s.T @ a @ w @ a.T @ s)
    return x + w @ a.T @ s @ inverse @ s.T @ (_eye(np, a) - a @ x)


def _sketched_by_hand(x: Any, a: Any, w: Any, s: Any) -> Any:
    thin = a.T @ s
    weighted = w @ thin
    return x + weighted @ _solved(thin.T @ weighted, s.T - thin.T @ x)


def _block_update(np: Any, x: Any, a: Any, s: Any) -> Any:
    m = s @ np.linalg.inv(s.T @ a @ s) @ s.T
    return m + (_eye(np, a) - m @ a) @ x @ (_eye(np, a) - a @ m)


def _block_update_by_hand(x: Any, a: Any, s: Any) -> Any:
    across = a @ s
    half = _solved(s.T @ across, s.T)
    left = x - s @ ((half @ a) @ x)
    return left + (s - left @ across) @ half


def _stochastic(np: Any, b: Any, a: Any, w: Any) -> Any:
    inner = np.linalg.inv(9.0 * _eye(np, w, 1) + w.T @ a @ b @ a.T @ w)
    return (10.0 / 9.0) * b @ (_eye(np, b) - a.T @ w @ inner @ w.T @ a @ b)


def _stochastic_by_hand(b: Any, a: Any, w: Any) -> Any:
    thin = w.T @ a
    across = thin @ b
    inner = _with_diagonal(across @ thin.T, 9.0)
    return (10.0 / 9.0) * (b - across.T @ _solved(inner, across))


def _tikhonov(np: Any, a: Any, g: Any, b: Any) -> Any:
    return np.linalg.inv(a.T @ a + g.T @ g) @ a.T @ b


def _tikhonov_by_hand(a: Any, g: Any, b: Any) -> Any:
    return _solved(a.T @ a + g.T @ g, a.T @ b)


def _ridge(np: Any, a: Any, b: Any) -> Any:
    return np.linalg.inv(a.T @ a + NOISE * _eye(np, a, 1)) @ a.T @ b


def _ridge_by_hand(a: Any, b: Any) -> Any:
    return a.T @ _solved(_with_diagonal(a @ a.T, NOISE), b)


def _weighted_tikhonov(np: Any, a: Any, p: Any, q: Any, b: Any, x: Any) -> Any:
    return np.linalg.inv(a.T @ p @ a + q) @ (a.T @ p @ b + q @ x)


def _weighted_tikhonov_by_hand(a: Any, p: Any, q: Any, b: Any, x: Any) -> Any:
    weighted = p @ a
    return _solved(a.T @ weighted + q, weighted.T @ b + q @ x)


def _lmmse(np: Any, x: Any, c: Any, a: Any, z: Any, y: Any) -> Any:
    return c @ a.T @ np.linalg.inv(a @ c @ a.T + z) @ (y - a @ x) + x


def _lmmse_by_information(np: Any, x: Any, c: Any, a: Any, z: Any, y: Any) -> Any:
    inv = np.linalg.inv
    return inv(a.T @ inv(z) @ a + inv(c)) @ a.T @ inv(z) @ (y - a @ x) + x


def _lmmse_by_hand(x: Any, c: Any, a: Any, z: Any, y: Any) -> Any:
    across = a @ c
    return across.T @ _solved(across @ a.T + z, y - a @ x) + x


def _kalman_gain(np: Any, p: Any, h: Any, r: Any) -> Any:
    return p @ h.T @ np.linalg.inv(h @ p @ h.T + r)


def _kalman_gain_by_hand(p: Any, h: Any, r: Any) -> Any:
    across = h @ p
    return _solved(across @ h.T + r, across).T


def _kalman_update(np: Any, x: Any, p: Any, h: Any, r: Any, z: Any) -> Any:
    gain = _kalman_gain(np, p, h, r)
    return x + gain @ (z - h @ x), (_eye(np, p) - gain @ h) @ p


def _kalman_update_by_hand(x: Any, p: Any, h: Any, r: Any, z: Any) -> Any:
    across = h @ p
    factor = _factor(across @ h.T + r)
    scaled = _divided(factor, across)
    return x + scaled.T @ _divided(factor, z - h @ x), p - scaled.T @ scaled


def _gaussian(np: Any, y: Any, s: Any) -> Any:
    return -0.5 * (y @ np.linalg.inv(s) @ y) - 0.5 * np.linalg.slogdet(s)[1]


def _gaussian_by_hand(y: Any, s: Any) -> Any:
    factor = _factor(s)
    scaled = _divided(factor, y)
    return -0.5 * (scaled @ scaled) - np.log(np.diagonal(factor)).sum()


def _distances(np: Any, x: Any, s: Any) -> Any:
    return ((x @ np.linalg.inv(s)) * x).sum(axis=1)


def _distances_by_hand(x: Any, s: Any) -> Any:
    scaled = _divided(_factor(s), x.T)
    return np.einsum("ij,ij->j", scaled, scaled)


def _smoothed(np: Any, graph: Any, x: Any) -> Any:
    scale = np.diag(1.0 / np.sqrt(graph.sum(axis=1)))
    return scale @ graph @ scale @ x


def _smoothed_by_hand(graph: Any, x: Any) -> Any:
    scale = (1.0 / np.sqrt(graph.sum(axis=1)))[:, None]
    return scale * (graph @ (scale * x))


def _between_diagonals(np: Any, u: Any, a: Any, v: Any, b: Any) -> Any:
    return np.diag(u) @ a @ np.diag(v) @ b


def _between_diagonals_by_hand(u: Any, a: Any, v: Any, b: Any) -> Any:
    return (u[:, None] * a) @ (v[:, None] * b)


def _leverages(np: Any, x: Any) -> Any:
    return np.diag(x @ np.linalg.inv(x.T @ x) @ x.T)


def _leverages_by_hand(x: Any) -> Any:
    scaled = _divided(_factor(x.T @ x), x.T)
    return np.einsum("ij,ij->j", scaled, scaled)


def _low_rank_density(np: Any, u: Any) -> Any:
    return np.linalg.slogdet(NOISE * _eye(np, u) + u @ u.T)[1]


def _low_rank_density_by_hand(u: Any) -> Any:
    factor = _factor(_with_diagonal(u.T @ u, NOISE))
    rest = (u.shape[0] - u.shape[1]) * np.log(NOISE)
    return (2.0 * np.log(np.diagonal(factor)).sum() + rest).astype(u.dtype)


def _low_rank(np: Any, d: Any, u: Any, b: Any) -> Any:
    return np.linalg.inv(np.diag(d) + u @ u.T) @ b


def _low_rank_by_hand(d: Any, u: Any, b: Any) -> Any:
    scaled, right = u / d[:, None], b / d
    return right - scaled @ _solved(_with_diagonal(u.T @ scaled, 1.0), u.T @ right)


def _newton(np: Any, x: Any, y: Any, w: Any) -> Any:
    p = 1.0 / (1.0 + np.exp(-(x @ w)))
    return np.linalg.inv(x.T @ np.diag(p * (1.0 - p)) @ x) @ x.T @ (y - p)


def _newton_by_hand(x: Any, y: Any, w: Any) -> Any:
    p = 1.0 / (1.0 + np.exp(-(x @ w)))
    weighted = x * np.sqrt(p * (1.0 - p))[:, None]
    return _solved(weighted.T @ weighted, x.T @ (y - p))


def _application(name: str, function: Callable[..., Any], by_hand: Callable[..., Any], *inputs: Input) -> Any:
    return Application(name, function, inputs, by_hand=by_hand)


APPLICATIONS: tuple[Application, ...] = (
    _application("least squares", _least_squares, lambda x, y: _solved(x.T @ x, x.T @ y), TALL, VECTOR),
    _application("generalized least squares", _generalized, _generalized_by_hand, TALL, DEFINITE, VECTOR),
    _application("constrained optimum", _constrained, _constrained_by_hand, POSITIVE, WIDE, SHORT, VECTOR),
    _application("signal restoration", _signal, _signal_by_hand, GENERAL, GENERAL, GENERAL, POSITIVE, VECTOR),
    _application(
        "triangular inverse",
        _blocks,
        _blocks_by_hand,
        *(SMALL_LOWER, TALL, LOWER, SMALL, WIDE, SMALL_LOWER),
    ),
    _application(
        "ensemble Kalman",
        _ensemble,
        _ensemble_by_hand,
        COLUMNS,
        DEFINITE,
        WIDE,
        SMALL_DEFINITE,
        SMALL_COLUMNS,
    ),
    _application(
        "ensemble, perturbations",
        _perturbations,
        _perturbations_by_hand,
        *(COLUMNS, _input(1, 10), _input(4, 10), SMALL_DEFINITE, SMALL_COLUMNS, WIDE),
    ),
    _application("image restoration", _restored, _restored_by_hand, GENERAL, VECTOR, VECTOR, VECTOR),
    _application("image projection", _projected, _projected_by_hand, WIDE, SHORT, VECTOR),
    _application("randomized inverse", _sketched, _sketched_by_hand, GENERAL, GENERAL, DEFINITE, SKETCH),
    _application("randomized block update", _block_update, _block_update_by_hand, GENERAL, DEFINITE, SKETCH),
    _application("stochastic Newton", _stochastic, _stochastic_by_hand, DEFINITE, GENERAL, SKETCH),
    _application("Tikhonov", _tikhonov, _tikhonov_by_hand, TALL, SMALL, VECTOR),
    _application("Tikhonov, wide", _ridge, _ridge_by_hand, WIDE, SHORT),
    _application(
        "Tikhonov, weighted",
        _weighted_tikhonov,
        _weighted_tikhonov_by_hand,
        *(TALL, DEFINITE, SMALL_DEFINITE, VECTOR, SHORT),
    ),
    _application("LMMSE", _lmmse, _lmmse_by_hand, VECTOR, DEFINITE, WIDE, SMALL_DEFINITE, SHORT),
    _application(
        "LMMSE, information form",
        _lmmse_by_information,
        _lmmse_by_hand,
        *(VECTOR, DEFINITE, WIDE, SMALL_DEFINITE, SHORT),
    ),
    _application("Kalman gain", _kalman_gain, _kalman_gain_by_hand, DEFINITE, WIDE, SMALL_DEFINITE),
    _application(
        "Kalman update", _kalman_update, _kalman_update_by_hand, VECTOR, DEFINITE, WIDE, SMALL_DEFINITE, SHORT
    ),
    _application("multivariate normal", _gaussian, _gaussian_by_hand, VECTOR, DEFINITE),
    _application("Mahalanobis distances", _distances, _distances_by_hand, GENERAL, DEFINITE),
    _application("graph smoothing", _smoothed, _smoothed_by_hand, GRAPH, COLUMNS),
    _application(
        "between diagonals", _between_diagonals, _between_diagonals_by_hand, VECTOR, GENERAL, VECTOR, GENERAL
    ),
    _application("leverages", _leverages, _leverages_by_hand, TALL),
    _application("log-determinant, low rank", _low_rank_density, _low_rank_density_by_hand, SKETCH),
    _application("diagonal and low rank", _low_rank, _low_rank_by_hand, POSITIVE, SKETCH, VECTOR),
    _application("logistic Newton step", _newton, _newton_by_hand, TALL, VECTOR, SHORT),
)
"""In the order of tables."""
