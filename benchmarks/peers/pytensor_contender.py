"""PyTensor in its default mode, without checks of the arguments' types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytensor
import pytensor.tensor as pt

from benchmarks.peers.cases import Case

VERSION = f"{pytensor.__version__} ({pytensor.config.linker} linker)"


class Namespace:
    """``pytensor.tensor``'s functions; reductions of one axis as NumPy has them."""

    exp, log, sqrt, tanh, erf, abs = pt.exp, pt.log, pt.sqrt, pt.tanh, pt.erf, pt.abs
    maximum, where, matmul = pt.maximum, pt.where, pt.matmul
    sum, mean, max = pt.sum, pt.mean, pt.max


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
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
