"""Cotangents that a ``switch`` keeps from the branch not taken, and how they pass through gradients.

``where(x > 0, log(x), 0)`` has the gradient ``where(x > 0, cotangent, 0) / x``, which is ``0 / 0`` at 0: a
zero that says "not taken" is no zero to multiply by. So where an op's gradient reads its operands, the mask
goes behind what it computes, ``where(x > 0, cotangent / x, 0)``, and from there on. No mask is carried beside
the graph: it is read off the cotangent, a ``switch`` against a constant zero, also below views, casts, signs
and sums of such. Behind an index or a sum over axes what was masked is what is zero.

Products of matrices and other ops that mix elements end a mask: what they make is zero nowhere for that
reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esat.base.records import record
from esat.graph.op import Family, Op
from esat.graph.registry import op_named
from esat.graph.variables import Apply, Constant, Variable

Parts = Sequence[Variable | None]

_DEEPEST = 8
"""Ops between a cotangent and the masks it is a view or a sum of."""
_THROUGH = frozenset({"neg", "cast", "copy", "positive", "real", "conj"})
_WHERE_ZERO = (Family.VIEW, Family.INDEX, Family.REDUCTION, Family.CREATION)


@record(frozen=True, slots=True, eq=False)
class Masked:
    """A cotangent that matters only where a mask holds.

    Attributes
    ----------
    mask
        Bool, of the cotangent's rank, broadcast against it.
    value
        What it is there; anything elsewhere.
    """

    mask: Variable
    value: Variable


def masked(cotangent: Variable) -> Masked | None:
    """A cotangent as mask and value; None where it is not known to be masked."""
    return _masked(cotangent, _DEEPEST)


def through(cotangent: Variable, operands: Sequence[Variable], parts: Callable[[Variable], Parts]) -> Parts:
    """What ``parts`` makes of a cotangent of the shape of all parts, zero where the cotangent is masked.

    Parameters
    ----------
    cotangent
        Of the result.
    operands
        Operands and results of the op, any of which may be NaN or infinite where the mask does not hold.
    parts
        The gradient: cotangent of the result -> cotangents of the operands.
    """
    found = masked(cotangent)
    if found is None:
        return parts(cotangent)
    plain = parts(cotangent)
    if not any(part is not None and _reads(part, operands, cotangent) for part in plain):
        return plain
    return [None if part is None else apply(found.mask, part) for part in parts(found.value)]


def apply(mask: Variable, part: Variable) -> Variable:
    """``part`` where a mask holds, and zero elsewhere."""
    result: Variable = op_named("switch")(mask, part, 0)
    return result


def _masked(cotangent: Variable, depth: int) -> Masked | None:
    node = cotangent.owner
    if node is None or depth == 0 or cotangent.tensor_type.kind not in "fc":
        return None
    name = node.op.name
    if name == "switch":
        return _of_switch(node, depth)
    if name == "dimshuffle":
        inner = _masked(node.inputs[0], depth - 1)
        return None if inner is None else Masked(_again(node, inner.mask), _again(node, inner.value))
    if name in _THROUGH or name == "fill":
        inner = _masked(node.inputs[-1], depth - 1)
        return None if inner is None else Masked(inner.mask, _again(node, inner.value))
    if name in ("add", "sub"):
        return _of_sum(node, depth)
    if node.op.family not in _WHERE_ZERO or _reads_numbers(node.op):
        return None
    sources = [operand for operand in node.inputs if _is_float(operand)]
    known = sources and all(_masked(operand, depth - 1) or is_zero(operand) for operand in sources)
    return Masked(op_named("ne")(cotangent, 0), cotangent) if known else None


def _of_sum(node: Apply, depth: int) -> Masked | None:
    left, right = (_masked(operand, depth - 1) for operand in node.inputs)
    if left is None or right is None:
        return None
    if left.mask is right.mask:
        return Masked(left.mask, node.op.make_node(left.value, right.value).outputs[0])
    return Masked(op_named("logical_or")(left.mask, right.mask), node.outputs[0])


def _again(node: Apply, operand: Variable) -> Variable:
    """What a node makes of another last operand."""
    return node.op.make_node(*node.inputs[:-1], operand).outputs[0]


def _of_switch(node: Apply, depth: int) -> Masked | None:
    condition, taken, other = node.inputs
    if is_zero(other):
        mask, value = condition, taken
    elif is_zero(taken):
        mask, value = op_named("logical_not")(condition), other
    else:
        rest = _masked(other, depth - 1)  # as in the gradient of maximum, which has a case for ties
        if rest is None:
            return None
        value = node.op.make_node(condition, taken, rest.value).outputs[0]
        return Masked(op_named("logical_or")(condition, rest.mask), value)
    inner = _masked(value, depth - 1)
    if inner is None:
        return Masked(mask, value)
    return Masked(op_named("logical_and")(mask, inner.mask), inner.value)


def _reads_numbers(op: Op) -> bool:
    """Whether a reduction is no sum, so that it may be zero for any reason."""
    return op.family is Family.REDUCTION and op.name != "sum"


def _is_float(variable: Variable) -> bool:
    return getattr(variable.type, "kind", "") in ("f", "c")


def is_zero(variable: Variable) -> bool:
    """Whether all elements are a zero that is written in the graph."""
    while variable.owner is not None:
        if variable.owner.op.name not in ("dimshuffle", "fill", "alloc", "cast"):
            return False
        variable = variable.owner.inputs[-1 if variable.owner.op.name == "fill" else 0]
    return isinstance(variable, Constant) and _is_float(variable) and not variable.data.any()


def _reads(part: Variable, operands: Sequence[Variable], cotangent: Variable) -> bool:
    """Whether a cotangent of an operand is computed from numbers of operands."""
    seen: set[Variable] = {cotangent}
    pending = [part]
    read = {operand for operand in operands if _is_float(operand)}
    while pending:
        variable = pending.pop()
        if variable in seen:
            continue
        if variable in read:
            return True
        seen.add(variable)
        node = variable.owner
        if node is not None:
            # A fill reads but the shape of its model.
            pending += node.inputs[1:] if node.op.name == "fill" else node.inputs
    return False
