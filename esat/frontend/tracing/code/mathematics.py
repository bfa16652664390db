"""Python's ``math`` for traced values: numbers of Python's, and its errors where it raises such.

``math.sqrt(-1.0)`` is an error where ``numpy.sqrt(-1.0)`` is NaN, so a program checks arguments.
"""

from __future__ import annotations

import functools
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.tracing.code.builtin_functions import as_array, as_float, whole_number
from esat.frontend.tracing.trace import check, current_trace
from esat.frontend.tracing.values.convert import holds_unknown
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable

_LARGEST_EXPONENT = math.log(sys.float_info.max)
_numpy: Any = np

Bad = Callable[[Any], Any]
"""From arguments to whether Python raises an error for them."""

_INFINITE: Bad = np.isinf
_UNBOUNDED: Bad = lambda x: (_numpy.abs(x) > _LARGEST_EXPONENT + math.log(2.0)) & ~_numpy.isinf(x)  # noqa: E731


def _special(name: str) -> Callable[..., Any]:
    """SciPy's function of a traced number: without SciPy, which takes longer to import than esat."""
    return lambda x: op_named(name)(_variable(x))


_OF_ONE: dict[str, tuple[Any, Bad | None, float]] = {
    "sin": (np.sin, _INFINITE, math.inf),
    "cos": (np.cos, _INFINITE, math.inf),
    "tan": (np.tan, _INFINITE, math.inf),
    "asin": (np.arcsin, lambda x: _numpy.abs(x) > 1.0, 2.0),
    "acos": (np.arccos, lambda x: _numpy.abs(x) > 1.0, 2.0),
    "atan": (np.arctan, None, 0.0),
    "sinh": (np.sinh, _UNBOUNDED, 1e4),
    "cosh": (np.cosh, _UNBOUNDED, 1e4),
    "tanh": (np.tanh, None, 0.0),
    "asinh": (np.arcsinh, None, 0.0),
    "acosh": (np.arccosh, lambda x: x < 1.0, 0.0),
    "atanh": (np.arctanh, lambda x: _numpy.abs(x) >= 1.0, 2.0),
    "exp": (np.exp, lambda x: (x > _LARGEST_EXPONENT) & ~_numpy.isinf(x), 1e4),
    "exp2": (np.exp2, lambda x: (x >= sys.float_info.max_exp) & ~_numpy.isinf(x), 1e4),
    "expm1": (np.expm1, lambda x: (x > _LARGEST_EXPONENT) & ~_numpy.isinf(x), 1e4),
    "log": (np.log, lambda x: x <= 0.0, -1.0),
    "log2": (np.log2, lambda x: x <= 0.0, -1.0),
    "log10": (np.log10, lambda x: x <= 0.0, -1.0),
    "log1p": (np.log1p, lambda x: x <= -1.0, -2.0),
    "sqrt": (np.sqrt, lambda x: x < 0.0, -1.0),
    "cbrt": (np.cbrt, None, 0.0),
    "fabs": (np.fabs, None, 0.0),
    "degrees": (np.degrees, None, 0.0),
    "radians": (np.radians, None, 0.0),
    "erf": (_special("erf"), None, 0.0),
    "erfc": (_special("erfc"), None, 0.0),
    "gamma": (_special("gamma"), lambda x: (x <= 0.0) & (_numpy.floor(x) == x) | (x > 171.6), -1.0),
    "lgamma": (_special("gammaln"), lambda x: (x <= 0.0) & (_numpy.floor(x) == x), -1.0),
}
"""Functions of one number: NumPy's or SciPy's, for which arguments Python raises an error, and such a one."""

_OF_TWO: dict[str, Any] = {"atan2": np.arctan2, "copysign": np.copysign}
_ASKING: dict[str, Any] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def _error(function: Callable[..., Any], *arguments: float) -> Exception:
    """What Python raises for arguments: its words differ between versions."""
    try:
        function(*arguments)
    except (ValueError, OverflowError) as error:
        return error.with_traceback(None)
    raise AssertionError(f"{function.__name__}{arguments} raises nothing")


def _number(value: Any) -> TracedNumber:
    return TracedNumber(as_variable(getattr(value, "variable", value)), float)


def _variable(value: Any) -> Variable:
    return as_variable(getattr(value, "variable", value))


def _of_one(name: str) -> Callable[..., Any]:
    ufunc, is_bad, example = _OF_ONE[name]
    function = getattr(math, name)

    def call(x: Any) -> Any:
        number = as_float(x)
        if is_bad is not None:
            check(_variable(is_bad(number)), _error(function, example))
        return _number(ufunc(number))

    return call


def _log(x: Any, base: Any = None) -> Any:
    found = _of_one("log")(x) if holds_unknown(x) else math.log(x)
    if base is None:
        return found
    divisor = _of_one("log")(base) if holds_unknown(base) else math.log(base)
    return found / divisor


def _of_two(name: str) -> Callable[..., Any]:
    return lambda y, x: _number(_OF_TWO[name](as_float(y), as_float(x)))


def _asking(name: str) -> Callable[..., Any]:
    return lambda x: TracedNumber(_variable(_ASKING[name](as_float(x))), bool)


def _hypot(*coordinates: Any) -> Any:
    parts = [as_float(one) for one in coordinates]
    return _number(functools.reduce(np.hypot, parts[1:], np.fabs(parts[0])))


def _pow(x: Any, y: Any) -> Any:
    base, exponent = as_float(x), as_float(y)
    undefined = (base < 0.0) & (_numpy.floor(exponent) != exponent) & _numpy.isfinite(base)
    check(_variable(undefined), _error(math.pow, -1.0, 0.5))
    check(
        _variable((base == 0.0) & (exponent < 0.0) & _numpy.isfinite(exponent)), _error(math.pow, 0.0, -1.0)
    )
    result = _numpy.power(base, exponent)
    finite = _numpy.isfinite(base) & _numpy.isfinite(exponent)
    check(_variable(_numpy.isinf(result) & finite), _error(math.pow, 1e300, 2.0))
    return _number(result)


def _fmod(x: Any, y: Any) -> Any:
    number, divisor = as_float(x), as_float(y)
    check(_variable((divisor == 0.0) | _numpy.isinf(number)), _error(math.fmod, 1.0, 0.0))
    return _number(_numpy.fmod(number, divisor))


def _whole(name: str) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        return whole_number(op_named("mul")(_variable(x), 1), name)

    return call


def _dist(p: Any, q: Any) -> Any:
    return _hypot(*(as_float(a) - as_float(b) for a, b in zip(p, q, strict=True)))


def _sum(values: Any) -> Any:
    return _number(_numpy.sum(_numpy.stack([as_array(as_float(one)) for one in values])))


def _prod(values: Any, *, start: Any = 1) -> Any:
    return functools.reduce(lambda a, b: a * b, values, start)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    one, other = as_float(a), as_float(b)
    scale = _numpy.maximum(_numpy.abs(one), _numpy.abs(other))
    close = _numpy.abs(one - other) <= _numpy.maximum(rel_tol * scale, abs_tol)
    finite = _numpy.isfinite(one) & _numpy.isfinite(other)
    return TracedNumber(_variable((one == other) | (close & finite)), bool)


_TRACED: dict[str, Callable[..., Any]] = {
    **{name: _of_one(name) for name in _OF_ONE if hasattr(math, name)},
    **{name: _of_two(name) for name in _OF_TWO},
    **{name: _asking(name) for name in _ASKING},
    **{name: _whole(name) for name in ("floor", "ceil", "trunc")},
    "log": _log, "hypot": _hypot, "pow": _pow, "fmod": _fmod, "dist": _dist, "fsum": _sum, "prod": _prod,
    "isclose": _isclose,
}  # fmt: skip


def _standing_for(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        values = [list(one) if type(one) is not tuple and _is_iterable(one) else one for one in arguments]
        if not holds_unknown([values, keywords]):
            return function(*values, **keywords)
        if name in _OF_ONE and type(values[0]) is list:
            reason = f"it takes a number, and this is an array; np.{name} takes each element"
            raise DtypeError(describe(f"math.{name}", [], reason, user_line()))
        if name not in _TRACED:
            reason = "math has no such function of values that only a call knows; use one of NumPy's"
            raise DtypeError(describe(f"math.{name}", values, reason, user_line()))
        return _TRACED[name](*values, **keywords)

    return call


def _is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") and getattr(value, "ndim", 1) != 0


_STANDING = {getattr(math, name): _standing_for(name) for name in dir(math) if callable(getattr(math, name))
             and not name.startswith("_")}  # fmt: skip


def counterpart_of_math(value: Any) -> Any:
    """What stands for a function of ``math`` in a trace; anything else is itself."""
    if type(value) is not types.BuiltinFunctionType or current_trace() is None:
        return value
    return _STANDING.get(value, value) if getattr(value, "__module__", "") == "math" else value


@functools.cache
def math_module() -> types.ModuleType:
    """What stands for the module ``math`` in a trace."""
    module = types.ModuleType("math", math.__doc__)
    vars(module).update(
        {name: _STANDING.get(one, one) if callable(one) else one for name, one in vars(math).items()}
    )
    return module
