"""Sums of quotients: one division of the sum, whatever the sign of the divisor and the sizes."""

from __future__ import annotations

from esat.classic.local import Transformed, local_optimizer
from esat.classic.rewriting.parts import fitting, used_once
from esat.egraph.known import has_fact
from esat.graph import Apply, Variable
from esat.graph.registry import op_named
from esat.ops.reduction import Reduction
from esat.ops.shape import element_count
from esat.ops.view import squeeze


@local_optimizer([Reduction])
def local_sum_of_quotient(node: Apply) -> Transformed:
    """sum(x / a) -> sum(x) / a where a does not vary along the axes.

    A sum of no terms is 0, whatever they are divided by: where there may be none, the divisor is 1 then.
    """
    op, quotient = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    if op.name != "sum" or quotient is None or quotient.op.name != "div" or not used_once(node.inputs[0]):
        return False
    (above, divisor), whole = quotient.inputs, node.inputs[0].tensor_type
    if (above.tensor_type.dtype, above.tensor_type.broadcastable) != (whole.dtype, whole.broadcastable):
        return False
    varies = any(not divisor.tensor_type.broadcastable[axis] for axis in op.axes)
    if varies or all(whole.broadcastable[axis] for axis in op.axes):
        return False
    below: Variable = divisor if op.keepdims else squeeze(divisor, op.axes)
    if not has_fact(divisor, "positive") and not all(whole.shape[axis] for axis in op.axes):
        of_nothing = op_named("eq")(element_count(above, op.axes), 0)
        below = op_named("switch")(of_nothing, op_named("fill")(below, 1), below)
    return fitting(node, op_named("div")(op(above), below))
