"""Rules of linear algebra."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.frontend.arrays.creation import tril, triu
from esat.frontend.arrays.shaping import broadcast_arrays, matrix_transpose
from esat.frontend.elements import reductions
from esat.frontend.elements.searching import where
from esat.frontend.linear_algebra import eigenvalues
from esat.frontend.linear_algebra import linalg_functions as linalg
from esat.frontend.linear_algebra.linear import batched_dot, dot, kron, outer
from esat.frontend.linear_algebra.tensor_equations import tensorinv, tensorsolve
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import known_size, size_of, sizes_of
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import expand_dims, squeeze
from esat.ops.cast import cast
from esat.ops.linalg.algebra import identity_like
from esat.ops.linalg.bands import (
    MISSING_OF_FACTORS,
    TRIDIAGONAL_FACTORS,
    BandedSolve,
    TridiagonalFactorsSolve,
)
from esat.ops.linalg.factor import QR, QRMode
from esat.ops.linalg.functions import ORDER_OF_PIVOTS, PIVOTS_OF_ORDER
from esat.ops.linalg.pivoted import PivotedQR
from esat.ops.linalg.schur import SYLVESTER, TRIANGULAR_SYLVESTER, GeneralizedSchur, Schur

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


_QR_MODES: dict[str, QRMode] = {"full": "complete", "economic": "reduced", "r": "r"}


def _qr(step: PyTensorStep) -> list[Variable]:
    mode = _QR_MODES.get(step.op.mode)
    if mode is None:
        raise NoRuleError(f"mode {step.op.mode!r}")
    found = PivotedQR(mode)(step.first) if step.op.pivoting else QR(mode)(step.first)
    parts = [found] if isinstance(found, Variable) else list(found)
    return [_as_high(step.first, parts[0]), *parts[1:]] if mode == "r" else parts


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


def _schur(step: PyTensorStep) -> list[Variable]:
    return list(Schur(step.op.output == "complex", step.op.sort)(step.first))


def _two_schur_forms(step: PyTensorStep) -> list[Variable]:
    left, right, *values, first, second = GeneralizedSchur(step.op.complex_output, step.op.sort)(
        *step.operands
    )
    return [left, right, *(values if step.op.return_eigenvalues else []), first, second]


def _reduced(step: PyTensorStep) -> tuple[Variable, Variable]:
    """A problem of two matrices as one of one."""
    wholes = (_both_triangles(one, step.op.lower, one.tensor_type.kind == "c") for one in step.operands)
    return eigenvalues.reduced(*wholes)


def _eigh(step: PyTensorStep) -> list[Variable]:
    if len(step.operands) == 1:
        return list(eigenvalues.eigh(step.first, "L" if step.op.lower else "U"))
    matrix, factor = _reduced(step)
    values, vectors = eigenvalues.eigh(matrix)
    return [values, linalg.solve_triangular(factor, vectors, trans="C", lower=True)]


def _eigvalsh(step: PyTensorStep) -> Variable:
    if len(step.operands) == 1:
        return eigenvalues.eigvalsh(step.first, "L" if step.op.lower else "U")
    return eigenvalues.eigvalsh(_reduced(step)[0])


# ---- systems


def _by_columns(solve: Callable[[PyTensorStep, Variable, Variable], Variable]) -> Rule:
    """A system whose right side is a vector, or a matrix."""

    def rule(step: PyTensorStep) -> Variable:
        matrix, sides = step.operands
        if step.op.b_ndim == 1:
            return squeeze(solve(step, matrix, expand_dims(sides, -1)), -1)
        return solve(step, matrix, sides)

    return rule


def _or_nan(matrix: Variable, zeros: Variable, solve: Callable[..., Variable], sides: Variable) -> Variable:
    """A solution, of NaN where a factor of the matrix has one of ``zeros``, its diagonal."""
    singular = expand_dims(reductions.any(op_named("eq")(zeros, 0), axis=-1), (-2, -1))
    solution: Variable = where(singular, np.nan, solve(where(singular, identity_like(matrix), matrix), sides))
    return solution


def _general(step: PyTensorStep, matrix: Variable, sides: Variable) -> Variable:
    if not step.careful:
        return linalg.solve(matrix, sides)
    upper = linalg.lu(matrix)[2]
    return _or_nan(matrix, diagonal(upper, 0, -2, -1), linalg.solve, sides)


def _of_triangle(step: PyTensorStep, matrix: Variable, sides: Variable, lower: bool, unit: bool) -> Variable:
    solve = functools.partial(linalg.solve_triangular, lower=lower, unit_diagonal=unit)
    if not step.careful or unit:
        return solve(matrix, sides)
    return _or_nan(matrix, diagonal(matrix, 0, -2, -1), solve, sides)


def _solve(step: PyTensorStep, matrix: Variable, sides: Variable) -> Variable:
    kind = {"general": "gen", "positive definite": "pos", "symmetric": "sym", "hermitian": "her"}.get(
        step.op.assume_a, step.op.assume_a
    )
    if kind in ("upper triangular", "lower triangular"):
        return _of_triangle(step, matrix, sides, kind.startswith("lower"), False)
    if kind == "tridiagonal" and step.careful:
        return _general(step, tril(triu(matrix, -1), 1), sides)
    if kind == "tridiagonal":  # what stands elsewhere is not read
        bands = _bands(*(diagonal(matrix, place, -2, -1) for place in (-1, 0, 1)))
        solution: Variable = BandedSolve()(bands, sides)
        return solution
    if kind in ("gen", "banded"):
        return _general(step, matrix, sides)
    if kind not in ("sym", "her", "pos"):
        raise NoRuleError(f"assume_a={step.op.assume_a!r}")
    lower = bool(getattr(step.op, "lower", False))
    conjugated = kind != "sym" and matrix.tensor_type.kind == "c"
    whole = _both_triangles(matrix, lower, conjugated)
    if kind == "pos":
        return linalg.cho_solve((linalg.cholesky(whole, on_error="nan"), True), sides)
    return _general(step, whole, sides)


def _both_triangles(matrix: Variable, lower: bool, conjugated: bool) -> Variable:
    """A symmetric or Hermitian matrix, of one of its triangles."""
    part = tril(matrix) if lower else triu(matrix)
    other = matrix_transpose(tril(matrix, -1) if lower else triu(matrix, 1))
    if conjugated:
        other = op_named("conj")(other)
    whole: Variable = op_named("add")(part, other)
    return whole


def _solve_triangular(step: PyTensorStep, matrix: Variable, sides: Variable) -> Variable:
    return _of_triangle(step, matrix, sides, step.op.lower, step.op.unit_diagonal)


def _cholesky_solve(step: PyTensorStep, factor: Variable, sides: Variable) -> Variable:
    return linalg.cho_solve((factor, step.op.lower), sides)


def _as_rows(vectors: Sequence[Variable], size: Variable, in_front: Sequence[bool]) -> Variable:
    """Vectors one below the other, with zeros in front or at the end up to a size."""
    rows = []
    for vector, flag in zip(vectors, in_front, strict=True):
        *batch, own = sizes_of(vector)
        zeros = alloc(constant(0, vector.tensor_type.dtype), *batch, op_named("sub")(size, own))
        parts = [zeros, vector] if flag else [vector, zeros]
        rows.append(expand_dims(join(parts, vector.tensor_type.ndim - 1), -2))
    rows = list(broadcast_arrays(*rows))
    return join(rows, rows[0].tensor_type.ndim - 2)


def _bands(lower: Variable, main: Variable, upper: Variable) -> Variable:
    """Diagonals of a tridiagonal matrix as they stand over its columns."""
    return _as_rows([upper, main, lower], size_of(main, main.tensor_type.ndim - 1), (True, False, False))


def _tridiagonal_factors(step: PyTensorStep) -> list[Variable]:
    dtype = step.dtype
    factors: Variable = TRIDIAGONAL_FACTORS(_bands(*(cast(one, dtype) for one in step.operands)))
    size = size_of(factors, factors.tensor_type.ndim - 1)
    sizes = [op_named("maximum")(op_named("sub")(size, less), 0) for less in MISSING_OF_FACTORS]
    *vectors, pivots = (factors[..., row, :count] for row, count in enumerate(sizes))
    return [*vectors, cast(op_named("real")(pivots), "int32")]


def _tridiagonal_factors_solve(step: PyTensorStep, vectors: Sequence[Variable], sides: Variable) -> Variable:
    size = size_of(vectors[1], vectors[1].tensor_type.ndim - 1)
    factors = _as_rows([cast(one, step.dtype) for one in vectors], size, (False,) * 5)
    found: Variable = TridiagonalFactorsSolve(step.op.transposed)(factors, sides)
    return found


def _tridiagonal_system(step: PyTensorStep) -> Variable:
    """The system of tridiagonal factors, its right side a vector or a matrix."""
    *vectors, sides = step.operands
    if step.op.b_ndim == 1:
        return squeeze(_tridiagonal_factors_solve(step, vectors, expand_dims(sides, -1)), -1)
    return _tridiagonal_factors_solve(step, vectors, sides)


def _sylvester(step: PyTensorStep) -> Variable:
    solution: Variable = SYLVESTER(*step.operands)
    return solution


def _sylvester_of_forms(step: PyTensorStep) -> Variable:
    solution: Variable = TRIANGULAR_SYLVESTER(*step.operands)
    return solution


def _least_squares(step: PyTensorStep) -> list[Variable]:
    return list(linalg.lstsq(*step.operands))


MATRIX_RULES: dict[str, Rule] = {
    "Cholesky": _cholesky,
    "CholeskySolve": _by_columns(_cholesky_solve),
    "Det": lambda step: linalg.det(step.first),
    "Eig": lambda step: list(eigenvalues.eig(step.first)),
    "Eigh": _eigh,
    "Eigvalsh": _eigvalsh,
    "Expm": lambda step: linalg.expm(step.first),
    "LU": _lu,
    "LUFactor": _packed,
    "LUFactorTridiagonal": _tridiagonal_factors,
    "MatrixInverse": lambda step: linalg.inv(step.first),
    "MatrixPinv": lambda step: linalg.pinv(step.first, hermitian=step.op.hermitian),
    "PivotToPermutations": _permutation,
    "QR": _qr,
    "QZ": _two_schur_forms,
    "SLogDet": lambda step: list(linalg.slogdet(step.first)),
    "SVD": _svd,
    "Schur": _schur,
    "Solve": _by_columns(_solve),
    "SolveLUFactorTridiagonal": _tridiagonal_system,
    "SolveSylvester": _sylvester,
    "SolveTriangular": _by_columns(_solve_triangular),
    "TRSYL": _sylvester_of_forms,
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
    "BlockDiagonal": lambda step: linalg.block_diag(*step.operands),
    "Lstsq": _least_squares,
    "TensorInv": lambda step: tensorinv(step.first, step.op.ind),
    "TensorSolve": lambda step: tensorsolve(step.operands[0], step.operands[1], step.op.axes),
    "KroneckerProduct": lambda step: kron(*step.operands),
}
