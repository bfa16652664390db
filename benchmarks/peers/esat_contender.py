"""esat itself, in the mode ``fast_run``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import esat
from benchmarks.peers.cases import Case
from benchmarks.peers.laab_cases import Expression
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


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    return executable(case, dtype)
