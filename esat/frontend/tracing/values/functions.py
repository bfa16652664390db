"""NumPy's functions of traced arrays that are no ufuncs: those that make views, that write, and all
others."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.frontend.arrays.indexing import set_subtensor
from esat.frontend.library_calls import call_library
from esat.frontend.tensor import as_tensor
from esat.frontend.tracing.values.arrays import TracedArray, Value
from esat.frontend.tracing.values.convert import (
    ResultPart,
    as_symbol,
    given,
    handed_out,
    holds_unknown,
    laid_out,
    layout_made_by,
    mapped,
    settled,
)
from esat.frontend.tracing.values.layouts import KnownLayout, shares_memory
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.frontend.tracing.values.ufuncs import store
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange, eye
from esat.ops.cast import cast

Namespace = Mapping[str, Any]
Arguments = Sequence[Any]
Keywords = Mapping[str, Any]

_RESHAPING = ("reshape", "ravel", "squeeze", "expand_dims")
"""Functions whose views have all elements in their order."""
_VIEWS = frozenset(
    {
        *_RESHAPING, "transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "matrix_transpose",
        "atleast_1d", "atleast_2d", "atleast_3d", "flip", "fliplr", "flipud", "rot90", "diagonal", "diag",
        "broadcast_to", "real", "imag", "real_if_close", "split", "array_split", "hsplit", "vsplit", "dsplit",
        "unstack", "einsum", "sliding_window_view",
    }
)  # fmt: skip
"""Functions whose results are views of an argument, where NumPy's memory allows it."""
_BY_ORDER = ("reshape", "ravel")
"""Functions of which memory order decides whether the result is a view."""
_ARRAYS = ("where", "pad", "select", "piecewise", "tensordot", "broadcast_to", "roll", "cov", "cross", "i0")
"""Functions whose results of rank 0 are arrays; those of others are NumPy's scalars."""
_REDUCING = (
    "sum", "prod", "mean", "std", "var", "max", "min", "amax", "amin", "any", "all", "cumsum", "cumprod",
    "ptp",
)  # fmt: skip
"""Functions whose results are cast to the dtype of ``out=``, whatever it is."""
_OF_SEQUENCES = frozenset(
    {
        "concatenate", "concat", "stack", "hstack", "vstack", "dstack", "column_stack", "row_stack", "block",
        "select", "choose", "piecewise", "multi_dot", "lexsort", "ravel_multi_index", "broadcast_arrays",
        "ix_", "meshgrid", "einsum", "histogramdd", "average", "put", "copyto", "append", "insert",
    }
)  # fmt: skip
"""Functions that take several arrays in a list; what others are given in one is an array."""
_CALLING = ("apply_along_axis", "piecewise")
"""Functions that call functions of the user's."""
_WEAK = ("where", "clip", "full_like", "dot", "interp", "linspace", "isclose", "nan_to_num", "select", "pad")
"""Functions whose Python numbers are values, not sizes: they need not be known."""


def _is_list_of_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        _is_list_of_arrays(one) or isinstance(one, (TracedArray, Variable)) for one in value
    )


def traced_function(
    namespace: Namespace, function: Callable[..., Any], arguments: Arguments, keywords: Keywords
) -> Any:
    """A function of NumPy, called with traced arrays among its arguments.

    Raises
    ------
    DtypeError
        When esat has no function of its name, or this one lacks a parameter; the message names it.
    """
    name = function.__name__
    keywords = {key: value for key, value in keywords.items() if value is not np._NoValue}
    if name in _OWN:
        return _OWN[name](*arguments, **keywords)
    keywords = dict(keywords)
    if name == "nan_to_num" and keywords.get("copy") is False:
        keywords.update(copy=True, out=arguments[0])
    out = keywords.pop("out", None)
    if out is not None:
        result = traced_function(namespace, function, arguments, keywords)
        store(out, result, "unsafe" if name in _REDUCING else "same_kind")
        return out
    if name not in _OF_SEQUENCES:
        arguments = [as_symbol_array(one) if _is_list_of_arrays(one) else one for one in arguments]
    if name in ("atleast_1d", "atleast_2d", "atleast_3d") and len(arguments) > 1:
        return tuple(function(one) for one in arguments)
    if name in _VIEWS:
        place = 1 if name == "einsum" else 0
        viewed = arguments[place] if len(arguments) > place else None
        if type(viewed) is TracedArray and not (name == "einsum" and len(arguments) > 2):
            if keywords.pop("copy", False):
                viewed = viewed.copy("K")
            before, after = settled(list(arguments[:place])), settled(list(arguments[place + 1 :]))
            return _view(namespace, _ViewFunction(function, before, after, settled(keywords)), viewed)
    found = handed_out(_called(namespace, function, arguments, keywords))
    if name in _ARRAYS and type(found) is TracedArray and found.is_scalar:
        return TracedArray(found.value)
    return laid_out(found, function, arguments, keywords)


def _called(
    namespace: Namespace, function: Callable[..., Any], arguments: Arguments, keywords: Keywords
) -> Any:
    """The result as arrays or Variables."""
    if not holds_unknown([arguments, keywords]):
        plain, named = mapped(list(arguments), _plain), mapped(dict(keywords), _plain)
        return function(*plain, **named)
    if function.__name__ in _CALLING:
        arguments = mapped(list(arguments), _of_variables)
    change = given if function.__name__ in _WEAK else settled
    values = [change(value) for value in arguments]
    return call_library(namespace, function, values, change(dict(keywords)))


def _of_variables(value: Any) -> Any:
    """A user's function of arrays as one of Variables."""
    if not callable(value) or isinstance(value, (Variable, TracedArray, TracedNumber)):
        return value
    return lambda *arguments, **keywords: as_symbol_array(value(*handed_out(arguments), **keywords)).variable


def _plain(value: Any) -> Any:
    return value.value if type(value) is TracedArray else value


# ---- views


class _ViewFunction:
    """A function of NumPy's that gives a view, or several in a list, as a function of the array alone."""

    def __init__(
        self, function: Callable[..., Any], before: Arguments, after: Arguments, keywords: Keywords
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.before, self.after, self.keywords = before, after, keywords

    def __call__(self, array: Any) -> Any:
        return self.function(*self.before, array, *self.after, **self.keywords)

    def symbolic(self, namespace: Namespace, value: Value) -> Any:
        return _called(namespace, self.function, [*self.before, value, *self.after], self.keywords)


def _view(namespace: Namespace, view: _ViewFunction, array: TracedArray) -> Any:
    """The result of a function that gives a view, or several in a list."""
    read = functools.partial(view.symbolic, namespace)
    result = read(array.value)
    if array.is_scalar:
        return handed_out(result)
    if isinstance(result, (list, tuple)):
        several = [
            _viewed(array, ResultPart(read, place), ResultPart(view, place), part)
            for place, part in enumerate(result)
        ]
        return several if isinstance(result, list) else tuple(several)
    if result.ndim == 0 and view.name == "einsum":
        return handed_out(result)
    if view.name in ("real", "imag") and array.dtype.kind != "c":
        return array if view.name == "real" else handed_out(result)
    found = array.layout.found()
    shared, writeable = _shares(view, array, found)
    made = _viewed(array, read, view, result, writeable) if shared else handed_out(result)
    if not shared:
        laid_out(made, view, (array,), {})
    if view.name in _BY_ORDER:
        made.decided_by(array, found)
    return made


def _shares(view: _ViewFunction, array: TracedArray, found: KnownLayout) -> tuple[bool, bool]:
    """Whether a result is a view in NumPy, and one that can be written to."""
    if found.example is None and view.name in _BY_ORDER:
        return bool(found.contiguous) or array.base is None, True
    # Where sizes are unknown, others tell as well whether there is a view.
    example = np.zeros((2,) * array.ndim, array.dtype) if found.example is None else found.example
    try:
        made = view(example)
    except (TypeError, ValueError, LookupError):  # of sizes that are unknown
        return True, view.name != "broadcast_to"
    return shares_memory(made, example), made.flags.writeable


def _viewed(
    array: TracedArray,
    read: Callable[[Value], Any],
    view: Callable[[Any], Any],
    result: Any,
    writeable: bool = True,
) -> TracedArray:
    """A view of an array, whose present value is known."""
    name = view.name if isinstance(view, _ViewFunction) else ""
    write: Any = _Scatter(view)
    if name in ("real", "imag"):
        write = _real_written if name == "real" else _imag_written
    elif name in _RESHAPING:
        write = _reshaped
    layout = layout_made_by(view, (array,), result, name in _RESHAPING)
    return TracedArray(None, base=array, read=read, write=write if writeable else None, layout=layout)


def flat_of(array: TracedArray) -> TracedArray:
    """All elements in C order, as a view whether they lie so in memory or not."""
    return TracedArray(
        None,
        base=array,
        read=lambda value: value.reshape((-1,)),
        write=_Scatter(lambda places: places.reshape(-1)),
    )


class _Scatter:
    """Writes a view by the places of its elements among those of the base.

    Parameters
    ----------
    view
        The function that makes the view, of an array of places.
    """

    def __init__(self, view: Callable[[np.ndarray[Any, Any]], Any]) -> None:
        self.view = view

    def __call__(self, value: Value, part: Value) -> Value:
        shape = value.tensor_type.shape if isinstance(value, Variable) else value.shape
        if None in shape:
            reason = "a view of an array whose size is not known cannot be written to"
            raise DtypeError(describe("assignment", [as_variable(value).type], reason, user_line()))
        size = math.prod(int(one) for one in shape if one is not None)
        places = np.asarray(self.view(np.arange(size).reshape(shape)))
        if not isinstance(value, Variable) and not isinstance(part, Variable):
            changed = value.copy()
            changed.reshape(-1)[places] = part
            return changed
        flat = as_variable(part).reshape((-1,))
        if places.size == size:  # every place once
            return flat[np.argsort(places, axis=None)].reshape(shape)
        written = set_subtensor(as_variable(value).reshape((-1,))[places.reshape(-1)], flat)
        result: Value = written.reshape(shape)
        return result


def _reshaped(value: Value, part: Value) -> Value:
    """The base of a view that has all of its elements in their order."""
    if isinstance(value, Variable):
        known = value.tensor_type.shape
        shape: Any = value.shape if None in known else known
    else:
        shape = value.shape
    return part.reshape(shape)


def _real_written(value: Value, part: Value) -> Variable:
    result: Variable = part + 1j * op_named("imag")(value)
    return cast(result, str(value.dtype))


def _imag_written(value: Value, part: Value) -> Variable:
    result: Variable = op_named("real")(value) + 1j * as_variable(part)
    return cast(result, str(value.dtype))


# ---- functions that say what is known, or write


def _known(name: str) -> Callable[[Any], Any]:
    def ask(a: Any, *rest: Any, **keywords: Any) -> Any:
        if type(a) is TracedArray:
            return getattr(a, name)
        return getattr(as_symbol_array(a), name)

    return ask


def as_symbol_array(value: Any) -> TracedArray:
    """A value of any kind, lists of traced arrays included, as a traced array."""
    if type(value) is TracedArray:
        return value
    if isinstance(value, (list, tuple)) and holds_unknown(value):
        return TracedArray(as_tensor(mapped(value, _weak_or_symbol)))
    if holds_unknown(value):
        return TracedArray(as_symbol(value))
    return TracedArray(np.array(mapped(value, _plain)))


def _weak_or_symbol(value: Any) -> Any:
    return value if type(value) is TracedNumber else as_symbol(value)


def _size(a: Any, axis: Any = None) -> Any:
    array = as_symbol_array(a)
    return array.size if axis is None else array.shape[axis]


def _of_dtypes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that asks for dtypes only."""

    def ask(*arguments: Any, **keywords: Any) -> Any:
        return function(*(_example(one) for one in arguments), **keywords)

    return ask


def _example(value: Any) -> Any:
    if type(value) is TracedArray:
        return np.empty((0,), value.dtype)
    return value.kind(0) if type(value) is TracedNumber else value


def _copy(a: Any, order: Any = "K", subok: bool = False) -> TracedArray:
    copied = as_symbol_array(a).copy(order)
    return TracedArray(copied.value) if copied.is_scalar else copied


def _broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Any, ...]:
    arrays = [as_symbol_array(one) for one in args]
    shapes = [one.known_shape for one in arrays]
    if None in shapes:
        reason = "sizes that are not known do not tell the shape; use esat.broadcast_to"
        raise DtypeError(
            describe("broadcast_arrays", [one.variable.type for one in arrays], reason, user_line())
        )
    shape = np.broadcast_shapes(*(known for known in shapes if known is not None))
    return tuple(
        one if known == shape else np.broadcast_to(one, shape)
        for one, known in zip(arrays, shapes, strict=True)
    )


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is not True and type(dst) is TracedArray:
        chosen = op_named("switch")(as_symbol(where), cast(as_symbol(src), dst.dtype), dst.variable)
        return store(dst, chosen, "unsafe")
    return store(dst, as_symbol_array(src) if isinstance(src, (list, tuple)) else src, casting)


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if a.ndim == 2 and not wrap and any(type(size) is TracedNumber for size in a.shape):
        rows, columns = (size.size_or_variable() if type(size) is TracedNumber else size for size in a.shape)
        values = as_symbol_array(np.ravel(val))
        chosen = as_symbol(values[handed_out(arange(rows)) % values.size][:, None])
        on_diagonal = eye(rows, columns, 0, "bool")
        store(a, op_named("switch")(on_diagonal, cast(chosen, a.dtype), a.variable), "unsafe")
    elif wrap or a.ndim != 2:
        places = np.zeros(a.shape, bool)
        np.fill_diagonal(places, True, wrap)
        a[np.nonzero(places)] = val
    else:
        count = min(a.shape)
        a[np.arange(count), np.arange(count)] = val


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    flat = flat_of(a)
    values: Any = np.ravel(v)
    count = np.size(ind)
    repeated = (
        np.resize(values, count)
        if type(values) is not TracedArray
        else values[np.arange(count) % len(values)]
    )
    flat[np.ravel(ind)] = repeated


def _putmask(a: Any, mask: Any, values: Any) -> None:
    """Values are repeated by the places of all elements, masked or not."""
    chosen: Any = np.reshape(mask, np.shape(a))
    if np.shape(values) != np.shape(a):
        flat: Any = as_symbol_array(np.ravel(values))
        values = np.reshape(flat[np.arange(np.size(a)) % len(flat)], np.shape(a))
    _copyto(a, values, "unsafe", chosen)


def _place(arr: Any, mask: Any, vals: Any) -> None:
    """Values are repeated by the number of elements before them that the mask chooses."""
    values: Any = as_symbol_array(np.ravel(vals))
    chosen: Any = np.not_equal(np.ravel(mask), 0)
    if len(values) == 0:
        raise ShapeError(describe("numpy.place", [], "there are no values to put", user_line()))
    before = np.cumsum(chosen) - 1
    _copyto(
        arr,
        np.reshape(values[before % len(values)], np.shape(arr)),
        "unsafe",
        np.reshape(chosen, np.shape(arr)),
    )


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    if axis is None:
        flat = flat_of(arr)
        flat[np.ravel(indices)] = np.ravel(values) if np.ndim(values) else values
        return
    ndim = np.ndim(indices)
    axis = axis % ndim
    shape = np.shape(indices)
    index = [
        indices
        if place == axis
        else np.arange(shape[place]).reshape([-1 if k == place else 1 for k in range(ndim)])
        for place in range(ndim)
    ]
    arr[tuple(index)] = values


def _text(a: Any, *rest: Any, **keywords: Any) -> str:
    return repr(a)


_OWN: dict[str, Callable[..., Any]] = {
    "isscalar": lambda element: type(element) is TracedNumber or isinstance(element, np.generic),
    "shape": _known("shape"),
    "ndim": _known("ndim"),
    "size": _size,
    "iscomplexobj": _of_dtypes(np.iscomplexobj),
    "isrealobj": _of_dtypes(np.isrealobj),
    "result_type": _of_dtypes(np.result_type),
    "can_cast": _of_dtypes(np.can_cast),
    "common_type": _of_dtypes(np.common_type),
    "min_scalar_type": _of_dtypes(np.min_scalar_type),
    "copy": _copy,
    "broadcast_arrays": _broadcast_arrays,
    "copyto": _copyto,
    "fill_diagonal": _fill_diagonal,
    "put": _put,
    "putmask": _putmask,
    "place": _place,
    "put_along_axis": _put_along_axis,
    "array_repr": _text,
    "array_str": _text,
    "array2string": _text,
}


def traced_astype(array: Any, dtype: Any, order: str, casting: str, copy: bool) -> Any:
    """``x.astype``: another array, or the same where it need not be."""
    wanted = np.dtype(dtype)
    if not np.can_cast(array.dtype, wanted, casting):  # type: ignore[arg-type]
        reason = f"cannot cast from {array.dtype} to {wanted} by {casting!r}"
        raise DtypeError(describe("astype", [array.variable.type], reason, user_line()))
    if not copy and array.dtype == wanted:
        return array
    value = array.value
    if isinstance(value, Variable):
        result = TracedArray(cast(value, wanted), is_scalar=array.is_scalar)
    else:
        with np.errstate(all="ignore"):
            result = TracedArray(value.astype(wanted))
    return laid_out(result, np.ndarray.astype, (array, wanted), {"order": order})
