"""Contractions: the matrix product, over broadcast batch axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, check_count, shapes_given
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.inference.batching import aligned, bilinear
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.inference.promotion import operand_dtypes, wrap
from esat.ops.reduction import SUM, reduce, sum_to


@record(frozen=True, eq=False, repr=False)
class MatMul(Op):
    """Product of the matrices in the last two axes; axes before them are broadcast.

    Operands have one dtype and one rank of at least 2: ``(..., m, k)`` and ``(..., k, n)`` give
    ``(..., m, n)``. Integers and booleans are multiplied as ``numpy.matmul`` does.
    """

    name, constructor, family = "matmul", "MatMul", Family.CONTRACTION
    typing = "matmul"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 2)
        dtypes = operand_dtypes(self.name, np.matmul, inputs)
        operands = [cast(wrap(self.name, value, d), d) for value, d in zip(inputs, dtypes, strict=True)]
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        left, right = (variable.tensor_type for variable in inputs)
        if left.ndim != right.ndim or left.ndim < 2:
            raise ShapeError(describe(self.name, [left, right], "operands must have one rank of at least 2"))
        if left.shape[-1] != right.shape[-2] and None not in (left.shape[-1], right.shape[-2]):
            reason = f"inner sizes {left.shape[-1]} and {right.shape[-2]} do not match"
            raise ShapeError(describe(self.name, [left, right], reason))
        batch = broadcast_types(self.name, [_batch_type(left), _batch_type(right)])
        return (TensorType(left.dtype, shape=(*batch, left.shape[-2], right.shape[-1])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        left, right = inputs
        try:
            with np.errstate(all="ignore"):
                return (np.matmul(left, right),)
        except ValueError as error:
            shapes = [f"shape {array.shape}" for array in inputs]
            raise ShapeError(describe(self.name, shapes, "sizes do not match")) from error

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        left, right = (array.shape for array in operands)
        flags = [variable.tensor_type.broadcastable[:-2] for variable in node.inputs]
        batches = zip(left[:-2], right[:-2], *flags, strict=True)
        reason = ""
        if left[-1] != right[-2]:
            reason = f"inner sizes {left[-1]} and {right[-2]} do not match"
        elif any(a != b and not (fa or fb) for a, b, fa, fb in batches):
            reason = f"sizes {left[:-2]} and {right[:-2]} of the axes before do not match"
            if 1 in (*left[:-2], *right[:-2]):
                reason += "; an axis broadcasts only if its type says that its size is 1"
        if reason:
            raise ShapeError(describe(self.name, shapes_given(node, operands), reason, node.where))

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [bilinear(self, node, tangents)]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        """A matrix that all elements share multiplies them in one product; vectors have sums of products."""
        left, right = inputs
        rows, columns = left.tensor_type.shape[-2], right.tensor_type.shape[-1]
        if all(operand.tensor_type.ndim == 2 for operand in node.inputs):
            if not batched[1] and rows == 1:
                return (dimshuffle(self(dimshuffle(left, (0, 2)), right), (0, "x", 1)),)
            if not batched[1]:
                flat = reshape(left, (-1, size_of(left, 2)))
                return (reshape(self(flat, right), (size_of(left, 0), size_of(left, 1), size_of(right, 1))),)
            if not batched[0] and columns == 1:
                product = self(dimshuffle(right, (0, 1)), swap_last_axes(left))
                return (dimshuffle(product, (0, 1, "x")),)
            if all(batched) and rows == columns == 1 and left.tensor_type.kind in "fc":
                products = op_named("mul")(dimshuffle(left, (0, 2)), dimshuffle(right, (0, 1)))
                return (dimshuffle(reduce(SUM, products, 1), (0, "x", "x")),)
        return tuple(self.make_node(*aligned(inputs, batched)).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        left, right = node.inputs
        return [
            _fold_batch(self(cotangent, swap_last_axes(right)), left),
            _fold_batch(self(swap_last_axes(left), cotangent), right),
        ]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=2.0 * size * inputs[0][-1], bytes=general.bytes, calls=1)


MATMUL = MatMul()


def swap_last_axes(matrix: Variable) -> Variable:
    """Each matrix in the last two axes, transposed."""
    rank = matrix.tensor_type.ndim
    return dimshuffle(matrix, (*range(rank - 2), rank - 1, rank - 2))


def _batch_type(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[:-2])


def _fold_batch(gradient: Variable, operand: Variable) -> Variable:
    return sum_to(gradient, (*operand.tensor_type.broadcastable[:-2], False, False))


def check_inner_sizes(name: str, first: Variable, second: Variable) -> None:
    """Raise ShapeError where sizes are known that a product sums over and that do not match."""
    left, right = first.tensor_type.shape[-1], second.tensor_type.shape[-2:][0]
    if None not in (left, right) and left != right:
        reason = f"inner sizes {left} and {right} do not match"
        raise ShapeError(describe(name, [first.type, second.type], reason))


def matmul(x1: Any, x2: Any) -> Variable:
    """Matrix product as ``numpy.matmul``: vectors are lifted to matrices and the axis dropped again.

    Parameters
    ----------
    x1, x2
        Variables, arrays or nested lists of rank at least 1.

    Raises
    ------
    ShapeError
        For a scalar operand or inner sizes that do not match.
    DtypeError
        For operands that are not numeric.
    """
    dtypes = operand_dtypes("matmul", np.matmul, [x1, x2])
    first, second = (
        cast(wrap("matmul", value, dtype), dtype) for value, dtype in zip((x1, x2), dtypes, strict=True)
    )
    ranks = first.tensor_type.ndim, second.tensor_type.ndim
    if 0 in ranks:
        reason = "a scalar has no axis to contract; use esat.mul"
        raise ShapeError(describe("matmul", [first.type, second.type], reason))
    check_inner_sizes("matmul", first, second)
    if ranks[0] == 1:
        first = dimshuffle(first, ("x", 0))
    if ranks[1] == 1:
        second = dimshuffle(second, (0, "x"))
    product: Variable = MATMUL(first, second)
    rank = product.tensor_type.ndim
    dropped = {axis for axis, operand in ((rank - 2, 0), (rank - 1, 1)) if ranks[operand] == 1}
    if dropped:
        product = dimshuffle(product, tuple(axis for axis in range(rank) if axis not in dropped))
    return product
