"""Joining arrays along an axis, and splitting them into equal parts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, ShapeError, describe, sizes_differ
from esat.graph.calls.arguments import elements_of
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named, register_functions
from esat.graph.types import Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.index.basic import subtensor
from esat.ops.inference.axes import normalize_axis
from esat.ops.inference.batching import all_batched
from esat.ops.inference.promotion import common_dtype


@record(frozen=True, eq=False, repr=False)
class Join(Op):
    """Arrays of one rank and dtype put one after the other along an axis. Other sizes must be equal."""

    axis: int
    name, constructor, family = "join", "Join", Family.INDEX

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        if not inputs:
            raise ShapeError(describe(self.name, [], "there is nothing to join"))
        dtype = common_dtype(self.name, inputs)
        return tuple(cast(as_variable(value), dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        rank = types[0].ndim
        if any(type.ndim != rank for type in types):
            raise ShapeError(describe(self.name, types, "operands must have one rank"))
        if not 0 <= self.axis < rank:
            raise AxisError(describe(self.name, types, f"there is no axis {self.axis}"))
        shape: list[int | None] = []
        for axis in range(rank):
            sizes = [type.shape[axis] for type in types]
            known = {size for size in sizes if size is not None}
            if axis == self.axis:
                shape.append(None if None in sizes else sum(size for size in sizes if size is not None))
            elif len(known) > 1:
                raise ShapeError(describe(self.name, types, sizes_differ(known, axis)))
            else:
                shape.append(known.pop() if known else None)
        return (types[0].with_shape(tuple(shape)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        try:
            return (np.concatenate(inputs, axis=self.axis),)
        except ValueError as error:
            shown = [f"shape {array.shape}" for array in inputs]
            raise ShapeError(describe(str(self), shown, "sizes of the other axes do not match")) from error

    def linear_in(self, count: int) -> range:
        return range(count)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return (Join(self.axis + 1)(*all_batched(inputs, batched)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(node.inputs)
        start: Any = 0
        parts: list[Variable | None] = []
        for operand in node.inputs:
            stop = _advance(start, size_of(operand, self.axis))
            parts.append(subtensor(cotangent, (*[slice(None)] * self.axis, slice(start, stop))))
            start = stop
        return parts

    def __str__(self) -> str:
        return f"{self.name}{{{self.axis}}}"


def _advance(start: Any, size: Variable) -> Any:
    """``start + size``, as a number where both are known."""
    if isinstance(size, Constant) and isinstance(start, int):
        return start + int(size.data)
    return size if isinstance(start, int) and start == 0 else op_named("add")(start, size)


@record(frozen=True, eq=False, repr=False)
class Split(Op):
    """Views of the equal parts of an array along an axis.

    Attributes
    ----------
    axis
        The axis to split; its size must be divisible by the number of parts.
    parts
        How many; the op has as many outputs.
    """

    axis: int
    parts: int
    name, constructor, family = "split", "Split", Family.INDEX

    def __post_init__(self) -> None:
        object.__setattr__(self, "view_map", dict.fromkeys(range(self.parts), (0,)))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        size = source.shape[self.axis]
        if size is not None and size % self.parts:
            raise ShapeError(describe(str(self), [source], f"size {size} has no {self.parts} equal parts"))
        part = None if size is None else size // self.parts
        shape = (*source.shape[: self.axis], part, *source.shape[self.axis + 1 :])
        return (source.with_shape(shape),) * self.parts

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        try:
            return tuple(np.split(array, self.parts, axis=self.axis))
        except ValueError as error:
            reason = f"size {array.shape[self.axis]} has no {self.parts} equal parts"
            raise ShapeError(describe(str(self), [f"shape {array.shape}"], reason)) from error

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(Split(self.axis + 1, self.parts).make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        fill = op_named("fill")
        known = [
            cotangent if cotangent is not None else fill(output, cast(0, output.tensor_type.dtype))
            for output, cotangent in zip(node.outputs, cotangents, strict=True)
        ]
        return [join(known, self.axis)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return Work(flops=0.0, bytes=0.0, calls=self.parts)

    def __str__(self) -> str:
        return f"{self.name}{{{self.axis}, {self.parts}}}"


def join(tensors: Sequence[Any], axis: int = 0) -> Variable:
    """The arrays one after the other along ``axis``, as ``numpy.concatenate``.

    Raises
    ------
    ShapeError
        When ranks differ, or sizes of another axis do; for no arrays at all.
    AxisError
        For an axis that they do not have.
    """
    variables = [as_variable(tensor) for tensor in tensors]
    rank = variables[0].tensor_type.ndim if variables else 1
    result: Variable = Join(normalize_axis("join", axis, rank))(*variables)
    return result


MOST_PARTS = 1 << 20
"""Parts that an array is split into at most: each is a Variable."""


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Variable]:
    """Parts of an array along ``axis``: so many equal ones, or those between the given indices.

    Parameters
    ----------
    ary
        A Variable or array.
    indices_or_sections
        The number of equal parts, or a sequence of integers and integer scalars where to cut.
    axis
        The axis to cut.

    Raises
    ------
    ShapeError
        When the size is not divisible by the number of parts (at run time where it is unknown).
    """
    variable = as_variable(ary)
    index = normalize_axis("split", axis, variable.tensor_type.ndim)
    before = [slice(None)] * index
    if isinstance(indices_or_sections, (int, np.integer)):
        parts = check_parts("split", indices_or_sections, variable)
        outputs = Split(index, parts)(variable)
        return [outputs] if parts == 1 else list(outputs)
    cuts = [None, *elements_of("split", "indices_or_sections", indices_or_sections), None]
    return [subtensor(variable, (*before, slice(start, stop))) for start, stop in pairwise(cuts)]


def check_parts(name: str, parts: Any, variable: Variable) -> int:
    """The number of parts that an array is split into. Raises ShapeError where there cannot be so many."""
    if not 1 <= parts <= MOST_PARTS:
        raise ShapeError(describe(name, [variable.type], f"there are 1 to {MOST_PARTS} parts, not {parts}"))
    return int(parts)


def stacked(parts: Sequence[Variable]) -> Variable:
    """Values of one type, one after the other along a new first axis."""
    widened = [dimshuffle(part, ("x", *range(part.tensor_type.ndim))) for part in parts]
    result: Variable = Join(0)(*widened)
    return result


register_functions({"stacked": stacked})
