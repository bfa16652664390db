"""Functions of ``scipy.special`` in machine code, which kernels call by address.

SciPy exports them for Cython: a C function of floats, with an integer after them that says nothing. They are
called without the interpreter's lock, and are what SciPy's own loops over float64 call.
"""

from __future__ import annotations

import ctypes
import functools
import importlib

_PREFIX = "scipy.special."
_OF_FLOATS = ("", "__pyx_fuse_0", "__pyx_fuse_1")
"""What Cython puts before the name of a function of one type, or of one of several."""


def symbol(name: str, arity: int) -> str:
    """What machine code calls a function of SciPy, of so many floats."""
    return f"{_PREFIX}{name}/{arity}"


def address_named(symbol: str) -> int:
    """The address of the function that a symbol names; zero for other symbols."""
    if not symbol.startswith(_PREFIX):
        return 0
    name, _, arity = symbol.removeprefix(_PREFIX).partition("/")
    return address(name, int(arity))


@functools.cache
def address(name: str, arity: int) -> int:
    """The address of ``double name(double, ..., int)``; zero where SciPy has none of this type."""
    exported = importlib.import_module("scipy.special.cython_special").__pyx_capi__
    wanted = f"double ({'double, ' * arity}int __pyx_skip_dispatch)".encode()
    for prefix in _OF_FLOATS:
        capsule = exported.get(prefix + name)
        if capsule is not None and _signature(capsule) == wanted:
            return int(_pointer(capsule, wanted) or 0)
    return 0


def _signature(capsule: object) -> bytes | None:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    found: bytes | None = function(capsule)
    return found


def _pointer(capsule: object, signature: bytes) -> int | None:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype, function.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    found: int | None = function(capsule, signature)
    return found
