"""Eigenvalues of Hermitian matrices, and singular values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from esat.base.records import record
from esat.errors import GradientError, ParameterError, describe
from esat.graph.constants import constant
from esat.graph.op import Array
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.linalg.algebra import (
    adjoint,
    apply,
    as_column,
    as_row,
    conjugated,
    diagonal_matrix,
    diagonal_part,
    hermitian_part,
    identity_like,
    onto_triangle,
    product,
    transposed,
)
from esat.ops.linalg.factor import smaller
from esat.ops.linalg.record import MatrixOp, batch_types, check_matrices, check_square, real_dtype

Triangle = Literal["L", "U"]


@record(frozen=True, eq=False, repr=False)
class _Hermitian(MatrixOp):
    """An op on Hermitian matrices, of which one triangle is read.

    Only there have gradients elements other than zero.

    Attributes
    ----------
    triangle
        ``"L"`` or ``"U"``: which one.
    """

    triangle: Triangle = "L"

    def __post_init__(self) -> None:
        if self.triangle not in ("L", "U"):
            raise ParameterError(describe(self.name, [f"UPLO={self.triangle!r}"], 'UPLO is "L" or "U"'))

    def __str__(self) -> str:
        return f"{self.name}{{{self.triangle}}}"


@record(frozen=True, eq=False, repr=False)
class Eigenvalues(_Hermitian):
    """Eigenvalues of Hermitian matrices, real and ascending: ``(..., n, n)`` gives ``(..., n)``."""

    name, constructor = "eigvalsh", "Eigvalsh"
    cubic_operations = 4.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        source = inputs[0].tensor_type
        return (batch_types(source, (size,)).with_dtype(real_dtype(source.dtype)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(lambda a: np.linalg.eigvalsh(a, self.triangle), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        _, vectors = Eigenvectors(self.triangle)(node.inputs[0])
        along = hermitian_part(product(conjugated(vectors) * as_row(cotangent), transposed(vectors)))
        return [onto_triangle(along, self.triangle == "L")]


@record(frozen=True, eq=False, repr=False)
class Eigenvectors(_Hermitian):
    """Eigenvalues, real and ascending, and orthonormal eigenvectors in the columns of a matrix.

    ``(..., n, n)`` gives ``(..., n)`` and ``(..., n, n)``.
    """

    name, constructor = "eigh", "Eigh"
    cubic_operations = 9.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        source = inputs[0].tensor_type
        values = batch_types(source, (size,)).with_dtype(real_dtype(source.dtype))
        return (values, batch_types(source, (size, size)))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        values, vectors = self.call(lambda a: np.linalg.eigh(a, self.triangle), *inputs)
        return values, vectors

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Giles (2008), "Collected matrix derivative results", section 3.1. The gradient by eigenvectors
        of equal eigenvalues is not finite: they are not functions of the matrix."""
        by_values, by_vectors = cotangents
        values, vectors = node.outputs
        middle: Variable | None = None
        if by_vectors is not None:
            middle = reciprocal_gaps(values) * product(transposed(vectors), by_vectors)
        if by_values is not None:
            diagonal = cast(diagonal_matrix(by_values), vectors.tensor_type.dtype)
            middle = diagonal if middle is None else middle + diagonal
        if middle is None:
            return [None]
        along = hermitian_part(product(conjugated(vectors), middle, transposed(vectors)))
        return [onto_triangle(along, self.triangle == "L")]


def reciprocal_gaps(values: Variable) -> Variable:
    """``1 / (values[j] - values[i])`` at ``[i, j]``, and 0 on the diagonal."""
    gaps = as_row(values) - as_column(values)
    one = identity_like(gaps)
    return apply(op_named("reciprocal"), gaps + one) - one


@record(frozen=True, eq=False, repr=False)
class SingularValues(MatrixOp):
    """Singular values, descending: ``(..., m, n)`` gives ``(..., min(m, n))``."""

    name, constructor = "svdvals", "SingularValues"
    cubic_operations = 4.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_matrices(self.name, inputs)
        source = inputs[0].tensor_type
        values = batch_types(source, (smaller(*source.shape[-2:]),))
        return (values.with_dtype(real_dtype(source.dtype)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(lambda a: np.linalg.svd(a, compute_uv=False), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        left, _, right = SVD(full_matrices=False)(node.inputs[0])
        return [product(conjugated(left) * as_row(cotangent), conjugated(right))]


@record(frozen=True, eq=False, repr=False)
class SVD(MatrixOp):
    """``a = (u * s) @ vh``: orthonormal columns, singular values (real, descending), orthonormal rows.

    ``(..., m, n)`` gives, with ``k = min(m, n)``, ``(..., m, k)``, ``(..., k)`` and ``(..., k, n)``; with
    ``full_matrices`` the first is ``(..., m, m)`` and the last ``(..., n, n)``.

    Attributes
    ----------
    full_matrices
        See above.
    """

    full_matrices: bool = True
    name, constructor = "svd", "SVD"
    cubic_operations = 22.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_matrices(self.name, inputs)
        source = inputs[0].tensor_type
        rows, columns = source.shape[-2:]
        middle = smaller(rows, columns)
        left, right = (rows, columns) if self.full_matrices else (middle, middle)
        values = batch_types(source, (middle,)).with_dtype(real_dtype(source.dtype))
        return (batch_types(source, (rows, left)), values, batch_types(source, (right, columns)))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        left, values, right = self.call(lambda a: np.linalg.svd(a, self.full_matrices), *inputs)
        return left, values, right

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """By the values alone, or by the reduced decomposition.

        Raises
        ------
        GradientError
            For the vectors of ``full_matrices`` of a matrix that is not known to be square: those beyond
            the range are not functions of the matrix.
        """
        by_left, by_values, by_right = cotangents
        (matrix,) = node.inputs
        if by_left is None and by_right is None:
            if by_values is None:
                return [None]
            left, _, right = SVD(full_matrices=False)(matrix)
            return [product(conjugated(left) * as_row(by_values), conjugated(right))]
        rows, columns = matrix.tensor_type.shape[-2:]
        if self.full_matrices and (rows is None or rows != columns):
            reason = "the gradient by vectors takes full_matrices=False, or a square matrix"
            raise GradientError(describe(self.name, [matrix.type], reason, node.where))
        return [_svd_gradient(node.outputs, (by_left, by_values, by_right))]

    def __str__(self) -> str:
        return f"{self.name}{{{'full' if self.full_matrices else 'reduced'}}}"


def _svd_gradient(outputs: Sequence[Variable], cotangents: Sequence[Variable | None]) -> Variable:
    """Townsend (2016), "Differentiating the singular value decomposition"; for complex matrices Wan and
    Zhang (2019), "Automatic differentiation for complex valued SVD".

    Written for conjugated cotangents. It takes distinct singular values, and nonzero ones where the
    matrix is not square. For complex matrices the cost must not depend on the phases of the vectors.
    """
    left, values, right = outputs
    by_left, by_right = (None if c is None else conjugated(c) for c in (cotangents[0], cotangents[2]))
    by_values = cotangents[1]
    dtype = left.tensor_type.dtype
    squares = values * values
    gaps = reciprocal_gaps(squares)
    inverse = apply(op_named("reciprocal"), values)
    middle = constant(0, dtype) if by_values is None else cast(diagonal_matrix(by_values), dtype)
    if by_left is not None:
        rotation = product(adjoint(left), by_left)
        skew = rotation - adjoint(rotation)
        middle = middle + gaps * skew * as_row(values)
        if left.tensor_type.kind == "c":
            middle = middle + 0.5 * diagonal_part(skew) * as_row(inverse)
    if by_right is not None:
        rotation = product(right, adjoint(by_right))
        middle = middle + as_column(values) * (gaps * (rotation - adjoint(rotation)))
    total = product(left, middle, right)
    if by_left is not None and not _is_square(left):
        scaled = by_left * as_row(inverse)
        outside = scaled - product(left, product(adjoint(left), scaled))
        total = total + product(outside, right)
    if by_right is not None and not _is_square(right):
        scaled = as_column(inverse) * by_right
        outside = scaled - product(product(scaled, adjoint(right)), right)
        total = total + product(left, outside)
    return conjugated(total)


def _is_square(matrix: Variable) -> bool:
    """Whether orthonormal columns, or rows, are known to span the whole space."""
    rows, columns = matrix.tensor_type.shape[-2:]
    return rows is not None and rows == columns
