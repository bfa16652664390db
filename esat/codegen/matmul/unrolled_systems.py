"""Factorizations, systems and inverses of matrices of a few rows as machine code of their own.

A function of LAPACK looks at its arguments, calls others and divides its work into blocks, which takes longer
than so few operations. The algorithms are LAPACK's: Cholesky's, and Gauss's with the first largest element of
a column as pivot. float32 is computed in float64, as NumPy does. What is not finite or positive, and whatever
else LAPACK might refuse, is left to it: it says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import Literal, TypeAlias

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.matmul.straight_line import Rows, StoredMatrix, StraightLine, batch_function

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

    def write(self, code: StraightLine, *matrices: Rows) -> list[Rows]:
        """Write the lines that compute the results, whose elements are given, of operands' elements."""
        return _WRITERS[self.name](self, code, *matrices)


def _cholesky(_system: UnrolledSystem, code: StraightLine, matrix: Rows) -> list[Rows]:
    factor, _ = _cholesky_factor(code, matrix)
    zero = code.constant(0.0)
    return [[[*row, *[zero] * (len(matrix) - len(row))] for row in factor]]


def _cholesky_factor(code: StraightLine, matrix: Rows) -> tuple[Rows, list[str]]:
    """The lower factor row by row, and the inverses of its diagonal."""
    factor, inverses = list[list[str]](), list[str]()
    for i, row in enumerate(matrix):
        found = list[str]()
        for j in range(i + 1):
            rest = row[j]
            for k in range(j):
                rest = code.taken(found[k], factor[j][k] if j < i else found[k], rest)
            found.append(code.product(rest, inverses[j]) if j < i else code.root(rest))
        code.require(code.compare(found[i], "ogt", code.constant(0.0)))
        code.require(code.compare(found[i], "olt", code.constant(inf)))
        inverses.append(code.quotient(code.constant(1.0), found[i]))
        factor.append(found)
    return factor, inverses


def _eliminated(code: StraightLine, rows: Rows, width: int) -> tuple[list[str], list[str]]:
    """Gauss's elimination in place, of matrices with right sides beside them: rows of this width. The factors
    themselves are not kept.

    Returns
    -------
    The inverses of the pivots, and for each but the last the bits that tell whether rows were exchanged.
    """
    inverses, exchanges = list[str](), list[str]()
    for k in range(len(rows)):
        if k + 1 < len(rows):
            exchanges.append(_exchange(code, rows, k))
        inverses.append(code.quotient(code.constant(1.0), rows[k][k]))
        for row in rows[k + 1 :]:
            factor = code.product(row[k], inverses[k])
            for j in range(k + 1, width):
                row[j] = code.taken(factor, rows[k][j], row[j])
    return inverses, exchanges


def _exchange(code: StraightLine, rows: Rows, k: int) -> str:
    """Exchange row ``k`` with the one below whose element in this column is the first largest, if it is
    larger; the bits that tell so."""
    before, largest, larger = rows[k][k:], code.size(rows[k][k]), list[str]()
    for row in rows[k + 1 :]:
        size = code.size(row[k])
        larger.append(code.compare(size, "ogt", largest))
        largest = code.chosen(larger[-1], size, largest)
    for bits, row in zip(larger, rows[k + 1 :], strict=True):  # the last one that is larger is the largest
        rows[k][k:] = [code.chosen(bits, new, old) for new, old in zip(row[k:], rows[k][k:], strict=True)]
    later = ""
    for bits, row in zip(reversed(larger), reversed(rows[k + 1 :]), strict=True):
        alone = code.without(bits, later) if later else bits
        row[k:] = [code.chosen(alone, new, old) for new, old in zip(before, row[k:], strict=True)]
        later = code.either(bits, later) if later else bits
    return later


def _substituted(
    code: StraightLine,
    matrix: Rows,
    inverses: Sequence[str],
    sides: Rows,
    lower: bool,
    transposed: bool = False,
) -> None:
    """Solve a triangular system in place; without inverses, for a diagonal of ones."""
    order = range(len(matrix)) if lower else reversed(range(len(matrix)))
    done = list[int]()
    for i in order:
        for j in range(len(sides[i])):
            rest = sides[i][j]
            for k in done:
                rest = code.taken(matrix[k][i] if transposed else matrix[i][k], sides[k][j], rest)
            sides[i][j] = code.product(rest, inverses[i]) if inverses else rest
        done.append(i)


def _finite(code: StraightLine, solution: Rows, *others: str) -> list[Rows]:
    code.require_finite([*others, *(element for row in solution for element in row)])
    return [solution]


def _solve(_system: UnrolledSystem, code: StraightLine, matrix: Rows, sides: Rows) -> list[Rows]:
    rows = [[*row, *side] for row, side in zip(matrix, sides, strict=True)]
    inverses, _ = _eliminated(code, rows, len(rows[0]))
    solution = [row[len(rows) :] for row in rows]
    _substituted(code, rows, inverses, solution, lower=False)
    return _finite(code, solution, *(row[place] for place, row in enumerate(rows)))


def _inv(system: UnrolledSystem, code: StraightLine, matrix: Rows) -> list[Rows]:
    numbers = range(len(matrix))
    identity = [[code.constant(float(i == j)) for j in numbers] for i in numbers]
    return _solve(system, code, matrix, identity)


def _solve_semidefinite(_system: UnrolledSystem, code: StraightLine, matrix: Rows, sides: Rows) -> list[Rows]:
    factor, inverses = _cholesky_factor(code, matrix)
    return _from_factor(code, factor, inverses, sides)


def _cho_solve(_system: UnrolledSystem, code: StraightLine, factor: Rows, sides: Rows) -> list[Rows]:
    return _from_factor(code, factor, _inverse_diagonal(code, factor), sides)


def _packed_solve(system: UnrolledSystem, code: StraightLine, packed: Rows, sides: Rows) -> list[Rows]:
    """By the factors that LAPACK's getrf gives, column by column, and the rows that it exchanged."""
    *columns, pivots = packed
    factors = [list(row) for row in zip(*columns, strict=True)]
    inverses = _inverse_diagonal(code, factors)
    if system.name == "packed_solve":
        _exchanged(code, pivots, sides, range(len(factors)))
        _substituted(code, factors, (), sides, lower=True)
        _substituted(code, factors, inverses, sides, lower=False)
    else:
        _substituted(code, factors, inverses, sides, lower=True, transposed=True)
        _substituted(code, factors, (), sides, lower=False, transposed=True)
        _exchanged(code, pivots, sides, reversed(range(len(factors))))
    return _finite(code, sides)


def _exchanged(code: StraightLine, pivots: Sequence[str], rows: Rows, order: Iterable[int]) -> None:
    """Exchange each row, in order, with the one that its pivot names from 1 on: itself or a later one."""
    for k in order:
        for other in range(k + 1, len(rows)):
            bits = code.compare(pivots[k], "oeq", code.constant(float(other + 1)))
            pairs = list(zip(rows[k], rows[other], strict=True))
            rows[k] = [code.chosen(bits, below, own) for own, below in pairs]
            rows[other] = [code.chosen(bits, own, below) for own, below in pairs]


def _from_factor(code: StraightLine, factor: Rows, inverses: Sequence[str], sides: Rows) -> list[Rows]:
    _substituted(code, factor, inverses, sides, lower=True)
    _substituted(code, factor, inverses, sides, lower=False, transposed=True)
    return _finite(code, sides)


def _inverse_diagonal(code: StraightLine, matrix: Rows) -> list[str]:
    return [code.quotient(code.constant(1.0), row[place]) for place, row in enumerate(matrix)]


def _solve_triangular(system: UnrolledSystem, code: StraightLine, matrix: Rows, sides: Rows) -> list[Rows]:
    inverses = [] if system.unit_diagonal else _inverse_diagonal(code, matrix)
    _substituted(code, matrix, inverses, sides, system.lower)
    return _finite(code, sides)


def _slogdet(system: UnrolledSystem, code: StraightLine, matrix: Rows) -> list[Rows]:
    """As NumPy has it: a sum of logarithms, whose exponential is the determinant."""
    _, exchanges = _eliminated(code, matrix, len(matrix))
    one = code.constant(1.0)
    sign, logarithm = one, code.constant(0.0)
    for k, row in enumerate(matrix):
        sign = code.product(sign, code.signed(one, row[k]))
        logarithm = code.sum(logarithm, code.logarithm(code.size(row[k])))
    for bits in exchanges:
        sign = code.chosen(bits, code.product(sign, code.constant(-1.0)), sign)
    code.require_finite([logarithm])
    if system.name == "det":
        return [[[code.product(sign, code.exponential(logarithm))]]]
    return [[[sign]], [[logarithm]]]


_WRITERS: Mapping[SystemName, Callable[..., list[Rows]]] = {
    "cholesky": _cholesky,
    "solve": _solve,
    "solve_semidefinite": _solve_semidefinite,
    "solve_triangular": _solve_triangular,
    "cho_solve": _cho_solve,
    "packed_solve": _packed_solve,
    "packed_solve_transposed": _packed_solve,
    "inv": _inv,
    "slogdet": _slogdet,
    "det": _slogdet,
}
