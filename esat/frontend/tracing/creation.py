"""NumPy's functions that make arrays, of sizes and numbers that may be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend import creation as own
from esat.frontend.tracing.arrays import TracedArray
from esat.frontend.tracing.convert import given, handed_out, holds_unknown, settled
from esat.frontend.tracing.functions import as_symbol_array
from esat.graph.callers import user_line
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.creation import alloc


def array(
    object: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> Any:
    """A new array of nested lists of numbers and traced arrays."""
    made = asarray(object, dtype)
    if type(made) is TracedArray and (made.is_scalar or (copy and made is object)):
        made = TracedArray(made.value)
    while type(made) is TracedArray and made.ndim < ndmin:
        made = made[None]
    return made


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """An array of nested lists of numbers and traced arrays; a traced array itself."""
    made = as_symbol_array(a)
    made = TracedArray(made.value) if made.is_scalar else made
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made = made.astype(dtype)
    return made.copy() if copy and made is a else made


def _sizes(shape: Any) -> Any:
    sizes = settled(shape)
    if type(shape) is TracedArray:
        sizes = [int(size) for size in shape]
    return sizes


def _filled(number: Any) -> Callable[..., Any]:
    def make(
        shape: Any, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
    ) -> Any:
        return full(shape, number, dtype)

    return make


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Any:
    """An array of a shape, filled with a value that broadcasts to it."""
    sizes = _sizes(shape)
    value = given(fill_value)
    if not holds_unknown([sizes, value]):
        return TracedArray(np.full(sizes, value, dtype))
    symbol = as_symbol_array(value).variable
    symbol = symbol if dtype is None else cast(symbol, np.dtype(dtype))
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    result: Variable = alloc(symbol, *sizes)
    return TracedArray(result)


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
        return full_like(a, number, dtype, shape=shape)

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
    return full(model.shape if shape is None else shape, fill_value, wanted)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **keywords: Any) -> Any:
    """What a function makes of the places of all elements."""
    return function(*handed_out(list(np.indices(settled(shape), dtype=dtype))), **keywords)


CREATING: dict[str, Callable[..., Any]] = {
    "array": array,
    "asarray": asarray,
    "asanyarray": asarray,
    "ascontiguousarray": asarray,
    "asfortranarray": asarray,
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
        reason = (
            "it would be drawn once, while the function is traced, and be the same in every call; draw from "
            "an esat.random.RandomStream, or pass the numbers as arguments"
        )
        raise DtypeError(describe(f"numpy.random.{name}", [], reason, user_line()))

    return refuse
