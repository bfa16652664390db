"""Loops of numbers as machine code of their own: what a step hands on stays in registers.

Entering a kernel for each step takes longer than a few operations do. Those here are rounded as NumPy rounds
them, one by one: results are the same in all modes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from esat.base.records import record
from esat.codegen.ground.machine_text import HostFunction
from esat.graph import Constant, TensorType, Variable
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.loops.record import Scan

_CODE: Mapping[str, str] = {
    "add": "fadd double {0}, {1}",
    "sub": "fsub double {0}, {1}",
    "mul": "fmul double {0}, {1}",
    "div": "fdiv double {0}, {1}",
    "neg": "fneg double {0}",
    "sqr": "fmul double {0}, {0}",
    "reciprocal": "fdiv double 1.0, {0}",
    "sqrt": "call double @llvm.sqrt.f64(double {0})",
    "abs": "call double @llvm.fabs.f64(double {0})",
}
"""What an op is in LLVM's text."""
MOST_OPERATIONS = 64
"""Operations of a step, which have as many registers at most."""


@record(frozen=True)
class ScalarLoop(HostFunction):
    """A function of pointers to first carries, sequences, invariants, traces and last carries, of the number
    of steps, and of strides of sequences and traces in bytes.

    Attributes
    ----------
    carries, sequences, invariants
        How many there are.
    lines
        Name of an op, and its operands: numbers from 0 on are those of carries, elements and invariants, in
        this order, and of the results of lines. Of a constant, its bits.
    outputs
        The numbers of the next carries, and of what traces keep.
    """

    carries: int
    sequences: int
    invariants: int
    lines: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[int, ...]

    def text(self) -> str:
        kept = len(self.outputs) - self.carries
        counts = {"c": self.carries, "s": self.sequences, "v": self.invariants, "k": kept, "l": self.carries}
        pointers = [f"ptr %{letter}{place}" for letter, count in counts.items() for place in range(count)]
        strides = [f"i64 %{letter}{place}_stride" for letter in "sk" for place in range(counts[letter])]
        carries, sequences, invariants = map(range, (self.carries, self.sequences, self.invariants))
        values = [f"%carry{place}" for place in carries]
        values += [f"%element{place}" for place in sequences]
        values += [f"%fixed{place}" for place in invariants]
        body = [line for place in sequences for line in _element(f"s{place}")]
        body += [f"  %element{place} = load double, ptr %s{place}_here, align 8" for place in sequences]
        for number, (name, operands) in enumerate(self.lines):
            if name == "constant":
                values.append(f"0x{operands[0]:016X}")
                continue
            values.append(f"%line{number}")
            body.append(f"  %line{number} = {_CODE[name].format(*(values[one] for one in operands))}")
        found = [values[number] for number in self.outputs]
        for place, value in enumerate(found[self.carries :]):
            body += [*_element(f"k{place}"), f"  store double {value}, ptr %k{place}_here, align 8"]
        ways = [
            (place, f"phi double [ %first{place}, %entry ], [ {value}, %step ]")
            for place, value in enumerate(found[: self.carries])
        ]
        lines = [
            "declare double @llvm.sqrt.f64(double)",
            "declare double @llvm.fabs.f64(double)",
            f"define void @run({', '.join([*pointers, 'i64 %steps', *strides])}) {{",
            "entry:",
            *(f"  %first{place} = load double, ptr %c{place}, align 8" for place in carries),
            *(f"  %fixed{place} = load double, ptr %v{place}, align 8" for place in invariants),
            "  %none = icmp sle i64 %steps, 0",
            "  br i1 %none, label %done, label %step",
            "step:",
            "  %place = phi i64 [ 0, %entry ], [ %next, %step ]",
            *(f"  %carry{place} = {way}" for place, way in ways),
            *body,
            "  %next = add i64 %place, 1",
            "  %ends = icmp eq i64 %next, %steps",
            "  br i1 %ends, label %done, label %step",
            "done:",
            *(f"  %last{place} = {way}" for place, way in ways),
            *(f"  store double %last{place}, ptr %l{place}, align 8" for place in carries),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)


def _element(name: str) -> list[str]:
    """Where an element is."""
    return [
        f"  %{name}_bytes = mul i64 %{name}_stride, %place",
        f"  %{name}_here = getelementptr i8, ptr %{name}, i64 %{name}_bytes",
    ]


def scalar_loop(op: Scan) -> ScalarLoop | None:
    """The code of a loop whose body computes float64 numbers by a few operations; None of others."""
    body = op.body
    numbers: dict[Variable, int] = {one: place for place, one in enumerate(body.inputs)}
    lines: list[tuple[str, tuple[int, ...]]] = []

    def number(variable: Variable) -> int:
        if isinstance(variable, Constant) and variable not in numbers:
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(variable.data)))
            lines.append(("constant", (bits,)))
            numbers[variable] = len(body.inputs) + len(lines) - 1
        return numbers[variable]

    nodes = body.toposort()
    every = [*body.inputs, *body.outputs, *(one for node in nodes for one in node.inputs)]
    if len(nodes) > MOST_OPERATIONS or not all(map(_is_number, every)):
        return None
    for node in nodes:
        if not isinstance(node.op, Elementwise) or node.op.name not in _CODE:
            return None
        operands = tuple(map(number, node.inputs))
        lines.append((node.op.name, operands))
        numbers[node.outputs[0]] = len(body.inputs) + len(lines) - 1
    outputs = tuple(map(number, body.outputs))
    invariants = len(body.inputs) - op.carries - op.sequences
    return ScalarLoop(op.carries, op.sequences, invariants, tuple(lines), outputs)


def _is_number(variable: Variable) -> bool:
    type = variable.type
    return isinstance(type, TensorType) and type.dtype == "float64" and type.ndim == 0
