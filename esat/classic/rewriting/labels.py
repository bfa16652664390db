"""Cross-entropy with labels: logarithms of chosen probabilities, and gradients at chosen places."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, used_once
from esat.classic.rewriting.indices.writes import is_zero
from esat.classic.rewriting.logarithms import is_stabilized
from esat.egraph.analyses.known import is_exponential, is_view
from esat.graph import Apply, Family, Variable
from esat.graph.registry import op_named
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSubtensor
from esat.ops.index.basic import IncSubtensor, Subtensor
from esat.ops.normalization import Normalization, log_softmax
from esat.ops.reduction import SUM, Reduction, reduce


@local_optimizer([Elementwise])
def local_log_of_chosen(node: Apply) -> Transformed:
    """log(p[rows, labels]) -> log(p)[rows, labels] where p over- or underflows, and so for any view.

    The stable form of softmax is made at once: log(softmax(x))[rows, labels] would be taken back to what it
    came from. Of log(sigmoid(x)[i]) only the chosen elements are computed.
    """
    part = node.inputs[0].owner
    if node.op.name != "log" or part is None or not is_view(part) or not is_exponential(node.inputs[0]):
        return False
    whole, rest = part.inputs[0], part.inputs[1:]
    name = whole.owner.op.name if whole.owner is not None else ""
    if name == "softmax":
        assert whole.owner is not None
        assert isinstance(whole.owner.op, Normalization)
        logarithm = log_softmax(whole.owner.inputs[0], whole.owner.op.axes)
        return fitting(node, part.op.make_node(logarithm, *rest).outputs[0])
    if name == "sigmoid":
        assert whole.owner is not None
        negative = op_named("neg")
        chosen = part.op.make_node(whole.owner.inputs[0], *rest).outputs[0]
        return fitting(node, negative(op_named("softplus")(negative(chosen))))
    return fitting(node, part.op.make_node(node.op.make_node(whole).outputs[0], *rest).outputs[0])


@local_optimizer([AdvancedSubtensor])
def local_advanced_subtensor_lift(node: Apply) -> Transformed:
    """f(x, y)[indices] -> f(x[indices], y[indices]) for elementwise f of operands of one shape."""
    source = node.inputs[0].owner
    if source is None or source.op.family is not Family.ELEMENTWISE or not used_once(node.inputs[0]):
        return False
    if is_stabilized(source):
        return False
    flags = source.outputs[0].tensor_type.broadcastable
    if any(operand.tensor_type.broadcastable != flags for operand in source.inputs):
        return False
    parts = [node.op.make_node(operand, *node.inputs[1:]).outputs[0] for operand in source.inputs]
    return fitting(node, source.op.make_node(*parts).outputs[0])


@local_optimizer([Reduction])
def local_sum_of_increments(node: Apply) -> Transformed:
    """The sum of all elements of zeros that a value was added to at some places is the value's."""
    op, source = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    if op.reducer is not SUM or source is None:
        return False
    if not isinstance(source.op, (IncSubtensor, AdvancedIncSubtensor)) or not is_zero(source.inputs[0]):
        return False
    zeros, value, *indices = source.inputs
    if len(op.axes) != zeros.tensor_type.ndim:
        return False
    reading = Subtensor if isinstance(source.op, IncSubtensor) else AdvancedSubtensor
    place: Variable = reading(source.op.entries)(zeros, *indices)
    added = op_named("fill").make_node(place, value).outputs[0]
    total = reduce(SUM, added)
    if op.keepdims:
        return False
    return fitting(node, total)
