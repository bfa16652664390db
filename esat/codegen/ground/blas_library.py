"""SciPy's BLAS: loading it for the right core type, and its functions by name."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from esat.base.scipy_extensions import extension, is_loaded
from esat.codegen.ground.host import host_has

_WIDE_CORE = "SkylakeX"
_WIDE_FEATURES = ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd")
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""The first letter of BLAS's functions for each dtype that it has."""
Package: TypeAlias = Literal["numpy", "scipy"]
"""Whose copy of the library."""


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
    chosen = core_type(os.environ, numpy_core(), is_loaded("linalg"), host_has(_WIDE_FEATURES))
    if chosen is not None:
        os.environ["OPENBLAS_CORETYPE"] = chosen
    try:
        return extension("linalg", "_fblas")
    finally:
        if chosen is not None:
            del os.environ["OPENBLAS_CORETYPE"]


@functools.cache
def scipy_is_faster() -> bool:
    """Whether SciPy's copy runs kernels for wider vectors than NumPy's does.

    The library is asked: whoever imported another part of SciPy first may have loaded it already.
    """
    load_blas()
    return numpy_core() == "Haswell" and scipy_core() == _WIDE_CORE


class OneThread:
    """A context in which an OpenBLAS computes in the thread that calls it, while anyone is inside.

    Parameters
    ----------
    count, limit
        OpenBLAS's functions that tell the number of its threads, and set it.
    """

    def __init__(self, count: Callable[[], int], limit: Callable[[int], None]) -> None:
        self.count, self._limit = count, limit
        self._lock = threading.Lock()
        self._inside = 0
        self._threads = 1
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._threads = self.count()
                if self._threads > 1:
                    self._limit(1)
            self._inside += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._threads > 1:
                self._limit(self._threads)

    def _forget(self) -> None:
        """In a forked child: whoever was inside is gone."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 1
            self.__exit__()


WOKEN_FROM = 1 << 18
"""Multiplications from which OpenBLAS wakes its threads for a product of matrices."""
WOKEN_FROM_VECTOR = 9216
"""Elements of a matrix from which it does for a product with a vector."""


def wakes_threads(rows: int, inner: int, columns: int) -> bool:
    """Whether OpenBLAS, where it has threads, wakes them for a (rows, inner) by (inner, columns) product."""
    return rows * inner * columns >= (WOKEN_FROM_VECTOR if 1 in (rows, columns) else WOKEN_FROM)


@functools.cache
def thread_functions(package: Package = "scipy") -> tuple[int, int] | None:
    """Addresses of what tells, and of what sets, the number of threads of NumPy's or SciPy's OpenBLAS.

    None for another BLAS.
    """
    functions = _thread_functions(package)
    if functions is None:
        return None
    count, limit = (ctypes.cast(cast(Any, one), ctypes.c_void_p).value or 0 for one in functions)
    return count, limit


@functools.cache
def one_thread(package: Package = "scipy") -> OneThread | None:
    """The context in which NumPy's or SciPy's OpenBLAS has no threads of its own; None for another BLAS."""
    functions = _thread_functions(package)
    return None if functions is None else OneThread(*functions)


def _thread_functions(package: Package) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    if package == "scipy":
        load_blas()
    suffix = "64_" if package == "numpy" else ""
    count = _function(f"{package}.libs", f"scipy_openblas_get_num_threads{suffix}", ctypes.c_int)
    limit = _function(f"{package}.libs", f"scipy_openblas_set_num_threads{suffix}", None)
    return None if count is None or limit is None else (count, limit)


@functools.cache
def numpy_function_address(name: str) -> int | None:
    """The address of a function of the OpenBLAS inside NumPy's wheel, such as ``dgemv``; None without that.

    It takes pointers; integers have 64 bits.
    """
    found = _function("numpy.libs", f"scipy_{name}_64_", None)
    return None if found is None else ctypes.cast(cast(Any, found), ctypes.c_void_p).value


@functools.cache
def lapack_address(name: str, package: Package) -> int | None:
    """The address of a function of LAPACK, such as ``dpotrf``, in the OpenBLAS of NumPy's or SciPy's wheel.

    It takes pointers; integers have 64 bits in NumPy's, 32 in SciPy's. None for another library.
    """
    if package == "numpy":
        return numpy_function_address(name)
    load_blas()
    found = _function("scipy.libs", f"scipy_{name}_", None)
    return None if found is None else ctypes.cast(cast(Any, found), ctypes.c_void_p).value


def core_type(
    environment: Mapping[str, str], detected: str | None, loaded: bool, is_wide: bool
) -> str | None:
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
    is_wide
        Whether the processor has AVX-512.
    """
    if loaded or detected != "Haswell" or "OPENBLAS_CORETYPE" in environment:
        return None
    return _WIDE_CORE if is_wide else None


def numpy_core() -> str | None:
    """The core type that the OpenBLAS inside NumPy's wheel detected; None where NumPy has another BLAS."""
    return _core_of("numpy.libs", "scipy_openblas_get_corename64_")


def scipy_core() -> str | None:
    """The core type that the OpenBLAS inside SciPy's wheel runs; None where SciPy has another BLAS.

    Loads the library if it has not been loaded yet.
    """
    return _core_of("scipy.libs", "scipy_openblas_get_corename")


def _core_of(libraries: str, function: str) -> str | None:
    report = _function(libraries, function, ctypes.c_char_p)
    return None if report is None else str(report().decode())


def _function(libraries: str, function: str, result: Any) -> Callable[..., Any] | None:
    """A function of the OpenBLAS inside a wheel, by what it returns."""
    folder = Path(np.__file__).resolve().parent.parent / libraries
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            report = getattr(ctypes.CDLL(str(path)), function)
        except (OSError, AttributeError):
            continue
        report.restype = result
        found: Callable[..., Any] = report
        return found
    return None
