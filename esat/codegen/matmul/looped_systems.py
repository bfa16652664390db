"""Factorizations and systems of batches of matrices as loops over vectors that hold eight matrices each.

The algorithms are those of :mod:`esat.codegen.matmul.unrolled_systems`, for orders at which a straight line
would be too long. An element of eight matrices is one vector in memory of the function's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.matmul.straight_line import batch_end
from esat.codegen.matmul.unrolled_systems import SystemName

LANES = 8
"""Matrices of a batch that are computed at once; what the processor has not is made of several."""
_VECTOR, _PLACES, _BITS = f"<{LANES} x double>", f"<{LANES} x i64>", f"<{LANES} x i1>"
_KINDS = {"float32": "float", "float64": "double"}


@record(frozen=True)
class LoopedSystem(HostFunction):
    """A function like that of an :class:`UnrolledSystem` of as many lanes, whose attributes it has."""

    name: SystemName
    dtype: str
    order: int
    columns: int
    strides: tuple[tuple[int, int], ...]
    lower: bool = True
    unit_diagonal: bool = False

    @property
    def width(self) -> int:
        """Elements of a row: of the matrix, and of the sides beside it."""
        return self.order + (self.order if self.name == "inv" else self.columns)

    @property
    def room(self) -> int:
        """Bytes of the elements."""
        return 8 * LANES * self.order * self.width

    def text(self) -> str:
        return _Text(self).text()


Numbers = tuple[str, ...]


class _Text:
    """The function's lines. Indices are integers of LLVM's text or names of them; elements are vectors."""

    def __init__(self, system: LoopedSystem) -> None:
        self.system = system
        self.order, self.width = system.order, system.width
        self.lines: list[str] = []
        self.block = "entry"
        self._labels = 0

    def value(self, text: str) -> str:
        """A new value."""
        name = f"%value{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def loop(
        self, start: str, stop: str, body: Callable[..., Numbers | None], *carried: tuple[str, str]
    ) -> Numbers:
        """``body(index, *values)`` for each index, which gives the next values; those after the last one.

        ``carried`` has the type and the first value of each.
        """
        self._labels += 1
        head, inside, after = (f"{part}{self._labels}" for part in ("head", "body", "after"))
        index, names = f"%index{self._labels}", [f"%carried{self._labels}_{k}" for k in range(len(carried))]
        self.lines.append(f"  br label %{head}")
        place = len(self.lines)
        before = self.block
        self.lines.append("")
        more = self.value(f"icmp slt i64 {index}, {stop}")
        self.lines += [f"  br i1 {more}, label %{inside}, label %{after}", f"{inside}:"]
        self.block = inside
        following = body(index, *names) or ()
        step = self.value(f"add nsw i64 {index}, 1")
        self.lines.append(f"  br label %{head}")
        begun = [f"{head}:", f"  {index} = phi i64 [ {start}, %{before} ], [ {step}, %{self.block} ]"]
        for name, (kind, first), last in zip(names, carried, following, strict=True):
            begun.append(f"  {name} = phi {kind} [ {first}, %{before} ], [ {last}, %{self.block} ]")
        self.lines[place] = "\n".join(begun)
        self.lines.append(f"{after}:")
        self.block = after
        return tuple(names)

    # ---- elements

    def plus(self, index: str, number: int) -> str:
        return self.value(f"add nsw i64 {index}, {number}")

    def place(self, i: str, j: str) -> str:
        row = self.value(f"mul i64 {i}, {self.width}")
        return self.value(f"getelementptr {_VECTOR}, ptr %room, i64 {self.value(f'add i64 {row}, {j}')}")

    def load(self, i: str, j: str) -> str:
        return self.value(f"load {_VECTOR}, ptr {self.place(i, j)}")

    def store(self, i: str, j: str, value: str) -> None:
        self.lines.append(f"  store {_VECTOR} {value}, ptr {self.place(i, j)}")

    def inverse(self, k: str) -> str:
        place = self.value(f"getelementptr {_VECTOR}, ptr %inverses, i64 {k}")
        return self.value(f"load {_VECTOR}, ptr {place}")

    def invert(self, k: str, value: str) -> str:
        place = self.value(f"getelementptr {_VECTOR}, ptr %inverses, i64 {k}")
        found = self.value(f"fdiv {_VECTOR} {_splat('1.0')}, {value}")
        self.lines.append(f"  store {_VECTOR} {found}, ptr {place}")
        return found

    def times(self, left: str, right: str) -> str:
        return self.value(f"fmul {_VECTOR} {left}, {right}")

    def taken(self, left: str, right: str, away_from: str) -> str:
        return self.call("fmuladd", self.value(f"fneg {_VECTOR} {left}"), right, away_from)

    def call(self, name: str, *operands: str) -> str:
        typed = ", ".join(f"{_VECTOR} {one}" for one in operands)
        return self.value(f"call {_VECTOR} @llvm.{name}.v{LANES}f64({typed})")

    def chosen(self, bits: str, then: str, otherwise: str, kind: str = _VECTOR) -> str:
        return self.value(f"select {_BITS} {bits}, {kind} {then}, {kind} {otherwise}")

    def spread(self, index: str) -> str:
        one = self.value(f"insertelement {_PLACES} poison, i64 {index}, i64 0")
        return self.value(f"shufflevector {_PLACES} {one}, {_PLACES} poison, <{LANES} x i32> zeroinitializer")

    def require_finite(self, value: str) -> None:
        """Results are used only where all such numbers are finite."""
        before = self.value(f"load {_VECTOR}, ptr %total")
        total = self.call("fmuladd", value, _splat("0.0"), before)
        self.lines.append(f"  store {_VECTOR} {total}, ptr %total")

    # ---- algorithms

    def dot(
        self, start: str, stop: str, left: Callable[[str], str], right: Callable[[str], str], rest: str
    ) -> str:
        """``rest`` without the products of the elements at these indices."""

        def one(k: str, value: str) -> Numbers:
            return (self.taken(left(k), right(k), value),)

        return self.loop(start, stop, one, (_VECTOR, rest))[0]

    def cholesky(self) -> None:
        def row(i: str) -> None:
            def element(j: str) -> None:
                rest = self.dot("0", j, partial(self.load, i), partial(self.load, j), self.load(i, j))
                self.store(i, j, self.times(rest, self.inverse(j)))

            self.loop("0", i, element)
            rest = self.dot("0", i, partial(self.load, i), partial(self.load, i), self.load(i, i))
            root = self.call("sqrt", rest)
            positive = self.value(f"fcmp ogt {_VECTOR} {root}, {_splat('0.0')}")
            self.require_finite(self.chosen(positive, root, _splat("0x7FF8000000000000")))
            self.invert(i, root)
            self.store(i, i, root)

        self.loop("0", str(self.order), row)

    def clear_upper(self) -> None:
        def row(i: str) -> None:
            zero = _splat("0.0")
            self.loop(self.plus(i, 1), str(self.order), lambda j: self.store(i, j, zero))

        self.loop("0", str(self.order), row)

    def eliminate(self) -> None:
        """Gauss's elimination of rows of the whole width; ``%sign`` changes where rows are exchanged."""
        order, width = str(self.order), str(self.width)

        def column(k: str) -> None:
            below, first = self.plus(k, 1), self.spread(k)

            def larger(i: str, largest: str, where: str) -> Numbers:
                size = self.call("fabs", self.load(i, k))
                bits = self.value(f"fcmp ogt {_VECTOR} {size}, {largest}")
                return (self.chosen(bits, size, largest), self.chosen(bits, self.spread(i), where, _PLACES))

            pivot = (_VECTOR, self.call("fabs", self.load(k, k))), (_PLACES, first)
            _, where = self.loop(below, order, larger, *pivot)
            self.turn_sign(self.value(f"icmp ne {_PLACES} {where}, {first}"))

            def exchange(i: str) -> None:
                bits = self.value(f"icmp eq {_PLACES} {where}, {self.spread(i)}")
                any_ = self.value(f"call i1 @llvm.vector.reduce.or.v{LANES}i1({_BITS} {bits})")
                stop = self.value(f"select i1 {any_}, i64 {width}, i64 {k}")

                def element(j: str) -> None:
                    one, other = self.load(k, j), self.load(i, j)
                    self.store(k, j, self.chosen(bits, other, one))
                    self.store(i, j, self.chosen(bits, one, other))

                self.loop(k, stop, element)

            self.loop(below, order, exchange)
            self.require_finite(self.load(k, k))
            inverse = self.invert(k, self.load(k, k))

            def row(i: str) -> None:
                factor = self.times(self.load(i, k), inverse)

                def element(j: str) -> None:
                    self.store(i, j, self.taken(factor, self.load(k, j), self.load(i, j)))

                self.loop(below, width, element)

            self.loop(below, order, row)

        self.loop("0", order, column)

    def turn_sign(self, bits: str) -> None:
        sign = self.value(f"load {_VECTOR}, ptr %sign")
        turned = self.chosen(bits, self.value(f"fneg {_VECTOR} {sign}"), sign)
        self.lines.append(f"  store {_VECTOR} {turned}, ptr %sign")

    def substitute(self, lower: bool, transposed: bool = False, unit: bool = False) -> None:
        """Solve a triangular system for the sides, in place."""

        def row(count: str) -> None:
            i = count if lower else self.value(f"sub i64 {self.order - 1}, {count}")
            bounds = ("0", i) if lower else (self.plus(i, 1), str(self.order))

            def column(j: str) -> None:
                def factor(k: str) -> str:
                    return self.load(k, i) if transposed else self.load(i, k)

                rest = self.dot(*bounds, factor, lambda k: self.load(k, j), self.load(i, j))
                self.store(i, j, rest if unit else self.times(rest, self.inverse(i)))

            self.loop(str(self.order), str(self.width), column)

        self.loop("0", str(self.order), row)

    def invert_diagonal(self) -> None:
        def one(k: str) -> None:
            self.invert(k, self.load(k, k))

        self.loop("0", str(self.order), one)

    def require_finite_sides(self) -> None:
        def row(i: str) -> None:
            self.loop(str(self.order), str(self.width), lambda j: self.require_finite(self.load(i, j)))

        self.loop("0", str(self.order), row)

    def determinant(self) -> None:
        """As NumPy has it: a sum of logarithms, whose exponential is the determinant. Results are the first
        elements."""

        def one(k: str, sign: str, logarithm: str) -> Numbers:
            pivot = self.load(k, k)
            turned = self.times(sign, self.call("copysign", _splat("1.0"), pivot))
            more = self.call("log", self.call("fabs", pivot))
            return turned, self.value(f"fadd {_VECTOR} {logarithm}, {more}")

        first = self.value(f"load {_VECTOR}, ptr %sign")
        sign, logarithm = self.loop("0", str(self.order), one, (_VECTOR, first), (_VECTOR, _splat("0.0")))
        self.require_finite(logarithm)
        if self.system.name == "det":
            self.store("0", "0", self.times(sign, self.call("exp", logarithm)))
        else:
            self.store("0", "0", sign)
            self.store("0", "1", logarithm)

    def compute(self) -> None:
        """From the elements to those of the result."""
        name = self.system.name
        if name in ("cholesky", "solve_semidefinite"):
            self.cholesky()
        elif name in ("slogdet", "det"):
            self.eliminate()
            self.determinant()
            return
        elif name in ("solve", "inv"):
            self.eliminate()
            self.substitute(lower=False)
        elif name == "cho_solve" or not self.system.unit_diagonal:
            self.invert_diagonal()
        if name == "cholesky":
            self.clear_upper()
            return
        if name in ("solve_semidefinite", "cho_solve"):
            self.substitute(lower=True)
            self.substitute(lower=False, transposed=True)
        elif name == "solve_triangular":
            self.substitute(self.system.lower, unit=self.system.unit_diagonal)
        self.require_finite_sides()

    # ---- memory

    def move(self, number: int, first: int, shape: tuple[int, int], loads: bool) -> None:
        """Elements of an operand from memory, or of a result to it: columns from ``first`` on."""
        kind, strides = _KINDS[self.system.dtype], self.system.strides[number]

        def lane(lane: str) -> None:
            matrix = self.value(f"mul i64 {self.value(f'add i64 %start, {lane}')}, %step{number}")
            base = self.value(f"getelementptr i8, ptr %first{number}, i64 {matrix}")

            def element(i: str, j: str) -> None:
                down = self.value(f"mul i64 {i}, {strides[0]}")
                across = self.value(f"mul i64 {j}, {strides[1]}")
                outside = self.value(
                    f"getelementptr {kind}, ptr {base}, i64 {self.value(f'add i64 {down}, {across}')}"
                )
                vector = self.place(i, self.plus(j, first))
                inside = self.value(f"getelementptr double, ptr {vector}, i64 {lane}")
                source, target = (outside, inside) if loads else (inside, outside)
                value = self.value(f"load {kind if loads else 'double'}, ptr {source}")
                if kind == "float":
                    change = "fpext float" if loads else "fptrunc double"
                    value = self.value(f"{change} {value} to {'double' if loads else 'float'}")
                self.lines.append(f"  store {'double' if loads else kind} {value}, ptr {target}")

            self.loop("0", str(shape[0]), lambda i: self._row(partial(element, i), shape[1]))

        self.loop("0", str(LANES), lane)

    def _row(self, element: Callable[[str], None], columns: int) -> None:
        self.loop("0", str(columns), element)

    def identity(self) -> None:
        def row(i: str) -> None:
            def element(j: str) -> None:
                same = self.value(f"icmp eq i64 {i}, {j}")
                one = self.value(f"select i1 {same}, {_VECTOR} {_splat('1.0')}, {_VECTOR} {_splat('0.0')}")
                self.store(i, self.plus(j, self.order), one)

            self._row(element, self.order)

        self.loop("0", str(self.order), row)

    def text(self) -> str:
        """The module."""
        system, count = self.system, len(self.system.strides)
        pointers = ", ".join(f"ptr %first{place}" for place in range(count))
        steps = ", ".join(f"i64 %step{place}" for place in range(count))
        head = [
            f"define i32 @run({pointers}, i64 %count, {steps}) {{",
            "entry:",
            f"  %room = alloca {_VECTOR}, i64 {self.order * self.width}, align 64",
            f"  %inverses = alloca {_VECTOR}, i64 {self.order}, align 64",
            f"  %total = alloca {_VECTOR}, align 64",
            f"  %sign = alloca {_VECTOR}, align 64",
            f"  %last = sub i64 %count, {LANES}",
            "  br label %block",
            "block:",
            "  %start = phi i64 [ 0, %entry ], [ %next, %fine ]",
            f"  store {_VECTOR} {_splat('0.0')}, ptr %total",
            f"  store {_VECTOR} {_splat('1.0')}, ptr %sign",
        ]
        self.block = "block"
        self.move(0, 0, (self.order, self.order), loads=True)
        if system.columns:
            self.move(1, self.order, (self.order, system.columns), loads=True)
        elif system.name == "inv":
            self.identity()
        self.compute()
        total = self.value(f"load {_VECTOR}, ptr %total")
        right = self.value(f"fcmp oeq {_VECTOR} {total}, {_splat('0.0')}")
        every = self.value(f"call i1 @llvm.vector.reduce.and.v{LANES}i1({_BITS} {right})")
        self.lines += [f"  br i1 {every}, label %store, label %refused", "store:"]
        self.block = "store"
        if system.name in ("slogdet", "det"):
            for place in range(1, count):
                self.move(place, place - 1, (1, 1), loads=False)
        elif system.name == "cholesky":
            self.move(1, 0, (self.order, self.order), loads=False)
        else:
            self.move(count - 1, self.order, (self.order, self.width - self.order), loads=False)
        tail = ["  br label %fine", "fine:", *batch_end(LANES)]
        return "\n".join([*head, *self.lines, *tail, *_DECLARATIONS])


_COUNTS = {"fmuladd": 3, "sqrt": 1, "fabs": 1, "copysign": 2, "log": 1, "exp": 1}
_DECLARATIONS = [
    *(
        f"declare {_VECTOR} @llvm.{name}.v{LANES}f64({', '.join([_VECTOR] * count)})"
        for name, count in _COUNTS.items()
    ),
    *(f"declare i1 @llvm.vector.reduce.{name}.v{LANES}i1({_BITS})" for name in ("and", "or")),
]


def _splat(number: str) -> str:
    return f"<{', '.join([f'double {number}'] * LANES)}>"
