"""What stands between the brackets: from Python's forms to hashable entries and operands.

An index becomes a tuple of entries, which an op keeps, and a tuple of Variables, which are the
op's further operands. Numbers known when the graph is built stay in the entries; each place that
takes the next operand instead is marked :data:`OPERAND`.
"""

from __future__ import annotations

import enum
import operator
import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, IndexingError, describe
from esat.graph.constants import constant
from esat.graph.types import LARGEST_SIZE, TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.shape import as_size


class Slot(enum.Enum):
    """Marks of entries that carry no number."""

    OPERAND = "operand"
    ARRAY = "array"
    NEW_AXIS = "newaxis"


OPERAND = Slot.OPERAND
"""An integer that the next operand holds."""
ARRAY = Slot.ARRAY
"""An array of integers or booleans that the next operand holds."""
NEW_AXIS = Slot.NEW_AXIS
"""A new axis of size 1."""

Bound: TypeAlias = int | Slot | None


@record(frozen=True, slots=True)
class Slice:
    """Start, stop and step, each a number, None as in Python, or :data:`OPERAND`."""

    start: Bound = None
    stop: Bound = None
    step: Bound = None

    @property
    def is_full(self) -> bool:
        """Whether it takes the whole axis, whatever its size."""
        return self.start in (0, None) and self.stop is None and self.step in (1, None)

    @property
    def is_static(self) -> bool:
        """Whether it takes no operand."""
        return OPERAND not in (self.start, self.stop, self.step)

    def __str__(self) -> str:
        parts = ["?" if part is OPERAND else "" if part is None else str(part) for part in self.parts()]
        return ":".join(parts[:2] if parts[2] == "" else parts)

    def parts(self) -> tuple[Bound, Bound, Bound]:
        """Start, stop and step."""
        return self.start, self.stop, self.step

    def length(self, size: int | None) -> int | None:
        """Number of elements it takes from an axis of ``size``; None where that is not known."""
        if self.is_full:
            return size
        if size is None or not self.is_static or self.step == 0:
            return None
        start, stop, step = slice(*self.parts()).indices(size)
        return len(range(start, stop, step))


Entry: TypeAlias = int | Slot | Slice


def split_index(name: str, index: Any, type: TensorType) -> list[Any]:
    """The items of an index, the ellipsis written out as slices, so that every axis has its item.

    Raises
    ------
    IndexingError
        For more items than axes, or more than one ellipsis.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_as_array(name, item) if isinstance(item, (list, range, np.generic)) else item for item in items]
    consumed = sum(_axes_taken(item) for item in items)
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if consumed > type.ndim:
        raise IndexingError(describe(name, [type], f"{consumed} indices for {type.ndim} axes"))
    if len(ellipses) > 1:
        raise IndexingError(describe(name, [type], "an index has at most one ellipsis"))
    place = ellipses[0] if ellipses else len(items)
    fill = [slice(None)] * (type.ndim - consumed)
    return _without_known_masks(items[:place] + fill + items[place + len(ellipses) :], type)


def _without_known_masks(items: Sequence[Any], type: TensorType) -> list[Any]:
    """Items with known masks that fit as the places where they hold, whose number is known then."""
    found: list[Any] = []
    axis = 0
    for item in items:
        count = _axes_taken(item)
        known = item.data if isinstance(item, Constant) else item
        is_mask = isinstance(known, np.ndarray) and known.dtype == np.bool_ and known.ndim
        if is_mask and known.shape == type.shape[axis : axis + count]:
            found += np.nonzero(known)
        else:
            found.append(item)
        axis += count
    return found


def _axes_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if is_array_item(item):
        array_type = _array_type(item)
        return array_type.ndim if array_type.dtype == "bool" else 1
    return 1


def _as_array(name: str, item: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(item)
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"a list as an index holds integers or booleans: {error}"
        raise DtypeError(describe(name, [reprlib.repr(item)], reason)) from error


def is_array_item(item: Any) -> bool:
    """Whether an item needs advanced indexing: an array of rank 1 or more, or a boolean."""
    if isinstance(item, Variable):
        return item.tensor_type.ndim > 0 or item.tensor_type.dtype == "bool"
    if isinstance(item, np.ndarray):
        return item.ndim > 0 or item.dtype == np.bool_
    return isinstance(item, (bool, np.bool_))


def _array_type(item: Any) -> TensorType:
    return item.tensor_type if isinstance(item, Variable) else constant(item).tensor_type


def make_entry(name: str, item: Any, size: int | None, operands: list[Variable]) -> Entry:
    """The entry of one item that stands for an axis of ``size``; operands it needs are appended.

    Raises
    ------
    IndexingError
        For an integer out of range, or a step of 0.
    DtypeError
        For an item that is no integer, slice, None, ellipsis, or array of integers or booleans.
    """
    if item is None:
        return NEW_AXIS
    if isinstance(item, slice):
        return _slice_entry(name, item, size, operands)
    if is_array_item(item):
        operands.append(_index_array(name, item))
        return ARRAY
    bound = _bound(name, item, operands)
    if bound is None:
        raise DtypeError(describe(name, [item], "not an index"))
    if isinstance(bound, int) and not -LARGEST_SIZE <= bound <= LARGEST_SIZE:
        raise IndexingError(describe(name, [reprlib.repr(bound)], "no axis has so many places"))
    if isinstance(bound, int) and size is not None:
        if not -size <= bound < size:
            raise IndexingError(
                describe(name, [f"index {bound}"], f"out of range for an axis of size {size}")
            )
        return bound % size
    return bound


def _slice_entry(name: str, item: slice, size: int | None, operands: list[Variable]) -> Slice:
    bounds = [_bound(name, part, operands) for part in (item.start, item.stop, item.step)]
    # As Python's slices do, which end where the axis ends: sizes and indices are of 64 bits.
    limited = [min(max(one, -LARGEST_SIZE), LARGEST_SIZE) if isinstance(one, int) else one for one in bounds]
    entry = Slice(*limited)
    if entry.step == 0:
        raise IndexingError(describe(name, [str(entry)], "the step of a slice cannot be 0"))
    if size is None or not entry.is_static:
        return Slice() if entry.is_full else entry
    start, stop, step = slice(*entry.parts()).indices(size)
    if (start, stop, step) == (0, size, 1):
        return Slice()
    if not range(start, stop, step):
        # Bounds before the first element come out negative; as a slice again they would count from the end.
        return Slice(0, 0, 1)
    return Slice(start, None if stop < 0 else stop, step)


def _index_array(name: str, item: Any) -> Variable:
    variable = item if isinstance(item, Variable) else constant(item)
    type = variable.tensor_type
    if isinstance(variable, Constant) and variable.data.size == 0 and type.dtype == "float64":
        return constant(variable.data.astype(np.int64))  # an empty list has no dtype of its own
    if type.kind not in "iub":
        raise DtypeError(describe(name, [type], "an index array holds integers or booleans"))
    return variable


def _bound(name: str, value: Any, operands: list[Variable]) -> Bound:
    if value is None:
        return None
    if isinstance(value, Constant) and value.tensor_type.ndim == 0 and value.tensor_type.kind in "iu":
        return int(value.data)
    if isinstance(value, Variable):
        size = as_size(name, value)
        if isinstance(size, Constant):
            return int(size.data)
        operands.append(size)
        return OPERAND
    try:
        return operator.index(value)
    except TypeError as error:
        reason = "an index is an integer, a slice, None, an ellipsis, or an array of integers or booleans"
        raise DtypeError(describe(name, [repr(value)], reason)) from error


def with_numbers(entries: Sequence[Entry], numbers: Iterable[int | None]) -> tuple[Entry, ...]:
    """The entries with numbers in the places of their operands; None keeps an operand in its place."""
    remaining = iter(numbers)

    def filled(bound: Bound) -> Bound:
        number = next(remaining) if bound is OPERAND else bound
        return OPERAND if number is None and bound is OPERAND else number

    known: list[Entry] = []
    for entry in entries:
        if isinstance(entry, Slice):
            known.append(Slice(*map(filled, entry.parts())))
        elif entry is OPERAND:
            number = next(remaining)
            known.append(OPERAND if number is None else number)
        else:
            known.append(entry)
            if entry is ARRAY:
                next(remaining)
    return tuple(known)


def constant_numbers(operands: Iterable[Variable]) -> list[int | None]:
    """The numbers that the operands of an index are: None for those that are not constant, and for arrays."""
    return [
        int(one.data) if isinstance(one, Constant) and one.tensor_type.ndim == 0 else None for one in operands
    ]


def numpy_index(entries: Sequence[Entry], operands: Sequence[np.ndarray[Any, Any]]) -> tuple[Any, ...]:
    """The index NumPy takes, with the operands' values in their places."""
    values = iter(operands)
    return (*(_numpy_entry(entry, values) for entry in entries), Ellipsis)


def _numpy_entry(entry: Entry, values: Iterator[np.ndarray[Any, Any]]) -> Any:
    if isinstance(entry, Slice):
        return slice(*(int(next(values)) if part is OPERAND else part for part in entry.parts()))
    if entry is OPERAND:
        return int(next(values))
    if entry is ARRAY:
        return next(values)
    return None if entry is NEW_AXIS else entry


def entries_text(entries: Sequence[Entry]) -> str:
    """The entries as they would stand between brackets, ``?`` for an operand."""
    texts = {OPERAND: "?", ARRAY: "array", NEW_AXIS: "None"}
    return ",".join(texts[entry] if isinstance(entry, Slot) else str(entry) for entry in entries)


def select(
    name: str, entries: Sequence[Entry], array: np.ndarray[Any, Any], operands: Sequence[np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """``array[...]`` with the operands' values; raises IndexingError where NumPy raises IndexError."""
    try:
        result: np.ndarray[Any, Any] = array[numpy_index(entries, operands)]
    except (IndexError, ValueError) as error:
        shown = [f"shape {array.shape}", f"[{entries_text(entries)}]"]
        raise IndexingError(describe(name, shown, str(error))) from error
    return result


def selected_shape(
    name: str, entries: Sequence[Entry], array: np.ndarray[Any, Any], operands: Sequence[np.ndarray[Any, Any]]
) -> tuple[int, ...]:
    """The shape of ``array[...]``, for which no element of it is read; raises as :func:`select`.

    Index arrays are applied to an array of the same size along the axes that they and integers take, and of
    size 1 along all others: what that gives holds one byte for each place they name.
    """
    index = numpy_index(entries, operands)[:-1]
    if ARRAY not in entries:
        part: tuple[int, ...] = select(name, entries, array, operands).shape
        return part
    reduced: list[int] = []
    index_of_reduced: list[Any] = []
    others: list[int] = []
    places: list[tuple[int, int]] = []
    axis = 0
    for position, item in enumerate(index):
        if item is None:
            others.append(1)
            index_of_reduced.append(None)
        elif isinstance(item, slice):
            others.append(len(range(*item.indices(array.shape[axis]))))
            reduced.append(1)
            index_of_reduced.append(slice(None))
            axis += 1
        else:
            places.append((position, len(others)))
            taken = item.ndim if isinstance(item, np.ndarray) and item.dtype == np.bool_ else 1
            reduced += array.shape[axis : axis + taken]
            index_of_reduced.append(item)
            axis += taken
    rest = array.shape[axis:]
    others += rest
    reduced += [1] * len(rest)
    stand_in = np.broadcast_to(np.empty((), np.bool_), reduced)
    try:
        found = stand_in[(*index_of_reduced, Ellipsis)].shape
    except (IndexError, ValueError) as error:
        shown = [f"shape {array.shape}", f"[{entries_text(entries)}]"]
        raise IndexingError(describe(name, shown, str(error))) from error
    together = places[-1][0] - places[0][0] == len(places) - 1
    place = places[0][1] if together else 0
    return (*others[:place], *found[place : place + len(found) - len(others)], *others[place:])
