"""Variables of a FunctionGraph seen as terms of the rule language.

Rules speak of reductions that keep their axes and of scalars without rank. A graph that the
classic optimizers rewrite is brought to that form first (:class:`KeepReducedAxes`); the rest, size-1
values of any rank, is looked through here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.classic.optimizer import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.egraph.matrices import BY_CONSTRUCTOR, instance, matrix_term
from esat.egraph.signature import Signature
from esat.egraph.terms import SCALAR, dtype_number
from esat.egraph.uniform import bare, broadcast_of, dtype_of, uniform_value
from esat.errors import CompileError
from esat.graph import Constant, Family, FunctionGraph, Op, TensorType, Variable
from esat.graph.constants import constant
from esat.graph.registry import registered_ops
from esat.graph.sparse_type import SparseType
from esat.graph.types import DTYPES
from esat.ops.cast import Cast, cast
from esat.ops.contraction import MatMul
from esat.ops.dimshuffle import DimShuffle, dimshuffle
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.normalization import NORMALIZATIONS, Normalization
from esat.ops.reduction import REDUCERS, Reduction, restore_axes
from esat.ops.sparse.products import SparseSum
from esat.ops.sparse.record import SparseOp
from esat.rules.macros import permutation_axes, permutation_input_rank, permutation_word

Literal = int | float
_REDUCERS = {reducer.constructor: reducer for reducer in REDUCERS}
_NORMALIZATIONS = {constructor: name for name, constructor in NORMALIZATIONS.items()}


class KeepReducedAxes(Optimizer):
    """Writes reductions as ones that keep their axes, followed by a DimShuffle that drops them."""

    name = "keep_reduced_axes"

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        for node in fgraph.toposort():
            if isinstance(node.op, Reduction) and not node.op.keepdims:
                kept = Reduction(node.op.reducer, node.op.axes, keepdims=True)(node.inputs[0])
                rank = kept.tensor_type.ndim
                order = tuple(axis for axis in range(rank) if axis not in node.op.axes)
                fgraph.replace(node.outputs[0], dimshuffle(kept, order), self.name)
        return None


class DropReducedAxes(Optimizer):
    """Undoes :class:`KeepReducedAxes` where nothing else uses the axes."""

    name = "drop_reduced_axes"

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        for node in fgraph.toposort():
            reduction = node.inputs[0].owner if node.inputs else None
            if not (isinstance(node.op, DimShuffle) and reduction is not None):
                continue
            op = reduction.op
            if isinstance(op, Reduction) and op.keepdims and len(fgraph.clients[node.inputs[0]]) == 1:
                dropped = Reduction(op.reducer, op.axes, keepdims=False)(reduction.inputs[0])
                shown = restore_axes(dropped, op.axes, node.op.input_rank)
                result = dropped if node.op.dropped == op.axes else dimshuffle(shown, node.op.order)
                if result.tensor_type.ndim == node.outputs[0].tensor_type.ndim:
                    fgraph.replace(node.outputs[0], result, self.name)
        return None


def same(left: Variable, right: Variable) -> bool:
    """Whether two Variables are one, scalars of any rank and equal Constants included."""
    left, right = bare(left), bare(right)
    if left is right:
        return True
    if isinstance(left, Constant) and isinstance(right, Constant):
        tensors = is_tensor(left) and left.type == right.type
        return tensors and bool(left.data.tobytes() == right.data.tobytes())
    return False


def view(variable: Variable) -> tuple[str, Sequence[Variable], tuple[Literal, ...]] | None:
    """A Variable as a term: constructor, operands, literals; None for one that rules cannot look into."""
    variable = bare(variable)
    if isinstance(variable, Constant):
        value = uniform_value(variable.data) if is_tensor(variable) and variable.data.size == 1 else None
        return None if value is None else ("K", (), (value, dtype_of(variable)))
    node = variable.owner
    if node is None or len(node.outputs) != 1:
        return None
    op = node.op
    if isinstance(op, Cast):
        return "Cast", node.inputs, (dtype_number(op.dtype),)
    if isinstance(op, DimShuffle):
        return "DimShuffle", node.inputs, (permutation_word(op.order, op.input_rank),)
    if isinstance(op, Reduction):
        mask = sum(1 << axis for axis in op.axes)
        return (op.constructor, node.inputs, (mask,)) if op.keepdims else None
    if isinstance(op, Normalization):
        return op.constructor, node.inputs, (sum(1 << axis for axis in op.axes),)
    if isinstance(op, MatMul):
        return op.constructor, node.inputs, (node.inputs[0].tensor_type.ndim,)
    if op.family is Family.ELEMENTWISE:
        return op.constructor, node.inputs, ()
    form = _sparse_term(op) or matrix_term(node, [broadcast_of(operand) for operand in node.inputs])
    return None if form is None else (form[0], node.inputs, form[1])


def _sparse_term(op: Op) -> tuple[str, tuple[int, ...]] | None:
    """Constructor and numbers of an op on sparse matrices that rules speak of."""
    if not (isinstance(op, SparseOp) and op.kinds):
        return None
    return op.constructor, tuple(int(str(part)) for part in op.properties())


class TermFactory:
    """Builds Variables from terms of the rule language."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self._ops: dict[str, Op] = {op.constructor: op for op in registered_ops()}

    def build(
        self, constructor: str, operands: Sequence[Variable], literals: Sequence[Literal]
    ) -> Variable | None:
        """The Variable of a term; None for a constructor that stands for no op."""
        if constructor == "K":
            return constant(np.asarray(literals[0]).astype(DTYPES[int(literals[1])]))
        if constructor == "Cast":
            return cast(operands[0], DTYPES[int(literals[0])])
        if constructor == "DimShuffle":
            word = int(literals[0])
            return dimshuffle(with_rank(operands[0], permutation_input_rank(word)), permutation_axes(word))
        if constructor in _REDUCERS or constructor in _NORMALIZATIONS:
            return _over_axes(constructor, operands[0], int(literals[0]))
        if constructor in PRODUCTS:
            rank = int(literals[0])
            return _output(PRODUCTS[constructor], [with_rank(operand, rank) for operand in operands])
        if constructor in BY_CONSTRUCTOR:
            # Of several outputs the first stands for the whole, and `Output` finds the others.
            known = instance(constructor, literals, ())
            assert known is not None
            return _output(known.op, list(map(with_rank, operands, known.operand_ranks)))
        if constructor == "Output":
            whole = operands[0].owner
            return None if whole is None else whole.outputs[int(literals[0])]
        return self._of_registered(constructor, operands, literals)

    def _of_registered(
        self, constructor: str, operands: Sequence[Variable], literals: Sequence[Literal]
    ) -> Variable | None:
        op = self._ops.get(constructor)
        if isinstance(op, SparseOp) and op.kinds:
            return _of_sparse(op, operands, literals)
        if op is None or op.family is not Family.ELEMENTWISE:
            return None
        rank = max((_own_rank(operand) for operand in operands), default=0)
        return _output(op, [with_rank(operand, rank) for operand in operands])


def _of_sparse(op: SparseOp, operands: Sequence[Variable], literals: Sequence[Literal]) -> Variable:
    ranked = [
        operand if kind == "sparse" else with_rank(operand, kind)
        for operand, kind in zip(operands, op.kinds, strict=True)
    ]
    return _output(SparseSum(int(literals[0])) if isinstance(op, SparseSum) else op, ranked)


def _own_rank(operand: Variable) -> int:
    return 0 if broadcast_of(operand) == SCALAR else operand.tensor_type.ndim


def _over_axes(constructor: str, operand: Variable, mask: int) -> Variable:
    axes = tuple(axis for axis in range(operand.tensor_type.ndim) if mask >> axis & 1)
    if constructor in _REDUCERS:
        return _output(Reduction(_REDUCERS[constructor], axes, keepdims=True), [operand])
    return _output(Normalization(_NORMALIZATIONS[constructor], constructor, axes), [operand])


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
