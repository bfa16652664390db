"""Loops over whole vectors only; the remainder goes through the same loop, in buffers of one vector.

LLVM writes a vectorised loop twice, once for vectors and once for the remaining elements. Of a loop
that calls elementary functions, that is a third of the machine code, and of the time it takes to make it; and
fifteen elements one by one take as long as ten vectors. So the function that computes such a loop is called
for as many elements as make whole vectors, and once more for a copy of the others, padded by the last one.
What does so is the same for all loops of arrays of the same types: its machine code is shared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import InsertValue
from numba.core import types
from numba.extending import intrinsic

from esat.base.records import record
from esat.codegen.ground.llvm_loops import loops_of, one_by_one
from esat.codegen.ground.target import Target
from esat.codegen.llvm.interleaving import interleaved_lanes
from esat.codegen.vector_math.shared_code import share_function, shared_name

_MARK = '"whole-vectors"'
_WHOLE = ".whole"
_FIELD = re.compile(r"arg\.(\w+)\.(\d+)(?:\.(\d+))?")
"""Numba's names for what it passes of an array."""
_DATA, _SIZES = 4, 5
_OUTPUT = "o"
_ALIGNMENT = 64
_INDEX, _STATUS = ir.IntType(64), ir.IntType(32)
_SOME = f"range(i64 1, {1 << 59})"
"""LLVM's attribute of a number of vectors that is not 0: it would write a loop for fewer elements else."""


@intrinsic
def whole_vectors(typing_context: Any) -> Any:
    """Say of the function that calls this that :func:`takes_whole_vectors` holds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Llvmlite knows few attributes with values, but prints what it is given.
        set.add(builder.function.attributes, _MARK)
        return context.get_dummy_value()

    return types.void(), generate


@record(frozen=True)
class _Array:
    """Which arguments of a function tell of one array: its memory, and its sizes."""

    name: str
    data: int
    sizes: tuple[int, ...]


class _Role(Enum):
    """What an argument of a loop over whole vectors is."""

    INPUT = "i"
    OUTPUT = "o"
    CONSTANT = "c"


@record(frozen=True)
class _Argument:
    """An argument of a loop over whole vectors: what it is, and its type in LLVM."""

    role: _Role
    type: Any

    def __str__(self) -> str:
        return self.role.value + re.sub(r"\W", "_", str(self.type).replace("*", "P"))


def pad(module: Any, target: Target) -> None:
    """Let the marked functions of an LLVM module have their loops called for whole vectors, interleaved."""
    for function in [one for one in module.functions if _MARK in one.attributes]:
        loops, arrays = loops_of(function), _arrays(function)
        lanes = interleaved_lanes(loops[0].instructions, target) if len(loops) == 1 else None
        if lanes is not None and arrays:
            _pad(module, function, arrays, lanes, target)


def is_padded(module: Any) -> bool:
    """Whether :func:`pad` has been at work in a module, which LLVM has read."""
    return any(one.name.endswith(_WHOLE) for one in module.functions)


def _arrays(function: Any) -> list[_Array]:
    data: dict[str, int] = {}
    sizes: dict[str, list[int]] = {}
    for place, argument in enumerate(function.args):
        found = _FIELD.fullmatch(argument.name)
        if found and int(found[2]) == _DATA:
            data[found[1]] = place
        elif found and int(found[2]) == _SIZES:
            sizes.setdefault(found[1], []).append(place)
    return [_Array(name, data[name], tuple(places)) for name, places in sizes.items()]


def _pad(module: Any, function: Any, arrays: Sequence[_Array], lanes: int, target: Target) -> None:
    """Move a function's loop to one of its own, and let what pads vectors call that."""
    whole, used = _loop_of_its_own(module, function, arrays, lanes)
    roles = {array.data: _role(array) for array in arrays}
    arguments = [_Argument(roles.get(place, _Role.CONSTANT), function.args[place].type) for place in used]
    name = shared_name(f"esat_whole_vectors_{lanes}_{'_'.join(map(str, arguments))}", target)
    share_function(name, target, lambda other: _write_padding(other, name, arguments, lanes))
    padding = ir.Function(module, _padding_type(arguments), name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    size = ir.Constant(_INDEX, 1)
    for place in arrays[0].sizes:
        size = builder.mul(size, function.args[place])
    builder.call(padding, [whole, size, *(function.args[place] for place in used)])
    # A kernel's loop raises nothing.
    builder.store(ir.Constant(function.args[0].type.pointee, None), function.args[0])
    builder.ret(ir.Constant(_STATUS, 0))


def _role(array: _Array) -> _Role:
    return _Role.OUTPUT if array.name.startswith(_OUTPUT) else _Role.INPUT


def _loop_of_its_own(
    module: Any, function: Any, arrays: Sequence[_Array], lanes: int
) -> tuple[Any, list[int]]:
    """A function with the blocks of another one, which is told a number of vectors for sizes of arrays.

    Returns it, and which arguments of the other one its first ones are.
    """
    sizes = {function.args[place]: place for array in arrays for place in array.sizes}
    read = {
        id(operand) for block in function.blocks for one in block.instructions for operand in one.operands
    }
    used = [place for place, one in enumerate(function.args) if id(one) in read and one not in sizes]
    kept = [function.args[place] for place in used]
    whole = ir.Function(module, _loop_type([one.type for one in kept]), function.name + _WHOLE)
    vectors = whole.args[-1]
    vectors.name = "vectors"
    set.add(vectors.attributes, _SOME)
    whole.args = (*kept, vectors)
    whole.linkage = "internal"
    whole.blocks, function.blocks = function.blocks, []
    for block in whole.blocks:
        block.parent = whole
    builder = ir.IRBuilder(whole.entry_basic_block)
    builder.position_at_start(whole.entry_basic_block)
    length = builder.mul(vectors, ir.Constant(_INDEX, lanes), flags=("nuw", "nsw"))
    firsts = {array.sizes[0] for array in arrays}
    for instruction in [one for block in whole.blocks for one in block.instructions]:
        for size, place in sizes.items():
            # LLVM sees that arrays have one axis.
            value = length if place in firsts else ir.Constant(_INDEX, 1)
            instruction.replace_usage(size, value)
            if isinstance(instruction, InsertValue) and instruction.value is size:
                instruction.value = value  # which it is printed with
    return whole, used


def _loop_type(types_: Sequence[Any]) -> Any:
    return ir.FunctionType(_STATUS, [*types_, _INDEX])


def _padding_type(arguments: Sequence[_Argument]) -> Any:
    passed = [one.type for one in arguments]
    return ir.FunctionType(ir.VoidType(), [_loop_type(passed).as_pointer(), _INDEX, *passed])


def _write_padding(module: Any, name: str, arguments: Sequence[_Argument], lanes: int) -> None:
    """Write what calls a loop for as many whole vectors as there are, and for the remainder."""
    function = ir.Function(module, _padding_type(arguments), name)
    loop, size, *passed = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    count, one = ir.Constant(_INDEX, lanes), ir.Constant(_INDEX, 1)
    buffers = [_buffer(builder, argument, lanes) for argument in arguments]
    vectors = builder.udiv(size, count)
    whole = builder.mul(vectors, count)
    remainder, last = builder.sub(size, whole), builder.sub(size, one)
    padded = list(zip(arguments, passed, buffers, strict=True))
    with builder.if_then(builder.icmp_signed(">", vectors, ir.Constant(_INDEX, 0))):
        builder.call(loop, [*passed, vectors])
    with builder.if_then(builder.icmp_signed(">", remainder, ir.Constant(_INDEX, 0))):
        with one_by_one(builder, count) as lane:
            place = builder.add(whole, lane)
            place = builder.select(builder.icmp_signed("<", place, last), place, last)
            for _, array, buffer in padded:
                if buffer is not None:
                    builder.store(builder.load(builder.gep(array, [place])), builder.gep(buffer, [lane]))
        builder.call(loop, [*(array if buffer is None else buffer for _, array, buffer in padded), one])
        with one_by_one(builder, remainder) as lane:
            for argument, array, buffer in padded:
                if argument.role is _Role.OUTPUT:
                    place = builder.add(whole, lane)
                    builder.store(builder.load(builder.gep(buffer, [lane])), builder.gep(array, [place]))
    builder.ret_void()


def _buffer(builder: Any, argument: _Argument, lanes: int) -> Any:
    """Memory for one vector of an array; None for what is none."""
    if argument.role is _Role.CONSTANT:
        return None
    buffer = builder.alloca(argument.type.pointee, lanes)
    buffer.align = _ALIGNMENT
    return buffer
