"""JAX on the CPU: ``jit``, NumPy arrays in, results waited for and taken as NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.cases import Case

VERSION = jax.__version__

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)


class Namespace:
    """``jax.numpy``'s functions, and ``erf``."""

    exp, log, sqrt, tanh, abs = jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jnp.abs
    maximum, where, matmul = jnp.maximum, jnp.where, jnp.matmul
    sum, mean, max = jnp.sum, jnp.mean, jnp.max
    erf = jax.scipy.special.erf


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    compiled = jax.jit(functools.partial(case.function, Namespace))

    def call(*arrays: np.ndarray) -> Any:
        results = compiled(*arrays)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else np.asarray(results)

    return call
