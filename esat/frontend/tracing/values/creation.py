"""NumPy's functions that make arrays, of sizes and numbers that may be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, describe
from esat.frontend.arrays import creation as own
from esat.frontend.tracing.code.outside import REASON
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import given, handed_out, holds_unknown, laid_out, settled
from esat.frontend.tracing.values.functions import as_symbol_array
from esat.graph.calls.callers import user_line
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc
from esat.ops.cast import cast


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> Any:
    """An array of nested lists of numbers and traced arrays; one of a traced array shares memory with it
    where NumPy's does."""
    made: Any = as_symbol_array(object)
    made = TracedArray(made.value) if made.is_scalar else made
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made = made.astype(dtype, order=order)
    elif made is object:
        made = made.copy(order) if copy else _in_order(made, order, copy)
    while made.ndim < ndmin:
        made = made[None]
    return made


def _in_order(array: TracedArray, order: Any, copy: Any) -> TracedArray:
    """An array itself, or a copy of it, where it does not lie in memory as is wanted."""
    if order not in ("C", "F"):
        return array
    found = array.layout.found()
    flags = None if found.example is None else found.example.flags
    lies_so = found.contiguous if order == "C" or flags is None else flags.f_contiguous
    if lies_so is None:
        lies_so = array.base is None
    if not lies_so and copy is False:
        reason = "the array does not lie in this order, and copy=False"
        raise ParameterError(
            describe("array", [array.variable.type, f"order={order!r}"], reason, user_line())
        )
    made = array[...] if lies_so else array.copy(order)
    made.decided_by(array, found)
    return made


def asarray(
    a: Any, dtype: Any = None, order: Any = "K", *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """An array of nested lists of numbers and traced arrays; a traced array itself, where NumPy does so."""
    return array(a, dtype, copy=copy, order=order or "K")


def _contiguous(order: str) -> Callable[..., Any]:
    def make(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
        return array(a, dtype, copy=None, order=order, ndmin=1)

    return make


def _sizes(shape: Any) -> Any:
    sizes = settled(shape)
    if type(shape) is TracedArray:
        sizes = [int(size) for size in shape]
    return sizes


def _filled(number: Any) -> Callable[..., Any]:
    def make(
        shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
    ) -> Any:
        return full(shape, number, dtype, order)

    return make


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of a shape, filled with a value that broadcasts to it."""
    sizes = _sizes(shape)
    value = given(fill_value)
    if not holds_unknown([sizes, value]):
        return TracedArray(np.full(sizes, value, dtype, order))
    symbol = as_symbol_array(value).variable
    symbol = symbol if dtype is None else cast(symbol, np.dtype(dtype))
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    result: Variable = alloc(symbol, *sizes)
    options = {"dtype": symbol.dtype, "order": order}
    return laid_out(TracedArray(result), np.empty, (result.tensor_type.shape,), options)


def _by_sizes(name: str) -> Callable[..., Any]:
    """A function of sizes and of options only: of what is unknown, esat's own."""

    def make(*arguments: Any, **keywords: Any) -> Any:
        named = {key: value for key, value in keywords.items() if key not in ("like", "device", "order")}
        values, options = settled(list(arguments)), settled(named)
        if holds_unknown([values, options]):
            return handed_out(getattr(own, name)(*values, **options))
        return handed_out(getattr(np, name)(*values, **options))

    return make


def _by_values(name: str) -> Callable[..., Any]:
    """A function of values first, then a count: bounds need not be known."""

    def make(start: Any, stop: Any, num: Any = 50, **keywords: Any) -> Any:
        bounds, options = given([start, stop]), settled(dict(keywords))
        return handed_out(getattr(own, name)(*bounds, settled(num), **options))

    return make


def _like(number: int) -> Callable[..., Any]:
    def make(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **rest: Any
    ) -> Any:
        return full_like(a, number, dtype, order, shape=shape)

    return make


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    **rest: Any,
) -> Any:
    """An array of the shape and dtype of another, filled with a value."""
    model = as_symbol_array(a)
    wanted = model.dtype if dtype is None else dtype
    made = full(model.shape if shape is None else shape, fill_value, wanted)
    return laid_out(made, np.empty_like, (model, wanted, order), {"shape": made.known_shape})


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **keywords: Any) -> Any:
    """What a function makes of the places of all elements."""
    return function(*handed_out(list(np.indices(settled(shape), dtype=dtype))), **keywords)


CREATING: dict[str, Callable[..., Any]] = {
    "array": array,
    "asarray": asarray,
    "asanyarray": asarray,
    "ascontiguousarray": _contiguous("C"),
    "asfortranarray": _contiguous("F"),
    "zeros": _filled(0),
    "ones": _filled(1),
    "empty": _filled(0),
    "full": full,
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "empty_like": _like(0),
    "full_like": full_like,
    "fromfunction": fromfunction,
    "linspace": _by_values("linspace"),
    "logspace": _by_values("logspace"),
    "geomspace": _by_values("geomspace"),
    **{name: _by_sizes(name) for name in ("arange", "eye", "identity", "tri")},
}
"""NumPy's functions by name that are called so where an argument is traced, or anything is made in a
trace."""


def refuse_drawing(name: str) -> Callable[..., Any]:
    """What stands in the place of NumPy's draws of random numbers, which a program would repeat for ever."""

    def refuse(*arguments: Any, **keywords: Any) -> Any:
        raise DtypeError(describe(f"numpy.random.{name}", [], REASON, user_line()))

    return refuse
