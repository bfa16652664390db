"""The seventeen expressions of the linear algebra awareness benchmark, and each one's best form by hand.

The expressions are those of A. Sankaran, N. A. Alashti, C. Psarras, P. Bientinesi, "Benchmarking the linear
algebra awareness of TensorFlow and PyTorch", 2022. Matrices are n x n, vectors n x 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.peers.cases import Case, Input, Shape

LARGE = 1000
"""Size from which no core's own cache holds a matrix."""
STEPS = 3
"""Passes of the loop whose body has a product that does not change."""


@dataclass(frozen=True)
class Expression(Case):
    """One expression.

    Attributes
    ----------
    by_hand
        The best form that NumPy and SciPy have for it: ``by_hand(*arrays)``.
    products
        Kinds of the matrix products in the cheap form, sorted: ``gemm`` for two matrices, ``gemv`` for a
        matrix and a vector, otherwise the structured product's name.
    large
        The same where matrices are larger than a core's cache, if that is another form.
    size
        The size that esat is told of, as others see it in the arrays; None for a program for all sizes.
    """

    by_hand: Callable[..., Any] = np.matmul
    products: tuple[str, ...] = ()
    large: tuple[str, ...] | None = None
    size: int | None = None

    def at(self, size: int) -> Expression:
        return replace(self, size=size)

    @property
    def cheap(self) -> tuple[str, ...]:
        """Kinds of the products in the cheap form for the size."""
        is_large = self.size is not None and self.size >= LARGE
        return self.large if is_large and self.large is not None else self.products


def _matrix(n: int) -> Shape:
    return (n, n)


def _column(n: int) -> Shape:
    return (n, 1)


MATRIX, COLUMN = Input(_matrix), Input(_column)
LOWER = Input(_matrix, structure="lower_triangular")
TRIDIAGONAL = Input(_matrix, structure="tridiagonal")


def _loop(_: Any, a: Any, b: Any, *vectors: Any) -> Any:
    return tuple(a @ b + v @ v.T for v in vectors)


def _loop_by_hand(a: Any, b: Any, *vectors: Any) -> Any:
    product = a @ b
    return tuple(product + v * v.T for v in vectors)


def _blas(name: str, dtype: Any) -> Any:
    from scipy.linalg import get_blas_funcs

    return get_blas_funcs(name, dtype=dtype)


def _triangular_by_hand(lower: Any, b: Any) -> Any:
    # Row-major matrices are the transposed column-major ones.
    return _blas("trmm", b.dtype)(1.0, lower.T, b.T, side=1, lower=0).T


def _tridiagonal_by_hand(tridiagonal: Any, b: Any) -> Any:
    from scipy.sparse import diags_array

    diagonals = [np.diagonal(tridiagonal, offset) for offset in (-1, 0, 1)]
    return diags_array(diagonals, offsets=(-1, 0, 1), format="csr") @ b


def _twice_by_hand(a: Any, b: Any) -> Any:
    return _blas("gemm", a.dtype)(2.0, b.T, a.T, trans_b=1).T


def _gram_by_hand(a: Any, b: Any) -> Any:
    product = a.T @ b
    return product.T @ product


def _product_with_own_transpose_by_hand(a: Any, b: Any) -> Any:
    product = b.T @ a
    return product @ product.T


EXPRESSIONS: tuple[Expression, ...] = (
    Expression(
        "A'B", lambda _, a, b: a.T @ b, (MATRIX,) * 2, by_hand=lambda a, b: a.T @ b, products=("gemm",)
    ),
    Expression(
        "L B",
        lambda _, lower, b: lower @ b,
        (LOWER, MATRIX),
        by_hand=_triangular_by_hand,
        products=("lower_matmul",),
    ),
    Expression("A A'", lambda _, a: a @ a.T, (MATRIX,), by_hand=lambda a: a @ a.T, products=("gram_matmul",)),
    Expression(
        "T B",
        lambda _, t, b: t @ b,
        (TRIDIAGONAL, MATRIX),
        by_hand=_tridiagonal_by_hand,
        products=("tridiagonal_matmul",),
    ),
    Expression(
        "A'B + A'B",
        lambda _, a, b: a.T @ b + a.T @ b,
        (MATRIX,) * 2,
        by_hand=_twice_by_hand,
        products=("gemm",),
    ),
    Expression(
        "(A'B)'(A'B)",
        lambda _, a, b: (a.T @ b).T @ (a.T @ b),
        (MATRIX,) * 2,
        by_hand=_gram_by_hand,
        products=("gemm", "gram_matmul"),
    ),
    Expression(
        "(A'B)'A'B",
        lambda _, a, b: (a.T @ b).T @ a.T @ b,
        (MATRIX,) * 2,
        by_hand=_gram_by_hand,
        products=("gemm", "gram_matmul"),
    ),
    Expression(
        "A'B A'B y",
        lambda _, a, b, y: a.T @ b @ a.T @ b @ y,
        (MATRIX, MATRIX, COLUMN),
        by_hand=lambda a, b, y: a.T @ (b @ (a.T @ (b @ y))),
        products=("gemv",) * 4,
    ),
    Expression(
        "H'H x",
        lambda _, h, x: h.T @ h @ x,
        (MATRIX, COLUMN),
        by_hand=lambda h, x: h.T @ (h @ x),
        products=("gemv",) * 2,
        large=("normal_matmul",),
    ),
    Expression(
        "y'H'H",
        lambda _, h, y: y.T @ h.T @ h,
        (MATRIX, COLUMN),
        by_hand=lambda h, y: (h @ y).T @ h,
        products=("gemv",) * 2,
        large=("normal_matmul",),
    ),
    Expression(
        "H'y x'H",
        lambda _, h, y, x: h.T @ y @ x.T @ h,
        (MATRIX, COLUMN, COLUMN),
        by_hand=lambda h, y, x: (h.T @ y) * (x.T @ h),
        products=("gemv",) * 2,
    ),
    Expression(
        "A B + A C",
        lambda _, a, b, c: a @ b + a @ c,
        (MATRIX,) * 3,
        by_hand=lambda a, b, c: a @ (b + c),
        products=("gemm",),
    ),
    Expression(
        "(A - H'H) x",
        lambda _, a, h, x: (a - h.T @ h) @ x,
        (MATRIX, MATRIX, COLUMN),
        by_hand=lambda a, h, x: a @ x - h.T @ (h @ x),
        products=("gemv",) * 3,
        large=("gemv", "normal_matmul"),
    ),
    Expression(
        "B'A A'B",
        lambda _, a, b: b.T @ a @ a.T @ b,
        (MATRIX,) * 2,
        by_hand=_product_with_own_transpose_by_hand,
        products=("gemm", "gram_matmul"),
    ),
    Expression(
        "loop: A B + v v'",
        _loop,
        (MATRIX, MATRIX, *[COLUMN] * STEPS),
        by_hand=_loop_by_hand,
        products=("gemm",),
    ),
    Expression(
        "(A + B)[2, 2]",
        lambda _, a, b: (a + b)[2, 2],
        (MATRIX,) * 2,
        by_hand=lambda a, b: a[2, 2] + b[2, 2],
    ),
    Expression(
        "(A B)[2, 2]",
        lambda _, a, b: (a @ b)[2, 2],
        (MATRIX,) * 2,
        by_hand=lambda a, b: a[2] @ b[:, 2],
    ),
)
"""In the order of the publication's tables."""
