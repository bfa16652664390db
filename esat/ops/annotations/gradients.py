"""Ops that say what the derivative of a value is, and are the value otherwise.

Nothing is left of them in what is compiled: :func:`without_gradients` takes their values in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from esat.base.records import record
from esat.errors import GradientError, describe
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.registry import function_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.shape import size_of
from esat.ops.inference.batching import all_batched, repeated

PullBack = Callable[[Sequence[Variable], Sequence[Variable]], Sequence[Variable | None]]
"""(what was kept, cotangents of the outputs) -> cotangents of the operands."""


@record(frozen=True, eq=False, repr=False)
class StopGradient(Op):
    """The operand, whose derivatives are zero here."""

    name, constructor, family = "stop_gradient", "StopGradient", Family.VIEW
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[0].type,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None]

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)


@record(frozen=True, eq=False, repr=False)
class WithGradient(Op):
    """Values with a gradient of their own: ``(*values, *operands, *kept)`` gives the values.

    Attributes
    ----------
    count
        How many values, which are the outputs.
    operands
        How many operands the gradient is by.
    pull_back
        What makes their cotangents of what was kept and those of the values.
    """

    count: int
    operands: int
    pull_back: PullBack
    name, constructor, family = "with_gradient", "WithGradient", Family.VIEW

    def __post_init__(self) -> None:
        object.__setattr__(self, "view_map", {place: (place,) for place in range(self.count)})

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return tuple(variable.type for variable in inputs[: self.count])

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return tuple(inputs[: self.count])

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        values, kept = node.inputs[: self.count], node.inputs[self.count + self.operands :]
        known = [
            value * 0 if cotangent is None else cotangent
            for value, cotangent in zip(values, cotangents, strict=True)
        ]
        pulled = list(self.pull_back(kept, known))
        if len(pulled) != self.operands:
            reason = f"the gradient has {len(pulled)} cotangents for {self.operands} operands"
            raise GradientError(describe(self.name, [v.type for v in node.inputs], reason, node.where))
        return [*[None] * self.count, *pulled, *[None] * len(kept)]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        whole = all_batched(inputs, batched)
        op = WithGradient(self.count, self.operands, BatchedPullBack(self.pull_back))
        return tuple(op.make_node(*whole).outputs)


@record(frozen=True, eq=False)
class BatchedPullBack:
    """A gradient for batches: that of an element, for all of them.

    Attributes
    ----------
    of_element
        What makes cotangents of operands for an element.
    """

    of_element: PullBack

    def __call__(self, kept: Sequence[Variable], cotangents: Sequence[Variable]) -> Sequence[Variable | None]:
        """Cotangents of the operands, with the batch's axis in front, as those given have it."""
        batches = [*kept, *cotangents]
        elements = [
            batch.tensor_type.with_shape(batch.tensor_type.shape[1:]).make_variable() for batch in batches
        ]
        pulled = self.of_element(elements[: len(kept)], elements[len(kept) :])
        wanted = [part for part in pulled if part is not None]
        size = size_of(cotangents[0], 0)
        found = iter(function_named("vectorize")(wanted, dict(zip(elements, batches, strict=True))))
        results: list[Variable | None] = []
        for part in pulled:
            if part is None:
                results.append(None)
                continue
            value, depends = next(found)
            results.append(value if depends else repeated(value, size))
        return results


STOP_GRADIENT = StopGradient()


def stop_gradient(x: Any) -> Variable:
    """``x``, as what does not depend on anything when derivatives are taken.

    Parameters
    ----------
    x
        A Variable or array.

    Examples
    --------
    >>> x = esat.scalar("x")
    >>> esat.grad(x * esat.stop_gradient(x), x).eval({x: 3.0})
    array(3.)
    """
    result: Variable = STOP_GRADIENT(as_variable(x))
    return result


def without_gradients(outputs: Sequence[Variable]) -> list[Variable]:
    """A graph in which ops that only say what derivatives are have given way to their values."""
    nodes = toposort(outputs)
    if not any(isinstance(node.op, StopGradient | WithGradient) for node in nodes):
        return list(outputs)
    copies: dict[Variable, Variable] = {}
    for node in nodes:
        operands = [copies.get(operand, operand) for operand in node.inputs]
        if isinstance(node.op, StopGradient | WithGradient):
            copies.update(zip(node.outputs, operands, strict=False))
        elif any(operand is not own for operand, own in zip(operands, node.inputs, strict=True)):
            copies.update(zip(node.outputs, node.clone_with(operands).outputs, strict=True))
    return [copies.get(output, output) for output in outputs]
