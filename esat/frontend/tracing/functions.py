"""NumPy's functions of traced arrays that are no ufuncs: those that make views, that write, and all
others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.indexing import set_subtensor
from esat.frontend.numpy_calls import call_numpy
from esat.frontend.tensor import as_tensor
from esat.frontend.tracing.arrays import TracedArray, Value
from esat.frontend.tracing.convert import as_symbol, given, handed_out, holds_unknown, mapped, settled
from esat.frontend.tracing.numbers import TracedNumber
from esat.frontend.tracing.ufuncs import store
from esat.graph.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

Namespace = Mapping[str, Any]
Arguments = Sequence[Any]
Keywords = Mapping[str, Any]

_TRANSPOSING = ("transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "matrix_transpose")
_VIEWS = frozenset(
    {
        *_TRANSPOSING, "reshape", "ravel", "squeeze", "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d",
        "flip", "fliplr", "flipud", "rot90", "diagonal", "broadcast_to", "real", "imag", "split",
        "array_split", "hsplit", "vsplit", "dsplit", "unstack",
    }
)  # fmt: skip
"""Functions whose results are views of their first argument, where NumPy's memory allows it."""
_READ_ONLY = ("diagonal", "broadcast_to")
_CALLING = ("apply_along_axis", "piecewise")
"""Functions that call functions of the user's."""
_WEAK = ("where", "clip", "full_like", "dot", "interp", "linspace", "isclose", "nan_to_num", "select", "pad")
"""Functions whose Python numbers are values, not sizes: they need not be known."""


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
    out = keywords.pop("out", None)
    if out is not None:
        store(out, traced_function(namespace, function, arguments, keywords))
        return out
    first = arguments[0] if arguments else None
    if name in _VIEWS and type(first) is TracedArray and len(arguments) + len(keywords) >= 1:
        return _view(namespace, function, first, arguments[1:], keywords)
    return handed_out(_called(namespace, function, arguments, keywords))


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
    return call_numpy(namespace, function, values, change(dict(keywords)))


def _of_variables(value: Any) -> Any:
    """A user's function of arrays as one of Variables."""
    if not callable(value) or isinstance(value, (Variable, TracedArray, TracedNumber)):
        return value
    return lambda *arguments, **keywords: as_symbol_array(value(*handed_out(arguments), **keywords)).variable


def _plain(value: Any) -> Any:
    return value.value if type(value) is TracedArray else value


# ---- views


def _view(
    namespace: Namespace,
    function: Callable[..., Any],
    array: TracedArray,
    rest: Arguments,
    keywords: Keywords,
) -> Any:
    """The result of a function that gives a view, or several in a list."""
    rest, keywords = settled(list(rest)), settled(dict(keywords))

    def read(value: Value) -> Any:
        return _called(namespace, function, [value, *rest], keywords)

    result = read(array.value)
    if isinstance(result, (list, tuple)):
        several = [
            TracedArray(
                None,
                base=array,
                read=_Part(read, place),
                write=_Scatter(_Part(lambda places: function(places, *rest, **keywords), place)),
            )
            for place in range(len(result))
        ]
        return several if isinstance(result, list) else tuple(several)
    if not _shares_memory(function, array, rest, keywords):
        return handed_out(result)
    if array.is_scalar and result.ndim == 0:
        return handed_out(result)
    write: Any = None
    if function.__name__ in ("real", "imag"):
        write = _real_written if function.__name__ == "real" else _imag_written
        if array.dtype.kind != "c":
            return array if function.__name__ == "real" else handed_out(result)
    elif function.__name__ in ("reshape", "ravel", "squeeze", "expand_dims"):
        write = _reshaped
    elif function.__name__ not in _READ_ONLY:
        write = _Scatter(lambda places: function(places, *rest, **keywords))
    return TracedArray(None, base=array, read=read, write=write)


def _shares_memory(
    function: Callable[..., Any], array: TracedArray, rest: Arguments, keywords: Keywords
) -> bool:
    """Whether NumPy's result is a view: of arrays that lie in memory as these do."""
    if function.__name__ not in ("reshape", "ravel"):
        return True
    layout = array.layout()
    if layout is None:
        return array.base is None
    return layout.size == 0 or bool(np.may_share_memory(layout, function(layout, *rest, **keywords)))


def flat_of(array: TracedArray) -> TracedArray:
    """All elements in C order, as a view whether they lie so in memory or not."""
    return TracedArray(
        None,
        base=array,
        read=lambda value: value.reshape((-1,)),
        write=_Scatter(lambda places: places.reshape(-1)),
    )


class _Part:
    """One of the results of a function."""

    def __init__(self, function: Callable[[Any], Any], place: int) -> None:
        self.function = function
        self.place = place

    def __call__(self, value: Any) -> Any:
        return self.function(value)[self.place]


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


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if where is not True and type(dst) is TracedArray:
        chosen = op_named("switch")(as_symbol(where), cast(as_symbol(src), dst.dtype), dst.variable)
        return store(dst, chosen, "unsafe")
    return store(dst, as_symbol_array(src) if isinstance(src, (list, tuple)) else src, casting)


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    if wrap or a.ndim != 2:
        places = np.zeros(a.shape, bool)
        np.fill_diagonal(places, True, wrap)
        a[np.nonzero(places)] = val
    else:
        count = min(a.shape)
        a[np.arange(count), np.arange(count)] = val


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    flat: Any = np.ravel(a)
    values: Any = np.ravel(v)
    count = np.size(ind)
    repeated = (
        np.resize(values, count)
        if type(values) is not TracedArray
        else values[np.arange(count) % len(values)]
    )
    flat[np.ravel(ind)] = repeated
    if type(flat) is TracedArray and flat.base is None:
        a[...] = np.reshape(flat, a.shape)


def _putmask(a: Any, mask: Any, values: Any) -> None:
    if np.size(values) != 1 and np.shape(values) != np.shape(a):
        reason = "values have the shape of the array, or are one"
        raise DtypeError(describe("numpy.putmask", [], reason, user_line()))
    _copyto(a, np.reshape(values, ()) if np.ndim(values) and np.size(values) == 1 else values, "unsafe", mask)


def _place(arr: Any, mask: Any, vals: Any) -> None:
    arr[mask] = (
        vals if np.ndim(vals) == 0 else as_symbol_array(vals)[np.arange(int(np.sum(mask))) % len(vals)]
    )


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    if axis is None:
        flat = np.ravel(arr)
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
    "shape": _known("shape"),
    "ndim": _known("ndim"),
    "size": _size,
    "iscomplexobj": _of_dtypes(np.iscomplexobj),
    "isrealobj": _of_dtypes(np.isrealobj),
    "result_type": _of_dtypes(np.result_type),
    "can_cast": _of_dtypes(np.can_cast),
    "common_type": _of_dtypes(np.common_type),
    "min_scalar_type": _of_dtypes(np.min_scalar_type),
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


def traced_astype(array: Any, dtype: Any, casting: str, copy: bool) -> Any:
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
    result.like = (array,)
    return result
