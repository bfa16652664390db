"""LAPACK through NumPy and SciPy, in the calling thread alone where matrices are small.

OpenBLAS's threads wait for one another many times within a factorization. Where other processes have a
processor each wait can take milliseconds: a hundred equations took 150 ms instead of 0.25, 300 took 13
instead of 1.8. On idle processors threads gain little for matrices of such sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from esat.base.scipy_extensions import is_loaded
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.matmul.small_systems import small_results
from esat.codegen.threads import granted_threads
from esat.graph import Op
from esat.ops.linalg.record import MatrixOp

WOKEN_FROM = 1 << 15
"""Multiplications from which OpenBLAS may wake its threads, for a matrix of a batch."""
SHARED_FROM = 1 << 27
"""Multiplications from which its threads are worth waking: matrices of order 512."""


def performer(op: Op, threads: int | None) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What computes an op's results: its ``perform``, for matrices with the library's threads or without, or
    code of its own.

    Parameters
    ----------
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """
    return functools.partial(_perform, op, threads) if isinstance(op, MatrixOp) else op.perform


def _perform(op: MatrixOp, threads: int | None, operands: Sequence[Any]) -> tuple[Any, ...]:
    small = small_results(op, operands)
    if small is not None:
        return small
    work = max(map(_multiplications, operands), default=0)
    if (work < WOKEN_FROM and not op.wakes) or (work >= SHARED_FROM and granted_threads(threads) > 1):
        return op.perform(operands)
    with ExitStack() as stack:
        # SciPy's library is not loaded for an op that NumPy computes.
        for package in ("numpy", "scipy") if is_loaded("linalg") else ("numpy",):
            alone = one_thread(package)
            if alone is not None:
                stack.enter_context(alone)
        return op.perform(operands)


def _multiplications(operand: Any) -> int:
    """Those of a factorization of a matrix, times a small number."""
    if operand.ndim < 2:
        return 0
    rows, columns = operand.shape[-2:]
    return int(rows * columns * min(rows, columns))
