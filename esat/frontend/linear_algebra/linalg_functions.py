"""Linear algebra as functions of Variables and arrays, after ``numpy.linalg`` and ``scipy.linalg``.

Matrices stand in the last two axes, axes before them are a batch. Integers are computed in float64.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from esat.errors import CallError, DtypeError, MatrixShapeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.shaping import expand_dims, flip, swapaxes
from esat.frontend.elements import reductions
from esat.frontend.linear_algebra.eigenvalues import eigh, eigvalsh
from esat.frontend.linear_algebra.linear import dot, matmul
from esat.graph.calls.arguments import elements_of
from esat.graph.op import Op, as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.cast import cast
from esat.ops.index.along import take_along_axis
from esat.ops.index.basic import subtensor
from esat.ops.linalg.algebra import conjugated, identity_like
from esat.ops.linalg.factor import LU, QR, Cholesky, CholeskyOrNan, QRMode
from esat.ops.linalg.functions import BLOCK_DIAGONAL, EXPONENTIAL
from esat.ops.linalg.inverse import DETERMINANT, INVERSE, SLOGDET, PseudoInverse
from esat.ops.linalg.record import check_matrices, check_square, inexact_operands
from esat.ops.linalg.solve import SOLVE, CholeskySolve, SolveTriangular
from esat.ops.linalg.spectral import SVD, SingularValues

__all__ = [
    "block_diag",
    "cho_solve",
    "cholesky",
    "det",
    "expm",
    "inv",
    "lstsq",
    "lu",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]

Trans = Literal[0, 1, 2, "N", "T", "C"]

_NOT_GIVEN: Any = object()


def solve(a: Any, b: Any) -> Variable:
    """``x`` with ``a @ x = b``, as ``numpy.linalg.solve``.

    Parameters
    ----------
    a
        ``(..., n, n)``, nonsingular.
    b
        ``(n,)``, or ``(..., n, k)``; batches broadcast.

    Raises
    ------
    ShapeError
        When ``a`` is not square or sizes do not fit.
    LinearAlgebraError
        At run time, when ``a`` is singular.
    """
    return _solved(SOLVE, a, b)


def solve_triangular(
    a: Any, b: Any, trans: Trans = 0, lower: bool = False, unit_diagonal: bool = False
) -> Variable:
    """``x`` with ``op(a) @ x = b`` for a triangular ``a``, as ``scipy.linalg.solve_triangular``.

    Parameters
    ----------
    a
        ``(..., n, n)``; the other triangle is not read.
    b
        ``(n,)``, or ``(..., n, k)``.
    trans
        ``op``: 0 or "N" nothing, 1 or "T" transpose, 2 or "C" transpose and conjugate.
    lower
        Which triangle ``a`` is.
    unit_diagonal
        Whether the diagonal counts as ones and is not read.

    Raises
    ------
    ShapeError
        When ``a`` is not square or sizes do not fit.
    LinearAlgebraError
        At run time, when there is a zero on the diagonal.
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ParameterError(
            describe("solve_triangular", [f"trans={trans!r}"], "trans is 0, 1, 2, N, T or C")
        )
    matrix = conjugated(as_variable(a)) if trans in (2, "C") else a
    op = SolveTriangular(bool(lower), trans not in (0, "N"), bool(unit_diagonal))
    return _solved(op, matrix, b)


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Variable:
    """``x`` with ``a @ x = b`` from ``(c, lower)``, the Cholesky factor of ``a`` and which triangle it is.

    Raises
    ------
    ShapeError
        When the factor is not square or sizes do not fit.
    """
    pair = elements_of("cho_solve", "c_and_lower", c_and_lower)
    if len(pair) != 2:
        raise CallError(describe("cho_solve", [f"{len(pair)} values"], "c_and_lower is (factor, lower)"))
    factor, lower = pair
    return _solved(CholeskySolve(bool(lower)), factor, b)


def _solved(op: Op, matrix: Any, sides: Any) -> Variable:
    """The solution; a vector of right sides becomes one column, and comes back as a vector."""
    right = as_variable(sides)
    check_square(op.name, as_variable(matrix), [as_variable(matrix)])
    if right.tensor_type.ndim != 1:
        result: Variable = op(matrix, right)
        return result
    solution: Variable = op(matrix, dimshuffle(right, (0, "x")))
    return dimshuffle(solution, tuple(range(solution.tensor_type.ndim - 1)))


def cholesky(a: Any, upper: bool = False, on_error: Literal["raise", "nan"] = "raise") -> Variable:
    """The lower (or upper) triangular factor of Hermitian positive definite matrices.

    Only that triangle of ``a`` is read, and only there is the gradient other than zero: an element below the
    diagonal stands for the one above it as well. ``cholesky((a + a.T) / 2)`` has a symmetric gradient, as
    JAX's ``cholesky``, which begins so.

    Parameters
    ----------
    a
        ``(..., n, n)``.
    upper
        Which factor.
    on_error
        What becomes of a matrix that is not positive definite: an error, or with "nan" a factor of NaN.

    Raises
    ------
    ShapeError
        When ``a`` is not square.
    ParameterError
        For another ``on_error``.
    LinearAlgebraError
        At run time, when ``a`` is not positive definite, with "raise".

    Examples
    --------
    >>> esat.evaluate(esat.linalg.cholesky(-np.eye(2), on_error="nan"))
    array([[nan, nan],
           [nan, nan]])
    """
    if on_error not in ("raise", "nan"):
        raise ParameterError(describe("cholesky", [f"on_error={on_error!r}"], "on_error is raise or nan"))
    result: Variable = (Cholesky if on_error == "raise" else CholeskyOrNan)(bool(upper))(a)
    return result


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Variable
    R: Variable


class SlogdetResult(NamedTuple):
    """Sign of a determinant, and logarithm of its absolute value."""

    sign: Variable
    logabsdet: Variable


class SVDResult(NamedTuple):
    """Left singular vectors in columns, descending singular values, right singular vectors in rows."""

    U: Variable
    S: Variable
    Vh: Variable


def qr(a: Any, mode: QRMode = "reduced") -> Any:
    """Orthonormal columns ``Q`` and an upper triangular ``R`` with ``a = Q @ R``.

    Parameters
    ----------
    a
        ``(..., m, n)``. Its gradient takes known sizes and full rank.
    mode
        "reduced": ``(..., m, k)`` and ``(..., k, n)``, ``k = min(m, n)``; "complete": ``(..., m, m)`` and
        ``(..., m, n)``; "r": only the reduced ``r``.
    """
    found = QR(mode)(a)
    return found if mode == "r" else QRResult(*found)


def lu(a: Any, permute_l: bool = False) -> tuple[Variable, ...]:
    """``p, l, u`` with ``a = p @ l @ u``, or ``p @ l, u`` with ``permute_l``, as ``scipy.linalg.lu``."""
    permutation, lower, upper = LU()(a)
    if permute_l:
        return matmul(permutation, lower), upper
    return permutation, lower, upper


def inv(a: Any) -> Variable:
    """The inverse of square matrices.

    Raises
    ------
    ShapeError
        When ``a`` is not square.
    LinearAlgebraError
        At run time, when ``a`` is singular.
    """
    result: Variable = INVERSE(a)
    return result


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _NOT_GIVEN) -> Variable:
    """The Moore-Penrose inverse: ``(..., m, n)`` gives ``(..., n, m)``.

    Parameters
    ----------
    a
        Matrices.
    rcond
        Singular values up to this fraction of the largest are taken for zero, a number, or one for each
        matrix; by default NumPy's choice.
    hermitian
        Whether the matrix may be taken for Hermitian.
    rtol
        Another name of ``rcond``; None for the rounding error times the larger size.

    Raises
    ------
    ParameterError
        For both.
    """
    if rtol is not _NOT_GIVEN and rcond is not None:
        raise ParameterError(describe("pinv", [f"rcond={rcond!r}", f"rtol={rtol!r}"], "takes one of the two"))
    by_size = rtol is None
    fraction = rcond if rtol is _NOT_GIVEN else rtol
    if fraction is None or isinstance(fraction, (int, float, np.number)):
        known = None if fraction is None else float(fraction)
        result: Variable = PseudoInverse(known, bool(hermitian), by_size)(a)
        return result
    left, values, right = svd(a, False, True, hermitian)
    known_as_zero = op_named("le")(values, expand_dims(values[..., 0], -1) * expand_dims(fraction, -1))
    inverted = op_named("switch")(known_as_zero, 0, op_named("reciprocal")(values))
    weighted = expand_dims(inverted, -1) * conjugated(swapaxes(left, -1, -2))
    return matmul(conjugated(swapaxes(right, -1, -2)), weighted)


def det(a: Any) -> Variable:
    """The determinant of square matrices: ``(..., n, n)`` gives ``(...)``."""
    result: Variable = DETERMINANT(a)
    return result


def slogdet(a: Any) -> SlogdetResult:
    """Sign and natural logarithm of the absolute value of the determinant; 0 and -inf where singular."""
    return SlogdetResult(*SLOGDET(a))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular values, with ``compute_uv`` as ``u, s, vh`` where ``a = (u * s) @ vh``.

    Parameters
    ----------
    a
        ``(..., m, n)``.
    full_matrices
        Whether ``u`` is ``(..., m, m)`` and ``vh`` ``(..., n, n)``, instead of ``(..., m, k)`` and
        ``(..., k, n)`` with ``k = min(m, n)``.
    compute_uv
        Whether to compute ``u`` and ``vh``.
    hermitian
        Whether ``a`` may be taken for Hermitian, of which only the lower triangle is read.
    """
    if hermitian:
        return _of_hermitian(a, compute_uv)
    return SVDResult(*SVD(bool(full_matrices))(a)) if compute_uv else SingularValues()(a)


def _of_hermitian(a: Any, compute_uv: bool) -> Any:
    """Singular values are absolute eigenvalues, singular vectors eigenvectors but for their signs."""
    if not compute_uv:
        return flip(sort(op_named("abs")(eigvalsh(a))), -1)
    eigenvalues, vectors = eigh(a)
    order = flip(argsort(op_named("abs")(eigenvalues)), -1)
    eigenvalues = take_along_axis(eigenvalues, order, -1)
    vectors = take_along_axis(vectors, expand_dims(order, -2), -1)
    signed = vectors * expand_dims(op_named("sign")(eigenvalues), -2)
    return SVDResult(vectors, op_named("abs")(eigenvalues), conjugated(swapaxes(signed, -1, -2)))


def svdvals(x: Any) -> Variable:
    """Singular values in descending order: ``(..., m, n)`` gives ``(..., min(m, n))``."""
    result: Variable = SingularValues()(x)
    return result


def expm(A: Any) -> Variable:  # noqa: N803
    """The matrix exponential of square matrices, as ``scipy.linalg.expm``."""
    result: Variable = EXPONENTIAL(A)
    return result


def block_diag(*arrs: Any) -> Variable:
    """Matrices along the diagonal of a matrix of zeros; vectors and scalars become single rows."""
    blocks = [as_variable(array) for array in arrs]
    rows = [
        dimshuffle(block, (*["x"] * (2 - block.tensor_type.ndim), *range(block.tensor_type.ndim)))
        for block in blocks
    ]
    result: Variable = BLOCK_DIAGONAL(*rows)
    return result


def matrix_power(a: Any, n: int) -> Variable:
    """Square matrices multiplied with themselves ``n`` times, by repeated squaring.

    A negative ``n`` takes powers of the inverse; integer matrices stay integers for ``n >= 0``.

    Raises
    ------
    ShapeError
        When ``a`` is not square.
    DtypeError
        When ``n`` is not an integer.
    """
    matrix = as_variable(a)
    check_square("matrix_power", matrix, [matrix])
    try:
        exponent = operator.index(n)
    except TypeError as error:
        raise DtypeError(describe("matrix_power", [matrix.type, f"n={n!r}"], "n is an integer")) from error
    if exponent == 0:
        one: Variable = op_named("fill")(matrix, identity_like(matrix))
        return one
    base = inv(matrix) if exponent < 0 else matrix
    power: Variable | None = None
    exponent = abs(exponent)
    while exponent:
        if exponent & 1:
            power = base if power is None else matmul(power, base)
        exponent >>= 1
        if exponent:
            base = matmul(base, base)
    assert power is not None
    return power


def multi_dot(arrays: Sequence[Any]) -> Variable:
    """Product of two or more matrices; the first and last may be vectors. The compiler chooses the order.

    Raises
    ------
    ShapeError
        For fewer than two operands, or sizes that do not fit.
    """
    if len(arrays) < 2:
        raise ShapeError(describe("multi_dot", [], "takes at least two operands"))
    if len(arrays) == 2:
        return dot(*arrays)
    factors = [as_variable(array) for array in arrays]
    ranks = [factor.tensor_type.ndim for factor in factors]
    if any(rank != 2 for rank in ranks[1:-1]) or {ranks[0], ranks[-1]} - {1, 2}:
        types = [factor.type for factor in factors]
        raise MatrixShapeError(
            describe("multi_dot", types, "takes matrices; the first and last may be vectors")
        )
    result = factors[0]
    for factor in factors[1:]:
        result = matmul(result, factor)
    return result


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Variable, Variable, Variable, Variable]:
    """The least-squares solution of smallest norm of ``a @ x = b``, by the pseudo-inverse.

    Parameters
    ----------
    a
        ``(m, n)``.
    b
        ``(m,)`` or ``(m, k)``.
    rcond
        Singular values up to this fraction of the largest are taken for zero; by default, as in NumPy,
        the rounding error times the larger size. LAPACK takes another than between 0 and 1 for half
        the distance of 1 to the next number.

    Returns
    -------
    The solution ``(n,)`` or ``(n, k)``; for each right side the sum of the squares of ``b - a @ x``, or
    nothing where the rank is less than ``n`` or ``m <= n``; the rank, an int32 scalar; the singular values.
    """
    matrix, sides = as_variable(a), as_variable(b)
    check_matrices("lstsq", [matrix])
    if matrix.tensor_type.ndim != 2 or sides.tensor_type.ndim not in (1, 2):
        reason = "takes one matrix, and right sides as a vector or in the columns of a matrix"
        raise MatrixShapeError(describe("lstsq", [matrix.type, sides.type], reason))
    matrix, sides = inexact_operands("lstsq", [matrix, sides])
    rounding = float(np.finfo(matrix.tensor_type.numpy_dtype).eps) / 2  # LAPACK's, of gelsd
    if isinstance(rcond, Variable):
        inside = op_named("logical_and")(op_named("gt")(rcond, 0), op_named("lt")(rcond, 1))
        rcond = op_named("switch")(inside, rcond, rounding)
    elif rcond is not None and not 0 < rcond < 1:
        rcond = rounding
    inverse = pinv(matrix, rtol=None) if rcond is None else pinv(matrix, rcond)
    solution = matmul(inverse, sides)
    values = svdvals(matrix)
    rows, columns = size_of(matrix, 0), size_of(matrix, 1)
    rank = _rank(values, _rounding(values, rows, columns) if rcond is None else rcond)
    rest = sides - matmul(matrix, solution)
    squares = reductions.sum(op_named("sqr")(op_named("abs")(rest)), 0, keepdims=rest.tensor_type.ndim == 1)
    determined = op_named("logical_and")(op_named("eq")(rank, columns), op_named("gt")(rows, columns))
    number = op_named("switch")(determined, size_of(squares, 0), 0)
    return solution, subtensor(squares, (slice(0, number),)), cast(rank, "int32"), values


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Variable:  # noqa: N803
    """How many singular values are greater than a tolerance; int64, one for each matrix.

    Parameters
    ----------
    A
        Matrices; of a vector or number, whether it is not zero throughout.
    tol
        The tolerance, a number or one for each matrix.
    hermitian
        Whether the matrices may be taken for Hermitian.
    rtol
        The tolerance over the largest singular value; by default the rounding error times the larger size.

    Raises
    ------
    ParameterError
        For both tolerances.
    """
    matrix = as_variable(A)
    if tol is not None and rtol is not None:
        shown = [f"tol={tol!r}", f"rtol={rtol!r}"]
        raise ParameterError(describe("matrix_rank", shown, "takes one of the two"))
    if matrix.tensor_type.ndim < 2:
        return cast(reductions.any(matrix), "int64")
    values = svd(matrix, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        return reductions.count_nonzero(op_named("gt")(values, expand_dims(tol, -1)), -1)
    if rtol is None:
        return _rank(values, _rounding(values, size_of(matrix, -2), size_of(matrix, -1)))
    return _rank(values, expand_dims(rtol, -1))


def _rounding(values: Variable, rows: Variable, columns: Variable) -> Variable:
    """The rounding error times the larger size."""
    larger = cast(op_named("maximum")(rows, columns), values.tensor_type.dtype)
    rounding: Variable = larger * float(np.finfo(values.tensor_type.numpy_dtype).eps)
    return rounding


def _rank(values: Variable, fraction: Any) -> Variable:
    """How many of descending numbers along the last axis are greater than a fraction of the first."""
    return reductions.count_nonzero(op_named("gt")(values, expand_dims(values[..., 0], -1) * fraction), -1)
