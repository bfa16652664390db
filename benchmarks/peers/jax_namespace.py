"""JAX's functions as cases name them, whatever JAX runs on."""

from __future__ import annotations

import jax
import jax.numpy as jnp


class Namespace:
    """``jax.numpy``'s functions, and ``erf``."""

    exp, log, sqrt, tanh, abs = jnp.exp, jnp.log, jnp.sqrt, jnp.tanh, jnp.abs
    maximum, where, matmul = jnp.maximum, jnp.where, jnp.matmul
    sum, mean, max = jnp.sum, jnp.mean, jnp.max
    linalg, eye, diag = jnp.linalg, jnp.eye, jnp.diag
    erf = jax.scipy.special.erf
