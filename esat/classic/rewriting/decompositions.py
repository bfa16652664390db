"""Decompositions that can be read off: of diagonal matrices, numbers, and matrices stretched over a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.classic.rules.matrix_facts import facts_of_matrix, is_known_square
from esat.graph import Apply, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.creation import arange
from esat.ops.arrays.diagonal import Diagonal
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.linalg.algebra import as_column, as_row, identity_like
from esat.ops.linalg.factor import LU, QR, CholeskyPullback, cholesky_pullback
from esat.ops.linalg.inverse import Determinant, Inverse
from esat.ops.linalg.record import MatrixOp
from esat.ops.linalg.solve import CholeskySolve, Solve, SolveTriangular
from esat.ops.linalg.spectral import SVD, Eigenvalues, Eigenvectors, SingularValues

_SYSTEMS = (Solve, SolveTriangular, CholeskySolve)
Axes = Sequence[int | Literal["x"]]


@local_optimizer([Eigenvalues, Eigenvectors, SingularValues])
def local_spectrum_of_diagonal(node: Apply) -> Transformed:
    """eigh, eigvalsh and svdvals of a diagonal matrix, from its sorted diagonal.

    Not svd: vectors of the left and of the right must be of one decomposition, of which there are several.
    """
    op, (matrix,) = node.op, node.inputs
    if not _is_square_and(matrix, "diagonal"):
        return False
    values = Diagonal()(matrix)
    if isinstance(op, Eigenvalues):
        return fitting(node, sort(values))
    if isinstance(op, Eigenvectors):
        order = argsort(values)
        return fitting(node, values[order], _unit_columns(order, values))
    return fitting(node, sort(op_named("abs")(values))[::-1])


@local_optimizer([QR, LU])
def local_factor_of_triangular(node: Apply) -> Transformed:
    """Factors of an upper triangular matrix, by qr and lu: itself, and identities."""
    (matrix,) = node.inputs
    if not _is_square_and(matrix, "upper_triangular"):
        return False
    return fitting(node, *(identity_like(matrix) for _ in node.outputs[1:]), matrix)


@local_optimizer([Eigenvalues, SingularValues, QR])
def local_part_of_decomposition(node: Apply) -> Transformed:
    """eigvalsh, svdvals and qr of mode r where eigh, svd or qr of the same matrix is computed anyway."""
    (matrix,) = node.inputs
    if isinstance(node.op, QR) and node.op.mode != "r":
        return False
    for other, _ in matrix.clients or ():
        if not isinstance(other, Apply):
            continue
        same_triangle = isinstance(node.op, Eigenvalues) and other.op == Eigenvectors(node.op.triangle)
        if same_triangle or (isinstance(node.op, QR) and other.op == QR()):
            return fitting(node, other.outputs[0 if same_triangle else 1])
        if isinstance(node.op, SingularValues) and isinstance(other.op, SVD):
            return fitting(node, other.outputs[1])
    return False


@local_optimizer([CholeskyPullback])
def local_cholesky_pullback(node: Apply) -> Transformed:
    """The gradient through a Cholesky factor, by a product and substitutions."""
    return fitting(node, cholesky_pullback(*node.inputs))


@local_optimizer([Inverse, Solve, Determinant])
def local_linalg_of_number(node: Apply) -> Transformed:
    """inv, solve and det of matrices known to have one element: quotients by it."""
    matrix = node.inputs[0]
    if matrix.tensor_type.shape[-2:] != (1, 1):
        return False
    if isinstance(node.op, Inverse):
        return fitting(node, op_named("reciprocal")(matrix))
    if isinstance(node.op, Solve):
        return fitting(node, op_named("div")(node.inputs[1], matrix))
    return fitting(node, dimshuffle(matrix, range(matrix.tensor_type.ndim - 2)))


@local_optimizer([MatrixOp])
def local_linalg_of_stretched(node: Apply) -> Transformed:
    """inv(a[None]) -> inv(a)[None], and so for every function of one matrix.

    solve(a[None], b) of a batch of right sides -> one system with all of them, so that a is factorized once.
    """
    matrix = node.inputs[0]
    stretched = matrix.tensor_type.broadcastable[:-2]
    if isinstance(node.op, _SYSTEMS):
        return fitting(node, _one_system(node.op, *node.inputs)) if stretched and all(stretched) else False
    if len(node.inputs) != 1 or not any(stretched):
        return False
    rank = len(stretched) + 2
    kept = [axis for axis in range(rank) if axis >= rank - 2 or not stretched[axis]]
    outputs = node.op.make_node(dimshuffle(matrix, kept)).outputs
    return fitting(node, *(dimshuffle(output, _spread(output, stretched)) for output in outputs))


def _spread(result: Variable, stretched: Sequence[bool]) -> Axes:
    """The axes of a result of the batch without stretched axes, and new ones where these were."""
    axes = iter(range(result.tensor_type.ndim))
    batch: list[int | Literal["x"]] = ["x" if new else next(axes) for new in stretched]
    return [*batch, *axes]


def _one_system(op: MatrixOp, matrix: Variable, sides: Variable) -> Variable:
    """The solution for right sides of all of a batch, side by side, with one matrix."""
    last = sides.tensor_type.ndim - 1
    order = (last - 1, *range(last - 1), last)
    rows, *others = [size_of(sides, axis) for axis in order]
    wide = reshape(dimshuffle(sides, order), [rows, reduce(op_named("mul"), others)])
    solution: Variable = op(dimshuffle(matrix, (last - 1, last)), wide)
    return dimshuffle(reshape(solution, [rows, *others]), (*range(1, last), 0, last))


def _unit_columns(places: Variable, diagonal: Variable) -> Variable:
    """The matrix with a one at the given row of each column."""
    rows = arange(size_of(diagonal, 0))
    return cast(op_named("eq")(as_column(rows), as_row(places)), diagonal.tensor_type.dtype)


def _is_square_and(matrix: Variable, pattern: str) -> bool:
    """Whether it is one square matrix of floats with a pattern of zeros."""
    if matrix.tensor_type.kind != "f" or matrix.tensor_type.ndim != 2:
        return False
    return pattern in facts_of_matrix(matrix) and is_known_square(matrix)
