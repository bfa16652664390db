"""Repetition of the places along an axis, each its own number of times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable


@record(frozen=True, eq=False, repr=False)
class RepeatedPlaces(Op):
    """The numbers 0, 1, ... as int64, each as often as a vector of int64 counts says."""

    name, constructor, family = "repeated_places", "RepeatedPlaces", Family.LIBRARY
    host_only = "its counts tell the size of the result, and the host needs that"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        counts = inputs[0].tensor_type
        if counts.kind not in "iu":
            raise DtypeError(describe(self.name, [counts], "counts are integers"))
        if counts.ndim != 1:
            raise ShapeError(describe(self.name, [counts], "counts are a vector"))
        return (TensorType("int64", shape=(None,)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (counts,) = inputs
        try:
            return (np.repeat(np.arange(counts.size, dtype=np.int64), counts.astype(np.int64)),)
        except ValueError as error:
            raise ShapeError(describe(self.name, [counts.tolist()], str(error))) from error

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None]
