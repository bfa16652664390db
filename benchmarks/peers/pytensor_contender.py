"""PyTensor in its default mode, without checks of the arguments' types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt
from pytensor.tensor import linalg

from benchmarks.peers.cases import Case
from benchmarks.peers.model_cases import Model

VERSION = f"{pytensor.__version__} ({pytensor.config.linker} linker)"


class Namespace:
    """``pytensor.tensor``'s functions; reductions of one axis as NumPy has them."""

    exp, log, sqrt, tanh, erf, abs = pt.exp, pt.log, pt.sqrt, pt.tanh, pt.erf, pt.abs
    maximum, where, matmul = pt.maximum, pt.where, pt.matmul
    sum, mean, max = pt.sum, pt.mean, pt.max
    linalg, eye, diag = linalg, pt.eye, pt.diag


class ModelNamespace(Namespace):
    """What models need besides."""

    log1p, cumsum, concatenate, stack = pt.log1p, pt.cumsum, pt.concatenate, pt.stack
    cholesky, solve, diagonal = linalg.cholesky, linalg.solve, pt.diagonal

    @staticmethod
    def solve_triangular(factor: Any, right: Any) -> Any:
        return linalg.solve_triangular(factor, pt.as_tensor(right), lower=True, b_ndim=1)

    @staticmethod
    def logdet(matrix: Any) -> Any:
        return linalg.slogdet(matrix)[1]


def _differentiated(model: Model, dtype: str) -> Callable[..., Any]:
    inputs = [pt.tensor(f"x{place}", dtype=dtype, shape=shape) for place, shape in enumerate(model.shapes)]
    density = model.density(ModelNamespace, *inputs)
    outputs = [density, *pytensor.grad(density, inputs)]
    return pytensor.function(
        [pytensor.In(variable, borrow=True) for variable in inputs],
        [pytensor.Out(one, borrow=True) for one in outputs],
        mode="NUMBA",
        trust_input=True,
    )


def prepare(case: Case | Model, dtype: str) -> Callable[..., Any]:
    if isinstance(case, Model):
        return _differentiated(case, dtype)
    # Without this, products with Python's numbers of float32 arrays would be float64.
    pytensor.config.floatX = dtype
    inputs = [
        pt.tensor(f"x{place}", dtype=dtype, shape=shape) for place, shape in enumerate(case.static_shapes())
    ]
    results = case.function(Namespace, *inputs)
    several = isinstance(results, tuple)
    outputs = [pytensor.Out(one, borrow=True) for one in (results if several else (results,))]
    return pytensor.function(
        [pytensor.In(variable, borrow=True) for variable in inputs],
        outputs if several else outputs[0],
        trust_input=True,
    )
