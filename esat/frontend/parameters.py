"""Calls with parameters that a function does not have: an error of esat's that says whose call it was."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, cast

from esat.errors import CallError, describe
from esat.graph.callers import user_line
from esat.graph.variables import Variable


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


def check_methods(owner: type) -> None:
    """The same for the public methods of a class."""
    for name, method in list(vars(owner).items()):
        if isinstance(method, FunctionType) and name[0] != "_" and not hasattr(method, "__wrapped__"):
            setattr(owner, name, _checked(method))


def _checked(function: FunctionType) -> Callable[..., Any]:
    """The function, with a CallError where Python finds no parameter for an argument, or no argument."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            trace = error.__traceback__
            if isinstance(error, CallError) or trace is None or trace.tb_next is not None:
                raise
            reason = str(error).partition("() ")[2] or str(error)
        known = ", ".join(inspect.signature(function).parameters)
        shown = [value.type if isinstance(value, Variable) else type(value).__name__ for value in arguments]
        told = describe(function.__name__, shown, f"{reason}; it has ({known})", user_line())
        raise CallError(told) from None

    # Errors within name the function that the user called after the frame of its call.
    call.__code__ = call.__code__.replace(co_name=function.__name__)
    return functools.wraps(function)(call)
