"""SciPy's compiled functions without the packages that export them.

``import scipy.linalg`` and ``import scipy.special`` import some 200 modules each and take 0.13 s of a
processor (SciPy 1.17, Python 3.11), as long as all else between ``import esat`` and a first result of a
program found on disk. Their extension modules take a hundredth of that.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""What names of BLAS's and LAPACK's functions begin with, by NumPy's letter of the dtype."""
_loaded: set[str] = set()


def is_loaded(package: str) -> bool:
    """Whether ``scipy.<package>``, or the extension module of it that this module loads, is in memory."""
    return package in _loaded or f"scipy.{package}" in sys.modules


@functools.cache
def extension(package: str, name: str) -> ModuleType:
    """The extension module ``scipy.<package>.<name>``, without the package where nobody has imported it.

    Raises
    ------
    ImportError
        Where SciPy has no such module.
    """
    import scipy

    full, folder = f"scipy.{package}.{name}", Path(scipy.__file__).parent / package
    spec = None if f"scipy.{package}" in sys.modules else PathFinder.find_spec(full, [str(folder)])
    if spec is None or spec.loader is None:
        return import_module(full)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Whoever imports the package later finds it as if this had not been.
    sys.modules.pop(full, None)
    _loaded.add(package)
    return module


@functools.cache
def special(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``.

    >>> float(special("erf")(0.0))
    0.0
    """
    try:
        found = getattr(extension("special", "_special_ufuncs"), name, None)
    except ImportError:  # SciPy before 1.14
        found = None
    function: Callable[..., Any] = found or getattr(import_module("scipy.special"), name)
    return function


def blas(name: str, *arrays: Any) -> Callable[..., Any]:
    """SciPy's interface to the function of BLAS for what arrays, or dtypes, have in common.

    >>> blas("gemm", "float32").__doc__[:30]
    'c = sgemm(alpha,a,b,[beta,c,tr'
    """
    return _fortran("_fblas", name, np.result_type(*arrays))


def lapack(name: str, *arrays: Any) -> Callable[..., Any]:
    """SciPy's interface to the function of LAPACK for what arrays, or dtypes, have in common."""
    return _fortran("_flapack", name, np.result_type(*arrays))


def _fortran(module: str, name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(extension("linalg", module), _LETTERS.get(dtype.char, "d") + name)
    return function
