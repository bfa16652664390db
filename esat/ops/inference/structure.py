"""What may be known of a value: structure of matrices, and signs of numbers.

The structure of a matrix is a pattern: of zeros, or of elements that are equal. It is stated of the last
two axes of an array, of each matrix in a batch. Each has one record in :data:`RECORDS`: what it means, and
what follows from it.

They hold over the real numbers: rounding may disturb the equal elements of a symmetric matrix that was
computed, and infinities and NaN the zeros of a product (``0 * inf`` is NaN).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@record(frozen=True)
class MatrixFact:
    """One fact about matrices.

    The rules of ``esat/egraph/analyses/structure.egg`` are written for all facts that an op keeps. What else
    follows from how a matrix is made is written there.

    Attributes
    ----------
    name
        What :func:`esat.assume` calls it; rules write hyphens for underscores.
    holds
        Whether it is true of an array that is not empty, and square if the fact implies it; a float is given
        within which elements of rounded matrices count as equal.
    sample
        A matrix that has it, made of a square one, where it is to have these facts, too.
    pattern
        For facts about zeros alone: where elements need not be zero, by how far they are above the diagonal.
    implies
        What has it, has these, too.
    kept_by
        Which ops on matrices that have it make others that do: ``cast``, ``transpose``, ``inverse``,
        ``product`` (of two), ``sum`` (and difference), ``multiple`` (by any number) and ``congruence``
        (``b @ a @ b.T``).
    transposed
        What the transpose of a matrix with it has instead.
    is_real
        Whether it is stated of real floating dtypes only.
    """

    name: str
    holds: Callable[[Array, float], bool]
    sample: Callable[[Array, Collection[str]], Array] | None = None
    pattern: Callable[[Array], Mask] | None = None
    implies: tuple[str, ...] = ()
    kept_by: tuple[str, ...] = ()
    transposed: str = ""
    is_real: bool = False


def _zeros(
    name: str,
    pattern: Callable[[Array], Mask],
    *kept_by: str,
    implies: tuple[str, ...] = (),
    transposed: str = "",
) -> MatrixFact:
    """A fact about zeros alone."""

    def has_zeros(array: Array, tolerance: float) -> bool:
        return not array[..., ~pattern(_above_diagonal(*array.shape[-2:]))].any()

    return MatrixFact(name, has_zeros, None, pattern, implies, ("cast", "sum", *kept_by), transposed)


def _above_diagonal(rows: int, columns: int) -> Array:
    """int: how far each element is above the diagonal."""
    return np.asarray(np.arange(columns)[None, :] - np.arange(rows)[:, None])


def _is_everywhere_below(array: Array, tolerance: float) -> bool:
    return bool(array[..., _above_diagonal(*array.shape[-2:]) <= 0].all())


def _is_permutation(array: Array, tolerance: float) -> bool:
    ones = array == 1
    counted = ones.sum(-1), ones.sum(-2)
    return bool(np.all(ones | (array == 0)) and all(np.all(count == 1) for count in counted))


def _is_orthonormal(array: Array, tolerance: float) -> bool:
    rows, columns = array.shape[-2:]
    if columns > rows:
        return False  # however coarsely its elements are rounded
    gram = np.swapaxes(array, -1, -2) @ array
    return bool(np.all(np.abs(gram - np.eye(columns)) <= tolerance))


def _largest(array: Array) -> float:
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def _is_symmetric(array: Array, tolerance: float) -> bool:
    return _are_alike(array, np.swapaxes(array, -1, -2), tolerance)


def _is_skew_symmetric(array: Array, tolerance: float) -> bool:
    # Of truth values only False is minus itself.
    transposed = np.swapaxes(array, -1, -2)
    return _are_alike(array, -transposed, tolerance) if array.dtype.kind != "b" else not array.any()


def _are_alike(one: Array, other: Array, tolerance: float) -> bool:
    return np.allclose(one, other, rtol=0.0, atol=tolerance * _largest(one), equal_nan=True)


def _has_eigenvalues(array: Array, tolerance: float, positive: bool) -> bool:
    """Whether it is symmetric, and all eigenvalues are positive, or at least not negative."""
    if not _is_symmetric(array, tolerance) or not np.all(np.isfinite(array)):
        return False
    smallest = float(np.linalg.eigvalsh(array.astype(np.float64)).min())
    return smallest > 0.0 if positive else smallest >= -tolerance * _largest(array)


def _definite(array: Array, wanted: Collection[str]) -> Array:
    size, transposed = array.shape[-1], np.swapaxes(array, -1, -2)
    if set(ZERO_PATTERNS) & set(wanted):
        # Dominant on its diagonal, so that what the pattern leaves of it is positive definite as well.
        dominant = 2 * size * (np.abs(array).max(axis=(-2, -1), keepdims=True) + 1)
        return np.asarray((array + transposed) / 2 + dominant * np.eye(size)).astype(array.dtype)
    return np.asarray(array @ transposed + np.eye(size)).astype(array.dtype)


def _orthogonal(array: Array, wanted: Collection[str]) -> Array:
    diagonal = {"diagonal", "lower_triangular", "upper_triangular"} & set(wanted)
    return _orthogonal_factor(np.eye(array.shape[-1], dtype=array.dtype) if diagonal else array)


def _orthogonal_factor(array: Array) -> Array:
    finite = np.where(np.isfinite(array), array, 0.0)
    return np.asarray(np.linalg.qr(finite.astype(np.float64))[0]).astype(array.dtype)


def _permutation(array: Array, wanted: Collection[str]) -> Array:
    order = np.argsort(np.argsort(array[..., 0], axis=-1, kind="stable"), axis=-1)
    return np.asarray(np.eye(array.shape[-1], dtype=array.dtype)[order])


_LINEAR = ("transpose", "sum", "multiple", "congruence")
_KEPT = ("transpose", "inverse", "product")

RECORDS = {
    structure.name: structure
    for structure in (
        # zero outside the diagonal
        _zeros(
            "diagonal",
            lambda above: above == 0,
            implies=("lower_triangular", "upper_triangular", "tridiagonal"),
        ),
        # zero above the diagonal
        _zeros(
            "lower_triangular", lambda above: above <= 0, "inverse", "product", transposed="upper_triangular"
        ),
        # zero below the diagonal
        _zeros(
            "upper_triangular", lambda above: above >= 0, "inverse", "product", transposed="lower_triangular"
        ),
        # zero but for the diagonal and the two beside it
        _zeros("tridiagonal", lambda above: np.abs(above) <= 1, "transpose"),
        # nowhere zero below the diagonal and on it: a mask that leaves the lower triangle
        MatrixFact("full_lower_triangle", _is_everywhere_below),
        # square, equal to its transpose (not conjugated)
        MatrixFact(
            "symmetric",
            _is_symmetric,
            lambda array, wanted: array + np.swapaxes(array, -1, -2),
            implies=("square",),
            kept_by=(*_LINEAR, "cast", "inverse"),
        ),
        # square, minus its transpose (not conjugated); casts between integers with and without signs lose it
        MatrixFact(
            "skew_symmetric",
            _is_skew_symmetric,
            lambda array, wanted: (
                array - np.swapaxes(array, -1, -2) if array.dtype.kind != "b" else array & False
            ),
            implies=("square",),
            kept_by=(*_LINEAR, "inverse"),
        ),
        # real, symmetric, all eigenvalues positive
        MatrixFact(
            "positive_definite",
            lambda array, tolerance: _has_eigenvalues(array, tolerance, positive=True),
            _definite,
            implies=("positive_semidefinite",),
            kept_by=("inverse",),
            is_real=True,
        ),
        # real, symmetric, no eigenvalue negative
        MatrixFact(
            "positive_semidefinite",
            lambda array, tolerance: _has_eigenvalues(array, tolerance, positive=False),
            _definite,
            implies=("symmetric",),
            kept_by=("congruence",),
            is_real=True,
        ),
        # real, square, `a.T @ a` is the identity
        MatrixFact(
            "orthogonal",
            _is_orthonormal,
            _orthogonal,
            implies=("orthonormal_columns", "square"),
            kept_by=_KEPT,
            is_real=True,
        ),
        # real, `a.T @ a` is the identity
        MatrixFact("orthonormal_columns", _is_orthonormal, _orthogonal, kept_by=("product",), is_real=True),
        # a permutation of the rows of the identity
        MatrixFact(
            "permutation", _is_permutation, _permutation, implies=("orthogonal", "square"), kept_by=_KEPT
        ),
        # as many rows as columns
        MatrixFact("square", lambda array, tolerance: True, kept_by=_KEPT),
    )
}
"""What may be known of matrices, by name."""


def implied(fact: str) -> frozenset[str]:
    """All that follows from a fact alone, of matrices whose dtype may have it; the fact itself among it."""
    return frozenset({fact}).union(*map(implied, RECORDS[fact].implies))


STRUCTURES = tuple(RECORDS)
"""All facts about matrices."""
ZERO_PATTERNS = tuple(name for name, structure in RECORDS.items() if structure.pattern is not None)
"""Facts about zeros alone, of rectangular matrices, too."""
REAL_STRUCTURES = tuple(name for name, structure in RECORDS.items() if structure.is_real)
"""Facts that are stated of real floating dtypes only."""
SQUARE_STRUCTURES = frozenset(name for name in STRUCTURES if "square" in implied(name))
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
    if not array.size and fact != "orthonormal_columns":
        return True
    return RECORDS[fact].holds(array, scale * TOLERANCES.get(array.dtype.name, 1e-8) * max(rows, 1))


def _sign_holds(fact: str, array: Array) -> NDArray[np.bool_]:
    compare = {
        "positive": np.greater,
        "nonnegative": np.greater_equal,
        "negative": np.less,
        "nonpositive": np.less_equal,
    }
    result: NDArray[np.bool_] = compare[fact](array, 0)
    return result


def pattern(fact: str, rows: int, columns: int) -> Mask:
    """Where a matrix with a pattern of zeros may have other elements."""
    where = RECORDS[fact].pattern
    assert where is not None
    return where(_above_diagonal(rows, columns))


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
    """A matrix with the fact out of several that leaves the fewest matrices: these come last in the table."""
    samples = (RECORDS[fact].sample for fact in reversed(STRUCTURES) if fact in wanted)
    return next((sample(array, wanted) for sample in samples if sample is not None), array)


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
