"""SciPy's functions called with traced arrays or Variables: with SciPy's parameters and defaults.

Functions of SciPy's have other parameters than NumPy's of the same name: ``scipy.linalg.cholesky`` gives the
upper factor, ``qr`` all of Q. So a call is bound by SciPy's own signature; what our function has of these
parameters it is given, and the others must have their defaults.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import CallError, DtypeError, describe
from esat.frontend.scipy_functions import FUNCTIONS
from esat.graph.calls.callers import user_line
from esat.graph.variables import Variable

_IGNORED = frozenset(
    {"overwrite_a", "overwrite_b", "overwrite_x", "overwrite_ab", "check_finite", "lapack_driver", "lwork",
     "workers", "plan", "driver", "assume_a"}
)  # fmt: skip
"""Parameters that say how to compute, not what."""


def call_scipy(
    namespace: Mapping[str, Any],
    module: str,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """A function of SciPy's, called with Variables among its arguments.

    Raises
    ------
    DtypeError
        When there is no function of its name here.
    CallError
        For arguments that SciPy's function does not take, or values of parameters that this one lacks.
    """
    name = function.__name__
    called = f"{module}.{name}"
    own = FUNCTIONS.get(called) or _own(namespace, module.removeprefix("scipy."), name)
    if not callable(own):
        known = [one.rpartition(".")[2] for one in FUNCTIONS if one.startswith(f"{module}.")]
        close = ", ".join(difflib.get_close_matches(name, [*known, *namespace])) or "none close"
        reason = f"esat has no {name} for traced arrays (did you mean: {close})"
        raise DtypeError(describe(called, [], reason, user_line()))
    signature = _signature(module, name)
    if signature is None:
        return own(*arguments, **keywords)
    try:
        bound = signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise CallError(describe(called, arguments, str(error), user_line())) from None
    return (
        own(*bound.args, **bound.kwargs) if _takes_any(signature) else _passed(called, own, signature, bound)
    )


def _own(namespace: Mapping[str, Any], room: str, name: str) -> Any:
    own = getattr(namespace.get(room), name, None) if room in ("fft", "linalg") else None
    return namespace.get(name) if own is None else own


@functools.cache
def _signature(module: str, name: str) -> inspect.Signature | None:
    try:
        return inspect.signature(getattr(importlib.import_module(module), name))
    except (TypeError, ValueError):
        return None


def _takes_any(signature: inspect.Signature) -> bool:
    kinds = {one.kind for one in signature.parameters.values()}
    return inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds


def _passed(
    called: str, own: Callable[..., Any], signature: inspect.Signature, bound: inspect.BoundArguments
) -> Any:
    """Call our function by SciPy's parameters: by their order where they must be given, and else by name."""
    takes = inspect.signature(own).parameters
    places: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        value = bound.arguments.get(name, parameter.default)
        if parameter.default is parameter.empty:
            places.append(value)
        elif name in takes:
            named[name] = value
        elif name not in _IGNORED and not _is_default(value, parameter.default):
            reason = f"{name}={value!r} is not known here; of SciPy's parameters it has ({', '.join(takes)})"
            raise CallError(describe(called, places, reason, user_line()))
    return own(*places, **named)


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, (Variable, np.ndarray)):
        return False
    return value is default or bool(value == default)
