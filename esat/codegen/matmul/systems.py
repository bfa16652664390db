"""Factorizations, systems, inverses and determinants of small matrices as lines of machine code.

The algorithms are LAPACK's: Cholesky's, and Gauss's with the first largest element of a column as pivot. They
are written here once, for elements that are values of a straight line
(:mod:`~esat.codegen.matmul.unrolled_systems`) and for elements in memory, in loops
(:mod:`~esat.codegen.matmul.looped_systems`). float32 is computed in float64, as NumPy does. What is not
finite or positive, and whatever else LAPACK might refuse, is left to it: it says what is wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import nan
from typing import Literal, TypeAlias

from esat.codegen.matmul.straight_line import StraightLine

SystemName: TypeAlias = Literal[
    "cholesky",
    "solve",
    "solve_semidefinite",
    "solve_triangular",
    "cho_solve",
    "packed_solve",
    "packed_solve_transposed",
    "inv",
    "slogdet",
    "det",
]
Numbers: TypeAlias = tuple[str, ...]


class SmallMatrices(ABC):
    """SmallMatrices with their right sides beside them, one a lane, whose elements code reads and writes.

    Indices are integers of LLVM's text, or names of them; elements are names of values.
    """

    def __init__(self, code: StraightLine, order: int, width: int) -> None:
        self.code = code
        self.order, self.width = order, width
        self.rows, self.columns = str(order), str(width)

    @abstractmethod
    def loop(
        self, start: str, stop: str, body: Callable[..., Numbers | None], *carried: tuple[str, str]
    ) -> Numbers:
        """``body(index, *values)`` for each index, which gives the next values; those after the last one.

        ``carried`` has the type and the first value of each.
        """

    @abstractmethod
    def added(self, number: int, index: str, sign: int = 1) -> str:
        """The index ``number + sign * index``."""

    @abstractmethod
    def load(self, i: str, j: str) -> str:
        """An element."""

    @abstractmethod
    def store(self, i: str, j: str, value: str) -> None:
        """Change an element."""

    @abstractmethod
    def recall(self, name: str, index: str = "0") -> str:
        """What was kept under a name: ``inverse`` of a diagonal, ``sign``, ``total``."""

    @abstractmethod
    def keep(self, name: str, value: str, index: str = "0") -> None:
        """Keep a value under a name."""

    @abstractmethod
    def spread(self, index: str) -> str:
        """The index in every lane."""

    @abstractmethod
    def stop_if_none(self, bits: str, first: str) -> str:
        """The number of columns, or ``first`` where that spares a loop as no lane has its bit set."""

    def invert(self, k: str) -> str:
        """The inverse of an element of the diagonal, which is kept."""
        found = self.code.quotient(self.code.constant(1.0), self.load(k, k))
        self.keep("inverse", found, k)
        return found

    def require_finite(self, value: str) -> None:
        """Results are used only where all such numbers are finite."""
        self.keep("total", self.code.added(value, self.code.constant(0.0), self.recall("total")))

    def is_right(self) -> str:
        """A bit a lane: whether all that is required holds."""
        return self.code.compare(self.recall("total"), "oeq", self.code.constant(0.0))


def compute(
    matrices: SmallMatrices, name: SystemName, lower: bool = True, unit: bool = False
) -> list[tuple[int, int]]:
    """Write the lines from the elements to those of the results.

    Parameters
    ----------
    lower, unit
        Of ``solve_triangular``: which triangle, and whether its diagonal is taken for ones.

    Returns
    -------
    The columns, from one to another, of each result; determinants are in the first row.
    """
    order, width = matrices.order, matrices.width
    match name:
        case "cholesky":
            _factor(matrices)
            _clear_upper(matrices)
            return [(0, order)]
        case "solve_semidefinite" | "cho_solve":
            if name == "cho_solve":
                _invert_diagonal(matrices)
            else:
                _factor(matrices)
            substitute(matrices, lower=True)
            substitute(matrices, lower=False, transposed=True)
        case "solve_triangular":
            if not unit:
                _invert_diagonal(matrices)
            substitute(matrices, lower, unit=unit)
        case "slogdet" | "det":
            _eliminate(matrices, signed=True)
            return _determinant(matrices, name)
        case _:
            _eliminate(matrices)
            substitute(matrices, lower=False)
    require_finite_sides(matrices)
    return [(order, width)]


def _dot(
    matrices: SmallMatrices,
    bounds: tuple[str, str],
    left: Callable[[str], str],
    right: Callable[[str], str],
    rest: str,
) -> str:
    """``rest`` without the products of the elements at the indices within bounds."""
    code = matrices.code

    def one(k: str, value: str) -> Numbers:
        return (code.taken(left(k), right(k), value),)

    return matrices.loop(*bounds, one, (code.kind, rest))[0]


def _factor(matrices: SmallMatrices) -> None:
    """Cholesky's lower factor in place of the lower triangle; nothing else is read."""
    code, load = matrices.code, matrices.load

    def row(i: str) -> None:
        def element(j: str) -> None:
            rest = _dot(matrices, ("0", j), partial(load, i), partial(load, j), load(i, j))
            matrices.store(i, j, code.product(rest, matrices.recall("inverse", j)))

        matrices.loop("0", i, element)
        root = code.root(_dot(matrices, ("0", i), partial(load, i), partial(load, i), load(i, i)))
        positive = code.compare(root, "ogt", code.constant(0.0))
        matrices.require_finite(code.chosen(positive, root, code.constant(nan)))
        matrices.store(i, i, root)
        matrices.invert(i)

    matrices.loop("0", matrices.rows, row)


def _clear_upper(matrices: SmallMatrices) -> None:
    zero = matrices.code.constant(0.0)

    def row(i: str) -> None:
        matrices.loop(matrices.added(1, i), matrices.rows, lambda j: matrices.store(i, j, zero))

    matrices.loop("0", matrices.rows, row)


def _eliminate(matrices: SmallMatrices, signed: bool = False) -> None:
    """Gauss's elimination of rows of the whole width, whose factors are not kept.

    ``signed``: whether the sign is changed where rows are exchanged.
    """
    code, load, store = matrices.code, matrices.load, matrices.store

    def column(k: str) -> None:
        below, first = matrices.added(1, k), matrices.spread(k)

        def larger(i: str, largest: str, where: str) -> Numbers:
            size = code.size(load(i, k))
            bits = code.compare(size, "ogt", largest)
            place = code.chosen(bits, matrices.spread(i), where, code.places)
            return code.chosen(bits, size, largest), place

        pivot = (code.kind, code.size(load(k, k))), (code.places, first)
        _, where = matrices.loop(below, matrices.rows, larger, *pivot)
        if signed:
            moved, sign = code.value(f"icmp ne {code.places} {where}, {first}"), matrices.recall("sign")
            matrices.keep("sign", code.chosen(moved, code.product(sign, code.constant(-1.0)), sign))

        def exchange(i: str) -> None:
            bits = code.value(f"icmp eq {code.places} {where}, {matrices.spread(i)}")

            def element(j: str) -> None:
                one, other = load(k, j), load(i, j)
                store(k, j, code.chosen(bits, other, one))
                store(i, j, code.chosen(bits, one, other))

            matrices.loop(k, matrices.stop_if_none(bits, k), element)

        matrices.loop(below, matrices.rows, exchange)
        matrices.require_finite(load(k, k))
        inverse = matrices.invert(k)

        def row(i: str) -> None:
            factor = code.product(load(i, k), inverse)
            matrices.loop(
                below, matrices.columns, lambda j: store(i, j, code.taken(factor, load(k, j), load(i, j)))
            )

        matrices.loop(below, matrices.rows, row)

    matrices.loop("0", matrices.rows, column)


def substitute(matrices: SmallMatrices, lower: bool, transposed: bool = False, unit: bool = False) -> None:
    """Solve a triangular system for the sides, in place; ``unit`` for a diagonal of ones."""
    code, load = matrices.code, matrices.load

    def place(count: str) -> str:
        return count if lower else matrices.added(matrices.order - 1, count, -1)

    def row(count: str) -> None:
        i = place(count)

        def column(j: str) -> None:
            def factor(done: str) -> str:
                return load(place(done), i) if transposed else load(i, place(done))

            # What was found last comes last: nothing waits for it before.
            rest = _dot(matrices, ("0", count), factor, lambda done: load(place(done), j), load(i, j))
            matrices.store(i, j, rest if unit else code.product(rest, matrices.recall("inverse", i)))

        matrices.loop(matrices.rows, matrices.columns, column)

    matrices.loop("0", matrices.rows, row)


def _invert_diagonal(matrices: SmallMatrices) -> None:
    def one(k: str) -> None:
        matrices.invert(k)

    matrices.loop("0", matrices.rows, one)


def require_finite_sides(matrices: SmallMatrices) -> None:
    """Results are used only where the sides are finite."""

    def row(i: str) -> None:
        matrices.loop(matrices.rows, matrices.columns, lambda j: matrices.require_finite(matrices.load(i, j)))

    matrices.loop("0", matrices.rows, row)


def _determinant(matrices: SmallMatrices, name: SystemName) -> list[tuple[int, int]]:
    """As NumPy has it: a sum of logarithms, whose exponential is the determinant."""
    code = matrices.code

    def one(k: str, sign: str, logarithm: str) -> Numbers:
        pivot = matrices.load(k, k)
        turned = code.product(sign, code.signed(code.constant(1.0), pivot))
        return turned, code.sum(logarithm, code.logarithm(code.size(pivot)))

    first = (code.kind, matrices.recall("sign")), (code.kind, code.constant(0.0))
    sign, logarithm = matrices.loop("0", matrices.rows, one, *first)
    matrices.require_finite(logarithm)
    if name == "det":
        matrices.store("0", "0", code.product(sign, code.exponential(logarithm)))
        return [(0, 1)]
    matrices.store("0", "0", sign)
    matrices.store("0", "1", logarithm)
    return [(0, 1), (1, 2)]
