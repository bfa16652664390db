"""What may be known of a value: structure of matrices, and signs of numbers.

The structure of a matrix is a pattern: of zeros, or of elements that are equal. It is stated of the last
two axes of an array, of each matrix in a batch.

=========================== ==============================================================================
fact                        of every matrix ``a``
=========================== ==============================================================================
``diagonal``                zero outside the diagonal
``lower_triangular``        zero above the diagonal
``upper_triangular``        zero below the diagonal
``tridiagonal``             zero but for the diagonal and the two beside it
``full_lower_triangle``     nowhere zero below the diagonal and on it: a mask that leaves the lower triangle
``symmetric``               square, equal to its transpose (not conjugated)
``positive_definite``       real, symmetric, all eigenvalues positive
``positive_semidefinite``   real, symmetric, no eigenvalue negative
``orthogonal``              real, square, ``a.T @ a`` is the identity
``orthonormal_columns``     real, ``a.T @ a`` is the identity
``permutation``             a permutation of the rows of the identity
``square``                  as many rows as columns
=========================== ==============================================================================

They hold over the real numbers: rounding may disturb the equal elements of a symmetric matrix that was
computed, and infinities and NaN the zeros of a product (``0 * inf`` is NaN).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ZERO_PATTERNS = ("diagonal", "lower_triangular", "upper_triangular", "tridiagonal")
"""Facts about zeros alone, of rectangular matrices, too."""
REAL_STRUCTURES = ("positive_definite", "positive_semidefinite", "orthogonal", "orthonormal_columns")
"""Facts that are stated of real floating dtypes only."""
STRUCTURES = (*ZERO_PATTERNS, "full_lower_triangle", "symmetric", *REAL_STRUCTURES, "permutation", "square")
"""All facts about matrices."""
SQUARE_STRUCTURES = frozenset(
    {"symmetric", "positive_definite", "positive_semidefinite", "orthogonal", "permutation", "square"}
)
"""Those that only square matrices have."""
SIGNS = ("positive", "nonnegative", "negative", "nonpositive")
"""Facts about every element of an array of real floats, NaN aside."""
NUMBERS = (*SIGNS, "finite")
"""Those, and that no element is infinite or NaN."""
RANGES = ("overflows", "vanishes", "exponential")
"""What over- or underflows for operands of ordinary size, though its logarithm does not; either of the two.

No facts about values: they say where a logarithm is better computed otherwise than from the number. Where one
does not hold of all elements nothing is wrong.
"""

TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}
"""What rounding may do to a matrix, relative to its largest element; 1e-8 for other dtypes."""


def holds(fact: str, array: Array, scale: float = 1.0) -> bool:
    """Whether a fact is true of a value.

    Parameters
    ----------
    fact
        One of :data:`STRUCTURES` or :data:`NUMBERS`.
    array
        The value; for a structure of two axes at least.
    scale
        Factor on :data:`TOLERANCES`. Zeros of a pattern are exact all the same.
    """
    if fact == "finite":
        return bool(np.all(np.isfinite(array)))
    if fact in SIGNS:
        return bool(np.all(_sign_holds(fact, array) | np.isnan(array)))
    rows, columns = array.shape[-2:]
    if fact in SQUARE_STRUCTURES and rows != columns:
        return False
    if fact == "orthonormal_columns" and columns > rows:
        return False  # however coarsely its elements are rounded
    if fact in ZERO_PATTERNS:
        return not array[..., ~pattern(fact, rows, columns)].any()
    if fact == "full_lower_triangle":
        return bool(array[..., pattern("lower_triangular", rows, columns)].all())
    if fact == "square" or array.size == 0:
        return True
    if fact == "permutation":
        ones = array == 1
        counted = ones.sum(-1), ones.sum(-2)
        return bool(np.all(ones | (array == 0)) and all(np.all(count == 1) for count in counted))
    return _holds_rounded(fact, array, scale * TOLERANCES.get(array.dtype.name, 1e-8) * max(rows, 1))


def _holds_rounded(fact: str, array: Array, tolerance: float) -> bool:
    transposed = np.swapaxes(array, -1, -2)
    if fact in ("orthogonal", "orthonormal_columns"):
        return bool(np.all(np.abs(transposed @ array - np.eye(array.shape[-1])) <= tolerance))
    largest = float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))
    alike = np.allclose(array, transposed, rtol=0.0, atol=tolerance * largest, equal_nan=True)
    if fact == "symmetric" or not alike:
        return alike
    if not np.all(np.isfinite(array)):
        return False
    smallest = float(np.linalg.eigvalsh(array.astype(np.float64)).min())
    return smallest > 0.0 if fact == "positive_definite" else smallest >= -tolerance * largest


def _sign_holds(fact: str, array: Array) -> NDArray[np.bool_]:
    compare = {
        "positive": np.greater,
        "nonnegative": np.greater_equal,
        "negative": np.less,
        "nonpositive": np.less_equal,
    }
    result: NDArray[np.bool_] = compare[fact](array, 0)
    return result


def pattern(fact: str, rows: int, columns: int) -> NDArray[np.bool_]:
    """Where a matrix with a pattern of zeros may have other elements."""
    offset = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    patterns: dict[str, NDArray[np.bool_]] = {
        "diagonal": offset == 0,
        "lower_triangular": offset <= 0,
        "upper_triangular": offset >= 0,
        "tridiagonal": np.abs(offset) <= 1,
    }
    return patterns[fact]


def shaped(array: Array, facts: Iterable[str]) -> Array:
    """An array made from ``array`` of which the facts are true, as far as they can hold together.

    Square structures of matrices that are not square are left out; so are all facts, where the dtype cannot
    have them.
    """
    wanted = set(facts)
    if "finite" in wanted:
        array = np.where(np.isfinite(array), array, array.dtype.type(1))
    for sign in wanted.intersection(SIGNS):
        array = np.abs(array) if sign in ("positive", "nonnegative") else -np.abs(array)
        one = array.dtype.type(1 if sign == "positive" else -1)
        array = np.where(array == 0, one, array) if sign in ("positive", "negative") else array
    if array.ndim < 2 or not wanted.intersection(STRUCTURES):
        return array
    rows, columns = array.shape[-2:]
    if rows == columns and array.size:
        array = _square_shaped(array, wanted)
    elif "orthonormal_columns" in wanted and rows > columns and array.size:
        array = _orthogonal_factor(array)
    if "full_lower_triangle" in wanted:
        array = np.where(
            pattern("lower_triangular", rows, columns) & (array == 0), array.dtype.type(1), array
        )
    for fact in wanted.intersection(ZERO_PATTERNS):
        array = np.where(pattern(fact, rows, columns), array, array.dtype.type(0))
    return array


def _square_shaped(array: Array, wanted: Collection[str]) -> Array:
    size, transposed = array.shape[-1], np.swapaxes(array, -1, -2)
    if "permutation" in wanted:
        order = np.argsort(np.argsort(array[..., 0], axis=-1, kind="stable"), axis=-1)
        return np.asarray(np.eye(size, dtype=array.dtype)[order])
    if {"orthogonal", "orthonormal_columns"} & set(wanted):
        diagonal = {"diagonal", "lower_triangular", "upper_triangular"} & set(wanted)
        return _orthogonal_factor(np.eye(size, dtype=array.dtype) if diagonal else array)
    if {"positive_definite", "positive_semidefinite"} & set(wanted):
        if set(ZERO_PATTERNS) & set(wanted):
            # Dominant on its diagonal, so that what the pattern leaves of it is positive definite as well.
            dominant = 2 * size * (np.abs(array).max(axis=(-2, -1), keepdims=True) + 1)
            return np.asarray((array + transposed) / 2 + dominant * np.eye(size)).astype(array.dtype)
        return np.asarray(array @ transposed + np.eye(size)).astype(array.dtype)
    return array + transposed if "symmetric" in wanted else array


def _orthogonal_factor(array: Array) -> Array:
    finite = np.where(np.isfinite(array), array, 0.0)
    return np.asarray(np.linalg.qr(finite.astype(np.float64))[0]).astype(array.dtype)


def structure_of(array: Array) -> tuple[str, ...]:
    """The patterns of zeros, and symmetry, of a constant: exactly, and only where there is something to gain.

    Vectors in disguise (one row or column) and batches that are stretched have none.
    """
    if array.ndim < 2 or 1 in array.shape[-2:] or array.size == 0:
        return ()
    rows, columns = array.shape[-2:]
    patterns = (*ZERO_PATTERNS, "full_lower_triangle") if array.dtype == np.bool_ else ZERO_PATTERNS
    found = [fact for fact in patterns if holds(fact, array)]
    if rows == columns and np.array_equal(array, np.swapaxes(array, -1, -2)):
        found.append("symmetric")
        if "diagonal" in found and array.dtype.kind == "f":
            entries = np.diagonal(array, 0, -2, -1)
            found += ["positive_definite"] if np.all(entries > 0) else []
            found += ["positive_semidefinite"] if np.all(entries >= 0) else []
    if rows == columns and holds("permutation", array):
        found += ["permutation", "orthogonal"] if array.dtype.kind == "f" else ["permutation"]
    return tuple(dict.fromkeys(found))
