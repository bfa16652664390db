"""SciPy's BLAS: loading it for the right core type, and its functions by name."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

_WIDE_CORE = "SkylakeX"
_SMALL = (_WIDE_CORE, "Cooperlake", "Sapphirerapids")
"""Core types for which OpenBLAS has kernels for small products."""
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""The first letter of BLAS's functions for each dtype that it has."""


def blas_function(name: str) -> Callable[..., Any]:
    """SciPy's interface to a function of BLAS, such as ``dgemm``."""
    found: Callable[..., Any] = getattr(load_blas(), name)
    return found


@functools.cache
def load_blas() -> ModuleType:
    """SciPy's BLAS, loaded for the core type that :func:`core_type` chooses.

    OpenBLAS reads its environment variable once, while it is loaded. NumPy's own copy has been
    loaded long before; SciPy's, usually, has not.
    """
    chosen = core_type(os.environ, numpy_core(), "scipy.linalg" in sys.modules)
    if chosen is not None:
        os.environ["OPENBLAS_CORETYPE"] = chosen
    try:
        from scipy.linalg import blas
    finally:
        if chosen is not None:
            del os.environ["OPENBLAS_CORETYPE"]
    module: ModuleType = blas
    return module


@functools.cache
def scipy_is_faster() -> bool:
    """Whether SciPy's copy runs kernels for wider vectors than NumPy's does.

    The library is asked: whoever imported another part of SciPy first may have loaded it already.
    """
    load_blas()
    return numpy_core() == "Haswell" and scipy_core() == _WIDE_CORE


def has_fast_small_products() -> bool:
    """Whether SciPy's BLAS, as it is set now, computes small products of matrices in a faster way.

    OpenBLAS does so on processors with AVX-512, and its several threads have nothing to share there.
    """
    count = _thread_counter()
    return count is not None and count() == 1


@functools.cache
def _thread_counter() -> Callable[[], int] | None:
    """What tells the threads of SciPy's OpenBLAS; None where that has no fast small products."""
    load_blas()
    if scipy_core() not in _SMALL:
        return None
    return _reporter("scipy.libs", "scipy_openblas_get_num_threads", ctypes.c_int)


def core_type(environment: Mapping[str, str], detected: str | None, loaded: bool) -> str | None:
    """The core type to ask OpenBLAS for, or None to leave its choice alone.

    OpenBLAS takes some processors that it does not know for a Haswell, without AVX-512, which
    halves the speed of products. Asked for is another type only where the processor has AVX-512,
    where the user has set nothing, and where the library is yet to be loaded.

    Parameters
    ----------
    environment
        The process's environment variables.
    detected
        The core type that NumPy's OpenBLAS detected; None where there is no such library.
    loaded
        Whether SciPy's library is loaded.
    """
    if loaded or detected != "Haswell" or "OPENBLAS_CORETYPE" in environment:
        return None
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    wide = all(features.get(name) for name in ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"))
    return _WIDE_CORE if wide else None


def numpy_core() -> str | None:
    """The core type that the OpenBLAS inside NumPy's wheel detected; None where NumPy has another BLAS."""
    return _core_of("numpy.libs", "scipy_openblas_get_corename64_")


def scipy_core() -> str | None:
    """The core type that the OpenBLAS inside SciPy's wheel runs; None where SciPy has another BLAS.

    Loads the library if it has not been loaded yet.
    """
    return _core_of("scipy.libs", "scipy_openblas_get_corename")


def _core_of(libraries: str, function: str) -> str | None:
    report = _reporter(libraries, function, ctypes.c_char_p)
    return None if report is None else str(report().decode())


def _reporter(libraries: str, function: str, result: Any) -> Callable[[], Any] | None:
    """A function without arguments of the OpenBLAS inside a wheel."""
    folder = Path(np.__file__).resolve().parent.parent / libraries
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            report = getattr(ctypes.CDLL(str(path)), function)
        except (OSError, AttributeError):
            continue
        report.restype = result
        found: Callable[[], Any] = report
        return found
    return None
