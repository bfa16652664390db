"""JAX on the CPU: ``jit``, NumPy arrays in, results waited for and taken as NumPy arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.jax_namespace import Namespace

VERSION = jax.__version__

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    compiled = jax.jit(functools.partial(case.function, Namespace))

    def call(*arrays: np.ndarray) -> Any:
        results = compiled(*arrays)
        return tuple(map(np.asarray, results)) if isinstance(results, tuple) else np.asarray(results)

    return call
