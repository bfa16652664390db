"""Gradients of Gaussian densities through a Cholesky factor: no systems with as many sides as equations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import esat
from esat.ops.linalg.factor import CHOLESKY_PULLBACK, CholeskyPullback
from esat.ops.linalg.solve import SolveTriangular

LA = esat.linalg
N = 40
RNG = np.random.default_rng(6)
PLACES = np.sort(RNG.uniform(0.0, 10.0, N))
ONE, THREE = np.sin(PLACES), RNG.normal(size=(N, 3))


def half_logarithm(factor: Any) -> Any:
    return esat.sum(esat.log(esat.diagonal(factor)))


def by_dot(k: Any, y: Any) -> Any:
    factor = LA.cholesky(k)
    rest = LA.solve_triangular(factor, y, lower=True)
    return -0.5 * esat.dot(rest, rest) - half_logarithm(factor)


def by_solution(k: Any, y: Any) -> Any:
    factor = LA.cholesky(k)
    return -0.5 * esat.dot(y, LA.cho_solve((factor, True), y)) - half_logarithm(factor)


def by_upper_factor(k: Any, y: Any) -> Any:
    factor = LA.cholesky(k, upper=True)
    rest = LA.solve_triangular(factor.T, y, lower=True)
    return -0.5 * esat.sum(rest**2) - half_logarithm(factor)


def weighted(k: Any, y: Any) -> Any:
    factor = LA.cholesky(k)
    rest = LA.solve_triangular(factor, y, lower=True)
    return 0.25 * esat.sum(rest**2) - 2.5 * half_logarithm(factor)


def of_fourth_powers(k: Any, y: Any) -> Any:
    factor = LA.cholesky(k)
    rest = LA.solve_triangular(factor, y, lower=True)
    return esat.sum(rest**4) - half_logarithm(factor)


def compiled(
    density: Callable[..., Any], values: Any, known: bool, mode: str = "fast_run"
) -> tuple[Any, ...]:
    """The gradient by two parameters of the covariance: its function, and what it gives as it is written."""
    length, noise = esat.scalar("length"), esat.scalar("noise")
    x, y = (
        esat.TensorType("float64", shape=one.shape if known else (None,) * one.ndim)(name)
        for one, name in ((PLACES, "x"), (values, "y"))
    )
    covariance = esat.exp(-((x[:, None] - x) ** 2) * esat.exp(length)) + esat.exp(noise) * esat.eye(
        x.shape[0]
    )
    gradient = esat.grad(density(covariance, y), [length, noise])
    inputs = [length, noise, x, y]
    arguments = [np.asarray(0.1), np.asarray(-0.3), PLACES, values]
    function = esat.compile(esat.Graph(inputs, gradient), mode)
    written = esat.evaluate(gradient, dict(zip(inputs, arguments, strict=True)))
    np.testing.assert_allclose(function(*arguments), written, rtol=1e-11)
    return function, function.graph


def large_systems(graph: Any) -> int:
    """How many triangular systems have more right sides than there are vectors."""
    systems = (node.inputs[1] for node in graph.toposort() if isinstance(node.op, SolveTriangular))
    return sum(sides.tensor_type.shape[1] not in (1, 3) for sides in systems)


@pytest.mark.parametrize(
    ("density", "known"),
    [(one, known) for one in (by_solution, by_upper_factor, weighted) for known in (True, False)]
    + [(by_dot, True)],
)
def test_densities_have_gradients_without_large_systems(density: Callable[..., Any], known: bool) -> None:
    _, graph = compiled(density, ONE, known)
    names = [node.op.name for node in graph.toposort()]
    assert large_systems(graph) == 0
    assert names.count("inv_triangular") == 1
    assert names.count("cholesky") == 1


def test_densities_of_several_vectors() -> None:
    _, graph = compiled(weighted, THREE, True)
    assert large_systems(graph) == 0


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict", "o3", "fast_compile", "debug"])
def test_other_gradients_through_a_factor_are_written_out(mode: str) -> None:
    _, graph = compiled(of_fourth_powers, ONE, True, mode)
    assert mode == "fast_compile" or not any(
        isinstance(node.op, CholeskyPullback) for node in graph.toposort()
    )


def test_pullbacks_refuse_what_is_no_factor_and_cotangent() -> None:
    a, b = esat.TensorType("complex128", shape=(3, 3))("a"), esat.TensorType("float64", shape=(3, 2))("b")
    with pytest.raises(esat.DtypeError, match="real"):
        CHOLESKY_PULLBACK(a, a)
    with pytest.raises(esat.ShapeError):
        CHOLESKY_PULLBACK(b, b)
    m, n = esat.matrix("m"), esat.matrix("n")
    with pytest.raises(esat.ShapeError, match="one shape"):
        esat.evaluate([CHOLESKY_PULLBACK(m, n)], {m: np.eye(3), n: np.ones((3, 2))})
