"""esat itself, in the mode ``fast_run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import esat
from benchmarks.peers.cases import Case
from benchmarks.peers.laab_cases import Expression
from benchmarks.peers.model_cases import Model
from esat.runtime import Executable

VERSION = "working tree"


def executable(case: Case, dtype: str, mode: str | esat.Mode = "fast_run") -> Executable:
    """A case compiled for all sizes, or expecting that of an :class:`Expression`; also what one looks at when
    a figure is bad."""
    inputs = [
        esat.tensor(f"x{place}", shape=shape, dtype=dtype) for place, shape in enumerate(case.static_shapes())
    ]
    known = [
        variable if one.structure is None else esat.assume(variable, one.structure)
        for variable, one in zip(inputs, case.inputs, strict=True)
    ]
    results = case.function(esat, *known)
    outputs = list(results) if isinstance(results, tuple) else [results]
    shapes = None
    if isinstance(case, Expression) and case.size is not None:
        size = case.size
        shapes = {variable: one.shape(size) for variable, one in zip(inputs, case.inputs, strict=True)}
    compiled: Executable = esat.compile(esat.Graph(inputs, outputs), mode=mode, shapes=shapes)
    return compiled


class ModelNamespace:
    """esat's functions as models name them."""

    exp, log, log1p, sqrt, tanh, erf = esat.exp, esat.log, esat.log1p, esat.sqrt, esat.tanh, esat.erf
    maximum, matmul, sum, max, cumsum = esat.maximum, esat.matmul, esat.sum, esat.max, esat.cumsum
    concatenate, stack, diagonal = esat.concatenate, esat.stack, esat.diagonal
    cholesky, solve = esat.linalg.cholesky, esat.linalg.solve

    @staticmethod
    def solve_triangular(factor: Any, right: Any) -> Any:
        return esat.linalg.solve_triangular(factor, right, lower=True)

    @staticmethod
    def logdet(matrix: Any) -> Any:
        return esat.linalg.slogdet(matrix)[1]


def differentiated(model: Model, dtype: str, mode: str = "fast_run") -> Executable:
    """A model's log-density and its gradients, compiled."""
    inputs = [esat.tensor(f"x{place}", shape=shape, dtype=dtype) for place, shape in enumerate(model.shapes)]
    density = model.density(ModelNamespace, *inputs)
    graph = esat.Graph(inputs, [density, *esat.grad(density, inputs)])
    compiled: Executable = esat.compile(graph, mode=mode)
    return compiled


def prepare(case: Case | Model, dtype: str) -> Callable[..., Any]:
    return differentiated(case, dtype) if isinstance(case, Model) else executable(case, dtype)
