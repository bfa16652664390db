"""Indexing of Variables, and copies of arrays with a part replaced."""

from __future__ import annotations

from typing import Any, Literal

from esat.base.records import record
from esat.errors import GraphError, ParameterError, describe
from esat.graph.op import as_variable
from esat.graph.registry import op_named, register_functions
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import flatten
from esat.ops.index.advanced import (
    AdvancedIncSubtensor,
    AdvancedSetSubtensor,
    AdvancedSubtensor,
    advanced_subtensor,
)
from esat.ops.index.along import take_along_axis
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor, is_basic, subtensor
from esat.ops.inference.axes import normalize_axis
from esat.ops.inference.promotion import is_weak
from esat.ops.inference.vectors import MakeVector, make_vector

__all__ = ["at", "getitem", "inc_subtensor", "set_subtensor", "take", "take_along_axis"]

TakeMode = Literal["raise", "wrap", "clip"]


def getitem(operand: Any, index: Any) -> Variable:
    """``operand[index]`` as NumPy's: integers, slices, None, an ellipsis, index arrays and boolean masks.

    Bounds of slices and integers may be integer scalars computed by the graph. With integers and slices
    only, the result is a view.

    Raises
    ------
    IndexingError
        For too many indices, or one known to be out of range (else at run time).
    DtypeError
        For what is no index.
    """
    variable = as_variable(operand)
    if not is_basic(index):
        return advanced_subtensor(variable, index)
    if variable.owner is not None and isinstance(variable.owner.op, MakeVector):
        elements = variable.owner.inputs
        if isinstance(index, int) and -len(elements) <= index < len(elements):
            return elements[index]
        if isinstance(index, slice) and not any(
            isinstance(bound, Variable) for bound in (index.start, index.stop, index.step)
        ):
            return make_vector(elements[index], variable.owner.op.dtype)
    return subtensor(variable, index)


def set_subtensor(part: Variable, value: Any) -> Variable:
    """A copy of the array that ``part`` was indexed from, with ``value`` in its place.

    ``set_subtensor(x[1:3], y)`` is what ``x[1:3] = y`` would leave in a copy of ``x``.

    Parameters
    ----------
    part
        The result of indexing a Variable.
    value
        A Variable, array or number that broadcasts to the part; it is cast to the array's dtype.

    Raises
    ------
    GraphError
        When ``part`` is not the result of indexing.
    ShapeError
        When the value does not fit the part.
    """
    return _write("set_subtensor", part, value, SetSubtensor, AdvancedSetSubtensor)


def inc_subtensor(part: Variable, value: Any) -> Variable:
    """A copy of the array that ``part`` was indexed from, with ``value`` added to it.

    Elements that index arrays choose several times get all the values, unlike by NumPy's ``+=``.

    Parameters
    ----------
    part
        The result of indexing a Variable.
    value
        A Variable, array or number that broadcasts to the part, of the same kind of dtype.

    Raises
    ------
    GraphError
        When ``part`` is not the result of indexing.
    ShapeError
        When the value does not fit the part.
    DtypeError
        When adding would lose the kind of the value (a float added to integers).
    """
    return _write("inc_subtensor", part, value, IncSubtensor, AdvancedIncSubtensor)


def _write(
    name: str,
    part: Variable,
    value: Any,
    basic: type[SetSubtensor],
    advanced: type[AdvancedSetSubtensor],
) -> Variable:
    node = part.owner if isinstance(part, Variable) else None
    new_axes: tuple[int, ...] = ()
    if node is not None and isinstance(node.op, DimShuffle) and not node.op.dropped:
        order = node.op.order
        if [axis for axis in order if axis != "x"] == list(range(node.op.input_rank)):
            new_axes = tuple(position for position, axis in enumerate(order) if axis == "x")
            node = node.inputs[0].owner
    if node is None or not isinstance(node.op, (Subtensor, AdvancedSubtensor)):
        raise GraphError(describe(name, [str(part)], "the first argument is not the result of indexing"))
    source, *operands = node.inputs
    op = (basic if isinstance(node.op, Subtensor) else advanced)(node.op.entries)
    result: Variable = op(source, _without_axes(value, part, new_axes), *operands)
    return result


def _without_axes(value: Any, part: Variable, new_axes: tuple[int, ...]) -> Any:
    """The value for the part as it was before None in the index gave it new axes."""
    if not new_axes or is_weak(value):
        return value
    variable = as_variable(value)
    lead = part.tensor_type.ndim - variable.tensor_type.ndim
    dropped = {position - lead for position in new_axes}
    return dimshuffle(variable, [axis for axis in range(variable.tensor_type.ndim) if axis not in dropped])


@record(frozen=True, slots=True)
class IndexUpdate:
    """``x.at[index]``: where ``set`` and ``add`` make changed copies of ``x``."""

    source: Variable
    index: Any = None

    def __getitem__(self, index: Any) -> IndexUpdate:
        return IndexUpdate(self.source, (index,) if not isinstance(index, tuple) else index)

    def set(self, value: Any) -> Variable:
        """A copy with ``value`` at the index."""
        return set_subtensor(self._part(), value)

    def add(self, value: Any) -> Variable:
        """A copy with ``value`` added at the index; places named twice get it twice."""
        return inc_subtensor(self._part(), value)

    def _part(self) -> Variable:
        basic = is_basic(self.index)
        return subtensor(self.source, self.index) if basic else advanced_subtensor(self.source, self.index)


def at(operand: Any) -> IndexUpdate:
    """The places of an array, to be chosen by ``[...]`` and changed in a copy."""
    return IndexUpdate(as_variable(operand))


def take(a: Any, indices: Any, axis: Any = None, *, mode: TakeMode = "raise") -> Variable:
    """The elements (or the parts across ``axis``) that integer ``indices`` of any rank name.

    Parameters
    ----------
    a
        A Variable or array.
    indices
        Integers.
    axis
        The axis; None takes from all elements as a vector.
    mode
        What indices out of range do: "raise"; "wrap", they go around; or "clip", they name the last place, or
        the first where they are negative.

    Raises
    ------
    ParameterError
        For another ``mode``.
    IndexingError
        At run time for an index out of range, or at once where it is known.
    """
    variable = as_variable(a)
    if axis is None or (variable.tensor_type.ndim == 0 and type(axis) is int and axis in (0, -1)):
        variable, axis = flatten(variable), 0
    index = normalize_axis("take", axis, variable.tensor_type.ndim)
    if mode not in ("raise", "wrap", "clip"):
        raise ParameterError(describe("take", [f"mode={mode!r}"], "a mode is raise, wrap or clip"))
    if mode != "raise":
        size = size_of(variable, index)
        last = op_named("sub")(size, 1)
        indices = op_named("mod")(indices, size) if mode == "wrap" else op_named("clip")(indices, 0, last)
    chosen = indices if isinstance(indices, (int, slice)) else as_variable(indices)
    return getitem(variable, (*[slice(None)] * index, chosen))


register_functions({"set_subtensor": set_subtensor})
