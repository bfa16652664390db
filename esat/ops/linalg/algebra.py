"""Short forms for gradients of matrix functions: products, transposes, triangles and diagonals.

Cotangents follow :func:`esat.grad`: a real cost changes by the real part of the sum of
``cotangent * change``, without conjugation. So the transpose, not the adjoint, carries a cotangent
through a linear map, and whatever the map conjugates is conjugated on the way back.
"""

from __future__ import annotations

from typing import Any

from esat.graph.constants import constant
from esat.graph.op import Op
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import eye, tri
from esat.ops.arrays.diagonal import Diagonal
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL, swap_last_axes
from esat.ops.reduction import sum_to


def apply(op: Op, *operands: Any) -> Variable:
    """The single output of an op."""
    result: Variable = op(*operands)
    return result


def product(*factors: Variable) -> Variable:
    """Product of matrices, from the left."""
    result = factors[0]
    for factor in factors[1:]:
        result = apply(MATMUL, result, factor)
    return result


def transposed(matrix: Variable) -> Variable:
    """Each matrix transposed."""
    return swap_last_axes(matrix)


def conjugated(operand: Variable) -> Variable:
    """The complex conjugate; the operand itself when it is real."""
    return apply(op_named("conj"), operand) if operand.tensor_type.kind == "c" else operand


def adjoint(matrix: Variable) -> Variable:
    """Each matrix transposed and conjugated."""
    return conjugated(swap_last_axes(matrix))


def triangle(matrix: Variable, lower: bool = True, strict: bool = False) -> Variable:
    """The matrix with zeros outside a triangle; ``strict`` leaves out the diagonal as well."""
    rank = matrix.tensor_type.ndim
    rows, columns = size_of(matrix, rank - 2), size_of(matrix, rank - 1)
    # tri marks what is on and below a diagonal: the triangle that is kept, or the one that goes.
    offset = -1 if lower == strict else 0
    mask = dimshuffle(tri(rows, columns, offset, "bool"), (*["x"] * (rank - 2), 0, 1))
    zero = constant(0, matrix.tensor_type.dtype)
    return apply(op_named("switch"), mask, *((matrix, zero) if lower else (zero, matrix)))


def scaled_diagonal(matrix: Variable, factor: float) -> Variable:
    """The matrix with its diagonal multiplied by ``factor``."""
    return matrix + (factor - 1.0) * diagonal_part(matrix)


def diagonal_part(matrix: Variable) -> Variable:
    """The square matrix with zeros outside its diagonal."""
    return diagonal_matrix(apply(Diagonal(0), matrix))


def diagonal_matrix(vector: Variable) -> Variable:
    """Square matrices with the last axis of ``vector`` on their diagonals."""
    rank = vector.tensor_type.ndim
    size = size_of(vector, rank - 1)
    mask = dimshuffle(eye(size, size, 0, "bool"), (*["x"] * (rank - 1), 0, 1))
    return apply(op_named("switch"), mask, as_row(vector), constant(0, vector.tensor_type.dtype))


def identity_like(matrix: Variable) -> Variable:
    """One identity matrix of a square matrix's size and dtype, without batch axes but of its rank."""
    rank = matrix.tensor_type.ndim
    size = size_of(matrix, rank - 1)
    return dimshuffle(eye(size, size, 0, matrix.tensor_type.dtype), (*["x"] * (rank - 2), 0, 1))


def as_row(vector: Variable) -> Variable:
    """The last axis as that of columns: it scales the columns of a matrix it is multiplied with."""
    rank = vector.tensor_type.ndim
    return dimshuffle(vector, (*range(rank - 1), "x", rank - 1))


def as_column(vector: Variable) -> Variable:
    """The last axis as that of rows: it scales the rows of a matrix it is multiplied with."""
    return dimshuffle(vector, (*range(vector.tensor_type.ndim), "x"))


def as_factor(scalars: Variable) -> Variable:
    """One number a matrix, with two new axes at the end."""
    return dimshuffle(scalars, (*range(scalars.tensor_type.ndim), "x", "x"))


def hermitian_part(matrix: Variable) -> Variable:
    """The mean of the matrix and its adjoint: the derivative along Hermitian changes only."""
    return 0.5 * (matrix + adjoint(matrix))


def onto_triangle(hermitian: Variable, lower: bool) -> Variable:
    """The derivative by the elements of the triangle that an op reads, from that along Hermitian changes: an
    element stands for the one across the diagonal as well."""
    rank = hermitian.tensor_type.ndim
    size = size_of(hermitian, rank - 1)
    # Weights 2, 1 and 0 in one array: rules see a product, and no sum or choice that they would spread.
    counts = tri(size, size, 0, "int8") + tri(size, size, -1, "int8")
    weights = cast(counts if lower else dimshuffle(counts, (1, 0)), hermitian.tensor_type.dtype)
    return hermitian * dimshuffle(weights, (*["x"] * (rank - 2), 0, 1))


def fold_batch(cotangent: Variable, operand: Variable) -> Variable:
    """``cotangent`` summed over the batch axes along which ``operand`` was stretched."""
    return sum_to(cotangent, (*operand.tensor_type.broadcastable[:-2], False, False))
