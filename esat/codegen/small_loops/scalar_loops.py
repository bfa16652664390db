"""Loops as machine code of their own: numbers that a step hands on stay in registers, and elements of tables
are read and written where they are.

Entering a kernel for each step takes longer than a few operations do. Those here are rounded as NumPy rounds
them, one by one, but for products of matrices, whose sums have an order of their own everywhere.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

from esat.base.records import record
from esat.base.storage import digest_of_sources
from esat.codegen.ground.builtin_function import INTERRUPTED
from esat.codegen.ground.machine_text import HostFunction, compiled
from esat.codegen.small_loops.loop_lines import BETWEEN_SIGNALS, LoopLines, is_table
from esat.codegen.small_loops.number_lines import KINDS, NoCodeError, cost_of, declarations
from esat.codegen.small_loops.stored_tables import Root, StoredTable, contiguous
from esat.codegen.small_loops.value_lines import BYTES, affine
from esat.ops.loops.record import LoopOp, Scan, While

_FORMULA = re.compile(r"@esat_(\w+)_float(32|64)\(")
_ASKS = (
    "define i32 @asks() noinline cold {",
    "  %state = call i32 @PyGILState_Ensure()",
    "  %found = call i32 @PyErr_CheckSignals()",
    "  call void @PyGILState_Release(i32 %state)",
    "  ret i32 %found",
    "}",
)
"""Handlers of signals run, whether or not this thread has the interpreter's lock; not 0 where one raises."""


@record(frozen=True)
class ScalarLoop(HostFunction):
    """The function of a :class:`PrintedLoop`.

    It returns 0; 1 where results are not to be used, as a step has a singular matrix, or an index is out of
    bounds; and :data:`INTERRUPTED` where a handler of a signal has raised an error.

    Attributes
    ----------
    lines
        LLVM's text.
    """

    lines: tuple[str, ...]

    @property
    def formulas(self) -> list[tuple[str, int]]:
        """The functions of vector mathematics that a step calls, by name and bits."""
        return sorted({(name, int(bits)) for line in self.lines for name, bits in _FORMULA.findall(line)})

    def make(self) -> int:
        for name in ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release"):
            address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
            binding.add_symbol(name, int(address or 0))
        formulas = self.formulas
        if not formulas:
            return compiled(self.text(), improved=True)

        def modules() -> Iterator[Any]:
            from esat.codegen.small_loops.linked_formulas import formula_modules  # numba with it

            return formula_modules(formulas)

        return compiled(self.text(), _formula_digest(), modules, improved=True)

    def text(self) -> str:
        return "\n".join(self.lines)


@record(frozen=True, eq=False)
class LoopOperand:
    """What is known of an operand of a loop: its sizes, bytes from element to element, and perhaps itself."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: np.ndarray[Any, Any] | None = None


@record(frozen=True, eq=False)
class PrintedLoop:
    """A loop as one function of pointers and integers.

    Pointers are: to the number of steps, or to whether there is one, where ``reads_control`` says so; to what
    is ``taken`` of the operands; to results; to ``constants``; and to ``scratch``. The integers are: the
    number of steps, unless it is read, and bytes between elements of what is taken of sequences, and between
    rows of traces. Carries that are ``tables`` are expected where their last values go.

    Attributes
    ----------
    cost
        About how many lines take as long as a step of each loop.
    nodes
        How many operations the lines are of.
    """

    function: ScalarLoop
    reads_control: bool
    taken: tuple[int, ...]
    tables: tuple[int, ...]
    constants: list[np.ndarray[Any, Any]] = field(repr=False)
    scratch: list[tuple[tuple[int, ...], str]]
    cost: int
    nodes: int


def printed_loop(
    op: LoopOp, operands: Sequence[LoopOperand], rows: Sequence[tuple[int, ...]], steps: int | None
) -> PrintedLoop | None:
    """The code of a loop; None where there is none, or too much of it.

    Parameters
    ----------
    op
        The loop.
    operands
        Carries, sequences and invariants.
    rows
        The shapes of traces.
    steps
        The most steps there are; None where that is not known.
    """
    try:
        return _Printer(op, operands, rows).printed(steps)
    except NoCodeError:
        return None


class _Printer:
    def __init__(self, op: LoopOp, operands: Sequence[LoopOperand], rows: Sequence[tuple[int, ...]]) -> None:
        self.op, self.operands, self.rows = op, operands, rows
        self.lines = LoopLines()
        self.ends = op.carries, op.carries + op.sequences
        self.tables = [number for number in range(op.carries) if is_table(op.body, op.body.inputs[number])]
        self.dtypes = [one.tensor_type.dtype for one in op.body.inputs]
        if {*self.dtypes, *(one.tensor_type.dtype for one in op.body.outputs)} - KINDS.keys():
            raise NoCodeError
        self.pointers: list[str] = []
        self.integers: list[str] = []
        self.taken: list[int] = []

    def printed(self, steps: int | None) -> PrintedLoop:
        op, lines = self.op, self.lines
        reads_control = isinstance(op, While) or steps is None
        self.pointers += ["%control"] * reads_control
        self.integers += ["%steps"] * (not reads_control)
        control = "%steps"
        if reads_control:
            dtype = "bool" if isinstance(op, While) else "int64"
            control = lines.load(StoredTable(Root(dtype), 0, "%control", (), ()), [])
        given = [self._operand(number) for number in range(len(self.operands))]
        last = [self._result(f"%last{number}", number) for number in range(op.carries)]
        self.pointers += ["%count", "%further"] * isinstance(op, While)
        traces = [self._trace(number, shape) for number, shape in enumerate(self.rows)]
        for number in self.tables:
            given[number] = last[number]
        if isinstance(op, Scan) and steps is None:
            for one in given[slice(*self.ends)]:
                lines.require(lines.code.value(f"icmp sle i64 {control}, {one.shape[0]}"))
        found = lines.loop(op, control, given, traces, steps)
        for number, value in enumerate(found[: op.carries]):
            if number not in self.tables:
                lines.put(last[number], value)
        if isinstance(op, While):
            for name, dtype, value in zip(("%count", "%further"), ("int64", "bool"), found[-2:], strict=True):
                lines.store(StoredTable(Root(dtype), 0, name, (), ()), [], value.item())
        self.pointers += [f"%constant{number}" for number in range(len(lines.constants))]
        self.pointers += [f"%scratch{number}" for number in range(len(lines.scratch))]
        return PrintedLoop(
            ScalarLoop(tuple(self._text())),
            reads_control,
            tuple(self.taken),
            tuple(self.tables),
            lines.constants,
            lines.scratch,
            sum(map(cost_of, lines.code.lines)),
            lines.steps,
        )

    def _operand(self, number: int) -> Any:
        one, dtype = self.operands[number], self.dtypes[number]
        is_sequence = self.ends[0] <= number < self.ends[1]
        if number in self.tables:
            return None
        if one.data is not None and number >= self.ends[0]:
            found = affine(one.data)
            if found is not None:
                return found
        self.taken.append(number)
        name = f"%first{number}"
        self.pointers.append(name)
        if is_sequence:
            self.integers.append(f"{name}_stride")
            return StoredTable(Root(dtype), 0, name, one.shape, (f"{name}_stride", *one.strides[1:]))
        table = StoredTable(Root(dtype), 0, name, one.shape, one.strides)
        return table if is_table(self.op.body, self.op.body.inputs[number]) else self.lines.loaded(table)

    def _result(self, name: str, number: int) -> StoredTable:
        self.pointers.append(name)
        shape, dtype = self.operands[number].shape, self.dtypes[number]
        return StoredTable(Root(dtype), 0, name, shape, contiguous(shape, BYTES[dtype]))

    def _trace(self, number: int, shape: tuple[int, ...]) -> StoredTable:
        name, dtype = f"%trace{number}", self.op.kept[number].tensor_type.dtype
        self.pointers.append(name)
        self.integers.append(f"{name}_stride")
        return StoredTable(
            Root(dtype), 0, name, shape, (f"{name}_stride", *contiguous(shape, BYTES[dtype])[1:])
        )

    def _text(self) -> Iterator[str]:
        body, looks = self.lines.code.lines, self.lines.looks
        pointers = (f"ptr noalias {one}" for one in self.pointers)
        integers = (f"i64 {one}" for one in self.integers)
        yield from declarations([*body, *(_ASKS if looks else ())])
        yield from _ASKS if looks else ()
        yield f"define i32 @run({', '.join([*pointers, *integers])}) {{"
        yield "entry:"
        if looks:
            yield "  %left = alloca i64"
            yield f"  store i64 {BETWEEN_SIGNALS}, ptr %left"
        yield from body
        yield "  ret i32 0"
        yield from ("refused:", "  ret i32 1")
        yield from ("raised:", f"  ret i32 {INTERRUPTED}") if looks else ()
        yield "}"


@cache
def _formula_digest() -> str:
    return digest_of_sources(Path(__file__).parents[1] / "vector_math")
