"""JAX on the CPU: ``jit``, NumPy arrays in, results waited for and taken as NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.jax_namespace import Namespace
from benchmarks.peers.model_cases import Model

VERSION = jax.__version__

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)


class ModelNamespace(Namespace):
    """What models need besides."""

    log1p, cumsum, concatenate, stack = jnp.log1p, jnp.cumsum, jnp.concatenate, jnp.stack
    cholesky, solve, diagonal = jnp.linalg.cholesky, jnp.linalg.solve, jnp.diagonal

    @staticmethod
    def solve_triangular(factor: Any, right: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(factor, right, lower=True)

    @staticmethod
    def logdet(matrix: Any) -> Any:
        return jnp.linalg.slogdet(matrix)[1]


def _differentiated(model: Model) -> Callable[..., Any]:
    density = functools.partial(model.density, ModelNamespace)
    both = jax.value_and_grad(density, tuple(range(len(model.shapes))))

    def flat(*arrays: Any) -> Any:
        value, gradients = both(*arrays)
        return (value, *gradients)

    return flat


def prepare(case: Case | Model, dtype: str) -> Callable[..., Any]:
    model = isinstance(case, Model)
    compiled = jax.jit(_differentiated(case) if model else functools.partial(case.function, Namespace))

    def call(*arrays: np.ndarray) -> Any:
        results = compiled(*arrays)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else np.asarray(results)

    return call
