"""Views: the same elements under another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from esat.base.records import record
from esat.errors import AxisError, ShapeError, describe
from esat.graph.calls.arguments import elements_of, index_of
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.registry import function_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import known_size, size_of
from esat.ops.inference.axes import ordered_axes
from esat.ops.inference.vectors import as_sizes, make_vector, shape_vector


@record(frozen=True, eq=False, repr=False)
class Reshape(Op):
    """The elements of the first operand, in C order, under the shape that the second one holds.

    The second operand is an int64 vector with one size an axis; one of them may be -1 and is then
    found from the others.

    Attributes
    ----------
    shape
        The sizes known when the graph is built, None for the others.
    """

    shape: tuple[int | None, ...]
    name, constructor, family = "reshape", "Reshape", Family.VIEW
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source, sizes = (variable.tensor_type for variable in inputs)
        if sizes.ndim != 1 or sizes.dtype != "int64" or sizes.shape[0] not in (None, len(self.shape)):
            reason = f"the new shape is an int64 vector of {len(self.shape)} sizes"
            raise ShapeError(describe(self.name, [source, sizes], reason))
        return (source.with_shape(_completed(source, self.shape)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        array, sizes = inputs
        try:
            result = array.reshape(tuple(int(size) for size in sizes))
        except ValueError as error:
            reason = f"{array.size} elements do not fit shape {tuple(sizes.tolist())}"
            raise ShapeError(describe(self.name, [f"shape {array.shape}"], reason)) from error
        return (result,)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        source, sizes = inputs
        if batched[1]:
            return super().batch(node, inputs, batched)
        getitem = function_named("getitem")
        wanted = [getitem(sizes, place) if size is None else size for place, size in enumerate(self.shape)]
        return (reshape(source, [size_of(source, 0), *wanted]),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        source = node.inputs[0]
        return [Reshape(source.tensor_type.shape)(cotangent, shape_vector(source)), None]

    def __str__(self) -> str:
        return f"reshape{{{','.join('?' if size is None else str(size) for size in self.shape)}}}"


def reshape(a: Any, shape: Any, *, ndim: int | None = None, copy: bool | None = None) -> Variable:
    """The elements of ``a``, in C order, under another shape.

    Parameters
    ----------
    a
        A Variable or array.
    shape
        An integer, a sequence of integers and integer scalars, or an integer vector; one size may be -1.
    ndim
        Length of a ``shape`` vector whose type does not know it.
    copy
        Means nothing: nobody can change a Variable.

    Raises
    ------
    ShapeError
        When the number of elements is known not to fit (else at run time), for two unknown sizes (-1),
        or for a negative size.
    """
    variable = as_variable(a)
    source = variable.tensor_type
    sizes = as_sizes("reshape", shape, ndim)
    known = [known_size(size) for size in sizes]
    if any(size is not None and size < -1 for size in known) or known.count(-1) > 1:
        reason = f"shape {tuple(known)} has a negative size, or more than one -1"
        raise ShapeError(describe("reshape", [source], reason))
    if -1 in known and 0 in known:
        raise ShapeError(describe("reshape", [source], f"-1 could be any size in shape {tuple(known)}"))
    static = _completed(source, tuple(None if size == -1 else size for size in known))
    if static == source.shape and None not in static:
        return variable
    result: Variable = Reshape(static)(variable, make_vector(sizes, "int64"))
    return result


def _completed(source: TensorType, shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """``shape`` with the one unknown size it may have, where the number of elements decides it."""
    if None in source.shape or shape.count(None) > 1:
        return shape
    total, rest = math.prod(_known(source.shape)), math.prod(_known(shape))
    if None not in shape:
        fits, size = total == rest, None
    else:
        fits, size = (total % rest == 0, total // rest) if rest else (total == 0, None)
    if not fits:
        raise ShapeError(describe("reshape", [source], f"{total} elements do not fit shape {shape}"))
    return tuple(size if known is None else known for known in shape)


def _known(sizes: Sequence[int | None]) -> list[int]:
    return [size for size in sizes if size is not None]


def flatten(operand: Any, ndim: int = 1) -> Variable:
    """Merge the last axes so that ``ndim`` are left; by default a vector of all elements in C order.

    Raises
    ------
    ShapeError
        For ``ndim`` less than 1 or more than the operand's.
    """
    variable = as_variable(operand)
    type = variable.tensor_type
    ndim = index_of("flatten", "ndim", ndim)
    if ndim == type.ndim:
        return variable
    if not 1 <= ndim <= max(type.ndim, 1):
        raise ShapeError(describe("flatten", [type], f"cannot have {ndim} axes"))
    return reshape(variable, (*(size_of(variable, axis) for axis in range(ndim - 1)), -1))


def transpose(a: Any, axes: Any = None) -> Variable:
    """Permute the axes; by default reverse them.

    Raises
    ------
    AxisError
        When ``axes`` is not a permutation of the operand's.
    """
    variable = as_variable(a)
    rank = variable.tensor_type.ndim
    if axes is None:
        return dimshuffle(variable, tuple(reversed(range(rank))))
    axes = elements_of("transpose", "axes", axes)
    order = ordered_axes("transpose", axes, rank)
    if len(order) != rank:
        reason = f"axes {tuple(axes)} are not a permutation of {rank} axes"
        raise AxisError(describe("transpose", [variable.type], reason))
    return dimshuffle(variable, order)


def squeeze(a: Any, axis: Any = None) -> Variable:
    """Drop axes of size 1: those given, or all that the type knows to have size 1.

    Of an array without axes, axis 0 or -1 may be dropped as well, as in NumPy.

    Raises
    ------
    ShapeError
        When a given axis is known to have another size; at run time when it turns out to.
    """
    variable = as_variable(a)
    type = variable.tensor_type
    if axis is None:
        dropped = tuple(index for index, flag in enumerate(type.broadcastable) if flag)
    elif type.ndim == 0 and axis in (0, -1):
        dropped = ()
    else:
        given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
        dropped = ordered_axes("squeeze", given, type.ndim)
    return dimshuffle(variable, tuple(index for index in range(type.ndim) if index not in dropped))


def expand_dims(a: Any, axis: Any) -> Variable:
    """Insert axes of size 1 at the given places of the result."""
    variable = as_variable(a)
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    rank = variable.tensor_type.ndim + len(given)
    places = ordered_axes("expand_dims", given, rank)
    old = iter(range(variable.tensor_type.ndim))
    return dimshuffle(variable, tuple("x" if place in places else next(old) for place in range(rank)))


def swapaxes(a: Any, axis1: int, axis2: int) -> Variable:
    """Exchange two axes."""
    variable = as_variable(a)
    order = list(range(variable.tensor_type.ndim))
    (first,) = ordered_axes("swapaxes", (axis1,), len(order))
    (second,) = ordered_axes("swapaxes", (axis2,), len(order))
    order[first], order[second] = order[second], order[first]
    return dimshuffle(variable, tuple(order))


def moveaxis(a: Any, source: Any, destination: Any) -> Variable:
    """Move axes to other places; the others keep their order.

    Raises
    ------
    AxisError
        When the numbers of sources and destinations differ, or an axis is bad.
    """
    variable = as_variable(a)
    rank = variable.tensor_type.ndim
    sources = ordered_axes("moveaxis", source if isinstance(source, (tuple, list)) else (source,), rank)
    places = ordered_axes(
        "moveaxis", destination if isinstance(destination, (tuple, list)) else (destination,), rank
    )
    if len(sources) != len(places):
        raise AxisError(describe("moveaxis", [variable.type], "as many destinations as sources are needed"))
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return dimshuffle(variable, tuple(order))
