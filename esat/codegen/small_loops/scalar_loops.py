"""Loops of numbers as machine code of their own: what a step hands on stays in registers.

Entering a kernel for each step takes longer than a few operations do. Those here are rounded as NumPy rounds
them, one by one, but for products of matrices, whose sums have an order of their own everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from esat.base.records import record
from esat.base.storage import digest_of_sources
from esat.codegen.ground.machine_text import HostFunction, compiled
from esat.codegen.small_loops.number_lines import KINDS, declarations
from esat.codegen.small_loops.step_lines import StepLines
from esat.ops.loops.record import LoopOp

_FORMULA = re.compile(r"@esat_(\w+)_float(32|64)\(")
_BYTES = {"float64": 8, "float32": 4, "int64": 8, "bool": 1}


@record(frozen=True)
class ScalarLoop(HostFunction):
    """A function of pointers to first carries, sequences, invariants, traces and last carries, of the number
    of steps, and of strides of sequences and traces in bytes.

    Numbers of one carry, of an element and of an invariant follow one another. The function returns 0, or 1
    where a step has a singular matrix, or the like: results are not to be used then.

    Attributes
    ----------
    carries, sequences
        How many there are; other inputs are invariants.
    inputs, outputs, dtypes, lines, holds
        Of a step, see :class:`StepLines`.
    """

    carries: int
    sequences: int
    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    dtypes: tuple[str, ...]
    lines: tuple[str, ...]
    holds: str

    @property
    def formulas(self) -> list[tuple[str, int]]:
        """The functions of vector mathematics that a step calls, by name and bits."""
        return sorted({(name, int(bits)) for line in self.lines for name, bits in _FORMULA.findall(line)})

    def make(self) -> int:
        formulas = self.formulas
        if not formulas:
            return compiled(self.text())

        def modules() -> Iterator[Any]:
            from esat.codegen.small_loops.linked_formulas import formula_modules  # numba with it

            return formula_modules(formulas)

        return compiled(self.text(), _formula_digest(), modules)

    def text(self) -> str:
        count, moving = len(self.inputs), self.carries + self.sequences
        input_dtypes, output_dtypes = self.dtypes[:count], self.dtypes[count:]
        kept = range(self.carries, len(self.outputs))
        invariants = range(moving, count)
        pointers = [f"%first{place}" for place in range(count)]
        pointers += [f"%trace{place}" for place in kept]
        pointers += [f"%last{place}" for place in range(self.carries)]
        strides = [f"i64 %first{place}_stride" for place in range(self.carries, moving)]
        strides += [f"i64 %trace{place}_stride" for place in kept]
        carried = [
            (name, input_dtypes[place], f"{name}_first", value)
            for place in range(self.carries)
            for name, value in zip(self.inputs[place], self.outputs[place], strict=True)
        ]
        body: list[str] = []
        for place in range(self.carries, moving):
            body += _at(f"first{place}")
            body += _loads(f"%first{place}_here", input_dtypes[place], self.inputs[place])
        body += self.lines
        latch, refusal = "step", list[str]()
        if self.holds:
            latch = "fine"
            body += [f"  br i1 {self.holds}, label %fine, label %refused", "fine:"]
            refusal = ["refused:", "  ret i32 1"]
        for place in kept:
            body += _at(f"trace{place}")
            body += _stores(f"%trace{place}_here", output_dtypes[place], self.outputs[place])
        ways = [
            (name, f"phi {KINDS[dtype]} [ {first}, %entry ], [ {value}, %{latch} ]")
            for name, dtype, first, value in carried
        ]
        lines = [
            f"define i32 @run({', '.join(f'ptr {one}' for one in pointers)}{', ' if pointers else ''}"
            f"{', '.join(['i64 %steps', *strides])}) {{",
            "entry:",
        ]
        for place in range(self.carries):
            names = [f"{name}_first" for name in self.inputs[place]]
            lines += _loads(f"%first{place}", input_dtypes[place], names)
        for place in invariants:
            lines += _loads(f"%first{place}", input_dtypes[place], self.inputs[place])
        lines += [
            "  %none = icmp sle i64 %steps, 0",
            "  br i1 %none, label %done, label %step",
            "step:",
            f"  %place = phi i64 [ 0, %entry ], [ %next, %{latch} ]",
            *(f"  {name} = {way}" for name, way in ways),
            *body,
            "  %next = add i64 %place, 1",
            "  %ends = icmp eq i64 %next, %steps",
            "  br i1 %ends, label %done, label %step",
            "done:",
            *(f"  {name}_last = {way}" for name, way in ways),
        ]
        for place in range(self.carries):
            names = [f"{name}_last" for name in self.inputs[place]]
            lines += _stores(f"%last{place}", output_dtypes[place], names)
        lines += ["  ret i32 0", *refusal, "}"]
        return "\n".join([*declarations(lines), *lines])


@cache
def _formula_digest() -> str:
    return digest_of_sources(Path(__file__).parents[1] / "vector_math")


def _at(name: str) -> list[str]:
    """Where an element is."""
    return [
        f"  %{name}_bytes = mul i64 %{name}_stride, %place",
        f"  %{name}_here = getelementptr i8, ptr %{name}, i64 %{name}_bytes",
    ]


def _addresses(pointer: str, dtype: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(names):
        yield name, f"{pointer}_{number}_p = getelementptr i8, ptr {pointer}, i64 {number * _BYTES[dtype]}"


def _loads(pointer: str, dtype: str, names: Sequence[str]) -> Iterator[str]:
    for number, (name, address) in enumerate(_addresses(pointer, dtype, names)):
        yield f"  {address}"
        place = f"ptr {pointer}_{number}_p, align {_BYTES[dtype]}"
        if dtype == "bool":
            yield f"  {name}_byte = load i8, {place}"
            yield f"  {name} = icmp ne i8 {name}_byte, 0"
        else:
            yield f"  {name} = load {KINDS[dtype]}, {place}"


def _stores(pointer: str, dtype: str, values: Sequence[str]) -> Iterator[str]:
    for number, (value, address) in enumerate(_addresses(pointer, dtype, values)):
        yield f"  {address}"
        place = f"ptr {pointer}_{number}_p, align {_BYTES[dtype]}"
        if dtype == "bool":
            yield f"  {pointer}_{number}_byte = zext i1 {value} to i8"
            yield f"  store i8 {pointer}_{number}_byte, {place}"
        else:
            yield f"  store {KINDS[dtype]} {value}, {place}"


def scalar_loop(op: LoopOp, step: StepLines) -> ScalarLoop:
    """The code of a loop, or of one step of it, of so many numbers."""
    return ScalarLoop(
        op.carries, op.sequences, step.inputs, step.outputs, step.dtypes, step.lines, step.holds
    )
