"""Between traced objects, Variables and NumPy's arrays, within tuples, lists and dicts too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.errors import EsatWarning
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.values.arrays import TracedArray, Value
from esat.frontend.tracing.values.layouts import MemoryLayout
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.tracing import Traced
from esat.graph.variables import Variable

LARGE_CONSTANT = 1 << 22
"""Bytes from which an array that a function takes from outside is worth a warning."""


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with all that tuples, lists, dicts and slices in it hold changed."""
    if isinstance(value, tuple):
        parts = [mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [mapped(part, change) for part in value]
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(part, change) for part in (value.start, value.stop, value.step)))
    return change(value)


def given(value: Any) -> Any:
    """What functions of Variables take: a Variable or array for a traced array; numbers stay weak."""
    return mapped(value, _given)


def _given(value: Any) -> Any:
    if type(value) is TracedArray:
        return value.value
    if type(value) is np.ndarray:
        note_constant(value)
    return value


def settled(value: Any) -> Any:
    """As :func:`given`, with numbers as arguments that say how, not what: their values are asked for."""
    return mapped(value, _settled)


def _settled(value: Any) -> Any:
    return value.size_or_variable() if isinstance(value, TracedNumber) else _given(value)


def handed_out(value: Any) -> Any:
    """What a traced function is handed: traced arrays in place of Variables and arrays."""
    return mapped(value, _handed_out)


def _handed_out(value: Any) -> Any:
    if isinstance(value, Variable):
        return TracedArray(value, is_scalar=getattr(value.type, "ndim", None) == 0)
    if type(value) is np.ndarray:
        return TracedArray(value)
    return value


_REORDERING = ("getitem", "concatenate", "stack", "hstack", "dstack", "column_stack", "block")
"""Functions whose results may lie otherwise than in C order where all operands do so."""


def laid_out(
    result: Any, made_by: Callable[..., Any], operands: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """A result that is handed out, whose arrays lie in memory as a function of NumPy's makes them."""
    if isinstance(result, (tuple, list)):
        for place, part in enumerate(result):
            laid_out(part, ResultPart(made_by, place), operands, options)
    elif type(result) is TracedArray and result.ndim > 1:
        keeps_order = getattr(made_by, "__name__", "") not in _REORDERING
        result.lies_as(layout_made_by(made_by, operands, result.value, keeps_order, options))
    return result


def layout_made_by(
    made_by: Callable[..., Any],
    operands: Sequence[Any],
    result: Value,
    keeps_order: bool,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> MemoryLayout:
    """How a result lies in memory that a function of NumPy's makes of traced arrays and others."""
    shape: Any = result.tensor_type.shape if isinstance(result, Variable) else result.shape
    used, named = mapped(list(operands), _layout), mapped(dict(options), _layout)
    return MemoryLayout(None if None in shape else shape, result.dtype, made_by, used, named, keeps_order)


def _layout(value: Any) -> Any:
    if type(value) is TracedArray:
        return value.layout
    if isinstance(value, Variable):
        return TracedArray(value).layout
    return value.kind(0) if type(value) is TracedNumber else value


class ResultPart:
    """One of the results of a function."""

    def __init__(self, function: Callable[..., Any], place: int) -> None:
        self.function = function
        self.place = place

    def __call__(self, *operands: Any, **options: Any) -> Any:
        return self.function(*operands, **options)[self.place]


def holds_unknown(value: Any) -> bool:
    """Whether there is anything in a value that only a call can know."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_unknown, value))
    if isinstance(value, dict):
        return any(map(holds_unknown, value.values()))
    if isinstance(value, slice):
        return any(map(holds_unknown, (value.start, value.stop, value.step)))
    if type(value) is TracedArray:
        return isinstance(value.value, Variable)
    return isinstance(value, (Variable, TracedNumber))


def holds_traced(value: Any) -> bool:
    """Whether there is a traced object in a value, or a Variable."""
    if isinstance(value, (tuple, list)):
        return any(map(holds_traced, value))
    if isinstance(value, dict):
        return any(map(holds_traced, value.values()))
    if isinstance(value, slice):
        return any(map(holds_traced, (value.start, value.stop, value.step)))
    return isinstance(value, (Variable, Traced))


def call_adapted(function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A function of Variables, called by a traced function; see :func:`esat.graph.tracing.adapting`."""
    return handed_out(function(*given(arguments), **given(keywords)))


def as_symbol(value: Any) -> Variable:
    """The Variable of a traced object, array or number."""
    return as_variable(_given(value))


def note_constant(array: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Warn where a large array from outside the function becomes part of its program."""
    trace = current_trace()
    if trace is None or array.nbytes < LARGE_CONSTANT or id(array) in trace.warned:
        return
    trace.warned.add(id(array))
    line = user_line()
    place = "" if line is None else f"\n  at {line[0]}:{line[1]}"
    warnings.warn(
        f"{trace.name} holds an array of {array.nbytes / 1e6:.1f} MB that is no argument of it: its present "
        f"values are copied into the program, and later changes are not seen; pass it as an argument{place}",
        EsatWarning,
        stacklevel=2,
    )
