"""Systems of linear equations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.graph.op import Array, Op, Shapes, Work, check_count
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.inference.broadcasting import equalize_ranks
from esat.ops.linalg.algebra import (
    adjoint,
    apply,
    conjugated,
    fold_batch,
    product,
    transposed,
    triangle,
)
from esat.ops.linalg.record import MatrixOp, check_matrices, each_matrix, inexact_operands, system_shape
from esat.ops.linalg.substitution import BY_ROWS_FROM, check_sizes, refuse_singular, substituted


@record(frozen=True, eq=False, repr=False)
class _System(MatrixOp):
    """A square matrix and right sides in the columns of a second one; both have one rank."""

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = inexact_operands(self.name, inputs)
        check_count(self.name, operands, 2)
        check_matrices(self.name, operands)  # of what a vector is made by axes of size 1 nobody spoke
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[1].tensor_type.with_shape(system_shape(self.name, inputs)),)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size, columns = inputs[0][-1], outputs[0][-1]
        batch = float(np.prod(outputs[0][:-2]))
        flops = self.elimination * size**3 + self.substitutions * float(size) ** 2 * columns
        return Work(flops=batch * flops, bytes=general.bytes, calls=1)

    @property
    def elimination(self) -> float:
        """Operations of the factorization, in units of the cube of the size."""
        return 0.0

    @property
    def substitutions(self) -> float:
        """Operations for each right side, in units of the square of the size."""
        return 2.0


@record(frozen=True, eq=False, repr=False)
class Solve(_System):
    """``x`` with ``a @ x = b`` for a square, nonsingular ``a``: LU with partial pivoting (LAPACK gesv).

    Operands ``(..., n, n)`` and ``(..., n, k)`` of one dtype; batches broadcast.
    """

    name, constructor = "solve", "Solve"
    matrix_share = 0.5

    @property
    def elimination(self) -> float:
        return 2.0 / 3.0

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(np.linalg.solve, *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        matrix, sides = node.inputs
        back = apply(self, transposed(matrix), cotangent)
        by_matrix = -product(back, transposed(node.outputs[0]))
        return [fold_batch(by_matrix, matrix), fold_batch(back, sides)]


@record(frozen=True, eq=False, repr=False)
class SemidefiniteSolve(Solve):
    """:class:`Solve` for a real, symmetric ``a`` without negative eigenvalues: by Cholesky's factors (LAPACK
    posv), and by LU where rounding or a singular matrix leaves none.

    Only one triangle of ``a`` is read where there are factors. float32 is computed in float64, as NumPy
    does in :func:`numpy.linalg.solve`.
    """

    name, constructor = "solve_semidefinite", "SolveSemidefinite"
    matrix_share = 0.7

    @property
    def elimination(self) -> float:
        return 1.0 / 3.0

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        def solve(matrix: Array, sides: Array) -> Array:
            if sides.shape[1] < BY_ROWS_FROM:
                _, result, info = lapack("posv", np.float64)(matrix.T, sides, lower=1)
            else:
                factor, info = lapack("potrf", np.float64)(matrix.T, lower=1, clean=0)
                if not info:
                    result = substituted(factor, substituted(factor, sides, lower=True), True, transpose=True)
            return np.asarray(np.linalg.solve(matrix, sides) if info else result)

        return (self.call(lambda *arrays: each_matrix(solve, *arrays), *inputs),)


@record(frozen=True, eq=False, repr=False)
class SolveTriangular(_System):
    """``x`` with ``a @ x = b`` for a triangular ``a`` (LAPACK trtrs). The other triangle is not read.

    Attributes
    ----------
    lower
        Which triangle ``a`` is.
    transpose
        Whether to solve with the transpose of ``a`` instead.
    unit_diagonal
        Whether to take the diagonal for ones without reading it.
    """

    lower: bool = False
    transpose: bool = False
    unit_diagonal: bool = False
    name, constructor = "solve_triangular", "SolveTriangular"
    matrix_share = 0.7

    @property
    def substitutions(self) -> float:
        return 1.0

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        def solve(matrix: Array, sides: Array) -> Array:
            check_sizes(matrix, sides)
            if not self.unit_diagonal:
                refuse_singular(matrix)
            form = self.lower, self.transpose, self.unit_diagonal
            if sides.shape[1] >= BY_ROWS_FROM:
                return substituted(matrix, sides, *form)
            lower, transpose, unit_diagonal = form
            if matrix.flags.c_contiguous:  # by columns, as LAPACK has it: nothing is copied
                matrix, lower, transpose = matrix.T, not lower, not transpose
            trtrs = lapack("trtrs", matrix, sides)
            return np.asarray(trtrs(matrix, sides, lower=lower, trans=transpose, unitdiag=unit_diagonal)[0])

        return (self.call(lambda *arrays: each_matrix(solve, *arrays), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        matrix, sides = node.inputs
        (result,) = node.outputs
        other = SolveTriangular(self.lower, not self.transpose, self.unit_diagonal)
        back = apply(other, matrix, cotangent)
        pair = (result, transposed(back)) if self.transpose else (back, transposed(result))
        by_matrix = -triangle(product(*pair), self.lower, self.unit_diagonal)
        return [fold_batch(by_matrix, matrix), fold_batch(back, sides)]

    def __str__(self) -> str:
        form = ["lower" if self.lower else "upper"]
        form += ["transpose"] * self.transpose + ["unit_diagonal"] * self.unit_diagonal
        return f"{self.name}{{{', '.join(form)}}}"


@record(frozen=True, eq=False, repr=False)
class CholeskySolve(_System):
    """``x`` with ``a @ x = b``, from the Cholesky factor of ``a`` (LAPACK potrs).

    ``a`` is ``c @ c^H`` for a lower factor, ``c^H @ c`` for an upper one. The other triangle of ``c`` is
    not read.

    Attributes
    ----------
    lower
        Which triangle the factor is.
    """

    lower: bool = True
    name, constructor = "cho_solve", "CholeskySolve"
    matrix_share = 0.7

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        def solve(factor: Array, sides: Array) -> Array:
            check_sizes(factor, sides)
            if np.isrealobj(factor) and np.isrealobj(sides) and sides.shape[1] >= BY_ROWS_FROM:
                half = substituted(factor, sides, self.lower, transpose=not self.lower)
                return substituted(factor, half, self.lower, transpose=self.lower)
            lower = self.lower
            if np.isrealobj(factor) and factor.flags.c_contiguous:
                factor, lower = factor.T, not lower  # by columns, as LAPACK has it: nothing is copied
            return np.asarray(lapack("potrs", factor, sides)(factor, sides, lower=lower)[0])

        return (self.call(lambda *arrays: each_matrix(solve, *arrays), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Through the product: for lower, ``da = dc c^H + c dc^H``, each term pulled back in turn."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        factor, sides = node.inputs
        back = conjugated(apply(self, factor, conjugated(cotangent)))
        by_matrix = -product(back, transposed(node.outputs[0]))
        symmetric = by_matrix + adjoint(by_matrix)
        other = conjugated(triangle(factor, self.lower))
        by_factor = product(symmetric, other) if self.lower else product(other, symmetric)
        return [fold_batch(triangle(by_factor, self.lower), factor), fold_batch(back, sides)]

    def __str__(self) -> str:
        return f"{self.name}{{{'lower' if self.lower else 'upper'}}}"


SOLVE = Solve()
