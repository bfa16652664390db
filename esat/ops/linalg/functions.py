"""The matrix exponential, and matrices put together from blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ShapeError, describe
from esat.graph.constants import constant
from esat.graph.op import Array, Family, Op, Shapes, Work
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.join import Join, join
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.index.basic import subtensor, zeros_like
from esat.ops.inference.batching import all_batched
from esat.ops.inference.promotion import common_dtype
from esat.ops.linalg.algebra import apply, transposed
from esat.ops.linalg.record import MatrixOp, batch_types, check_square, each_matrix


@record(frozen=True, eq=False, repr=False)
class MatrixFunction(MatrixOp):
    """A function of square matrices that SciPy has: what a power series of matrices gives."""

    host_only = "a rare function of small matrices"
    cubic_operations = 20.0

    def value(self, matrix: Array) -> Array:
        """Of one matrix."""
        raise NotImplementedError

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        return (batch_types(inputs[0].tensor_type, (size, size)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(lambda a: each_matrix(self.value, a), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """The corner of the function of a block matrix (Higham 2008, "Functions of Matrices", 3.2)."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        back = transposed(node.inputs[0])
        rank = back.tensor_type.ndim
        upper = join([back, cotangent], rank - 1)
        lower = join([zeros_like(back), back], rank - 1)
        whole = apply(self, join([upper, lower], rank - 2))
        size = size_of(back, rank - 1)
        return [subtensor(whole, (Ellipsis, slice(None, size), slice(size, None)))]


@record(frozen=True, eq=False, repr=False)
class Exponential(MatrixFunction):
    """The exponential of square matrices, ``scipy.linalg.expm``."""

    name, constructor = "expm", "Expm"

    def value(self, matrix: Array) -> Array:
        import scipy.linalg

        result: Array = scipy.linalg.expm(matrix)
        return result


@record(frozen=True, eq=False, repr=False)
class RealFunction(MatrixFunction):
    """A function of matrices that may be complex where these are real: a program has one dtype."""

    def value(self, matrix: Array) -> Array:
        import scipy.linalg

        if not matrix.size:
            return matrix
        found: Array = getattr(scipy.linalg, self.name)(matrix)
        if found.dtype.kind == "c" and matrix.dtype.kind != "c":
            raise np.linalg.LinAlgError("the result is complex: give it complex numbers")
        return found.astype(matrix.dtype, copy=False)


@record(frozen=True, eq=False, repr=False)
class SquareRoot(RealFunction):
    """The principal square root of square matrices, ``scipy.linalg.sqrtm``."""

    name, constructor = "sqrtm", "Sqrtm"


@record(frozen=True, eq=False, repr=False)
class Logarithm(RealFunction):
    """The principal logarithm of square matrices, ``scipy.linalg.logm``."""

    name, constructor = "logm", "Logm"


@record(frozen=True, eq=False, repr=False)
class BlockDiagonal(Op):
    """Matrices of one dtype along the diagonal of a matrix of zeros; ``scipy.linalg.block_diag``.

    Operands ``(m_i, n_i)`` give ``(sum of m_i, sum of n_i)``.
    """

    name, constructor, family = "block_diag", "BlockDiag", Family.LIBRARY
    host_only = "a rare function of small matrices"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        if not inputs:
            raise ShapeError(describe(self.name, [], "there are no blocks"))
        dtype = common_dtype(self.name, inputs)
        return tuple(cast(value, dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if any(type.ndim != 2 for type in types):
            raise ShapeError(describe(self.name, types, "blocks are matrices"))
        shape = [
            None if None in sizes else sum(size for size in sizes if size is not None)
            for sizes in zip(*(type.shape for type in types), strict=True)
        ]
        return (types[0].with_shape(tuple(shape)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        shape = np.sum([array.shape for array in inputs], axis=0)
        result = np.zeros(tuple(shape), inputs[0].dtype)
        row = column = 0
        for block in inputs:
            result[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        return (result,)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return replace(super().work(inputs, outputs, itemsizes), flops=0.0)  # elements are copied

    def linear_in(self, count: int) -> range:
        return range(count)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        """Each block with zeros on its left and right, and these rows one below the other."""
        blocks = all_batched(inputs, batched)
        zero, alloc = constant(0, blocks[0].tensor_type.dtype), op_named("alloc")
        count = size_of(blocks[0], 0)
        rows = []
        for place, block in enumerate(blocks):
            parts = [
                block if own == place else alloc(zero, count, size_of(block, 1), size_of(other, 2))
                for own, other in enumerate(blocks)
            ]
            rows.append(apply(Join(2), *parts))
        return (apply(Join(1), *rows),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(node.inputs)
        start: tuple[Any, Any] = (0, 0)
        parts: list[Variable | None] = []
        for block in node.inputs:
            stop = tuple(
                apply(op_named("add"), begin, size_of(block, axis)) for axis, begin in enumerate(start)
            )
            parts.append(subtensor(cotangent, tuple(map(slice, start, stop))))
            start = (stop[0], stop[1])
        return parts


@record(frozen=True, eq=False, repr=False)
class RowOrder(Op):
    """The order of rows that LAPACK's pivots lead to, or pivots that lead to an order.

    Pivot ``p`` at place ``i`` says that rows ``i`` and ``p`` change places, after those before have.
    """

    family = Family.LIBRARY
    host_only = "a rare function of small matrices"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return tuple(cast(value, "int64") for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        (given,) = inputs
        if not given.tensor_type.ndim:
            raise ShapeError(
                describe(self.name, [given.type], "takes a vector, or vectors along the last axis")
            )
        return (given.type,)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None]


@record(frozen=True, eq=False, repr=False)
class OrderOfPivots(RowOrder):
    """The order of rows after all exchanges."""

    name, constructor = "order_of_pivots", "OrderOfPivots"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.apply_along_axis(_order, -1, inputs[0]) if inputs[0].size else inputs[0].copy(),)


@record(frozen=True, eq=False, repr=False)
class PivotsOfOrder(RowOrder):
    """The exchanges that give an order, each with a row that is not yet in its place."""

    name, constructor = "pivots_of_order", "PivotsOfOrder"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.apply_along_axis(_pivots, -1, inputs[0]) if inputs[0].size else inputs[0].copy(),)


def _order(pivots: Array) -> Array:
    order = np.arange(len(pivots))
    for place, pivot in enumerate(pivots):
        order[[place, pivot]] = order[[pivot, place]]
    return order


def _pivots(order: Array) -> Array:
    count = len(order)
    rows, places, pivots = np.arange(count), np.arange(count), np.empty(count, "int64")
    for place, row in enumerate(order):
        pivots[place] = pivot = places[row]
        other = rows[place]
        rows[place], rows[pivot] = row, other
        places[other], places[row] = pivot, place
    return pivots


EXPONENTIAL = Exponential()
SQUARE_ROOT = SquareRoot()
LOGARITHM = Logarithm()
ORDER_OF_PIVOTS = OrderOfPivots()
PIVOTS_OF_ORDER = PivotsOfOrder()
BLOCK_DIAGONAL = BlockDiagonal()
