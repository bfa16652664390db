"""NumPy, with SciPy's error function where SciPy is installed; also the reference for all others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.cases import Case

VERSION = np.__version__


class Namespace:
    """NumPy's functions, and ``erf``."""

    exp, log, sqrt, tanh, abs = np.exp, np.log, np.sqrt, np.tanh, np.abs
    maximum, where, matmul = np.maximum, np.where, np.matmul
    sum, mean, max = np.sum, np.mean, np.max
    linalg, eye, diag = np.linalg, np.eye, np.diag

    @staticmethod
    def erf(x: Any) -> Any:
        from scipy.special import erf

        return erf(x)


class Reference(Namespace):
    """The same without SciPy, which would load its BLAS into the processes of the others; and what models
    need besides."""

    log1p, cumsum, concatenate, stack = np.log1p, np.cumsum, np.concatenate, np.stack
    cholesky, solve, diagonal = np.linalg.cholesky, np.linalg.solve, np.diagonal

    @staticmethod
    def solve_triangular(factor: Any, right: Any) -> Any:
        return np.linalg.solve(factor, right)

    @staticmethod
    def logdet(matrix: Any) -> Any:
        return np.linalg.slogdet(matrix)[1]

    @staticmethod
    def erf(x: Any) -> Any:
        return np.frompyfunc(math.erf, 1, 1)(x).astype(np.float64)


def prepare(case: Case, dtype: str) -> Callable[..., Any]:
    return functools.partial(case.function, Namespace)
