"""Vectors of scalars, and shape arguments: from NumPy's forms to one scalar an axis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ShapeError, describe
from esat.graph.constants import constant
from esat.graph.op import Array, Family, Op
from esat.graph.registry import function_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import as_size, sizes_of
from esat.ops.cast import cast
from esat.ops.index.basic import subtensor
from esat.ops.inference.batching import batch_size, repeated
from esat.ops.inference.promotion import common_dtype


@record(frozen=True, eq=False, repr=False)
class MakeVector(Op):
    """A vector of the given scalars, which have one dtype."""

    dtype: str
    name, constructor, family = "make_vector", "MakeVector", Family.CREATION

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return tuple(cast(value, self.dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        for variable in inputs:
            if variable.tensor_type.ndim != 0:
                raise ShapeError(describe(self.name, [v.type for v in inputs], "takes scalars only"))
        return (TensorType(self.dtype, shape=(len(inputs),)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.array([array[()] for array in inputs], dtype=self.dtype),)

    def linear_in(self, count: int) -> range:
        return range(count)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        size = batch_size(inputs, batched)
        columns = [v if flag else repeated(v, size) for v, flag in zip(inputs, batched, strict=True)]
        return (dimshuffle(function_named("stacked")(columns), (1, 0)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(node.inputs)
        return [subtensor(cotangent, (position,)) for position in range(len(node.inputs))]


def make_vector(scalars: Sequence[Any], dtype: Any = None) -> Variable:
    """A vector of scalars, cast to ``dtype`` or to the one NumPy would promote them to."""
    target = dtype if dtype is not None else common_dtype("make_vector", scalars) if scalars else "float64"
    variables = [cast(value, target) for value in scalars]
    if all(isinstance(variable, Constant) for variable in variables):
        return constant([variable.data for variable in variables if isinstance(variable, Constant)], target)
    result: Variable = MakeVector(target)(*variables)
    return result


def shape_vector(variable: Variable) -> Variable:
    """The shape as an int64 vector; a Constant where the type knows all of it."""
    return make_vector(sizes_of(variable), "int64")


def as_sizes(name: str, shape: Any, rank: int | None = None) -> tuple[Variable, ...]:
    """A shape argument as int64 scalars, one an axis.

    Parameters
    ----------
    name
        The op it is for.
    shape
        An integer, a sequence of integers and integer scalars, or an integer vector of known length.
    rank
        The length of a vector whose type does not know it.

    Raises
    ------
    ShapeError
        When the number of axes cannot be known.
    DtypeError
        When a size is not an integer.
    """
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    if not isinstance(shape, Variable):
        return tuple(as_size(name, size) for size in (shape if isinstance(shape, Iterable) else (shape,)))
    if shape.tensor_type.ndim == 0:
        return (as_size(name, shape),)
    return _vector_elements(name, shape, rank)


def _vector_elements(name: str, vector: Variable, rank: int | None) -> tuple[Variable, ...]:
    if vector.tensor_type.ndim != 1:
        raise ShapeError(describe(name, [vector.type], "a shape is a vector"))
    length = vector.tensor_type.shape[0]
    length = rank if length is None else length
    if length is None:
        reason = "the number of axes is unknown; give the shape as a tuple, or its length as ndim="
        raise ShapeError(describe(name, [vector.type], reason))
    if isinstance(vector, Constant):
        return tuple(as_size(name, int(size)) for size in vector.data)
    if vector.owner is not None and isinstance(vector.owner.op, MakeVector):
        return tuple(as_size(name, size) for size in vector.owner.inputs)
    return tuple(as_size(name, subtensor(vector, (axis,))) for axis in range(length))
