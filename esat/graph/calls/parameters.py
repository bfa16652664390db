"""Calls that a function cannot make sense of: an error of esat's that says whose call it was, with what.

Functions check what they know to check where they use it. Whatever else comes out of one, from the depths of
it or of NumPy, becomes an error of the family where the user's call entered the package, in one place.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType, TracebackType
from typing import Any, cast

import numpy as np

from esat.base.interrupts import is_from_handler, is_from_outside
from esat.errors import CallError, EsatError, ParameterError, describe
from esat.graph.calls.callers import hide_own_frames, is_own, user_line
from esat.graph.tracing import current_adapter
from esat.graph.variables import Variable

_ENTRIES = ("__init__", "__call__", "__getitem__", "__round__", "__matmul__", "__rmatmul__")
"""Methods with names of Python's that users enter by; what they do by operators is checked by the ops."""
_FOREIGN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""What Python, NumPy and SciPy raise for arguments; any other error is a fault of the package."""
_DISPATCHERS = ("call_numpy", "call_ufunc")
"""By what functions are called for a user who calls NumPy's."""
_STAGE = "esat_stage"
"""The attribute of an error that says which stage of a compilation it broke off."""
_SIMPLE: Mapping[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool, int, np.bool_, np.integer), "True or False"),
    "int": ((int, np.integer), "an integer"),
    "float": ((int, float, np.integer, np.floating), "a number"),
    "str": ((str,), "text"),
}
"""Annotations whose values are told at once: their types, and how messages call them."""


def broke_off(stage: str, error: Exception) -> None:
    """Say of an error that it broke off a stage of a compilation, where no argument is read any more.

    It is a fault of the package, or of what a user added to it: no argument is blamed.
    """
    comes_from_outside = is_from_handler(error) or (not error.args and is_from_outside(error))
    if not (isinstance(error, EsatError) or hasattr(error, _STAGE) or comes_from_outside):
        setattr(error, _STAGE, stage)
        error.add_note(f"in the stage {stage!r} of a compilation by esat")


def check_calls(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Let public functions of a namespace name themselves and the user's line when they are called wrongly.

    Parameters
    ----------
    namespace
        Of a module, and so are what the functions come from; both get the functions that do.
    names
        Public names. What is no function of esat's stays as it is. Repeating it changes nothing.
    """
    for name in names:
        function: Any = namespace.get(name)
        if isinstance(function, FunctionType) and str(function.__module__).startswith("esat."):
            namespace[name] = _at_home(function)


def _at_home(function: FunctionType) -> Callable[..., Any]:
    """The one checked function of a function: where it is defined is where pickle looks for it."""
    if hasattr(function, "__wrapped__"):
        return function
    home = sys.modules[str(function.__module__)]
    found = getattr(home, function.__name__, None)
    if getattr(found, "__wrapped__", None) is function:
        return cast(Callable[..., Any], found)
    checked = _checked(function)
    if found is function:
        setattr(home, function.__name__, checked)
    return checked


def check_methods(owner: type, but: Iterable[str] = ()) -> None:
    """The same for a class: its public methods, and those by which its objects are made and called."""
    for name, method in list(vars(owner).items()):
        wanted = (name[0] != "_" or name in _ENTRIES) and name not in but
        if isinstance(method, FunctionType) and wanted and not hasattr(method, "__wrapped__"):
            shown = owner.__name__ if name == "__init__" else name
            setattr(owner, name, _checked(method, shown if name == "__call__" else shown.strip("_")))


def _checked(function: FunctionType, shown: str = "") -> Callable[..., Any]:
    """The function, whose foreign errors become esat's where a user calls it.

    These are a CallError where Python finds no parameter for an argument, or no argument, and for arguments
    of a wrong type; a ParameterError for values that cannot be.
    """
    name = shown or function.__name__

    def call(*arguments: Any, **keywords: Any) -> Any:
        adapter = current_adapter()
        try:
            if adapter is not None and not is_own(sys._getframe(1).f_code.co_filename):
                return adapter(function, arguments, keywords)
            return function(*arguments, **keywords)
        except EsatError as error:
            if not is_own(sys._getframe(1).f_code.co_filename):
                hide_own_frames(error)
            raise
        except _FOREIGN as error:
            trace = error.__traceback__
            assert trace is not None
            if trace.tb_next is None:
                raise _not_bound(function, name, error, arguments) from None
            # Calls within the package are not the user's; what a function of his raises within is his own.
            caller = sys._getframe(1).f_code
            within = is_own(caller.co_filename) and caller.co_name not in _DISPATCHERS
            if (
                within
                or hasattr(error, _STAGE)
                or is_from_outside(error)
                or _passes_users_code(trace.tb_next)
            ):
                raise
            called = _name_of(arguments[0]) if name == "__call__" else name
            raise _not_understood(function, called, error, arguments, keywords) from error

    # Errors within name the function that the user called after the frame of its call.
    call.__code__ = call.__code__.replace(co_name=function.__name__)
    return functools.wraps(function)(call)


def _name_of(value: object) -> str:
    """What a value that is called is called in messages: the name of an op, or that of the kind."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) and name else type(value).__name__


def _not_bound(function: FunctionType, name: str, error: Exception, arguments: tuple[Any, ...]) -> CallError:
    """The error of a call for which Python finds no parameter, or no argument."""
    reason = str(error).partition("() ")[2] or str(error)
    known = ", ".join(inspect.signature(function).parameters)
    shown = [value.type if isinstance(value, Variable) else type(value).__name__ for value in arguments]
    return CallError(describe(name, shown, f"{reason}; it has ({known})", user_line()))


def _not_understood(
    function: FunctionType, name: str, error: Exception, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> EsatError:
    """The error of a call whose arguments made something within fail."""
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    given = {key: value for key, value in bound.items() if key != "self"}
    annotations = inspect.get_annotations(function)
    misfits = []
    for key, value in given.items():
        told = _misfit(annotations.get(key), value)
        if told:
            misfits.append(f"{key} is {told}, not {_short(value)}")
    cause = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
    reason = "; ".join(misfits) or f"it cannot take these arguments ({cause[:200]})"
    shown = [f"{key}={_short(value)}" for key, value in given.items()]
    kind = CallError if misfits or isinstance(error, TypeError | AttributeError) else ParameterError
    return kind(describe(name, shown, reason, user_line()))


def _misfit(annotation: object, value: object) -> str:
    """What a parameter is by its annotation, if a value is not that; empty where it is, or nothing tells."""
    parts = [part.strip() for part in str(annotation).strip("'\"").split("|")]
    if value is None and "None" in parts:
        return ""
    known = [_SIMPLE[part] for part in parts if part in _SIMPLE]
    if len(known) + ("None" in parts) < len(parts) or any(isinstance(value, types) for types, _ in known):
        return ""
    return " or ".join(told for _, told in known)


def _short(value: object) -> str:
    """A value as messages about arguments show it."""
    if isinstance(value, Variable):
        return str(value.type)
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    if isinstance(value, str | bytes | int | float | complex) or value is None:
        is_huge = isinstance(value, int) and abs(value) >= 2**64
        text = "an integer of more than 64 bits" if is_huge else repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    return type(value).__name__


def _passes_users_code(trace: TracebackType | None) -> bool:
    """Whether an error went through code that is neither esat's nor Python's nor of libraries it calls."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not is_own(file) and not file.startswith(_libraries()):
            return True
        trace = trace.tb_next
    return False


@functools.cache
def _libraries() -> tuple[str, ...]:
    """Where files lie that esat calls: text made by records and dataclasses, Python's own, and libraries."""
    import sysconfig

    paths = sysconfig.get_paths()
    names = ("numpy", "scipy", "numba", "llvmlite", "egglog", "networkx")
    libraries = [os.path.join(paths[key], name) + os.sep for key in ("purelib", "platlib") for name in names]
    return ("<", *libraries, os.path.join(paths["stdlib"], ""))
