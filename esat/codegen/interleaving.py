"""Loops that compute much, several vectors at a time.

The vectors that a loop computes do not depend on one another, but what is done with each is a long chain of
steps. Processors work on the next vector meanwhile, as far ahead as instructions fit into their schedulers,
and an exponential is longer than that. LLVM lets vectors take turns only in short loops and in sums. So loops
that call functions, and others that do many operations, are given a number of vectors that take turns, as
metadata. On a Zen 3 server, float32 ``tanh(x) * y + exp(-z * z / 2)`` takes 0.75 to 0.8 of the time, sigmoid
0.7 to 0.8, Black-Scholes 0.81 to 0.87, twenty steps of ``z**2 + c`` 0.81 to 0.89.

Where vectors have 64 bytes, LLVM's choice remains: that was not measured, and each instruction keeps a
processor busy for longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from llvmlite.ir.values import MDValue
from numba.core.controlflow import CFGraph

from esat.codegen.processor import vector_bytes
from esat.codegen.vector_math.formulas import Formula, formula_called

_FLOW: Any = CFGraph  # which numba does not annotate
_VECTOR_BYTES = 32
_FEW_FUNCTIONS = 2
"""Calls in a loop up to which four vectors take turns; with more, their values exceed the registers."""
_MANY_OPERATIONS = 30
"""Operations of floats from which two vectors take turns; LLVM decides about loops of fewer."""
_OPERATIONS = frozenset({"fadd", "fsub", "fmul", "fdiv", "fneg"})


def interleave(module: Any) -> None:
    """Say in an LLVM module, before it is optimized, how many vectors take turns in innermost loops.

    Loops around those that call functions are not to be unrolled: LLVM does not see how long they are.
    """
    for function in module.functions:
        blocks = {block.name: block for block in function.blocks}
        for loop in _loops(function.blocks):
            instructions = [one for name in loop.blocks for one in blocks[name].instructions]
            hints = hints_for(instructions) if loop.is_innermost else {}
            if not loop.is_innermost and _formulas(instructions):
                hints = {"unroll.disable": None}
            if hints:
                blocks[loop.latch].terminator.set_metadata("llvm.loop", _identity(module, hints))


def hints_for(instructions: list[Any]) -> dict[str, int | None]:
    """What LLVM is told of an innermost loop of these instructions; nothing where it is to decide.

    Functions stay calls until loops are vectorised, and several of one that follow one another would not take
    turns. So there is one of a vector that is several times as long, whose parts do.
    """
    takes_turns = vector_bytes() == _VECTOR_BYTES
    formulas = _formulas(instructions)
    operations = [one for one in instructions if one.opname in _OPERATIONS]
    is_sum = any("reassoc" in one.flags for one in operations)
    if formulas and takes_turns:
        count = 4 if len(formulas) <= _FEW_FUNCTIONS else 2
        if any(formula.is_guarded for formula in formulas):
            return {"interleave.count": count}
        lanes = _VECTOR_BYTES * 8 // max(formula.bits for formula in formulas)
        return {"vectorize.width": lanes * count, "interleave.count": 1}
    if formulas and not is_sum:
        return {"interleave.count": 1}  # what LLVM would choose, did it see how long they are
    if takes_turns and len(operations) >= _MANY_OPERATIONS and not is_sum:
        return {"interleave.count": 2}
    return {}


def _formulas(instructions: list[Any]) -> list[Formula]:
    """The elementary functions that are called."""
    called = [formula_called(one.callee.name) for one in instructions if one.opname == "call"]
    return [one for one in called if one is not None]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop of a function: its last block, which jumps back, and all its blocks, by name."""

    latch: str
    blocks: frozenset[str]
    is_innermost: bool


def _loops(blocks: Sequence[Any]) -> list[_Loop]:
    """The loops of a function that jump back from one place."""
    if not blocks:
        return []
    flow = _FLOW()
    for block in blocks:
        flow.add_node(block.name)
    for block in blocks:
        for target in block.terminator.operands:
            if isinstance(target, ir.Block):
                flow.add_edge(block.name, target.name)
    flow.set_entry_point(blocks[0].name)
    flow.process()
    found: list[_Loop] = []
    for header, loop in flow.loops().items():
        body = frozenset(loop.body)
        latches = [name for name, _ in flow.predecessors(header) if name in body]
        if len(latches) == 1:
            found.append(_Loop(latches[0], body, not flow.loops().keys() & (body - {header})))
    return found


def _identity(module: Any, hints: Mapping[str, int | None]) -> Any:
    """Metadata of one loop, whose first operand is itself, so that it equals that of no other loop."""
    told = []
    for hint, value in hints.items():
        name = ir.MetaDataString(module, f"llvm.loop.{hint}")
        told.append(
            module.add_metadata([name] if value is None else [name, ir.Constant(ir.IntType(32), value)])
        )
    loop: Any = MDValue(module, (), str(len(module.metadata)))
    loop.operands = (loop, *told)
    return loop
