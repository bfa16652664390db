"""``scipy.linalg``: what NumPy lacks, or has with other parameters and defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import CallError, describe
from esat.frontend.arrays.creation import tril
from esat.frontend.arrays.shaping import concatenate, expand_dims, matrix_transpose, squeeze
from esat.frontend.elements.reductions import argmax, count_nonzero
from esat.frontend.linear_algebra import linalg_functions as own
from esat.frontend.linear_algebra.eigenvalues import eigh, eigvals, eigvalsh, reduced
from esat.frontend.linear_algebra.linear import kron
from esat.graph.calls.arguments import elements_of
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.sorting import argsort
from esat.ops.cast import cast
from esat.ops.linalg.bands import BandedSolve
from esat.ops.linalg.factor import QRMode
from esat.ops.linalg.functions import LOGARITHM, ORDER_OF_PIVOTS, PIVOTS_OF_ORDER, SQUARE_ROOT
from esat.ops.linalg.pivoted import PivotedQR
from esat.ops.linalg.schur import SYLVESTER, Schur


def cholesky(a: Any, lower: bool = False) -> Variable:
    """The triangular factor of a positive definite matrix, the upper one by default."""
    return own.cholesky(a, upper=not lower)


def cho_factor(a: Any, lower: bool = False) -> tuple[Variable, bool]:
    """What ``cho_solve`` takes. The other triangle is zero, where SciPy leaves what it finds."""
    return cholesky(a, lower), bool(lower)


def qr(a: Any, mode: str = "full", pivoting: bool = False) -> Any:
    """``(Q, R)`` of a matrix, all columns of Q by default; with ``pivoting`` an order of the columns too."""
    if mode == "r":
        whole = tuple(PivotedQR("complete")(a)) if pivoting else own.qr(a, "complete")
        return tuple(whole[1:])
    if mode not in ("full", "economic"):
        reason = f'mode={mode!r} is not known here; "full", "economic" and "r" are'
        raise CallError(describe("scipy.linalg.qr", [as_variable(a).type], reason, user_line()))
    kind: QRMode = "complete" if mode == "full" else "reduced"
    return tuple(PivotedQR(kind)(a)) if pivoting else tuple(own.qr(a, kind))


def _eigh(a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False) -> Any:
    if b is None:
        return _eigvalsh(a, None, lower) if eigvals_only else tuple(eigh(a, "L" if lower else "U"))
    matrix, factor = reduced(a, b)
    if eigvals_only:
        return eigvalsh(matrix)
    values, vectors = eigh(matrix)
    return values, own.solve_triangular(factor, vectors, trans="C", lower=True)


def _eigvalsh(a: Any, b: Any = None, lower: bool = True) -> Variable:
    return eigvalsh(a, "L" if lower else "U") if b is None else eigvalsh(reduced(a, b)[0])


def pinv(a: Any, rtol: Any = None) -> Variable:
    """The pseudo-inverse, without singular values below ``rtol`` times the largest."""
    matrix = as_variable(a)
    sizes = matrix.tensor_type.shape[-2:]
    if rtol is None and None not in sizes and matrix.tensor_type.kind in "fc":
        rtol = max(int(size) for size in sizes if size is not None) * np.finfo(matrix.tensor_type.dtype).eps
    return own.pinv(matrix) if rtol is None else own.pinv(matrix, rtol=rtol)


def sqrtm(A: Any) -> Variable:  # noqa: N803
    """The principal square root of square matrices. Raises LinearAlgebraError where that of a real matrix is
    complex."""
    result: Variable = SQUARE_ROOT(A)
    return result


def logm(A: Any) -> Variable:  # noqa: N803
    """The principal logarithm of square matrices. Raises LinearAlgebraError where that of a real matrix is
    complex."""
    result: Variable = LOGARITHM(A)
    return result


def schur(a: Any, output: str = "real", sort: str | None = None) -> tuple[Any, ...]:
    """``t, z`` with ``a = z @ t @ z^H``, as ``scipy.linalg.schur``; NaN where there is no such form.
    With ``sort`` also how many eigenvalues come first."""
    form, vectors = Schur(output in ("complex", "c"), sort)(a)
    if sort is None:
        return form, vectors
    return form, vectors, _first(form, sort)


def _first(form: Variable, sort: str) -> Variable:
    """How many eigenvalues of a Schur form come first."""
    values = eigvals(form)
    real, size = op_named("real")(values), op_named("abs")(values)
    chosen = {"lhp": real < 0, "rhp": real >= 0, "iuc": size <= 1, "ouc": size > 1}[sort]
    return count_nonzero(chosen, -1)


def solve_sylvester(a: Any, b: Any, q: Any) -> Variable:
    """``x`` with ``a @ x + x @ b = q``."""
    result: Variable = SYLVESTER(a, b, q)
    return result


def solve_continuous_lyapunov(a: Any, q: Any) -> Variable:
    """``x`` with ``a @ x + x @ a^H = q``."""
    return solve_sylvester(a, op_named("conj")(matrix_transpose(as_variable(a))), q)


def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Variable:
    """``x`` with ``a @ x = b``, of the diagonals of ``a``: so many below and above the main one, the
    uppermost in the first row of ``ab``. Raises LinearAlgebraError where ``a`` is singular."""
    lower, upper = (int(one) for one in elements_of("solve_banded", "l_and_u", l_and_u))
    sides, op = as_variable(b), BandedSolve(lower, upper)
    if sides.tensor_type.ndim != 1:
        result: Variable = op(ab, sides)
        return result
    return squeeze(op(ab, expand_dims(sides, 1)), 1)


def solve_discrete_lyapunov(a: Any, q: Any) -> Variable:
    """``X`` of ``a X a^H - X + q = 0``, as the solution of a linear system of all its elements, which SciPy
    takes for fewer than ten rows."""
    matrix, right = as_variable(a), as_variable(q)
    size = matrix.tensor_type.shape[-1]
    if size is None:
        raise CallError(describe("solve_discrete_lyapunov", [matrix.type], "its size must be known"))
    system = np.eye(size * size) - kron(matrix, op_named("conj")(matrix))
    return own.solve(system, right.reshape((-1,))).reshape((size, size))


def lu_factor(a: Any) -> tuple[Variable, Variable]:
    """What ``lu_solve`` takes, of a square matrix: both triangular factors in one, and pivots."""
    permutation, lower, upper = own.lu(a)
    if permutation.ndim != 2 or _size(upper[0], "lu_factor") != _size(upper[:, 0], "lu_factor"):
        raise CallError(
            describe("scipy.linalg.lu_factor", [upper.type], "takes one square matrix", user_line())
        )
    order = argmax(permutation, axis=0)
    return tril(lower, -1) + upper, cast(PIVOTS_OF_ORDER(order), "int32")


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Variable:
    """The solution of a system whose matrix has been factored by ``lu_factor``."""
    factors, pivots = (as_variable(one) for one in lu_and_piv)
    order: Any = ORDER_OF_PIVOTS(pivots)
    sides = as_variable(b)
    if trans == 0:
        half = own.solve_triangular(factors, sides[order], lower=True, unit_diagonal=True)
        return own.solve_triangular(factors, half)
    kind: Any = "T" if trans == 1 else "C"
    half = own.solve_triangular(factors, sides, kind)
    solved: Any = own.solve_triangular(factors, half, kind, lower=True, unit_diagonal=True)
    result: Variable = solved[argsort(order)]
    return result


def toeplitz(c: Any, r: Any = None) -> Variable:
    """The matrix with constant diagonals of a first column, and a first row: by default its conjugate."""
    column = as_variable(c).reshape((-1,))
    row = op_named("conj")(column) if r is None else as_variable(r).reshape((-1,))
    rows, columns = _size(column, "toeplitz"), _size(row, "toeplitz")
    values = concatenate([column[::-1], row[1:]])
    result: Variable = values[np.arange(rows - 1, -1, -1)[:, None] + np.arange(columns)]
    return result


def hankel(c: Any, r: Any = None) -> Variable:
    """The matrix with constant other diagonals of a first column, and a last row: by default zeros."""
    column = as_variable(c).reshape((-1,))
    row = column * 0 if r is None else as_variable(r).reshape((-1,))
    rows, columns = _size(column, "hankel"), _size(row, "hankel")
    values = concatenate([column, row[1:]])
    result: Variable = values[np.arange(rows)[:, None] + np.arange(columns)]
    return result


def circulant(c: Any) -> Variable:
    """The square matrix whose columns are a vector, each moved by one place more."""
    column = as_variable(c).reshape((-1,))
    places = np.arange(_size(column, "circulant"))
    result: Variable = column[(places[:, None] - places) % places.size]
    return result


def _size(vector: Variable, name: str) -> int:
    size = vector.tensor_type.shape[0]
    if size is None:
        reason = "its size is not known, and the matrix has it"
        raise CallError(describe(f"scipy.linalg.{name}", [vector.type], reason, user_line()))
    return size


_NAMED: dict[str, Callable[..., Any]] = {
    "cholesky": cholesky, "cho_factor": cho_factor, "qr": qr, "eigh": _eigh, "eigvalsh": _eigvalsh,
    "pinv": pinv, "sqrtm": sqrtm, "logm": logm, "toeplitz": toeplitz, "hankel": hankel,
    "circulant": circulant, "lu_factor": lu_factor, "lu_solve": lu_solve,
    "solve_discrete_lyapunov": solve_discrete_lyapunov, "schur": schur, "solve_sylvester": solve_sylvester,
    "solve_continuous_lyapunov": solve_continuous_lyapunov, "solve_banded": solve_banded,
}  # fmt: skip
FUNCTIONS = {f"scipy.linalg.{name}": function for name, function in _NAMED.items()}
