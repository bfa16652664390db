"""Straight-line code for matrices of a few rows: the elements of one matrix, or of several, one a lane.

Every element is a value of LLVM's text by itself, so that a factorization has neither loops nor addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from struct import pack, unpack
from typing import TypeAlias

from esat.base.records import record

_KINDS = {"float32": "float", "float64": "double"}

Rows: TypeAlias = list[list[str]]
"""The elements of a matrix as names of values."""


@record(frozen=True)
class StoredMatrix:
    """How a matrix lies in memory: rows, columns, and the strides of both in elements.

    Attributes
    ----------
    part
        Which elements are read: up to the diagonal, from it on, or all.
    """

    rows: int
    columns: int
    strides: tuple[int, int]
    part: str = "all"

    def places(self) -> list[tuple[int, int]]:
        """Rows and columns of the elements that are read."""
        kept = {"lower": lambda i, j: j <= i, "upper": lambda i, j: j >= i}.get(self.part)
        every = [(i, j) for i in range(self.rows) for j in range(self.columns)]
        return every if kept is None else [place for place in every if kept(*place)]


class StraightLine:
    """Arithmetic in float64 on numbers, or on as many lanes at once."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.kind = "double" if lanes == 1 else f"<{lanes} x double>"
        self.bits = "i1" if lanes == 1 else f"<{lanes} x i1>"
        self.places = "i64" if lanes == 1 else f"<{lanes} x i64>"
        self.lines: list[str] = []
        self.conditions: list[str] = []
        """What must be true of every lane, or the results are not used."""

    def value(self, text: str) -> str:
        """A new value."""
        name = f"%value{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, number: float) -> str:
        """The same number in every lane."""
        text = f"{number:.1f}" if isfinite(number) else f"0x{unpack('<Q', pack('<d', number))[0]:016X}"
        return text if self.lanes == 1 else f"<{', '.join([f'double {text}'] * self.lanes)}>"

    def product(self, left: str, right: str) -> str:
        """``left * right``."""
        return self.value(f"fmul {self.kind} {left}, {right}")

    def quotient(self, left: str, right: str) -> str:
        """``left / right``."""
        return self.value(f"fdiv {self.kind} {left}, {right}")

    def added(self, left: str, right: str, to: str) -> str:
        """``left * right + to``, rounded once where the processor can."""
        return self._call("fmuladd", left, right, to)

    def taken(self, left: str, right: str, away_from: str) -> str:
        """``away_from - left * right``."""
        return self.added(self.value(f"fneg {self.kind} {left}"), right, away_from)

    def sum(self, left: str, right: str) -> str:
        """``left + right``."""
        return self.value(f"fadd {self.kind} {left}, {right}")

    def root(self, number: str) -> str:
        """The square root."""
        return self._call("sqrt", number)

    def size(self, number: str) -> str:
        """The absolute value."""
        return self._call("fabs", number)

    def signed(self, size: str, sign: str) -> str:
        """``size`` with the sign of ``sign``."""
        return self._call("copysign", size, sign)

    def logarithm(self, number: str) -> str:
        """The natural logarithm."""
        return self._call("log", number)

    def exponential(self, number: str) -> str:
        """The exponential."""
        return self._call("exp", number)

    def compare(self, left: str, relation: str, right: str) -> str:
        """A bit a lane: ``left > right`` for ``ogt``."""
        return self.value(f"fcmp {relation} {self.kind} {left}, {right}")

    def chosen(self, bits: str, then: str, otherwise: str, kind: str | None = None) -> str:
        """``then`` where bits are set; numbers, or what is of another type."""
        if then == otherwise:
            return then
        kind = kind or self.kind
        return self.value(f"select {self.bits} {bits}, {kind} {then}, {kind} {otherwise}")

    def require(self, bits: str) -> None:
        """Results are used only where these bits are set."""
        self.conditions.append(bits)

    def holds(self) -> str:
        """One bit: whether all that is required holds, of every lane."""
        every = self.conditions[0]
        for bits in self.conditions[1:]:
            every = self.value(f"and {self.bits} {every}, {bits}")
        if self.lanes == 1:
            return every
        return self.value(f"call i1 @llvm.vector.reduce.and.v{self.lanes}i1({self.bits} {every})")

    def _call(self, name: str, *operands: str) -> str:
        typed = ", ".join(f"{self.kind} {operand}" for operand in operands)
        mangled = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
        return self.value(f"call {self.kind} @llvm.{name}.{mangled}({typed})")

    def declarations(self) -> list[str]:
        """Of the functions that the lines call."""
        text, found = "\n".join(self.lines), []
        mangled = "f64" if self.lanes == 1 else f"v{self.lanes}f64"
        counts = {"fmuladd": 3, "copysign": 2, "sqrt": 1, "fabs": 1, "log": 1, "exp": 1}
        for name, count in counts.items():
            if f"@llvm.{name}.{mangled}(" in text:
                parameters = ", ".join([self.kind] * count)
                found.append(f"declare {self.kind} @llvm.{name}.{mangled}({parameters})")
        if self.lanes > 1:
            found.append(f"declare i1 @llvm.vector.reduce.and.v{self.lanes}i1({self.bits})")
        return found


def batch_function(
    dtype: str,
    lanes: int,
    operands: Sequence[StoredMatrix],
    results: Sequence[StoredMatrix],
    write: Callable[..., Sequence[Rows]],
) -> str:
    """A module with a function ``run`` that computes the results of each matrix of a batch.

    It takes pointers to the first elements of operands and results; the number of matrices, at least as many
    as there are lanes; and the bytes from one matrix to the next, of each operand and result. It returns 0,
    or 1 where what the code requires does not hold: some results may have been written then. Results share
    no memory with operands.

    Parameters
    ----------
    write
        Called with the code and with the elements of each operand, those that are not read being empty names:
        writes a straight line, and gives the elements of each result.
    """
    code = StraightLine(lanes)
    read = [_named(place, one) for place, one in enumerate(operands)]
    found = write(code, *([row[:] for row in rows] for rows in read))
    holds = code.holds()
    count, kind = len(operands) + len(results), _KINDS[dtype]
    pointers = ", ".join(f"ptr %first{place}" for place in range(count))
    steps = ", ".join(f"i64 %step{place}" for place in range(count))
    move = _directly if lanes == 1 else _by_lanes
    lines = [f"define i32 @run({pointers}, i64 %count, {steps}) {{", "entry:"]
    if lanes > 1:
        for place, one in enumerate([*operands, *results]):
            lines.append(f"  %room{place} = alloca double, i64 {one.rows * one.columns * lanes}, align 64")
    lines += [
        f"  %last = sub i64 %count, {lanes}",
        "  br label %block",
        "block:",
        "  %start = phi i64 [ 0, %entry ], [ %next, %after ]",
        *move(kind, lanes, [*enumerate(operands)], read, loads=True),
        *code.lines,
        f"  br i1 {holds}, label %fine, label %refused",
        "fine:",
        *move(kind, lanes, [*enumerate(results, len(operands))], found, loads=False),
        "  br label %after",
        "after:",
        *batch_end(lanes),
        *code.declarations(),
    ]
    return "\n".join(lines)


def batch_end(lanes: int) -> list[str]:
    """The end of a function over a batch, behind a block for the matrices from ``%start`` on."""
    return [
        f"  %following = add nuw i64 %start, {lanes}",
        # The last lanes have the last matrices, some of them for the second time.
        "  %beyond = icmp ugt i64 %following, %last",
        "  %next = select i1 %beyond, i64 %last, i64 %following",
        "  %ends = icmp uge i64 %following, %count",
        "  br i1 %ends, label %done, label %block",
        "done:",
        "  ret i32 0",
        "refused:",
        "  ret i32 1",
        "}",
    ]


def _named(place: int, matrix: StoredMatrix) -> Rows:
    """Names for the elements of an operand."""
    read = set(matrix.places())
    return [
        [f"%x{place}_{i}_{j}" if (i, j) in read else "" for j in range(matrix.columns)]
        for i in range(matrix.rows)
    ]


def _matrix_pointer(place: int, name: str, number: str) -> Iterator[str]:
    yield f"  %{name}_bytes = mul i64 {number}, %step{place}"
    yield f"  %{name} = getelementptr i8, ptr %first{place}, i64 %{name}_bytes"


def _element(
    kind: str, matrix: StoredMatrix, pointer: str, at: tuple[int, int], value: str, loads: bool
) -> Iterator[str]:
    """A number of float64 from memory or to it."""
    name, align = f"{pointer}_{at[0]}_{at[1]}", 4 if kind == "float" else 8
    place = at[0] * matrix.strides[0] + at[1] * matrix.strides[1]
    yield f"  %{name} = getelementptr {kind}, ptr %{pointer}, i64 {place}"
    if kind == "double":
        access = f"{value} = load double" if loads else f"store double {value}"
        yield f"  {access}, ptr %{name}, align {align}"
    elif loads:
        yield f"  %{name}_single = load float, ptr %{name}, align {align}"
        yield f"  {value} = fpext float %{name}_single to double"
    else:
        yield f"  %{name}_single = fptrunc double {value} to float"
        yield f"  store float %{name}_single, ptr %{name}, align {align}"


def _directly(
    kind: str, lanes: int, matrices: Sequence[tuple[int, StoredMatrix]], values: Sequence[Rows], loads: bool
) -> Iterator[str]:
    """Elements of the matrix of this number."""
    for (place, matrix), rows in zip(matrices, values, strict=True):
        yield from _matrix_pointer(place, f"p{place}", "%start")
        for i, j in matrix.places():
            yield from _element(kind, matrix, f"p{place}", (i, j), rows[i][j], loads)


def _by_lanes(
    kind: str, lanes: int, matrices: Sequence[tuple[int, StoredMatrix]], values: Sequence[Rows], loads: bool
) -> Iterator[str]:
    """Elements of as many matrices, by way of memory in which lanes lie side by side."""
    way, before = ("in", "block") if loads else ("out", "fine")
    vectors = [*_vectors(lanes, matrices, values, loads)]
    if not loads:
        yield from vectors
    yield f"  br label %{way}"
    yield f"{way}:"
    yield f"  %{way}_lane = phi i64 [ 0, %{before} ], [ %{way}_next, %{way} ]"
    yield f"  %{way}_number = add i64 %start, %{way}_lane"
    for place, matrix in matrices:
        yield from _matrix_pointer(place, f"p{place}", f"%{way}_number")
        yield f"  %lane{place} = getelementptr double, ptr %room{place}, i64 %{way}_lane"
        for i, j in matrix.places():
            slot, value = f"%lane{place}_{i}_{j}", f"%number{place}_{i}_{j}"
            first = (i * matrix.columns + j) * lanes
            beside = f"  {slot} = getelementptr double, ptr %lane{place}, i64 {first}"
            element = _element(kind, matrix, f"p{place}", (i, j), value, loads)
            if loads:
                yield from (*element, beside, f"  store double {value}, ptr {slot}")
            else:
                yield from (beside, f"  {value} = load double, ptr {slot}", *element)
    yield f"  %{way}_next = add nuw i64 %{way}_lane, 1"
    yield f"  %{way}_ends = icmp eq i64 %{way}_next, {lanes}"
    yield f"  br i1 %{way}_ends, label %{way}_done, label %{way}"
    yield f"{way}_done:"
    if loads:
        yield from vectors


def _vectors(
    lanes: int, matrices: Sequence[tuple[int, StoredMatrix]], values: Sequence[Rows], loads: bool
) -> Iterator[str]:
    kind = f"<{lanes} x double>"
    for (place, matrix), rows in zip(matrices, values, strict=True):
        for i, j in matrix.places():
            slot = f"%{'in' if loads else 'out'}{place}_{i}_{j}"
            yield f"  {slot} = getelementptr double, ptr %room{place}, i64 {(i * matrix.columns + j) * lanes}"
            access = f"{rows[i][j]} = load {kind}" if loads else f"store {kind} {rows[i][j]}"
            yield f"  {access}, ptr {slot}, align 64"
