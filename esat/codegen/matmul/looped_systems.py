"""Factorizations and systems of batches of matrices as loops over vectors that hold eight matrices each.

For orders at which a straight line would be too long. An element of eight matrices is one vector in memory of
the function's own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction
from esat.codegen.matmul.straight_line import StraightLine, batch_end
from esat.codegen.matmul.systems import Numbers, SmallMatrices, SystemName, compute

LANES = 8
"""SmallMatrices of a batch that are computed at once; what the processor has not is made of several."""
_VECTOR = f"<{LANES} x double>"
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
        return _Looped(self).text()


class _Looped(SmallMatrices):
    """SmallMatrices whose elements are vectors in memory, and the function's lines."""

    def __init__(self, system: LoopedSystem) -> None:
        super().__init__(StraightLine(LANES), system.order, system.width)
        self.system = system
        self.lines, self.value = self.code.lines, self.code.value
        self.block = "block"
        self._labels = 0

    def loop(
        self, start: str, stop: str, body: Callable[..., Numbers | None], *carried: tuple[str, str]
    ) -> Numbers:
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

    def added(self, number: int, index: str, sign: int = 1) -> str:
        return self.value(f"{'add' if sign > 0 else 'sub'} nsw i64 {number}, {index}")

    def load(self, i: str, j: str) -> str:
        return self.value(f"load {_VECTOR}, ptr {self._place(i, j)}")

    def store(self, i: str, j: str, value: str) -> None:
        self.lines.append(f"  store {_VECTOR} {value}, ptr {self._place(i, j)}")

    def recall(self, name: str, index: str = "0") -> str:
        return self.value(f"load {_VECTOR}, ptr {self._kept(name, index)}")

    def keep(self, name: str, value: str, index: str = "0") -> None:
        self.lines.append(f"  store {_VECTOR} {value}, ptr {self._kept(name, index)}")

    def spread(self, index: str) -> str:
        places = self.code.places
        one = self.value(f"insertelement {places} poison, i64 {index}, i64 0")
        return self.value(f"shufflevector {places} {one}, {places} poison, <{LANES} x i32> zeroinitializer")

    def stop_if_none(self, bits: str, first: str) -> str:
        found = self.value(f"call i1 @llvm.vector.reduce.or.v{LANES}i1({self.code.bits} {bits})")
        return self.value(f"select i1 {found}, i64 {self.columns}, i64 {first}")

    def _place(self, i: str, j: str) -> str:
        row = self.value(f"mul i64 {i}, {self.width}")
        return self.value(f"getelementptr {_VECTOR}, ptr %room, i64 {self.value(f'add i64 {row}, {j}')}")

    def _kept(self, name: str, index: str) -> str:
        return (
            f"%{name}" if index == "0" else self.value(f"getelementptr {_VECTOR}, ptr %{name}, i64 {index}")
        )

    def move(self, number: int, bounds: tuple[int, int], rows: int, loads: bool) -> None:
        """Columns of an operand from memory, or of a result to it."""
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
                vector = self._place(i, self.added(bounds[0], j))
                inside = self.value(f"getelementptr double, ptr {vector}, i64 {lane}")
                source, target = (outside, inside) if loads else (inside, outside)
                value = self.value(f"load {kind if loads else 'double'}, ptr {source}")
                if kind == "float":
                    change = "fpext float" if loads else "fptrunc double"
                    value = self.value(f"{change} {value} to {'double' if loads else 'float'}")
                self.lines.append(f"  store {'double' if loads else kind} {value}, ptr {target}")

            columns = str(bounds[1] - bounds[0])
            self.loop("0", str(rows), lambda i: self.loop("0", columns, partial(element, i)) or None)

        self.loop("0", str(LANES), lane)

    def identity(self) -> None:
        """Sides that make the solution the inverse."""

        def row(i: str) -> None:
            def element(j: str) -> None:
                same = self.value(f"icmp eq i64 {i}, {j}")
                numbers = [f"{_VECTOR} {self.code.constant(number)}" for number in (1.0, 0.0)]
                self.store(
                    i, self.added(self.order, j), self.value(f"select i1 {same}, {', '.join(numbers)}")
                )

            self.loop("0", self.rows, element)

        self.loop("0", self.rows, row)

    def text(self) -> str:
        """The module."""
        system, count = self.system, len(self.system.strides)
        self.keep("total", self.code.constant(0.0))
        self.keep("sign", self.code.constant(1.0))
        self.move(0, (0, self.order), self.order, loads=True)
        if system.columns:
            self.move(1, (self.order, self.width), self.order, loads=True)
        elif system.name == "inv":
            self.identity()
        results = compute(self, system.name, system.lower, system.unit_diagonal)
        every = f"call i1 @llvm.vector.reduce.and.v{LANES}i1({self.code.bits} {self.is_right()})"
        self.lines += [f"  br i1 {self.value(every)}, label %store, label %refused", "store:"]
        self.block = "store"
        for place, bounds in enumerate(results, count - len(results)):
            self.move(place, bounds, 1 if system.name in ("slogdet", "det") else self.order, loads=False)
        pointers = ", ".join(f"ptr %first{place}" for place in range(count))
        steps = ", ".join(f"i64 %step{place}" for place in range(count))
        head = [
            f"define i32 @run({pointers}, i64 %count, {steps}) {{",
            "entry:",
            f"  %room = alloca {_VECTOR}, i64 {self.order * self.width}, align 64",
            f"  %inverse = alloca {_VECTOR}, i64 {self.order}, align 64",
            f"  %total = alloca {_VECTOR}, align 64",
            f"  %sign = alloca {_VECTOR}, align 64",
            f"  %last = sub i64 %count, {LANES}",
            "  br label %block",
            "block:",
            "  %start = phi i64 [ 0, %entry ], [ %next, %fine ]",
        ]
        tail = ["  br label %fine", "fine:", *batch_end(LANES), *self.code.declarations()]
        tail.append(f"declare i1 @llvm.vector.reduce.or.v{LANES}i1({self.code.bits})")
        return "\n".join([*head, *self.lines, *tail])
