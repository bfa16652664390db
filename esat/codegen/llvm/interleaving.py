"""Loops that compute much, several vectors side by side.

The vectors that a loop computes do not depend on one another, but what is done with each is a long chain of
steps. Processors work on the next vector meanwhile, as far ahead as instructions fit into their schedulers,
and an exponential is longer than that. LLVM interleaves vectors only in short loops and in sums. So loops
that call functions, and others that do many operations, are told how many are interleaved, as metadata:
functions are called for vectors several times as long as a register, whose parts LLVM computes side by side.

The values of many functions exceed the registers, and LLVM, which then saves registers, computes one vector
after the other again. So in loops of many functions most stay calls, between which there are few values,
unless there are many registers.

The remainder of such vectors goes through another loop, over masked vectors of one register.

Of a formula of a hundred operations not even the next vector's beginning is seen: there one vector of four
registers serves better than two vectors one after the other.

How many vectors are interleaved is a number of the target's tuning; where it is 0, LLVM decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from esat.codegen.ground.llvm_loops import Hints, loop_identity, loops_of
from esat.codegen.ground.target import Target
from esat.codegen.vector_math.formulas import Formula, formula_called, mark_as_one_of_many

_FEW_FUNCTIONS = 2
"""Functions that a loop calls up to which there are registers enough for all that they compute."""
_MANY_OPERATIONS = 30
"""Operations of floats from which two vectors are interleaved; LLVM decides about loops of fewer."""
_VERY_MANY_OPERATIONS = 96
"""Operations of floats from which the most vectors are interleaved, however long they are."""
_MOST_INTERLEAVED = 4
_OPERATIONS = frozenset({"fadd", "fsub", "fmul", "fdiv", "fneg"})
_DIVISIONS = frozenset({"sdiv", "udiv", "srem", "urem"})
_REMAINDER = "remainder"
"""What LLVM's metadata of a call in such a loop is called."""
_INTRINSIC = "llvm."
"""What names of functions that LLVM knows begin with."""


@intrinsic
def remainder_loop(typing_context: Any) -> Any:
    """Say of the loop that calls this that it is the remainder loop of whole vectors."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(1)])
        assume = builder.module.declare_intrinsic("llvm.assume", (), kind)
        # That what is true is true says nothing: LLVM drops it, with metadata that it does not know.
        call = builder.call(assume, [ir.Constant(ir.IntType(1), 1)])
        call.set_metadata(_REMAINDER, builder.module.add_metadata([]))
        return context.get_dummy_value()

    return types.void(), generate


def whole_lanes(bits: int, target: Target) -> int | None:
    """Of how many floats of so many bits loops with functions take whole vectors; None for any number.

    The remainder of such long vectors is up to thirty numbers, and as many calls. So there is another
    loop for these, in masks, which calls :func:`remainder_loop`; none of single numbers remains.
    """
    count = target.interleave_count
    return count * target.vector_bytes * 8 // bits if count else None


def interleave(module: Any, target: Target) -> None:
    """Say in an LLVM module, before it is optimized, how many vectors are interleaved in innermost loops.

    It also says which functions are some of many in a loop. Loops around those that call functions are not
    to be unrolled: LLVM does not see how long they are.
    """
    for function in module.functions:
        for loop in loops_of(function):
            formulas = formulas_called(loop.instructions)
            may_vectorise = loop.is_innermost and loop.is_regular
            hints: Hints = hints_for(loop.instructions, target) if may_vectorise else {}
            if loop.is_innermost and len(formulas) > _FEW_FUNCTIONS:
                mark_as_one_of_many(module, formulas)
            if not loop.is_innermost and formulas:
                hints = {"unroll.disable": None}
            if hints:
                loop.latch.terminator.set_metadata("llvm.loop", loop_identity(module, hints))


def hints_for(instructions: Sequence[Any], target: Target) -> Hints:
    """What LLVM is told of an innermost loop of these instructions; nothing where it is to decide.

    Functions stay calls until loops are vectorised, and several of one that follow one another would not take
    count. So there is one of a vector that is several times as long, whose parts do.
    """
    formulas = formulas_called(instructions)
    lanes = interleaved_lanes(instructions, target)
    if lanes is not None and any(_REMAINDER in one.metadata for one in instructions if one.opname == "call"):
        return {"vectorize.predicate.enable": 1, **_of_lanes(_in_register(formulas, target))}
    if lanes is not None:
        return _of_lanes(lanes)
    operations = [one for one in instructions if one.opname in _OPERATIONS]
    is_sum = any("reassoc" in one.flags for one in operations)
    count = target.interleave_count
    if formulas and count:
        return {"interleave.count": count}
    if formulas and not is_sum:
        return {"interleave.count": 1}  # what LLVM would choose, did it see how long they are
    if len(operations) >= _VERY_MANY_OPERATIONS and not is_sum and not any(map(_is_for_one, instructions)):
        bits = 64 if any(isinstance(one.type, ir.DoubleType) for one in operations) else 32
        return _of_lanes(_MOST_INTERLEAVED * target.vector_bytes * 8 // bits)
    arithmetic_count = target.tuning.arithmetic_interleave_count
    if arithmetic_count and len(operations) >= _MANY_OPERATIONS and not is_sum:
        return {"interleave.count": arithmetic_count}
    return {}


def interleaved_lanes(instructions: Sequence[Any], target: Target) -> int | None:
    """Of how many elements a loop that calls functions makes one vector; None where LLVM decides.

    Integers are divided one by one, and other functions than elementary ones are called so.
    """
    formulas = formulas_called(instructions)
    count = target.interleave_count
    if not formulas or not count or any(map(_is_for_one, instructions)):
        return None
    return count * _in_register(formulas, target)


def _is_for_one(instruction: Any) -> bool:
    """Whether processors do this to one number at a time, if it stands in a loop."""
    if instruction.opname != "call":
        return instruction.opname in _DIVISIONS
    callee = instruction.callee
    return isinstance(callee, ir.Function) and not (
        callee.name.startswith(_INTRINSIC) or formula_called(callee.name)
    )


def _of_lanes(lanes: int) -> Hints:
    return {"vectorize.width": lanes, "interleave.count": 1}


def _in_register(formulas: Sequence[Formula], target: Target) -> int:
    """How many elements fit into one register."""
    return target.vector_bytes * 8 // max(formula.bits for formula in formulas)


def formulas_called(instructions: Sequence[Any]) -> list[Formula]:
    """The elementary functions that are called."""
    callees = [one.callee for one in instructions if one.opname == "call"]
    called = [formula_called(one.name) for one in callees if isinstance(one, ir.Function)]
    return [one for one in called if one is not None]
