"""NumPy's and SciPy's modules under their names, for functions that are traced: ``esat.numpy`` and others.

A function of these is NumPy's own where its arguments are arrays, so that code with ``import esat.numpy as
np`` computes outside of traces what it computed. Within one it makes traced arrays, which can be written to;
given traced arrays or Variables, it is esat's function of the name.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.tracing import creation
from esat.frontend.tracing.convert import handed_out, holds_traced, settled
from esat.frontend.tracing.functions import flat_of, traced_astype, traced_function
from esat.frontend.tracing.indexing import getitem, setitem
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.ufuncs import traced_ufunc
from esat.graph.callers import user_line
from esat.graph.registry import register_functions

OUR_NAMES = {
    "numpy": "esat.numpy",
    "numpy.linalg": "esat.numpy.linalg",
    "numpy.fft": "esat.numpy.fft",
    "numpy.random": "esat.numpy.random",
    "scipy": "esat.scipy",
    "scipy.fft": "esat.scipy.fft",
    "scipy.linalg": "esat.scipy.linalg",
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
    return vars(importlib.import_module("esat"))


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
            "array_namespace": lambda: importlib.import_module("esat.numpy"),
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
        close = ", ".join(difflib.get_close_matches(name, dir(theirs))) or "none close"
        raise AttributeError(f"module {OUR_NAMES[module]!r} has no {name!r} (did you mean: {close})")
    found, trace = getattr(theirs, name), current_trace()
    if trace is not None and (module == "numpy.random" or isinstance(found, types.ModuleType)):
        trace.watch()  # these may draw, or make generators that take their seeds from the system
    return standing_for(module, found)


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


def standing_for(module: str, value: Any) -> Any:
    """What stands for a function of a module in a trace; anything else is itself."""
    if isinstance(value, (type, np.ufunc)) or not callable(value):
        return value  # ufuncs are called with traced arrays by NumPy's protocol
    name = getattr(value, "__name__", "")
    known = getattr(importlib.import_module(module), name, None)
    if module == "numpy.random" and name in _DRAWING:
        return creation.refuse_drawing(name)
    return _wrapped(module, name) if known is value else value


def _call(
    module: str, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    traced = holds_traced([arguments, keywords])
    running = current_trace() is not None
    if not traced and not running:
        return function(*arguments, **keywords)
    name = function.__name__
    if not running and module.startswith("numpy"):
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
        return handed_out(function(*arguments, **keywords))
    if module == "numpy" or module.startswith("numpy."):
        return traced_function(_esat(), function, arguments, keywords)
    return _of_scipy(module, function, arguments, keywords)


def _of_scipy(
    module: str, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """A function of SciPy's that is no ufunc: esat's of the same name and parameters."""
    esat = _esat()
    room = module.removeprefix("scipy.")
    homes: tuple[Any, ...] = (esat[room],) if room in ("fft", "linalg") else ()
    own = next((getattr(home, function.__name__) for home in homes if hasattr(home, function.__name__)), None)
    own = esat.get(function.__name__) if own is None else own
    if not callable(own):
        close = ", ".join(difflib.get_close_matches(function.__name__, list(esat))) or "none close"
        reason = f"esat has no {function.__name__} for traced arrays (did you mean: {close})"
        raise DtypeError(describe(f"{module}.{function.__name__}", [], reason, user_line()))
    known = {key: value for key, value in keywords.items() if key not in ("check_finite",)}
    return handed_out(own(*settled(list(arguments)), **settled(known)))


def make_module(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of the module that stands for another one."""
    return functools.partial(attribute, module)


def names_of(module: str) -> list[str]:
    """The public names of a module."""
    theirs: types.ModuleType = importlib.import_module(module)
    return [name for name in dir(theirs) if not name.startswith("_")]
