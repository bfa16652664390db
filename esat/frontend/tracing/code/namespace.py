"""NumPy's and SciPy's modules under their names, for functions that are traced: ``esat.numpy`` and others.

A function of these is NumPy's own where its arguments are arrays, so that code with ``import esat.numpy as
np`` computes outside of traces what it computed. Within one it makes traced arrays, which can be written to;
given traced arrays or Variables, it is esat's function of the name.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from esat.base.spelling import suggestion
from esat.errors import DtypeError, TracedAttributeError, describe
from esat.frontend.library_calls import call_library
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.values import creation
from esat.frontend.tracing.values.convert import handed_out, holds_traced, holds_unknown, settled
from esat.frontend.tracing.values.functions import as_symbol_array, flat_of, traced_astype, traced_function
from esat.frontend.tracing.values.indexing import getitem, setitem
from esat.frontend.tracing.values.ufuncs import traced_ufunc
from esat.graph.calls.callers import user_line
from esat.graph.registry import function_named, register_functions

OUR_NAMES = {
    "numpy": "esat.numpy",
    "numpy.linalg": "esat.numpy.linalg",
    "numpy.fft": "esat.numpy.fft",
    "numpy.random": "esat.numpy.random",
    "scipy": "esat.scipy",
    "scipy.fft": "esat.scipy.fft",
    "scipy.fftpack": "esat.scipy.fftpack",
    "scipy.linalg": "esat.scipy.linalg",
    "scipy.ndimage": "esat.scipy.ndimage",
    "scipy.signal": "esat.scipy.signal",
    "scipy.spatial": "esat.scipy.spatial",
    "scipy.spatial.distance": "esat.scipy.spatial.distance",
    "scipy.special": "esat.scipy.special",
}
"""Modules of others -> those that stand for them in a trace."""

_DRAWING = (
    "rand", "randn", "randint", "random", "random_sample", "ranf", "sample", "normal", "uniform", "choice",
    "standard_normal", "permutation", "shuffle", "exponential", "poisson", "binomial", "gamma", "beta",
    "seed",
)  # fmt: skip


def _esat() -> Mapping[str, Any]:
    """The names of the package."""
    names: Mapping[str, Any] = function_named("namespace")()
    return names


def register_tracing() -> None:
    """Let traced arrays use the functions of the package. Repeating it changes nothing."""
    namespace = _esat()
    register_functions(
        {
            "traced_ufunc": functools.partial(traced_ufunc, namespace),
            "traced_function": functools.partial(traced_function, namespace),
            "traced_getitem": getitem,
            "traced_setitem": setitem,
            "traced_astype": traced_astype,
            "traced_flat": flat_of,
        }
    )


def attribute(module: str, name: str) -> Any:
    """What the module that stands for another one has under a name.

    Raises
    ------
    AttributeError
        When the other has no such name; the message says which are close.
    """
    theirs = importlib.import_module(module)
    if f"{module}.{name}" in OUR_NAMES:
        return importlib.import_module(OUR_NAMES[f"{module}.{name}"])
    if name.startswith("__") or not hasattr(theirs, name):
        message = f"{module} has no {name!r}{suggestion(name, dir(theirs))}"
        if current_trace() is None or name.startswith("__"):
            raise AttributeError(message)
        raise TracedAttributeError(describe(f"{module}.{name}", [], message, user_line()))
    found, trace = getattr(theirs, name), current_trace()
    if trace is not None and (module == "numpy.random" or isinstance(found, types.ModuleType)):
        trace.watch()  # these may draw, or make generators that take their seeds from the system
    return _standing_for(module, name, found)


@functools.cache
def _wrapped(module: str, name: str) -> Callable[..., Any]:
    function = getattr(importlib.import_module(module), name)

    def call(*arguments: Any, **keywords: Any) -> Any:
        return _call(module, function, arguments, keywords)

    call.__name__ = call.__qualname__ = name
    call.__module__ = OUR_NAMES[module]
    call.__doc__ = function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


_public: dict[int, tuple[Any, str, str]] = {}
_looked_at: set[str] = set()


def _public_name(value: Any) -> tuple[str, str] | None:
    """The module and the name under which a function of NumPy's or SciPy's is to be had, whatever it says of
    itself: ``scipy.linalg.cholesky`` says that it is one of ``scipy.linalg._decomp_cholesky``."""
    if len(_looked_at) < len(OUR_NAMES):
        for module in OUR_NAMES:
            if module in sys.modules and module not in _looked_at:
                for name, one in list(vars(sys.modules[module]).items()):
                    if _is_exchanged(one) and not name.startswith("_"):
                        _public.setdefault(id(one), (one, module, name))
                _looked_at.add(module)
    found = _public.get(id(value))
    return None if found is None else found[1:]


def _is_exchanged(value: Any) -> bool:
    """Whether something of a module is a function that others stand for: ufuncs are called with traced arrays
    by NumPy's protocol."""
    return callable(value) and not isinstance(value, (type, np.ufunc, types.ModuleType))


def counterpart(value: Any) -> Any:
    """What stands for a function of NumPy's or SciPy's in a trace; anything else is itself."""
    if id(value) in _PLACES:
        return _PLACES[id(value)]
    found = _public_name(value) if _is_exchanged(value) else None
    return value if found is None else _standing_for(*found, value)


class _Places:
    """``numpy.mgrid`` and ``ogrid``, whose bounds may be numbers of the call, and ``r_`` and ``c_`` of traced
    arrays."""

    def __init__(self, standard: Any, joins: str | None) -> None:
        self._standard, self._joins = standard, joins

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if self._joins is None or not holds_unknown(items):
            return handed_out(self._standard[settled(key)])
        if any(isinstance(one, str) for one in items):
            reason = "directives in texts are not taken with traced arrays; use numpy.concatenate"
            raise DtypeError(describe(f"numpy.{self._joins}", items, reason, user_line()))
        parts = [
            self._standard[settled(one)] if isinstance(one, slice) else as_symbol_array(one) for one in items
        ]
        if self._joins == "r_":
            return np.concatenate([np.atleast_1d(one) for one in parts])
        return np.column_stack(parts)


_PLACES: dict[int, Any] = {
    id(np.mgrid): _Places(np.mgrid, None), id(np.ogrid): _Places(np.ogrid, None),
    id(np.r_): _Places(np.r_, "r_"), id(np.c_): _Places(np.c_, "c_"),
}  # fmt: skip


def _standing_for(module: str, name: str, value: Any) -> Any:
    if not _is_exchanged(value):
        return _PLACES.get(id(value), value)
    if module == "numpy.random" and name in _DRAWING:
        return creation.refuse_drawing(name)
    return _wrapped(module, name)


def _call(
    module: str, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    traced = holds_traced([arguments, keywords])
    running = current_trace()
    if not traced and running is None:
        return function(*arguments, **keywords)
    name = function.__name__
    if running is None and module.startswith("numpy"):
        own = _esat().get(name) if name in creation.CREATING else None
        return function(*arguments, **keywords) if own is None else own(*arguments, **keywords)
    if module == "numpy" and name in creation.CREATING:
        return creation.CREATING[name](*arguments, **keywords)
    if (
        module == "numpy.random"
        and name in ("default_rng", "Generator", "RandomState")
        and not (arguments or keywords)
    ):
        return creation.refuse_drawing(name)()
    if not traced:
        result = function(*arguments, **keywords)
        if module == "numpy.random" and running is not None:
            running.made(result)  # it has a seed, and is a new one in each call
        return handed_out(result)
    if module == "numpy" or module.startswith("numpy."):
        return traced_function(_esat(), function, arguments, keywords)
    values = [as_symbol_array(one) if type(one) is list and holds_unknown(one) else one for one in arguments]
    return handed_out(call_library(_esat(), function, settled(values), settled(keywords), module))


def ufunc_of_lists(ufunc: np.ufunc, *operands: Any, **options: Any) -> Any:
    """A ufunc that is called: NumPy looks for traced arrays among operands, and not in lists of such."""
    return ufunc(
        *(as_symbol_array(one) if _holds_unknown_in_list(one) else one for one in operands), **options
    )


def _holds_unknown_in_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and holds_unknown(value)


def _matrix(data: Any, *rest: Any) -> Any:
    """``numpy.matrix(data)``, which is refused where only a call knows the elements."""
    if not holds_unknown(data):
        return np.matrix(settled(data), *rest)
    reason = "matrices are not traced, whose * is a product; use arrays, and @"
    raise DtypeError(describe("numpy.matrix", [], reason, user_line()))


def _nditer(op: Any, *rest: Any, **named: Any) -> Any:
    """``numpy.nditer(op)``: the elements in order."""
    if not holds_unknown(op):
        return np.nditer(settled(op), *rest, **named)
    if rest or named or isinstance(op, (tuple, list)):
        reason = (
            "of traced arrays it takes one, to be read; write to x[index] in a loop over np.ndindex(x.shape)"
        )
        raise DtypeError(describe("numpy.nditer", [], reason, user_line()))
    return iter(flat_of(as_symbol_array(op)))


def _ndenumerate(arr: Any) -> Any:
    """``numpy.ndenumerate(arr)``."""
    array = as_symbol_array(arr)
    return ((index, array[index]) for index in np.ndindex(array.shape))


CLASSES: dict[type, Any] = {np.matrix: _matrix, np.nditer: _nditer, np.ndenumerate: _ndenumerate}
"""Classes of NumPy's -> what is called in their places."""


def scalar_of_type(kind: type[np.generic], *arguments: Any) -> Any:
    """A number of a type of NumPy's, ``np.float64(x)``."""
    if not holds_traced(arguments):
        return kind(*arguments)
    made: Any = creation.array(arguments[0], np.dtype(kind))
    return made[()] if made.ndim == 0 else made


def make_module(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__``, and ``__dir__``, which lists public names, of a module that stands for another one."""
    theirs = functools.partial(importlib.import_module, module)
    return functools.partial(attribute, module), lambda: [one for one in dir(theirs()) if one[0] != "_"]
