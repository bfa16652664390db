"""Sides, and the op that copies an array from one to the other.

A device is a placement, not a type: graphs, rules and the e-graph know nothing of it. Transfers enter a graph
once its steps have been placed (``esat/phases/placement.py``), so that from there on every result lives on
one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from esat.base.records import record
from esat.errors import DtypeError, describe
from esat.graph import Family, TensorType, Variable
from esat.graph.op import Array, Op, check_count
from esat.graph.types import Type

Side: TypeAlias = Literal["host", "device"]
"""Where a step runs and its results live: in the machine's own memory, or in that of a device."""


@record(frozen=True, eq=False, repr=False)
class Transfer(Op):
    """The operand, an array on the other side, as an array on this one.

    Attributes
    ----------
    to
        Where the result lives.
    """

    to: Side
    name, constructor, family = "transfer", "Transfer", Family.LIBRARY
    typing = "same"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_count(self.name, inputs, 1)
        if not isinstance(inputs[0].type, TensorType):
            raise DtypeError(describe(str(self), [inputs[0].type], "only arrays can be on a device"))
        return (inputs[0].type,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The copy where both sides are the machine's own memory, as for checks."""
        return (inputs[0].copy(),)

    def __str__(self) -> str:
        return f"to {self.to}"
