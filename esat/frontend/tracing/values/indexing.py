"""Elements of traced arrays, read and written by an index as in NumPy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.arrays import indexing
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import (
    as_symbol,
    handed_out,
    holds_unknown,
    laid_out,
    layout_made_by,
    mapped,
    note_constant,
)
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.frontend.tracing.values.sizes import with_single_elements
from esat.frontend.tracing.values.ufuncs import fitted
from esat.graph.algorithms.folding import GROWTH_LIMIT
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc
from esat.ops.index.basic import is_basic


def getitem(array: TracedArray, index: Any) -> Any:
    """``array[index]``: a view for integers and slices, a scalar where nothing else is left, or else a
    copy."""
    places = _places(index)
    result = _read(array.value, places)
    if array.is_scalar or not _is_view(places):
        return laid_out(handed_out(result), operator.getitem, (array, places), {})
    if result.ndim == 0 and not _has_ellipsis(places):
        return handed_out(result[()] if isinstance(result, np.ndarray) else result)
    return TracedArray(
        None,
        base=array,
        read=lambda value: _read(value, places),
        write=lambda value, part: _written(value, places, part),
        key=index,
        layout=layout_made_by(operator.getitem, (array, places), result, _takes_first(places)),
    )


def _takes_first(places: Any) -> bool:
    """Whether a basic index only chooses among the first axis, so that order in memory stays."""
    if isinstance(places, slice):
        return places.step is None or (isinstance(places.step, int) and places.step == 1)
    return isinstance(places, int)


def setitem(array: TracedArray, index: Any, value: Any) -> None:
    """``array[index] = value``.

    Raises
    ------
    DtypeError
        For a scalar of NumPy's, and an array that is only to be read.
    ShapeError
        For a value that does not fit the part.
    """
    if type(value) is TracedArray and value.base is array and _same(value.key, index):
        return  # `x[i] += v` has written to the view x[i], and stores the view again
    if array.is_scalar:
        reason = "NumPy's numbers do not support item assignment; np.array(x) makes an array of one"
        raise DtypeError(describe("assignment", [array.variable.type], reason, user_line()))
    places = _places(index)
    stored = value.value if type(value) is TracedArray else value
    if isinstance(stored, (list, tuple)):
        stored = _listed(stored)
    if isinstance(stored, np.ndarray):
        note_constant(stored)
    if _is_mask(places, array) and not _ndim(stored):
        mask, zero = as_symbol(places), as_symbol(stored)
        chosen = op_named("switch")(mask, zero.astype(array.dtype), array.variable)
        array.assign(chosen)
    elif _is_view(places):
        part = TracedArray(_read(array.value, places))
        array.assign(_written(array.value, places, fitted(stored, part)))
    else:
        array.assign(_written(array.value, places, stored))


def _listed(value: Any) -> Any:
    from esat.frontend.tensor import as_tensor

    return as_tensor(mapped(value, as_symbol)) if holds_unknown(value) else np.asarray(value)


def _places(index: Any) -> Any:
    """An index as arrays and Variables take it: numbers are asked for where sizes hang on them."""
    if isinstance(index, tuple):
        return tuple(_places(list(item) if isinstance(item, tuple) else item) for item in index)
    if isinstance(index, slice):
        return slice(*(_bound(part) for part in (index.start, index.stop, index.step)))
    if type(index) is TracedArray:
        return index.value
    if type(index) is TracedNumber:
        return index.variable if index.kind is int else index.known()
    if isinstance(index, list):
        return _listed(index)
    return index


def _bound(part: Any) -> Any:
    if type(part) is TracedNumber:
        return part.size_or_variable()
    return part.value if type(part) is TracedArray else part


def _is_known(index: Any) -> bool:
    return not holds_unknown(index)


def _is_view(places: Any) -> bool:
    items = places if isinstance(places, tuple) else (places,)
    return all(
        not isinstance(item, np.ndarray) or (item.ndim == 0 and item.dtype != bool) for item in items
    ) and bool(is_basic(places))


def _has_ellipsis(places: Any) -> bool:
    items = places if isinstance(places, tuple) else (places,)
    return any(item is Ellipsis for item in items)


def _is_mask(places: Any, array: TracedArray) -> bool:
    """Whether an index is a mask of the array's shape."""
    if isinstance(places, tuple):
        return len(places) == 1 and _is_mask(places[0], array)
    if not isinstance(places, (Variable, np.ndarray)) or str(places.dtype) != "bool" or places.ndim == 0:
        return False
    shape = places.tensor_type.shape if isinstance(places, Variable) else places.shape
    return bool(shape == array.variable.tensor_type.shape)


def _ndim(value: Any) -> int:
    return (
        0
        if type(value) is TracedNumber
        else np.ndim(value)
        if not isinstance(value, Variable)
        else value.ndim
    )


def _read(value: Any, places: Any) -> Any:
    if isinstance(value, np.ndarray) and _is_known(places):
        return value[places]
    variable = as_variable(value)
    return indexing.getitem(variable, with_single_elements(variable, places))


def _written(value: Any, places: Any, part: Any) -> Any:
    """The value with a part replaced."""
    if isinstance(value, np.ndarray) and _is_known(places) and _is_known(part):
        changed = value.copy()
        with np.errstate(all="ignore"):
            changed[places] = part
        return changed
    symbol = _filled(value) if isinstance(value, np.ndarray) else as_variable(value)
    chosen = indexing.getitem(symbol, places)
    stored = as_symbol(part).astype(symbol.dtype)
    if chosen is symbol:  # all of it
        return stored
    extra = stored.ndim - chosen.ndim
    if extra > 0:
        from esat.frontend.arrays.shaping import squeeze

        stored = squeeze(stored, tuple(range(extra)))
    return indexing.set_subtensor(chosen, stored)


def _filled(array: np.ndarray[Any, np.dtype[Any]]) -> Variable:
    """An array that is written to: a large one of equal elements is filled at each call."""
    first = array.reshape(-1)[:1]
    if array.nbytes <= GROWTH_LIMIT or array.tobytes() != first.tobytes() * array.size:
        return as_variable(array)
    result: Variable = alloc(as_variable(first[0]), *array.shape)
    return result


def _same(key: Any, index: Any) -> bool:
    """Whether two indices are one; such as hold arrays only if they are the same object."""
    return key is index or (_is_plain(key) and _is_plain(index) and key == index)


def _is_plain(index: Any) -> bool:
    if isinstance(index, tuple):
        return all(map(_is_plain, index))
    if isinstance(index, slice):
        return all(map(_is_plain, (index.start, index.stop, index.step)))
    return type(index) in (int, type(None), type(Ellipsis))
