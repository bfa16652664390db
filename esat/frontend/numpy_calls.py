"""NumPy's functions called with a Variable: ``numpy.exp(x)`` is ``esat.exp(x)``.

NumPy hands such calls on by its protocols ``__array_ufunc__`` (NEP 13) and ``__array_function__`` (NEP 18).
They go to the function of the same name here, which computes the same (``docs/numpy.md``). What has none, or
asks for what only arrays can do, is an error that names it.
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.linear_algebra.sparse_operators import sparse_operation
from esat.graph.calls.callers import user_line
from esat.graph.registry import register_functions
from esat.graph.sparse_type import holds_sparse
from esat.graph.variables import Variable

_NO_VALUE = "NumPy's function takes arrays, and a Variable has no value yet"


def register_numpy_calls(namespace: Mapping[str, Any]) -> None:
    """Hand NumPy's calls on to the functions of a namespace. Repeating it changes nothing."""
    register_functions(
        {
            "call_ufunc": partial(call_ufunc, namespace),
            "call_numpy": partial(call_numpy, namespace),
            "as_tensor": namespace["as_tensor"],
        }
    )


def call_ufunc(
    namespace: Mapping[str, Any],
    ufunc: np.ufunc,
    method: str,
    operands: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """A ufunc of NumPy or of ``scipy.special``, applied to Variables among other things.

    Raises
    ------
    DtypeError
        When there is no function of its name here, for methods such as ``reduce``, and for ``out=`` or any
        other option: its message names it.
    """
    name = ufunc.__name__
    called = f"numpy.{name}"
    if getattr(np, name, None) is not ufunc:
        if getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
            raise DtypeError(describe(name, _shown(operands), f"{_NO_VALUE}; this one is unknown here"))
        called = f"scipy.special.{name}"
    if method != "__call__":
        raise DtypeError(
            describe(f"{called}.{method}", _shown(operands), f"{_NO_VALUE}; use esat.sum, esat.cumsum, ...")
        )
    if "out" in options:
        reason = (
            "an array cannot hold a Variable, which has no value yet; without out= the result is a Variable"
        )
        raise DtypeError(describe(called, [*_shown(operands), "out=..."], reason))
    function = namespace.get(name)
    known = inspect.signature(function).parameters if callable(function) else {}
    for option in options:
        if option not in known:
            raise DtypeError(
                describe(called, [*_shown(operands), f"{option}=..."], f"Variables take no {option}")
            )
    if any(map(holds_sparse, operands)):
        return sparse_operation(name, *operands)
    if not callable(function):
        reason = f"{_NO_VALUE}; {_lacking(namespace, name)}"
        raise DtypeError(describe(called, _shown(operands), reason, user_line()))
    return function(*operands, **options)


def call_numpy(
    namespace: Mapping[str, Any],
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """A function of NumPy, called with Variables among its arguments.

    Raises
    ------
    DtypeError
        When there is no function of its name here, or it lacks a parameter: the message names it.
    """
    name, module = function.__name__, function.__module__
    called = f"{module}.{name}"
    own = namespace.get(name) if module in ("numpy", "numpy.lib.stride_tricks") else None
    if module in ("numpy.linalg", "numpy.fft"):
        own = getattr(namespace[module.removeprefix("numpy.")], name, None)
    shown = [*_shown(arguments), *(f"{keyword}=..." for keyword in keywords)]
    if not callable(own):
        raise DtypeError(describe(called, shown, f"{_NO_VALUE}; {_lacking(namespace, name)}", user_line()))
    given, named = _as_own(function, own, arguments, keywords)
    try:
        inspect.signature(own).bind(*given, **named)
    except TypeError as error:
        raise DtypeError(describe(called, shown, f"esat's {name}: {error}", user_line())) from None
    return own(*given, **named)


def _lacking(namespace: Mapping[str, Any], name: str) -> str:
    """That there is no function of a name, and which are close."""
    known = [own for own, value in namespace.items() if callable(value) and not own.startswith("_")]
    close = difflib.get_close_matches(name, known)
    return f"esat has no {name}" + (f" (did you mean: {', '.join(close)})" if close else "")


def _as_own(
    function: Callable[..., Any],
    own: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a function of NumPy as those of the function here of the same name.

    What is given by its place goes by its name from where parameters differ: NumPy's functions have more of
    them. One that has its default there and is unknown here says nothing, as ``out=None``, and is left out.
    """
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords)
        theirs = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return list(arguments), dict(keywords)
    ours = list(inspect.signature(own).parameters.values())
    known = {parameter.name for parameter in ours}
    given: list[Any] = []
    named: dict[str, Any] = {}
    for place, parameter in enumerate(theirs):
        if parameter.name not in bound.arguments:
            continue
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            given.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif place == len(given) < len(ours) and _by_place(parameter, ours[place]):
            given.append(value)
        elif parameter.name in known or value is not parameter.default:
            named[parameter.name] = value
    return given, named


def _by_place(theirs: inspect.Parameter, ours: inspect.Parameter) -> bool:
    """Whether a parameter of NumPy's is the one at the same place here."""
    if ours.kind is ours.POSITIONAL_ONLY or theirs.default is theirs.empty is ours.default:
        return True
    return ours.kind is ours.POSITIONAL_OR_KEYWORD and ours.name == theirs.name


def _shown(operands: Sequence[Any]) -> list[str]:
    """Operands as messages show them."""
    shown = []
    for operand in operands:
        if isinstance(operand, np.ndarray):
            shown.append(f"{operand.dtype} of shape {operand.shape}")
        elif isinstance(operand, (list, tuple)):
            shown.append(f"[{', '.join(_shown(operand))}]")
        else:
            shown.append(str(operand) if isinstance(operand, Variable) else repr(operand))
    return shown
