"""Local optimizers that come with esat beside the rules of the rule files.

They are those that rules cannot say: what depends on run-time values of ops, on indices, or on sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rules.graph_terms import same
from esat.classic.rules.matrix_facts import is_known_square
from esat.graph import Apply, Family, Variable
from esat.graph.algorithms.folding import fold
from esat.ops.arrays.diagonal import Diagonal
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI, size_of
from esat.ops.control import IfElse
from esat.ops.index.advanced import AdvancedSubtensor
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import ARRAY, Slice
from esat.ops.inference.sizes import size_before


@local_optimizer()
def constant_folding(node: Apply) -> Transformed:
    """Computes at compile time what depends on constants alone."""
    if not node.inputs:
        return False
    folded = fold(node, node.inputs)
    if folded is None:
        return False
    used = [output.clients is None or bool(output.clients) for output in node.outputs]
    return [value if wanted else None for value, wanted in zip(folded, used, strict=True)]


@local_optimizer([ShapeI])
def local_shape_lift(node: Apply) -> Transformed:
    """The size of a result from the sizes of what it is computed from, so that it need not be computed."""
    size = traced(node.outputs[0])
    return False if size is node.outputs[0] else [size]


def traced_size(variable: Variable, axis: int) -> Variable:
    """The size of an axis, read off as far back as it can be followed; a Constant where it is known."""
    return traced(size_of(variable, axis))


def traced(size: Variable) -> Variable:
    """A size, read off as far back as it can be followed."""
    while size.owner is not None and isinstance(size.owner.op, ShapeI):
        source = size.owner.inputs[0].owner
        before = None if source is None else _size_before(source, size.owner.op.axis)
        if before is None:
            break
        size = before
    return size


def axes_agree(one: Variable, axis: int, other: Variable, other_axis: int) -> bool:
    """Whether axes of two arrays are known to have one size, so that nothing need compare them."""
    return are_same_size(_size_of_whole(one, axis), _size_of_whole(other, other_axis))


def _size_of_whole(variable: Variable, axis: int) -> Variable:
    """The size of an axis, also that of an array of which rows were chosen.

    To compare sizes it may be read off there; in place of them it may not, for that would leave out an error.
    """
    node = variable.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.order[axis] != "x":
        return _size_of_whole(node.inputs[0], int(node.op.order[axis]))
    if node is not None and isinstance(node.op, AdvancedSubtensor) and len(node.inputs) == 2 and axis > 0:
        first, *rest = node.op.entries
        whole = first is ARRAY and node.inputs[1].tensor_type.ndim == 1
        if whole and all(isinstance(entry, Slice) and entry.is_full for entry in rest):
            return traced_size(node.inputs[0], axis)
    return traced_size(variable, axis)


def are_same_size(left: Variable, right: Variable) -> bool:
    """Whether two sizes are known to be equal: numbers, or that of one axis of one array."""
    if same(left, right):
        return True
    one, other = left.owner, right.owner
    if one is None or other is None or not isinstance(one.op, ShapeI):
        return False
    return one.op == other.op and one.inputs[0] is other.inputs[0]


def _is_main_of_square(op: Diagonal, matrix: Variable) -> bool:
    return op.offset == 0 and is_known_square(matrix)


def _size_before(node: Apply, axis: int) -> Variable | None:
    op, operands = node.op, node.inputs
    found = size_before(node, axis)
    if found is not None:
        return found
    if isinstance(op, Diagonal) and (
        axis < operands[0].tensor_type.ndim - 2 or _is_main_of_square(op, operands[0])
    ):
        return size_of(operands[0], axis)
    if isinstance(op, Subtensor):
        return _size_of_region(op, operands, axis)
    if isinstance(op, IfElse) and op.count == 1:
        return _chosen_size(operands[0], *(size_of(one, axis) for one in operands[1:]))
    return None


def _chosen_size(condition: Variable, then: Variable, otherwise: Variable) -> Variable:
    chosen: Variable = then if are_same_size(then, otherwise) else IfElse(1)(condition, then, otherwise)
    return chosen


def _size_of_region(op: Subtensor, operands: Sequence[Variable], axis: int) -> Variable | None:
    """The size of an axis of a region, of an array that is not computed if there is one of the same sizes."""
    source = _of_same_sizes(operands[0])
    return None if source is operands[0] else size_of(op.make_node(source, *operands[1:]).outputs[0], axis)


def _of_same_sizes(variable: Variable) -> Variable:
    """An array that an elementwise one has its sizes from."""
    while variable.owner is not None and variable.owner.op.family is Family.ELEMENTWISE:
        wanted = variable.tensor_type.broadcastable
        operands = (one for one in variable.owner.inputs if one.tensor_type.broadcastable == wanted)
        found = next(operands, None)
        if found is None:
            break
        variable = found
    return variable
