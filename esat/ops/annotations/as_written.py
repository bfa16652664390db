"""An operation that optimization leaves as it was written."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.graph.op import Array, Family, Op, Shapes, Work
from esat.graph.types import Type
from esat.graph.variables import Variable


@record(frozen=True, eq=False, repr=False)
class AsWritten(Op):
    """Another op, of which rules know nothing: its operands are not regrouped, nor its result equated.

    Attributes
    ----------
    op
        What it computes.
    """

    op: Op
    name, constructor, family = "as_written", "AsWritten", Family.LIBRARY
    host_only = "it stands in graphs while they are optimized alone"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return self.op.infer_types(inputs)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.op.perform(inputs)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return self.op.work(inputs, outputs, itemsizes)
