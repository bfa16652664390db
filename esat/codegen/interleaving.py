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

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir.values import MDValue
from numba.core.controlflow import CFGraph

from esat.codegen.processor import vector_bytes

_FLOW: Any = CFGraph  # which numba does not annotate
_VECTOR_BYTES = 32
_FEW_FUNCTIONS = 2
"""Calls in a loop up to which four vectors take turns; with more, their values exceed the registers."""
_MANY_OPERATIONS = 30
"""Operations of floats from which two vectors take turns; LLVM decides about loops of fewer."""
_OPERATIONS = frozenset({"fadd", "fsub", "fmul", "fdiv", "fneg"})
_FUNCTION = "esat_"
"""What names of elementary functions begin with."""


def interleave(module: Any) -> None:
    """Say in an LLVM module, before it is optimized, how many vectors take turns in innermost loops."""
    if vector_bytes() != _VECTOR_BYTES:
        return
    for function in module.functions:
        blocks = {block.name: block for block in function.blocks}
        for latch, body in _innermost_loops(function.blocks):
            count = vectors_in_turns([one for name in body for one in blocks[name].instructions])
            if count > 1:
                blocks[latch].terminator.set_metadata("llvm.loop", _identity(module, count))


def vectors_in_turns(instructions: list[Any]) -> int:
    """How many vectors take turns in a loop of these instructions; 1 where LLVM is to decide."""
    called = [one.callee.name for one in instructions if one.opname == "call"]
    functions = sum(name.startswith(_FUNCTION) for name in called)
    operations = sum(one.opname in _OPERATIONS for one in instructions)
    if functions:
        return 4 if functions <= _FEW_FUNCTIONS else 2
    is_sum = any("reassoc" in one.flags for one in instructions if one.opname in _OPERATIONS)
    return 2 if operations >= _MANY_OPERATIONS and not is_sum else 1


def _innermost_loops(blocks: Sequence[Any]) -> list[tuple[str, set[str]]]:
    """The innermost loops of a function: each one's last block, which jumps back, and all its blocks."""
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
    found: list[tuple[str, set[str]]] = []
    for header, loop in flow.loops().items():
        body = set(loop.body)
        latches = [name for name, _ in flow.predecessors(header) if name in body]
        if len(latches) == 1 and not flow.loops().keys() & (body - {header}):
            found.append((latches[0], body))
    return found


def _identity(module: Any, count: int) -> Any:
    """Metadata of one loop, whose first operand is itself, so that it equals that of no other loop."""
    name = ir.MetaDataString(module, "llvm.loop.interleave.count")
    hint = module.add_metadata([name, ir.Constant(ir.IntType(32), count)])
    loop: Any = MDValue(module, (), str(len(module.metadata)))
    loop.operands = (loop, hint)
    return loop
