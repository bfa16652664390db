"""Shapes of results from those of their operands, whatever sizes are: symbols, numbers, or expected numbers.

The families of ops have one rule each here. The loaded terms have their sizes by them (symbols, some of which
turn out equal), so have classes that rules made (expected numbers), and the terms of rules that are tried at
drawn shapes. An operand of one element may have the empty shape, whatever its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

Size = TypeVar("Size")


class SizeAlgebra(Protocol[Size]):
    """What sizes are, 1 being one of them."""

    def find(self, size: Size, /) -> Size:
        """A size under the name that all equal to it have."""

    def merge(self, left: Size, right: Size, /) -> Size:
        """Two sizes, neither 1 where they stand for stretched axes, that have to be equal."""

    def contract(self, left: Size, right: Size, /) -> object:
        """Two sizes of axes that a product sums over."""


class MatrixSizes(SizeAlgebra[Size], Protocol[Size]):
    """Sizes of matrices that functions of matrices take, too."""

    def square(self, shape: Sequence[Size], /) -> Size:
        """The length of the diagonal of a matrix, which is square where an op needs it."""


class ExpectedSizes:
    """Sizes as numbers that may be wrong: of two that have to be equal, the larger is expected."""

    def find(self, size: float) -> float:
        return size

    def merge(self, left: float, right: float) -> float:
        return max(left, right) if left and right else 0.0

    def contract(self, left: float, right: float) -> None:
        """Nothing: neither is a size of the result."""

    def square(self, shape: Sequence[float]) -> float:
        return min(shape[-2:])


EXPECTED = ExpectedSizes()


def broadcast(shapes: Sequence[Sequence[Size]], sizes: SizeAlgebra[Size]) -> tuple[Size, ...]:
    """The shape of an elementwise result. Raises ValueError for several ranks."""
    one: Any = 1
    result: list[Size] = []
    for axis in zip(*filter(len, shapes), strict=True):
        merged: Size = one
        for size in map(sizes.find, axis):
            if size != 1:
                merged = size if merged == 1 else sizes.merge(merged, size)
        result.append(merged)
    return tuple(result)


def product(
    left: Sequence[Size], right: Sequence[Size], rank: int, sizes: SizeAlgebra[Size]
) -> tuple[Size, ...]:
    """The shape of a product of matrices of this rank."""
    left, right = _ranked(left, rank), _ranked(right, rank)
    sizes.contract(left[-1], right[-2])
    return (*broadcast([left[:-2], right[:-2]], sizes), left[-2], right[-1])


def of_matrices(
    typing: str, shapes: Sequence[Sequence[Size]], rank: int, sizes: MatrixSizes[Size]
) -> tuple[Size, ...]:
    """The shape of a function of matrices; see ``MATRIX_TYPINGS``. Raises KeyError for another typing."""
    first, *others = (_ranked(shape, rank) for shape in shapes)
    if typing == "from_diagonal":
        return first[0], first[0]
    length = sizes.square(first)
    if typing in ("system", "square_system"):
        if typing == "square_system":
            sizes.square(others[0])
        return product(first, others[0], rank, sizes)[:-2] + others[0][-2:]
    kept = {"square": first, "determinant": first[:-2], "diagonal": (*first[:-2], length)}
    return kept[typing]


def of_sparse(
    typing: str, shapes: Sequence[Sequence[Size]], sizes: SizeAlgebra[Size], axis: int = 0
) -> tuple[Size, ...]:
    """The shape of an op on sparse matrices, whose shapes are rows, columns and number of stored values.

    Parameters
    ----------
    axis
        Of a sum over one of the two axes.
    """
    first = _ranked(shapes[0], 3)
    match typing:
        case "stored":
            return first[2:]
        case "structure":
            return (*first[:2], sizes.merge(first[2], _ranked(shapes[1], 1)[0]))
        case "same":
            return first[:2]
        case "transpose":
            return first[1], first[0], first[2]
        case "number":
            return ()
        case "sparse_sum":
            return (first[1 - axis],)
        case _:
            left, right = shapes[:2] if typing == "product" else shapes[1:3]
            return product(left[:2], right[:2], 2, sizes)


def _ranked(shape: Sequence[Size], rank: int) -> tuple[Size, ...]:
    one: Any = 1
    return tuple(shape) or (one,) * rank
