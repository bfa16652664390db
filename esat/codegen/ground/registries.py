"""Numba's registries of what it can type and lower, filled with what kernels need, or without SciPy."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

_TARGET: Any = cpu_target  # which numba does not annotate

_IMPLEMENTED = (
    *(
        f"numba.cpython.{name}"
        for name in ("builtins", "iterators", "numbers", "rangeobj", "slicing", "tupleobj")
    ),
    *("numba.core.optional", "numba.np.arrayobj"),
)
"""Modules that say how what kernels consist of becomes machine code."""
_REGISTRIES = ("numba.cpython.cmathimpl", "numba.cpython.mathimpl", "numba.np.npyimpl")
"""Those that do so in registries of their own."""


@contextmanager
def registries(whole: bool) -> Iterator[None]:
    """Until this ends, numba reads only those of its modules that kernels need, or all if ``whole``.

    Before it compiles anything it imports all others, for dictionaries, dates, classes and generators, and
    compiles its run-time library: 0.1 seconds, a fourteenth of a small program's first process. It reads them
    when it first compiles somebody else's function.
    """
    context = _TARGET.target_context
    with global_compiler_lock:
        if whole:
            _import_without_scipy()
            yield
            return
        context.refresh = _reader()
        try:
            yield
        finally:
            del context.refresh


@functools.cache
def _reader() -> Any:
    """What stands for numba's reading."""
    for name in _IMPLEMENTED:
        importlib.import_module(name)
    needed: list[Any] = [importlib.import_module(name).registry for name in _REGISTRIES]
    needed.append(importlib.import_module("numba.core.imputils").builtin_registry)

    def read() -> None:
        for registry in needed:
            _TARGET.target_context.install_registry(registry)
        _TARGET.typing_context.refresh()

    return read


def _import_without_scipy() -> None:
    """Import what numba itself would import next.

    One of these modules asks whether there is a BLAS, for which it imports ``scipy.linalg``: half of what
    filling the registries takes, and SciPy's BLAS is loaded for whatever core type that detects. Kernels
    call BLAS by addresses of their own, and numba asks again when someone else's function needs it.
    """
    name = "numba.np.arraymath"
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
