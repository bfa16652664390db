"""What somebody would write who knows NumPy, SciPy, their BLAS and linear algebra; loops for numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.cases import Case
from benchmarks.peers.cases_by_hand import BY_HAND
from benchmarks.peers.contenders import Unsupported
from benchmarks.peers.laab_cases import Expression
from benchmarks.peers.model_cases import Model
from benchmarks.peers.simulation_cases import Simulation

VERSION = np.__version__


def prepare(case: Case | Model, dtype: str) -> Callable[..., Any]:
    if isinstance(case, Model):
        if case.by_hand is None:
            raise Unsupported("nobody wrote it by hand")
        return case.by_hand()
    if isinstance(case, Simulation):
        return case.by_hand()
    written = case.by_hand if isinstance(case, Expression) else BY_HAND.get(case.name)
    if written is None:
        raise Unsupported("nobody wrote it by hand")
    return written
