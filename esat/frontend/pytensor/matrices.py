"""Rules of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from esat.frontend.arrays.creation import tril, triu
from esat.frontend.arrays.shaping import matrix_transpose
from esat.frontend.elements import reductions
from esat.frontend.elements.searching import where
from esat.frontend.linear_algebra import eigenvalues
from esat.frontend.linear_algebra import linalg_functions as linalg
from esat.frontend.linear_algebra.linear import batched_dot, dot, kron, outer
from esat.frontend.linear_algebra.tensor_equations import tensorinv
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import known_size, size_of
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import expand_dims, squeeze
from esat.ops.cast import cast
from esat.ops.linalg.functions import ORDER_OF_PIVOTS, PIVOTS_OF_ORDER

# ---- products


def _gemv(step: PyTensorStep) -> Any:
    y, alpha, matrix, x, beta = step.operands
    return beta * y + alpha * dot(matrix, x)


def _gemm(step: PyTensorStep) -> Any:
    z, alpha, left, right, beta = step.operands
    return beta * z + alpha * dot(left, right)


def _ger(step: PyTensorStep) -> Any:
    matrix, alpha, x, y = step.operands
    return matrix + alpha * outer(x, y)


# ---- factors


def _cholesky(step: PyTensorStep) -> Variable:
    """NaN in all elements of a factor that there is not. Of the triangles that which is read."""
    return linalg.cholesky(step.first, upper=not step.op.lower, on_error="nan")


def _lu(step: PyTensorStep) -> list[Variable]:
    factors = list(linalg.lu(step.first, permute_l=step.op.permute_l))
    if getattr(step.op, "p_indices", False):
        factors[0] = _places_of_ones(factors[0], -1)
    return factors


def _places_of_ones(permutation: Variable, axis: int) -> Variable:
    """The place of the one along an axis of matrices of permutations."""
    numbers: Variable = arange(size_of(permutation, permutation.tensor_type.ndim + axis))
    weighted = op_named("mul")(permutation, numbers if axis == -1 else expand_dims(numbers, -1))
    return cast(reductions.sum(weighted, axis=axis), "int64")


def _packed(step: PyTensorStep) -> list[Variable]:
    """LAPACK's getrf: both factors in one matrix, of NaN where it is singular, and the exchanges of rows."""
    permutation, lower, upper = linalg.lu(step.first)
    packed = op_named("add")(tril(lower, -1), upper)
    singular = reductions.any(op_named("eq")(diagonal(upper, 0, -2, -1), 0), axis=-1)
    pivots = PIVOTS_OF_ORDER(_places_of_ones(permutation, -2))
    return [where(expand_dims(singular, (-2, -1)), np.nan, packed), cast(pivots, "int32")]


def _permutation(step: PyTensorStep) -> Variable:
    order: Variable = ORDER_OF_PIVOTS(step.first)
    return order if step.op.inverse else argsort(order)


def _qr(step: PyTensorStep) -> Any:
    mode = step.op.mode
    if step.op.pivoting or mode not in ("full", "economic", "r"):
        raise NoRuleError("pivoting" if step.op.pivoting else f"mode {mode!r}")
    if mode == "r":
        return _as_high(step.first, linalg.qr(step.first, mode="r"))
    return linalg.qr(step.first, mode="complete" if mode == "full" else "reduced")


def _as_high(matrix: Variable, triangle: Variable) -> Variable:
    """An upper triangle with rows of zeros below, so that there are as many as those of a matrix."""
    *batch, rows, columns = (size_of(matrix, axis) for axis in range(matrix.tensor_type.ndim))
    high, wide = known_size(rows), known_size(columns)
    if high is not None and wide is not None and high <= wide:
        return triangle
    missing = op_named("maximum")(op_named("sub")(rows, columns), 0)
    below = alloc(constant(0, matrix.tensor_type.dtype), *batch, missing, columns)
    return join([triangle, below], axis=matrix.tensor_type.ndim - 2)


def _svd(step: PyTensorStep) -> Any:
    return linalg.svd(step.first, full_matrices=step.op.full_matrices, compute_uv=step.op.compute_uv)


def _triangle(step: PyTensorStep) -> Literal["L", "U"]:
    if len(step.operands) != 1:
        raise NoRuleError("a generalized problem")
    return "L" if getattr(step.op, "lower", True) else "U"


def _eigh(step: PyTensorStep) -> list[Variable]:
    return list(eigenvalues.eigh(step.first, _triangle(step)))


def _eigvalsh(step: PyTensorStep) -> Variable:
    return eigenvalues.eigvalsh(step.first, _triangle(step))


def _block_diagonal(step: PyTensorStep) -> Variable:
    if any(one.tensor_type.ndim != 2 for one in step.operands):
        raise NoRuleError("blocks in batches")
    return linalg.block_diag(*step.operands)


# ---- systems


def _by_columns(solve: Callable[[PyTensorStep, Variable, Variable], Variable]) -> Rule:
    """A system whose right side is a vector, or a matrix."""

    def rule(step: PyTensorStep) -> Variable:
        matrix, sides = step.operands
        if step.op.b_ndim == 1:
            return squeeze(solve(step, matrix, expand_dims(sides, -1)), -1)
        return solve(step, matrix, sides)

    return rule


def _solve(step: PyTensorStep, matrix: Variable, sides: Variable) -> Variable:
    kind = {"general": "gen", "positive definite": "pos", "symmetric": "sym", "hermitian": "her"}.get(
        step.op.assume_a, step.op.assume_a
    )
    if kind in ("upper triangular", "lower triangular"):
        return linalg.solve_triangular(matrix, sides, lower=kind.startswith("lower"))
    if kind == "tridiagonal":  # what stands elsewhere is not read
        return linalg.solve(tril(triu(matrix, -1), 1), sides)
    if kind in ("gen", "banded"):
        return linalg.solve(matrix, sides)
    if kind not in ("sym", "her", "pos"):
        raise NoRuleError(f"assume_a={step.op.assume_a!r}")
    lower = bool(getattr(step.op, "lower", False))
    conjugated = kind != "sym" and matrix.tensor_type.kind == "c"
    whole = _both_triangles(matrix, lower, conjugated)
    if kind == "pos":
        return linalg.cho_solve((linalg.cholesky(whole), True), sides)
    return linalg.solve(whole, sides)


def _both_triangles(matrix: Variable, lower: bool, conjugated: bool) -> Variable:
    """A symmetric or Hermitian matrix, of one of its triangles."""
    part = tril(matrix) if lower else triu(matrix)
    other = matrix_transpose(tril(matrix, -1) if lower else triu(matrix, 1))
    if conjugated:
        other = op_named("conj")(other)
    whole: Variable = op_named("add")(part, other)
    return whole


def _solve_triangular(step: PyTensorStep, matrix: Variable, sides: Variable) -> Variable:
    return linalg.solve_triangular(matrix, sides, lower=step.op.lower, unit_diagonal=step.op.unit_diagonal)


def _cholesky_solve(step: PyTensorStep, factor: Variable, sides: Variable) -> Variable:
    return linalg.cho_solve((factor, step.op.lower), sides)


MATRIX_RULES: dict[str, Rule] = {
    "BlockDiagonal": _block_diagonal,
    "Cholesky": _cholesky,
    "CholeskySolve": _by_columns(_cholesky_solve),
    "Det": lambda step: linalg.det(step.first),
    "Eig": lambda step: list(eigenvalues.eig(step.first)),
    "Eigh": _eigh,
    "Eigvalsh": _eigvalsh,
    "Expm": lambda step: linalg.expm(step.first),
    "LU": _lu,
    "LUFactor": _packed,
    "MatrixInverse": lambda step: linalg.inv(step.first),
    "MatrixPinv": lambda step: linalg.pinv(step.first, hermitian=step.op.hermitian),
    "PivotToPermutations": _permutation,
    "QR": _qr,
    "SLogDet": lambda step: list(linalg.slogdet(step.first)),
    "SVD": _svd,
    "Solve": _by_columns(_solve),
    "SolveTriangular": _by_columns(_solve_triangular),
}
"""Rules that hold of batches of matrices as well."""

RULES: dict[str, Rule] = {
    **MATRIX_RULES,
    "BatchedDot": lambda step: batched_dot(*step.operands),
    "Dot": lambda step: dot(*step.operands),
    "Dot22": lambda step: dot(*step.operands),
    "Dot22Scalar": lambda step: dot(*step.operands[:2]) * step.operands[2],
    "Gemm": _gemm,
    "Gemv": _gemv,
    "Ger": _ger,
    "TensorInv": lambda step: tensorinv(step.first, step.op.ind),
    "KroneckerProduct": lambda step: kron(*step.operands),
}
