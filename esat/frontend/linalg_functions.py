"""Linear algebra as functions of Variables and arrays, after ``numpy.linalg`` and ``scipy.linalg``.

Matrices stand in the last two axes, axes before them are a batch. Integers are computed in float64.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import AxisError, DtypeError, ShapeError, describe
from esat.frontend import reductions
from esat.frontend.linear import matmul
from esat.frontend.shaping import moveaxis
from esat.graph.op import Op, as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.axes import normalize_axes, ordered_axes
from esat.ops.cast import cast
from esat.ops.dimshuffle import dimshuffle
from esat.ops.linalg.algebra import conjugated, identity_like
from esat.ops.linalg.factor import LU, QR, Cholesky, QRMode
from esat.ops.linalg.functions import BLOCK_DIAGONAL, EXPONENTIAL
from esat.ops.linalg.inverse import DETERMINANT, INVERSE, SLOGDET, PseudoInverse
from esat.ops.linalg.record import check_matrices, check_square
from esat.ops.linalg.solve import SOLVE, CholeskySolve, SolveTriangular
from esat.ops.linalg.spectral import SVD, Eigenvalues, Eigenvectors, SingularValues, Triangle
from esat.ops.promotion import common_dtype

__all__ = [
    "block_diag",
    "cho_solve",
    "cholesky",
    "cond",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "lstsq",
    "lu",
    "matrix_norm",
    "matrix_power",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "vector_norm",
]

Trans = Literal[0, 1, 2, "N", "T", "C"]


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
        raise DtypeError(describe("solve_triangular", [f"trans={trans!r}"], "trans is 0, 1, 2, N, T or C"))
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
    factor, lower = c_and_lower
    return _solved(CholeskySolve(bool(lower)), factor, b)


def _solved(op: Op, matrix: Any, sides: Any) -> Variable:
    """The solution; a vector of right sides becomes one column, and comes back as a vector."""
    right = as_variable(sides)
    if right.tensor_type.ndim != 1:
        result: Variable = op(matrix, right)
        return result
    solution: Variable = op(matrix, dimshuffle(right, (0, "x")))
    return dimshuffle(solution, tuple(range(solution.tensor_type.ndim - 1)))


def cholesky(a: Any, upper: bool = False) -> Variable:
    """The lower (or upper) triangular factor of Hermitian positive definite matrices.

    Only that triangle of ``a`` is read. The gradient is the one along Hermitian changes.

    Raises
    ------
    ShapeError
        When ``a`` is not square.
    LinearAlgebraError
        At run time, when ``a`` is not positive definite.
    """
    result: Variable = Cholesky(bool(upper))(a)
    return result


def qr(a: Any, mode: QRMode = "reduced") -> Any:
    """Orthonormal columns ``q`` and an upper triangular ``r`` with ``a = q @ r``.

    Parameters
    ----------
    a
        ``(..., m, n)``. Its gradient takes known sizes and full rank.
    mode
        "reduced": ``(..., m, k)`` and ``(..., k, n)``, ``k = min(m, n)``; "complete": ``(..., m, m)`` and
        ``(..., m, n)``; "r": only the reduced ``r``.
    """
    return QR(mode)(a)


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


def pinv(a: Any, rcond: float | None = None, hermitian: bool = False) -> Variable:
    """The Moore-Penrose inverse: ``(..., m, n)`` gives ``(..., n, m)``.

    Parameters
    ----------
    a
        Matrices.
    rcond
        Singular values up to this fraction of the largest are taken for zero; by default NumPy's choice.
    hermitian
        Whether ``a`` may be taken for Hermitian.
    """
    result: Variable = PseudoInverse(None if rcond is None else float(rcond), bool(hermitian))(a)
    return result


def det(a: Any) -> Variable:
    """The determinant of square matrices: ``(..., n, n)`` gives ``(...)``."""
    result: Variable = DETERMINANT(a)
    return result


def slogdet(a: Any) -> tuple[Variable, Variable]:
    """Sign and natural logarithm of the absolute value of the determinant; 0 and -inf where singular."""
    sign, logarithm = SLOGDET(a)
    return sign, logarithm


def eigh(a: Any, UPLO: Triangle = "L") -> tuple[Variable, Variable]:  # noqa: N803
    """Ascending eigenvalues ``(..., n)`` and orthonormal eigenvectors, in columns, of Hermitian matrices.

    Only the triangle ``UPLO`` is read. The gradient is the one along Hermitian changes; that by vectors
    takes distinct eigenvalues.
    """
    values, vectors = Eigenvectors(UPLO)(a)
    return values, vectors


def eigvalsh(a: Any, UPLO: Triangle = "L") -> Variable:  # noqa: N803
    """Ascending eigenvalues ``(..., n)`` of Hermitian matrices, of which the triangle ``UPLO`` is read."""
    result: Variable = Eigenvalues(UPLO)(a)
    return result


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
        Only False: for Hermitian matrices use :func:`eigh`.
    """
    if hermitian:
        raise DtypeError(describe("svd", ["hermitian=True"], "use esat.linalg.eigh for Hermitian matrices"))
    return SVD(bool(full_matrices))(a) if compute_uv else SingularValues()(a)


def svdvals(x: Any) -> Variable:
    """Singular values in descending order: ``(..., m, n)`` gives ``(..., min(m, n))``."""
    result: Variable = SingularValues()(x)
    return result


def expm(a: Any) -> Variable:
    """The matrix exponential of square matrices, as ``scipy.linalg.expm``."""
    result: Variable = EXPONENTIAL(a)
    return result


def block_diag(*arrays: Any) -> Variable:
    """Matrices along the diagonal of a matrix of zeros; vectors and scalars become single rows."""
    blocks = [as_variable(array) for array in arrays]
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
    result = as_variable(arrays[0])
    for factor in arrays[1:]:
        result = matmul(result, factor)
    return result


def lstsq(a: Any, b: Any, rcond: float | None = None) -> Variable:
    """The least-squares solution of smallest norm of ``a @ x = b``, by the pseudo-inverse.

    Parameters
    ----------
    a
        ``(m, n)``.
    b
        ``(m,)`` or ``(m, k)``.
    rcond
        Singular values up to this fraction of the largest are taken for zero; by default, as in NumPy,
        the rounding error times the larger size.

    Returns
    -------
    ``x`` alone: rank and singular values are those of :func:`svdvals`.
    """
    matrix, sides = as_variable(a), as_variable(b)
    check_matrices("lstsq", [matrix])
    known = [v if v.tensor_type.kind in "fc" else cast(v, "float64") for v in (matrix, sides)]
    dtype = common_dtype("lstsq", known)
    inverse = PseudoInverse(None if rcond is None else float(rcond), by_size=rcond is None)
    return matmul(inverse(cast(matrix, dtype)), cast(sides, dtype))


def cond(x: Any, p: Any = None) -> Variable:
    """The condition number: the norm of ``x`` times that of its inverse.

    Parameters
    ----------
    x
        ``(..., m, n)``; square unless ``p`` is None, 2 or -2.
    p
        None or 2: largest singular value by the smallest; -2: the inverse of that; else as for :func:`norm`.
    """
    matrix = as_variable(x)
    check_matrices("cond", [matrix])
    if p in (None, 2, -2):
        values = svdvals(matrix)
        first, last = values[..., 0], values[..., -1]
        ratio: Variable = op_named("div")(*((last, first) if p == -2 else (first, last)))
        return ratio
    check_square("cond", matrix, [matrix])
    return matrix_norm(matrix, ord=p) * matrix_norm(inv(matrix), ord=p)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """Norm of vectors or matrices, as ``numpy.linalg.norm``.

    Parameters
    ----------
    x
        A Variable or array; integers are computed in float64.
    ord
        None: the Euclidean norm of all elements along ``axis``. Over one axis: a number p, inf, -inf or 0.
        Over two: "fro", "nuc", 1, -1 (column sums), inf, -inf (row sums), 2, -2 (singular values).
    axis
        One axis, two, or None: then all, of which there are one or two if ``ord`` is given.
    keepdims
        Whether the axes stay with size 1.

    Raises
    ------
    AxisError
        For an axis out of range, or ``ord`` over more than two axes.
    DtypeError
        For an ``ord`` that is no norm of so many axes.
    """
    variable = as_variable(x)
    rank = variable.tensor_type.ndim
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if ord is None and (axis is None or len(axes) == 2):
        return reductions.norm(variable, None, tuple(axes), keepdims)
    if len(axes) == 1:
        return vector_norm(variable, axes[0], keepdims, 2 if ord is None else ord)
    if len(axes) != 2:
        raise AxisError(describe("norm", [variable.type], f"ord={ord!r} is a norm of one axis or two"))
    first, second = ordered_axes("norm", axes, rank)
    kept = matrix_norm(moveaxis(variable, (first, second), (-2, -1)), True, ord)
    restored = moveaxis(kept, (-2, -1), (first, second))
    order = tuple(index for index in range(rank) if index not in (first, second))
    return restored if keepdims else dimshuffle(restored, order)


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Variable:
    """Vector norm over an axis, the elements along several, or all; ``ord`` a number p, inf, -inf or 0."""
    variable = as_variable(x)
    if isinstance(ord, str) or ord is None:
        raise DtypeError(describe("vector_norm", [variable.type], f"ord={ord!r} is no norm of vectors"))
    axes = normalize_axes("vector_norm", axis, variable.tensor_type.ndim)
    real = cast(variable, "float64") if variable.tensor_type.kind in "biu" else variable
    return reductions.norm_over(real, ord, axes, keepdims)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Variable:
    """Norm of the matrices in the last two axes; ``ord`` as for :func:`norm` over two axes."""
    variable = as_variable(x)
    check_matrices("matrix_norm", [variable])
    rank = variable.tensor_type.ndim
    rows, columns = rank - 2, rank - 1
    if ord in ("fro", None):
        return reductions.norm(variable, "fro", (rows, columns), keepdims)
    if ord in (2, -2, "nuc"):
        combine = reductions.sum if ord == "nuc" else reductions.max if ord == 2 else reductions.min
        single = combine(svdvals(variable), -1)
        return dimshuffle(single, (*range(rank - 2), "x", "x")) if keepdims else single
    if ord not in (1, -1, np.inf, -np.inf):
        raise DtypeError(describe("matrix_norm", [variable.type], f"ord={ord!r} is no norm of matrices"))
    real = cast(variable, "float64") if variable.tensor_type.kind in "biu" else variable
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = reductions.sum(op_named("abs")(real), summed, None, True)
    extreme = (reductions.max if ord > 0 else reductions.min)(sums, compared, True)
    return extreme if keepdims else dimshuffle(extreme, tuple(range(rank - 2)))
