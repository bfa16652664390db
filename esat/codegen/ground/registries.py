"""Numba's registries of what it can type and lower, filled without SciPy."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from numba.core.compiler_lock import global_compiler_lock


@functools.cache
def fill_registries() -> None:
    """Let numba import what its registries are filled from; it does so itself when it first compiles.

    One of these modules asks whether there is a BLAS, for which it imports ``scipy.linalg``: half of what
    filling the registries takes, and SciPy's BLAS is loaded for whatever core type that detects. Kernels
    call BLAS by addresses of their own, and numba asks again when someone else's function needs it.
    """
    name = "numba.np.arraymath"
    with global_compiler_lock:
        if name in sys.modules:
            return
        algebra: Any = importlib.import_module("numba.np.linalg")
        asked = algebra.ensure_blas
        algebra.ensure_blas = _there_is_one  # esat needs SciPy, so there is
        try:
            importlib.import_module(name).ensure_blas = asked  # type: ignore[attr-defined]
        finally:
            algebra.ensure_blas = asked


def _there_is_one() -> None:
    """Stands for numba's question while its modules are imported."""
