"""Python's functions and conversions of traced values: ``sum(x)``, ``max(a, b)``, ``float(x[0])``.

Python's own ask values for their truth, or make numbers of them, one by one. These give what Python's give,
as traced values, and are Python's own of all else.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.tracing.code.builtin_type import BuiltinType
from esat.frontend.tracing.trace import check, is_of_numbers
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.functions import as_symbol_array
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

_numpy: Any = np
_REPEATED = 4
"""Elements of an array from which a sum or an extremum is one step in place of one for each."""


def _is_unknown(value: Any) -> bool:
    kind = type(value)
    return kind is TracedNumber or (kind is TracedArray and isinstance(value.value, Variable))


def _is_scalar(value: Any) -> bool:
    """Whether a value is a number, or what NumPy has as one."""
    if type(value) is TracedArray:
        return value.ndim == 0
    return type(value) is TracedNumber or isinstance(value, (int, float, np.number, np.bool_))


def _is_vector(value: Any) -> bool:
    return _is_unknown(value) and type(value) is TracedArray and value.ndim == 1


def _is_long(value: Any) -> bool:
    if type(value) is not TracedArray or not _is_unknown(value) or not value.ndim:
        return False
    size = value.shape[0]
    return type(size) is TracedNumber or size > _REPEATED


def _len(obj: Any, /) -> Any:
    """Of an array, whose first size may be a number that is computed."""
    return obj.shape[0] if type(obj) is TracedArray and obj.ndim else builtins.len(obj)


def _sum(iterable: Any, /, start: Any = 0) -> Any:
    if _is_long(iterable) and type(start) is not str:
        added = _numpy.sum(iterable, axis=0, dtype=(start + iterable[0]).dtype)
        return added if type(start) is int and start == 0 else start + added
    return builtins.sum(iterable, start)


def _extremum(name: str, is_better: Callable[[Any, Any], Any], without_nan: Any) -> Callable[..., Any]:
    builtin = getattr(builtins, name)

    def extremum(*values: Any, **named: Any) -> Any:
        if named or not values:
            return builtin(*values, **named)
        if len(values) == 1 and _is_vector(values[0]) and _is_long(values[0]):
            (array,) = values
            if array.dtype.kind == "f":  # NaN is neither larger nor smaller, and stays where it comes first
                return _numpy.where(_numpy.isnan(array[0]), array[0], without_nan(array))[()]
            return getattr(array, name)()
        items = list(values[0] if len(values) == 1 else values)
        if not any(map(_is_unknown, items)) or not all(map(_is_scalar, items)):
            return builtin(items) if items else builtin(*values)
        best = items[0]
        for item in items[1:]:
            best = _chosen(is_better(item, best), item, best)
        return best

    return extremum


def _chosen(condition: Any, then: Any, otherwise: Any) -> Any:
    """One of two numbers, a number of Python's where both are."""
    kinds = {_kind(one) for one in (then, otherwise)}
    if not _is_unknown(condition):
        return then if condition else otherwise
    if None in kinds or len(kinds) > 1 or not _is_number(then) or not _is_number(otherwise):
        return _numpy.where(condition, then, otherwise)[()]
    chosen = op_named("switch")(condition.variable, *(_variable(one) for one in (then, otherwise)))
    return TracedNumber(chosen, kinds.pop())  # type: ignore[arg-type]


def as_array(value: Any) -> TracedArray:
    """A number as an array of rank 0."""
    return TracedArray(_variable(value))


def _kind(value: Any) -> type | None:
    kind = value.kind if type(value) is TracedNumber else type(value)
    return kind if kind in (int, float) else None


def _is_number(value: Any) -> bool:
    return _kind(value) is not None


def _variable(value: Any) -> Variable:
    return value.variable if type(value) in (TracedArray, TracedNumber) else as_variable(value)


def _all_or_any(name: str) -> Callable[[Iterable[Any]], Any]:
    builtin = getattr(builtins, name)
    ends = name == "any"

    def asked(iterable: Iterable[Any], /) -> Any:
        if _is_vector(iterable):
            return _truth(getattr(iterable, name)())
        unknown = []
        for item in iterable:
            if _is_unknown(item) and _is_scalar(item):
                unknown.append(_truth(item))
            elif bool(item) is ends:  # as the items before do not matter
                return ends
        if not unknown:
            return not ends
        return _truth(getattr(_numpy.stack([as_array(item) for item in unknown]), name)())

    asked.__doc__ = builtin.__doc__
    return asked


def _round(number: Any, ndigits: Any = None) -> Any:
    """To an integer of Python's, where no digits are asked for."""
    if type(number) is TracedArray and not number.is_scalar:
        raise DtypeError(describe("round", [], "it takes one number; np.round(x) rounds all", user_line()))
    is_one = _is_unknown(number)
    if ndigits is not None or not is_one or is_of_numbers(_variable(number)):
        return builtins.round(number, ndigits)
    if type(number) is not TracedNumber and number.dtype.kind in "bc":
        raise TypeError(f"type numpy.{number.dtype.type.__name__} doesn't define __round__ method")
    return whole_number(_variable(number), "rint")


def _sorted(iterable: Any, /, *, key: Any = None, reverse: Any = False) -> Any:
    if key is None and _is_vector(iterable):
        found = list(_numpy.sort(iterable))
        return found[::-1] if reverse else found
    return builtins.sorted(iterable, key=key, reverse=reverse)


def element_of(values: Any, index: Any) -> Any:
    """``values[index]`` of a list or tuple of numbers or arrays, whose place may be computed."""
    if not _is_unknown(index) or not _is_scalar(index) or is_of_numbers(_variable(index)):
        return values[index]
    array = _array_of(values)
    if array is None or _variable(index).tensor_type.kind not in "iu":
        return values[index]
    place = _variable(index)
    check(
        op_named("bitwise_or")(op_named("ge")(place, len(values)), op_named("lt")(place, -len(values))),
        IndexError(f"{type(values).__name__} index out of range"),
    )
    found = array[TracedArray(place, is_scalar=True)]
    kinds = {_kind(one) for one in values}
    return TracedNumber(found.variable, kinds.pop()) if len(kinds) == 1 and None not in kinds else found  # type: ignore[arg-type]


def _array_of(values: Any) -> Any:
    """Numbers, or arrays of one shape, as an array; None of what is something else, or of several types."""
    if all(_is_scalar(one) for one in values):
        dtypes = {one.dtype if hasattr(one, "dtype") else _kind(one) for one in values}
    elif all(isinstance(one, np.ndarray) for one in values):
        dtypes = {(one.dtype, tuple(one.shape)) for one in values}
    else:
        return None
    return as_symbol_array(list(values)) if len(dtypes) == 1 else None


def place_in_list(values: list[Any], value: Any, *bounds: Any) -> Any:
    """``values.index(value)``."""
    items = [*values, value]
    if bounds or not any(map(_is_unknown, items)) or not all(map(_is_scalar, items)):
        return values.index(value, *bounds)
    equal: Any = as_symbol_array(list(values)) == value
    check((~equal.any()).variable, ValueError(f"{value} is not in list"))
    return TracedNumber(equal.argmax().variable, int)


NAMED_BUILTINS: dict[str, Any] = {
    "type": BuiltinType,
    "len": _len,
    "sum": _sum,
    "max": _extremum("max", lambda a, b: a > b, np.fmax.reduce),
    "min": _extremum("min", lambda a, b: a < b, np.fmin.reduce),
    "any": _all_or_any("any"),
    "all": _all_or_any("all"),
    "sorted": _sorted,
    "round": _round,
}
"""Functions that stand for those of Python's of their names in code that is traced."""
_STANDING = {id(getattr(builtins, name)): one for name, one in NAMED_BUILTINS.items() if name != "type"}


def counterpart_of_builtin(value: Any) -> Any:
    """What stands for a function of Python's that is reached under another name."""
    return _STANDING.get(id(value), value) if type(value) is types.BuiltinFunctionType else value


# ---- conversions, which stand for types where these are called


def _truth(value: Any) -> Any:
    """``bool(x)``, which is not yet asked for."""
    if not _is_unknown(value) or not _is_scalar(value):
        return bool(value)
    variable = _variable(value)
    return TracedNumber(
        variable if variable.tensor_type.dtype == "bool" else op_named("ne")(variable, 0), bool
    )


def _single(value: Any, name: str) -> Variable:
    """The one element of an array."""
    if type(value) is TracedNumber:
        return value.variable
    if value.size != 1:
        reason = (
            f"an array of shape {value.shape} is no number; x.astype({name}) converts all of its elements"
        )
        raise DtypeError(describe(name, [], reason, user_line()))
    single: Variable = _variable(_numpy.reshape(value, ()) if value.ndim else value)
    if single.tensor_type.kind == "c" and name != "complex":
        raise TypeError(f"{name}() argument must be a string or a real number, not 'complex'")
    return single


def as_float(value: Any = 0.0, /) -> Any:
    """``float(x)``."""
    if not _is_unknown(value):
        return float(value)
    return TracedNumber(cast(_single(value, "float"), "float64"), float)


def as_integer(value: Any = 0, /, *base: Any, **named: Any) -> Any:
    """``int(x)``: sizes follow from it in most cases, so values of the call's numbers are asked for."""
    if not _is_unknown(value) or base or named:
        return int(value, *base, **named)
    single = _single(value, "int")
    return int(value) if is_of_numbers(single) else whole_number(single, "trunc")


def whole_number(variable: Variable, rounding: str) -> TracedNumber:
    """The integer that a number is rounded to, where Python raises errors for NaN and what is infinite."""
    if variable.tensor_type.kind == "f":
        check(op_named("isnan")(variable), ValueError("cannot convert float NaN to integer"))
        check(op_named("isinf")(variable), OverflowError("cannot convert float infinity to integer"))
        reason = "the number has no int64, in which programs compute with integers"
        error = DtypeError(describe("int", [], reason, user_line()))
        check(op_named("ge")(variable, 2.0**63), error)
        check(op_named("lt")(variable, -(2.0**63)), error)
        variable = op_named(rounding)(variable)
    return TracedNumber(cast(variable, "int64"), int)


def _complex(*parts: Any, **named: Any) -> Any:
    if len(parts) == 1 and not named and _is_unknown(parts[0]):
        return TracedNumber(cast(_single(parts[0], "complex"), "complex128"), complex)
    if len(parts) == 2 and any(map(_is_unknown, parts)):
        real, imaginary = (as_float(part) for part in parts)
        return real + imaginary * 1j
    return complex(*parts, **named)


CALLED_BUILTINS: dict[type, Any] = {float: as_float, int: as_integer, complex: _complex, bool: _truth}
"""Types of Python's -> what is called where they are called."""
