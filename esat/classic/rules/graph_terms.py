"""Variables of a FunctionGraph seen as terms of the rule language.

Rules speak of reductions that keep their axes and of scalars without rank: reductions that drop them are seen
as views, and values of size 1 and any rank are looked through.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.egraph.analyses.uniform import bare, broadcast_of, dtype_of, uniform_value
from esat.egraph.language.constructors import OPAQUE
from esat.egraph.language.forms import op_of, term_of
from esat.egraph.language.named_ops import op_name
from esat.egraph.language.op_parameters import Parameter
from esat.egraph.language.terms import SCALAR
from esat.errors import CompileError
from esat.graph import Apply, Constant, Op, TensorType, Variable
from esat.graph.constants import constant
from esat.graph.sparse_type import SparseType
from esat.graph.types import DTYPES
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.cast import Cast, cast
from esat.ops.reduction import Reduction
from esat.rules.language.macros import permutation_word

Literal = int | float
Term = tuple[str, Sequence[Variable], tuple[Parameter, ...]]
"""Constructor, operands, parameters."""


def same(left: Variable, right: Variable) -> bool:
    """Whether two Variables are one, scalars of any rank and equal Constants included."""
    left, right = bare(left), bare(right)
    if left is right:
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        tensors = is_tensor(left) and left.type == right.type
        return tensors and bool(left.data.tobytes() == right.data.tobytes())
    return False


def view(variable: Variable) -> Term | None:
    """A Variable as a term; None for one that rules cannot look into."""
    variable = bare(variable)
    if isinstance(variable, Constant):
        value = uniform_value(variable.data) if is_tensor(variable) and variable.data.size == 1 else None
        return None if value is None else ("K", (), (value, dtype_of(variable)))
    node = variable.owner
    if node is None or len(node.outputs) != 1:
        return None
    if isinstance(node.op, Reduction) and not node.op.keepdims:
        kept = Reduction(node.op.reducer, node.op.axes, keepdims=True)(node.inputs[0])
        return "DimShuffle", (kept,), (permutation_word(kept_order(node.op, kept), kept.tensor_type.ndim),)
    return node_view(node)


def is_one_of_several(variable: Variable) -> bool:
    """Whether what computes a Variable has other results, too."""
    return variable.owner is not None and len(variable.owner.outputs) > 1


def kept_order(reduction: Reduction, kept: Variable) -> tuple[int, ...]:
    """The axes that are left of a reduction that keeps its axes."""
    return tuple(axis for axis in range(kept.tensor_type.ndim) if axis not in reduction.axes)


def node_view(node: Apply) -> Term | None:
    """A node as a term, whatever it has of outputs."""
    form = term_of(node, [broadcast_of(operand) for operand in node.inputs])
    if form is not None:
        return form[0], node.inputs, form[1]
    if node.op.constructor in OPAQUE:
        return node.op.constructor, node.inputs, (node.op,)
    values = op_name(node.op).values(node.op)
    return None if values is None else (node.op.constructor, node.inputs, values)


def built(constructor: str, operands: Sequence[Variable], literals: Sequence[Parameter]) -> Variable | None:
    """The Variable of a term; None for a constructor that stands for no op."""
    if constructor in OPAQUE:
        (op,) = literals
        return _output(op, operands) if isinstance(op, Op) else None
    numbers = [literal for literal in literals if isinstance(literal, int | float)]
    if constructor == "K":
        return constant(np.asarray(numbers[0]).astype(DTYPES[int(numbers[1])]))
    if constructor == "Output":
        # Of several outputs the first stands for the whole, and `Output` finds the others.
        whole = operands[0].owner
        return None if whole is None else whole.outputs[int(numbers[0])]
    known = op_of(constructor, numbers, [_own_rank(operand) for operand in operands])
    if known is None:
        return None
    ranked = [
        operand if rank is None else with_rank(operand, rank)
        for operand, rank in zip(operands, known.operand_ranks, strict=True)
    ]
    if isinstance(known.op, Cast):
        return cast(ranked[0], known.op.dtype)
    if isinstance(known.op, DimShuffle):
        return dimshuffle(ranked[0], known.op.order)
    return _output(known.op, ranked)


def _own_rank(operand: Variable) -> int:
    tensor = isinstance(operand.type, TensorType) and broadcast_of(operand) != SCALAR
    return operand.tensor_type.ndim if tensor else 0


def _output(op: Op, operands: Sequence[Variable]) -> Variable:
    return op.make_node(*operands).outputs[0]


def with_rank(variable: Variable, rank: int) -> Variable:
    """A scalar with the rank its user needs; any other Variable must have it already."""
    if variable.tensor_type.ndim == rank:
        return variable
    if broadcast_of(variable) != SCALAR:
        raise CompileError(f"{variable} ({variable.type}) cannot be given {rank} axes")
    scalar = bare(variable)
    if isinstance(scalar, Constant):
        return constant(scalar.data.reshape((1,) * rank))
    return dimshuffle(scalar, ("x",) * rank)


def fitted(variable: Variable, like: Variable) -> Variable | None:
    """``variable`` in the rank of ``like``, or None where it could not stand for it."""
    if isinstance(like.type, SparseType):
        return variable if like.type.admits(variable.type) else None
    if variable.tensor_type.dtype != like.tensor_type.dtype:
        return None
    if broadcast_of(variable) != broadcast_of(like):
        return None
    rank = like.tensor_type.ndim
    return variable if variable.tensor_type.ndim == rank else with_rank(variable, rank)


def is_tensor(variable: Variable) -> bool:
    """Whether the Variable holds an array."""
    return isinstance(variable.type, TensorType)
