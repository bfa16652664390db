"""Values whose gradient computes anew what it needs, so that it is not kept until then.

After Griewank and Walther, "Evaluating Derivatives", chapter 12.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.graph.algorithms.copying import clone
from esat.graph.registry import function_named
from esat.graph.variables import Apply, Variable
from esat.ops.annotations.gradients import WithGradient
from esat.ops.arrays.shape import size_of
from esat.ops.control import AFTER
from esat.ops.inference.batching import batch_size, repeated


@record(frozen=True, eq=False, repr=False)
class Checkpoint(WithGradient):
    """Values whose gradient computes anew what it needs of the way to them: ``kept`` are the operands.

    Attributes
    ----------
    pull_back
        A :class:`Recomputation`.
    """

    name, constructor = "checkpoint", "Checkpoint"

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return list(tangents[: self.count])

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        assert isinstance(self.pull_back, Recomputation)
        values, operands = inputs[: self.count], inputs[self.count : self.count + self.operands]
        flags = batched[self.count : self.count + self.operands]
        again = self.pull_back.batched(operands, flags)
        size = batch_size(inputs, batched)
        whole = [
            value if flag else repeated(value, size)
            for value, flag in zip(values, batched[: self.count], strict=True)
        ]
        op = Checkpoint(self.count, self.operands, again)
        return tuple(op.make_node(*whole, *operands, *operands).outputs)


@record(frozen=True, eq=False)
class Recomputation:
    """A gradient that computes values anew, after the cotangents: until then they need no memory.

    Attributes
    ----------
    inputs
        Stand-ins for the operands.
    waits
        Which of them are there only after the cotangents.
    outputs
        The values, computed of the stand-ins.
    """

    inputs: tuple[Variable, ...]
    waits: tuple[bool, ...]
    outputs: tuple[Variable, ...]

    def __call__(self, kept: Sequence[Variable], cotangents: Sequence[Variable]) -> list[Variable | None]:
        """Cotangents of the operands, None for those that have none."""
        tangent_type, vjp = function_named("tangent_type"), function_named("vjp")
        seeds = [cotangent.type.make_variable() for cotangent in cotangents]
        continuous = [place for place, one in enumerate(self.inputs) if tangent_type(one) is not None]
        wrt = [self.inputs[place] for place in continuous]
        pulled = vjp(self.outputs, wrt, seeds, "zero")
        there = [
            AFTER(value, *cotangents) if waits else value
            for value, waits in zip(kept, self.waits, strict=True)
        ]
        replaced = dict(zip((*self.inputs, *seeds), (*there, *cotangents), strict=True))
        results: list[Variable | None] = [None] * len(self.inputs)
        for place, cotangent in zip(continuous, clone(pulled, replaced)[0], strict=True):
            results[place] = cotangent
        return results

    def batched(self, operands: Sequence[Variable], flags: Sequence[bool]) -> Recomputation:
        """That for a batch of some operands."""
        inputs = [
            operand.type.make_variable() if flag else own
            for own, operand, flag in zip(self.inputs, operands, flags, strict=True)
        ]
        batches = {own: new for own, new, flag in zip(self.inputs, inputs, flags, strict=True) if flag}
        size = next(size_of(new, 0) for new in batches.values())
        found = function_named("vectorize")(self.outputs, batches)
        outputs = [value if depends else repeated(value, size) for value, depends in found]
        return Recomputation(tuple(inputs), self.waits, tuple(outputs))
