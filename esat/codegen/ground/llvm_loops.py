"""Loops of LLVM's modules: finding them, telling LLVM what to do with them, and writing them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from llvmlite import ir
from llvmlite.ir.instructions import AllocaInstr
from llvmlite.ir.values import MDValue
from numba.core.controlflow import CFGraph

from esat.base.records import record

_FLOW: Any = CFGraph  # which numba does not annotate
_INDEX = ir.IntType(64)
Hints: TypeAlias = Mapping[str, int | None]
"""What LLVM is told of a loop: names of its metadata, with a value where it has one."""
ONE_BY_ONE: Hints = {"vectorize.width": 1, "interleave.count": 1, "unroll.disable": None}
"""For loops that are to stay as they are."""


@record(frozen=True, slots=True)
class LlvmLoop:
    """A loop of a function of LLVM: its last block, which jumps back, and what all its blocks do.

    Attributes
    ----------
    is_regular
        Whether it ends in one place, and each of its iterations sets the same variables. LLVM vectorises
        no other one; told to, it complains on the process's standard error.
    """

    latch: Any
    instructions: tuple[Any, ...]
    is_innermost: bool
    is_regular: bool


def loops_of(function: Any) -> list[LlvmLoop]:
    """The loops of a function that jump back from one place."""
    blocks = {block.name: block for block in function.blocks}
    if not blocks:
        return []
    flow = _FLOW()
    for name in blocks:
        flow.add_node(name)
    for name, block in blocks.items():
        for target in block.terminator.operands:
            if isinstance(target, ir.Block):
                flow.add_edge(name, target.name)
    flow.set_entry_point(function.entry_basic_block.name)
    flow.process()
    found: list[LlvmLoop] = []
    for header, loop in flow.loops().items():
        latches = [name for name, _ in flow.predecessors(header) if name in loop.body]
        if len(latches) == 1:
            instructions = tuple(one for name in loop.body for one in blocks[name].instructions)
            is_innermost = not flow.loops().keys() & (set(loop.body) - {header})
            always = flow.dominators()[latches[0]]
            exits = [name for name in loop.body if any(n not in loop.body for n, _ in flow.successors(name))]
            is_regular = len(exits) == 1 and not any(_sets(blocks[name]) for name in loop.body - always)
            found.append(LlvmLoop(blocks[latches[0]], instructions, is_innermost, is_regular))
    return found


def _sets(block: Any) -> bool:
    """Whether a block sets a variable."""
    return any(
        one.opname == "store" and isinstance(one.operands[1], AllocaInstr) for one in block.instructions
    )


def loop_identity(module: Any, hints: Hints) -> Any:
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


@contextmanager
def one_by_one(builder: Any, count: Any) -> Iterator[Any]:
    """Emit what is within as a loop of at least one iteration, which LLVM leaves as it is; its numbers."""
    before, body = builder.block, builder.append_basic_block("loop")
    builder.branch(body)
    builder.position_at_end(body)
    number = builder.phi(_INDEX)
    number.add_incoming(ir.Constant(_INDEX, 0), before)
    yield number
    following = builder.add(number, ir.Constant(_INDEX, 1))
    number.add_incoming(following, builder.block)
    after = builder.append_basic_block("after")
    branch = builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    branch.set_metadata("llvm.loop", loop_identity(builder.module, ONE_BY_ONE))
    builder.position_at_end(after)
