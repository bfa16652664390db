"""What a compiled kernel depends on, as text, and the cache key made of it.

Two kernels share a key only if the same machine code may serve both: the key covers the source, the
signature, the options, the objects the source names, esat's code generator itself, the versions of
Python, NumPy, numba and llvmlite, and numba's settings. The target is one of the options.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
import types as python_types
from collections.abc import Mapping
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import types as numba_types

from esat.base.storage import digest_of, digest_of_sources
from esat.errors import CompileError

NUMBA_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "LLVM_REFPRUNE_PASS")
"""Settings of numba that change the code it makes."""

_VERSIONED_PACKAGES = ("numba", "numpy", "llvmlite", "math", "cmath", "operator", "builtins", "_operator")
"""Modules that a version in the key covers: their sources need not be read."""


@functools.cache
def host_fingerprint() -> str:
    """Everything about this process that changes machine code: versions and settings."""
    settings = ",".join(f"{name}={getattr(numba_config, name, None)}" for name in NUMBA_SETTINGS)
    return "\n".join(
        (
            f"python {sys.implementation.cache_tag} {sys.version}",
            f"numpy {np.__version__} numba {numba.__version__} llvmlite {llvmlite.__version__}",
            f"esat.codegen {_package_digest()}",
            settings,
        )
    )


@functools.cache
def _package_digest() -> str:
    """Digest of the whole code generator: an intrinsic may draw on any of its modules."""
    return digest_of_sources(Path(__file__).parent.parent)


@functools.cache
def _module_digest(name: str) -> str:
    """Digest of a module's source, or "covered" where :func:`host_fingerprint` covers it."""
    if name.split(".", maxsplit=1)[0] in _VERSIONED_PACKAGES or name.startswith("esat.codegen"):
        return "covered"
    try:
        source = inspect.getsource(importlib.import_module(name))
    except (ImportError, OSError, TypeError) as error:
        raise CompileError(f"kernel cache: the source of module {name} cannot be read: {error}") from error
    return hashlib.sha256(source.encode()).hexdigest()


def describe_value(name: str, value: object) -> str:
    """Text that stands for an object a kernel's source may name, equal only for equal objects.

    Scalars, strings and tuples are told apart by value, dtypes and numba types by name, modules,
    functions and intrinsics by qualified name and the source of their module.

    Raises
    ------
    CompileError
        When the object has no such text: a closure, an array, an instance.
    """
    kind = type(value).__name__
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return f"{kind} {value!r}"
    if isinstance(value, tuple):
        return f"tuple ({', '.join(describe_value(name, item) for item in value)})"
    if isinstance(value, np.dtype | numba_types.Type):
        return f"{kind} {value}"
    if isinstance(value, python_types.ModuleType):
        return f"module {value.__name__} {_module_digest(value.__name__)}"
    module = getattr(value, "__module__", None)
    qualified_name = getattr(value, "__qualname__", None)
    if qualified_name is None and isinstance(value, np.ufunc):
        return f"ufunc {value.__name__}"
    if not isinstance(module, str) or not isinstance(qualified_name, str) or "<" in qualified_name:
        raise CompileError(f"kernel cache: {name} is {value!r}, which has no lasting identity for a key")
    return f"{kind} {module}.{qualified_name} {_module_digest(module)}"


def kernel_key(
    source: str, entry: str, signature: str, environment: Mapping[str, object], options: str
) -> str:
    """The cache key of a kernel: 64 hexadecimal digits.

    Parameters
    ----------
    source, entry
        Python source and the name of the function in it that is called from outside.
    signature, options
        Text that tells signatures and compile options apart.
    environment
        The objects that the source names.
    """
    parts = [host_fingerprint(), source, entry, signature, options]
    parts += [f"{name}={describe_value(name, environment[name])}" for name in sorted(environment)]
    return digest_of(parts)
