"""NumPy's and SciPy's functions called with a Variable: ``numpy.exp(x)`` is ``esat.exp(x)``.

NumPy hands such calls on by its protocols ``__array_ufunc__`` (NEP 13) and ``__array_function__`` (NEP 18);
SciPy's come from traced functions. :func:`own_function` says which function here computes what one of theirs
does (``docs/numpy.md``). Arguments are bound by the signature of theirs, since ours may have fewer parameters
or other defaults: ``scipy.linalg.qr`` gives all of Q. What has no function here, or asks for what only arrays
can do, is an error that names it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from esat.base.spelling import suggestion
from esat.errors import CallError, DtypeError, describe
from esat.frontend.linear_algebra.sparse_operators import sparse_operation
from esat.graph.calls.callers import user_line
from esat.graph.registry import register_functions
from esat.graph.sparse_type import holds_sparse
from esat.graph.variables import Variable

_NO_VALUE = "the function takes arrays, and a Variable has no value yet"
_IGNORED = frozenset(
    {"overwrite_a", "overwrite_b", "overwrite_x", "overwrite_ab", "check_finite", "lapack_driver", "lwork",
     "workers", "plan", "driver", "assume_a"}
)  # fmt: skip
"""Parameters of SciPy's that say how to compute, not what."""


def register_library_calls(namespace: Mapping[str, Any]) -> None:
    """Hand NumPy's calls on to the functions of a namespace. Repeating it changes nothing."""
    register_functions(
        {
            "call_ufunc": partial(call_ufunc, namespace),
            "call_numpy": partial(call_library, namespace),
            "as_tensor": namespace["as_tensor"],
        }
    )


def own_function(namespace: Mapping[str, Any], module: str, name: str) -> Any:
    """The function here that computes what ``module.name`` of NumPy's or SciPy's does, or None."""
    library, _, room = module.partition(".")
    own = _scipy_functions().get(f"{module}.{name}") if library == "scipy" else None
    if own is None and room in ("fft", "linalg"):
        own = getattr(namespace[room], name, None)
    if own is None and (library == "scipy" or room in ("", "lib.stride_tricks")):
        own = namespace.get(name)
    return own if callable(own) else None


def _scipy_functions() -> Mapping[str, Callable[..., Any]]:
    from esat.frontend.scipy_functions import FUNCTIONS  # of calls of SciPy's alone

    return FUNCTIONS


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
    module = "numpy"
    if getattr(np, name, None) is not ufunc:
        if getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
            raise DtypeError(describe(name, _shown(operands), f"{_NO_VALUE}; this one is unknown here"))
        module = "scipy.special"
    called = f"{module}.{name}"
    if method != "__call__":
        raise DtypeError(
            describe(f"{called}.{method}", _shown(operands), f"{_NO_VALUE}; use esat.sum, esat.cumsum, ...")
        )
    if "out" in options:
        reason = (
            "an array cannot hold a Variable, which has no value yet; without out= the result is a Variable"
        )
        raise DtypeError(describe(called, [*_shown(operands), "out=..."], reason))
    function = own_function(namespace, module, name)
    known = inspect.signature(function).parameters if options and function is not None else {}
    for option in options:
        if option not in known:
            raise DtypeError(
                describe(called, [*_shown(operands), f"{option}=..."], f"Variables take no {option}")
            )
    if any(map(holds_sparse, operands)):
        return sparse_operation(name, *operands)
    if function is None:
        raise _lacking(namespace, module, name, _shown(operands))
    return function(*operands, **options)


def call_library(
    namespace: Mapping[str, Any],
    function: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    module: str | None = None,
) -> Any:
    """A function of NumPy or SciPy, called with Variables among its arguments.

    Parameters
    ----------
    namespace
        The names of the package.
    function, arguments, keywords
        The function, and what it was called with.
    module
        Where it is public, if not where it says: SciPy's are defined in modules such as
        ``scipy.linalg._basic``.

    Raises
    ------
    DtypeError
        When there is no function of its name here.
    CallError
        When it takes no such arguments, or the function here lacks a parameter: the message names it.
    """
    name, module = function.__name__, module or function.__module__
    called = f"{module}.{name}"
    own = own_function(namespace, module, name)
    shown = [*_shown(arguments), *(f"{keyword}=..." for keyword in keywords)]
    if own is None:
        raise _lacking(namespace, module, name, shown)
    try:
        given, named = _as_own(function, own, arguments, keywords, module.startswith("scipy"))
        inspect.signature(own).bind(*given, **named)
    except TypeError as error:
        reason = f"esat's {name}: {error}; it takes {inspect.signature(own)}"
        raise CallError(describe(called, shown, reason, user_line())) from None
    return own(*given, **named)


def _lacking(namespace: Mapping[str, Any], module: str, name: str, shown: Sequence[str]) -> DtypeError:
    """That there is no function of a name, and which are close."""
    known = [own for own, value in namespace.items() if callable(value) and not own.startswith("_")]
    if module.startswith("scipy"):
        known += [one.rpartition(".")[2] for one in _scipy_functions() if one.startswith(f"{module}.")]
    reason = f"{_NO_VALUE}; esat has no {name}{suggestion(name, known)}"
    return DtypeError(describe(f"{module}.{name}", shown, reason, user_line()))


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _as_own(
    function: Callable[..., Any],
    own: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    with_defaults: bool,
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a function of a library as those of the function here.

    What is given by its place goes by its name from where parameters differ: theirs have more of them. One
    that has its default there and is unknown here says nothing, as ``out=None``, and is left out.

    Raises
    ------
    TypeError
        For arguments that theirs does not take.
    """
    signature = _signature(function)
    if signature is None:
        return list(arguments), dict(keywords)
    bound = signature.bind(*arguments, **keywords)
    if with_defaults:
        bound.apply_defaults()
    ours = list(inspect.signature(own).parameters.values())
    known = {parameter.name for parameter in ours}
    given: list[Any] = []
    named: dict[str, Any] = {}
    for place, parameter in enumerate(signature.parameters.values()):
        if parameter.name not in bound.arguments:
            continue
        value = bound.arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            given.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif place == len(given) < len(ours) and _by_place(parameter, ours[place]):
            given.append(value)
        elif parameter.name in known or not _says_nothing(parameter, value):
            named[parameter.name] = value
    return given, named


def _by_place(theirs: inspect.Parameter, ours: inspect.Parameter) -> bool:
    """Whether a parameter of theirs is the one at the same place here."""
    if ours.kind is ours.POSITIONAL_ONLY or theirs.default is theirs.empty is ours.default:
        return True
    return ours.kind is ours.POSITIONAL_OR_KEYWORD and ours.name == theirs.name


def _says_nothing(parameter: inspect.Parameter, value: Any) -> bool:
    """Whether a function without a parameter computes what one with this value of it does."""
    if parameter.name in _IGNORED or value is parameter.default:
        return True
    return not isinstance(value, (Variable, np.ndarray)) and bool(value == parameter.default)


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
