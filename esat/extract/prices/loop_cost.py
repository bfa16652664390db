"""Seconds of a loop: those of the nodes of its body, for each step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from esat.egraph.analyses.uniform import as_tensor
from esat.egraph.language.forms import term_of
from esat.egraph.language.terms import RankedOp, broadcast_word
from esat.extract.prices.value import UNKNOWN_SIZE, Value
from esat.graph import Apply, TensorType, Variable
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import toposort
from esat.graph.types import DTYPE_NUMBER
from esat.ops.loops.record import LoopOp

Sizes = tuple[int, ...]


class StepPrices(Protocol):
    """What tells the prices of terms and of ops without a form."""

    def price(
        self,
        constructor: str,
        attributes: Sequence[int | float],
        operands: Sequence[Value],
        result: Value,
        identities: Sequence[int] = (),
    ) -> float: ...

    def opaque_price(self, known: RankedOp, operands: Sequence[Value], result: Value) -> float: ...


def loop_seconds(inside: StepPrices, op: LoopOp, inputs: Sequence[Sizes], outputs: Sequence[Sizes]) -> float:
    """Predicted seconds of all steps of a loop.

    Parameters
    ----------
    inside
        StepPrices of what runs in loops.
    op
        The loop.
    inputs, outputs
        The shapes of its operands and results.
    """
    return op.expected_steps(inputs, outputs) * step_seconds(inside, op, inputs)


def step_seconds(inside: StepPrices, op: LoopOp, inputs: Sequence[Sizes]) -> float:
    """Predicted seconds of a step; see :func:`loop_seconds`."""
    carries, sequences, invariants = op.split(inputs[1:])
    shapes = [*carries, *(shape[1:] for shape in sequences), *invariants]
    known = {
        own: TensorType(own.tensor_type.dtype, shape=shape).make_variable()
        for own, shape in zip(op.body.inputs, shapes, strict=True)
        if isinstance(own.type, TensorType) and own.tensor_type.ndim == len(shape)
    }
    return nodes_seconds(inside, clone(op.body.outputs, known)[0])


def nodes_seconds(prices: StepPrices, outputs: Sequence[Variable], known: Collection[Variable] = ()) -> float:
    """Predicted seconds of all nodes that outputs need, beside what is known; sizes are those of types."""
    return sum(_node_seconds(prices, node) for node in toposort(outputs, stop=known))


def _node_seconds(prices: StepPrices, node: Apply) -> float:
    if not all(isinstance(one.type, TensorType) for one in (*node.inputs, *node.outputs)):
        return 0.0
    operands = [_value(one) for one in node.inputs]
    words = [broadcast_word(one.tensor_type.broadcastable) for one in node.inputs]
    form = term_of(node, words)
    if form is None:
        ranks = tuple(one.tensor_type.ndim for one in node.inputs)
        return prices.opaque_price(RankedOp(node.op, ranks), operands, _value(node.outputs[0]))
    return prices.price(*form, operands, _value(node.outputs[0]))


def _value(variable: Variable) -> Value:
    type = as_tensor(variable.type)
    sizes = tuple(UNKNOWN_SIZE if size is None else float(size) for size in type.shape)
    return Value(() if all(type.broadcastable) else sizes, DTYPE_NUMBER[type.dtype])
