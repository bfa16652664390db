"""Eigenvalues and eigenvectors, after ``numpy.linalg``: of general matrices and of Hermitian ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from esat.frontend.arrays.shaping import matrix_transpose
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.general import EIG, EIGVALS
from esat.ops.linalg.solve import SolveTriangular
from esat.ops.linalg.spectral import Eigenvalues, Eigenvectors, Triangle

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in columns."""

    eigenvalues: Variable
    eigenvectors: Variable


class EighResult(NamedTuple):
    """Ascending eigenvalues, and orthonormal eigenvectors in columns."""

    eigenvalues: Variable
    eigenvectors: Variable


def eig(a: Any) -> EigResult:
    """Eigenvalues ``(..., n)`` of square matrices, and eigenvectors of length 1, in columns.

    Both are complex always, where NumPy's are real if all imaginary parts are zero. The gradient by vectors
    takes distinct eigenvalues, and a cost that does not depend on the vectors' phases.

    Raises
    ------
    ShapeError
        When ``a`` is not square.
    LinearAlgebraError
        At run time, for infinite elements or NaN.
    """
    return EigResult(*EIG(a))


def eigvals(a: Any) -> Variable:
    """Eigenvalues ``(..., n)`` of square matrices, complex always; see :func:`eig`."""
    result: Variable = EIGVALS(a)
    return result


def eigh(a: Any, UPLO: Triangle = "L") -> EighResult:  # noqa: N803
    """Ascending eigenvalues ``(..., n)`` and orthonormal eigenvectors, in columns, of Hermitian matrices.

    Only the triangle ``UPLO`` is read, and only there is the gradient other than zero: an element below the
    diagonal stands for the one above it as well. Of ``(a + a.T) / 2`` it is symmetric. That by vectors takes
    distinct eigenvalues.
    """
    return EighResult(*Eigenvectors(UPLO)(a))


def eigvalsh(a: Any, UPLO: Triangle = "L") -> Variable:  # noqa: N803
    """Ascending eigenvalues ``(..., n)`` of Hermitian matrices, of which the triangle ``UPLO`` is read; for
    gradients see :func:`eigh`."""
    result: Variable = Eigenvalues(UPLO)(a)
    return result


def reduced(a: Any, b: Any) -> tuple[Variable, Variable]:
    """A Hermitian matrix with the eigenvalues of the problem ``a @ v = w * b @ v``, of Hermitian matrices of
    which the second is positive definite, and the lower factor of ``b``."""
    factor: Variable = Cholesky()(b)
    solve = SolveTriangular(lower=True)
    half: Variable = solve(factor, a)
    return solve(factor, op_named("conj")(matrix_transpose(half))), factor
