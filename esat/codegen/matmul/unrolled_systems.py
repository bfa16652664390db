"""Factorizations, systems and inverses of matrices of a few rows as straight lines of machine code.

A function of LAPACK looks at its arguments, calls others and divides its work into blocks, which takes longer
than so few operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.matmul.straight_line import Rows, StoredMatrix, StraightLine, batch_function
from esat.codegen.matmul.systems import (
    Numbers,
    SmallMatrices,
    SystemName,
    compute,
    require_finite_sides,
    substitute,
)


@record(frozen=True)
class UnrolledSystem(HostFunction):
    """A function of matrices of known order and strides; see :func:`batch_function` for what it takes.

    Attributes
    ----------
    name
        ``cholesky`` gives lower factors, ``cho_solve`` takes them, ``packed_solve`` those of ``packed_lu``;
        ``det`` and ``slogdet`` give numbers.
    order, columns
        Rows of the matrix, and columns of the right sides; none of those that have no right sides.
    strides
        Of each operand and result, in elements.
    lower, unit_diagonal
        Of ``solve_triangular``: which triangle, and whether its diagonal is taken for ones.
    lanes
        How many matrices are computed at once.
    """

    name: SystemName
    dtype: str
    order: int
    columns: int
    strides: tuple[tuple[int, int], ...]
    lower: bool = True
    unit_diagonal: bool = False
    lanes: int = 1

    def text(self) -> str:
        part = {"cholesky": "lower", "solve_semidefinite": "lower", "cho_solve": "lower"}.get(
            self.name, "all"
        )
        if self.name == "solve_triangular":
            part = "lower" if self.lower else "upper"
        rows = self.order + self.name.startswith("packed")  # and one of pivots
        stored = [StoredMatrix(rows, self.order, self.strides[0], part)]
        if self.columns:
            stored += [StoredMatrix(self.order, self.columns, strides) for strides in self.strides[1:]]
        elif self.name in ("slogdet", "det"):
            stored += [StoredMatrix(1, 1, strides) for strides in self.strides[1:]]
        else:
            stored.append(StoredMatrix(self.order, self.order, self.strides[1]))
        operands = 2 if self.columns else 1
        return batch_function(self.dtype, self.lanes, stored[:operands], stored[operands:], self.write)

    def write(self, code: StraightLine, matrix: Rows, *sides: Rows) -> list[Rows]:
        """Write the lines that compute the results, whose elements are given, of operands' elements."""
        order = range(self.order)
        if self.name.startswith("packed"):
            return _packed_solve(self.name != "packed_solve", code, matrix, *sides)
        if self.name == "inv":
            sides = ([[code.constant(float(i == j)) for j in order] for i in order],)
        matrices = Unrolled(code, matrix, *sides)
        results = [
            matrices.part(*bounds) for bounds in compute(matrices, self.name, self.lower, self.unit_diagonal)
        ]
        code.require(matrices.is_right())
        return [one[:1] for one in results] if self.name in ("slogdet", "det") else results


class Unrolled(SmallMatrices):
    """SmallMatrices whose elements are values of a straight line."""

    def __init__(self, code: StraightLine, *parts: Rows) -> None:
        rows = [[element for part in line for element in part] for line in zip(*parts, strict=True)]
        super().__init__(code, len(rows), len(rows[0]))
        self._elements: dict[tuple[str, str], str] = {
            (str(i), str(j)): element for i, row in enumerate(rows) for j, element in enumerate(row)
        }
        self._kept = {("sign", "0"): code.constant(1.0), ("total", "0"): code.constant(0.0)}

    def part(self, first: int, last: int) -> Rows:
        """The elements of columns, row by row."""
        columns = [*map(str, range(first, last))]
        return [[self._elements.get((str(i), j), "") for j in columns] for i in range(self.order)]

    def loop(
        self, start: str, stop: str, body: Callable[..., Numbers | None], *carried: tuple[str, str]
    ) -> Numbers:
        values = tuple(first for _, first in carried)
        for index in range(int(start), int(stop)):
            values = body(str(index), *values) or ()
        return values

    def added(self, number: int, index: str, sign: int = 1) -> str:
        return str(number + sign * int(index))

    def load(self, i: str, j: str) -> str:
        return self._elements[i, j]

    def store(self, i: str, j: str, value: str) -> None:
        self._elements[i, j] = value

    def recall(self, name: str, index: str = "0") -> str:
        return self._kept[name, index]

    def keep(self, name: str, value: str, index: str = "0") -> None:
        self._kept[name, index] = value

    def spread(self, index: str) -> str:
        return index if self.code.lanes == 1 else f"<{', '.join([f'i64 {index}'] * self.code.lanes)}>"

    def stop_if_none(self, _bits: str, _first: str) -> str:
        return self.columns


def _packed_solve(transposed: bool, code: StraightLine, packed: Rows, sides: Rows) -> list[Rows]:
    """By the factors that LAPACK's getrf gives, column by column, and the rows that it exchanged."""
    *columns, pivots = packed
    order = range(len(columns))
    if not transposed:
        _exchange(code, pivots, sides, order)
    matrices = Unrolled(code, [list(row) for row in zip(*columns, strict=True)], sides)
    for k in map(str, order):
        matrices.invert(k)
    for lower in (True, False):
        substitute(matrices, lower, transposed, unit=lower != transposed)
    require_finite_sides(matrices)
    code.require(matrices.is_right())
    solution = matrices.part(len(order), matrices.width)
    if transposed:
        _exchange(code, pivots, solution, reversed(order))
    return [solution]


def _exchange(code: StraightLine, pivots: Sequence[str], rows: Rows, order: Iterable[int]) -> None:
    """Exchange each row, in order, with the one that its pivot names from 1 on: itself or a later one."""
    for k in order:
        for other in range(k + 1, len(rows)):
            bits = code.compare(pivots[k], "oeq", code.constant(float(other + 1)))
            pairs = list(zip(rows[k], rows[other], strict=True))
            rows[k] = [code.chosen(bits, below, own) for own, below in pairs]
            rows[other] = [code.chosen(bits, own, below) for own, below in pairs]
