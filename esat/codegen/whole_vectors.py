"""Loops over whole vectors only; what is left over goes through the same loop, in buffers of one vector.

LLVM writes a vectorised loop twice, once for vectors and once for the elements that are left over. Of a loop
that calls elementary functions, that is a third of the machine code, and of the time it takes to make it; and
fifteen elements one by one take as long as ten vectors. So the function that computes such a loop is called
for as many elements as make whole vectors, and once more for a copy of the others, padded by the last one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import InsertValue
from numba.core import types
from numba.extending import intrinsic

from esat.codegen.interleaving import lanes_in_turns
from esat.codegen.llvm_loops import loops_of, one_by_one
from esat.codegen.loop_ir import Compute, Kernel, Load, Loop, Store, Tile, walk
from esat.codegen.vector_math.functions import FUNCTIONS
from esat.records import record

_MARK = '"whole-vectors"'
_PADDED = ".padded"
_CALLED = re.compile(r"\w+(?=\()")
_FIELD = re.compile(r"arg\.(\w+)\.(\d+)(?:\.(\d+))?")
"""Numba's names for what it passes of an array."""
_DATA, _SIZES = 4, 5
_OUTPUT = "o"
_ALIGNMENT = 64
_INDEX = ir.IntType(64)


def takes_whole_vectors(kernel: Kernel) -> bool:
    """Whether a kernel is one loop that calls functions, over all elements of all its arrays but scalars."""
    loops = [one for one in walk(kernel.body) if isinstance(one, Loop | Tile)]
    if len(loops) != 1 or not isinstance(loop := loops[0], Loop):
        return False
    accessed = [one for one in loop.body if isinstance(one, Load | Store)]
    arrays = [array for array in kernel.arrays if array.rank]
    return (
        len(loop.axes) == 1
        and not loop.accumulators
        and all(array.groups == (tuple(range(array.rank)),) for array in arrays)
        and all(one.index == loop.axes for one in accessed if kernel.arrays[one.array].rank)
        and any(isinstance(one, Compute) and calls_function(one) for one in loop.body)
    )


def calls_function(statement: Compute) -> bool:
    """Whether a value is computed by an elementary function."""
    return not FUNCTIONS.keys().isdisjoint(_CALLED.findall(statement.template))


@intrinsic
def whole_vectors(typing_context: Any) -> Any:
    """Say of the function that calls this that :func:`takes_whole_vectors` holds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Llvmlite knows no attributes with values, but prints what it is given.
        set.add(builder.function.attributes, _MARK)
        return context.get_dummy_value()

    return types.void(), generate


@record(frozen=True)
class _Array:
    """Which arguments of a function tell of one array: its memory, and its sizes."""

    name: str
    data: int
    sizes: tuple[int, ...]


def pad(module: Any) -> None:
    """Add to an LLVM module what calls its marked functions for whole vectors, where these take turns."""
    for function in [one for one in module.functions if _MARK in one.attributes]:
        loops, arrays = loops_of(function), _arrays(function)
        lanes = lanes_in_turns(loops[0].instructions) if len(loops) == 1 else None
        if lanes is not None and arrays:
            _count_vectors(function, arrays, lanes)
            _Padding(module, function, arrays, lanes).write()
            function.linkage = "internal"
            function.attributes.add("noinline")


def rename_padded(module: Any) -> bool:
    """Let what :func:`pad` added, in a module that LLVM has read, take the place of what it calls.

    Returns whether there is such a function.
    """
    added = [one for one in module.functions if one.name.endswith(_PADDED)]
    for padded in added:
        name = padded.name.removesuffix(_PADDED)
        module.get_function(name).name = f"{name}.whole"
        padded.name = name
    return bool(added)


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


def _count_vectors(function: Any, arrays: Sequence[_Array], lanes: int) -> None:
    """Let a function be told numbers of vectors for sizes, and LLVM see that arrays have one axis."""
    entry = function.entry_basic_block
    builder = ir.IRBuilder(entry)
    builder.position_at_start(entry)
    sizes: dict[Any, Any] = {}
    for array in arrays:
        first, *others = (function.args[place] for place in array.sizes)
        sizes[first] = builder.mul(first, ir.Constant(_INDEX, lanes), flags=("nuw", "nsw"))
        sizes.update((other, ir.Constant(_INDEX, 1)) for other in others)
    counted = set(sizes.values())
    for instruction in [one for block in function.blocks for one in block.instructions]:
        if instruction not in counted:
            for size, value in sizes.items():
                instruction.replace_usage(size, value)
                if isinstance(instruction, InsertValue) and instruction.value is size:
                    instruction.value = value  # which it is printed with


class _Padding:
    """Writes the function that calls another one for whole vectors, and for what is left over."""

    def __init__(self, module: Any, function: Any, arrays: Sequence[_Array], lanes: int) -> None:
        self.module = module
        self.function = function
        self.arrays = arrays
        self.lanes = lanes
        self.padded = ir.Function(module, function.function_type, function.name + _PADDED)
        self.builder = ir.IRBuilder(self.padded.append_basic_block("entry"))

    def write(self) -> None:
        builder, arguments = self.builder, self.padded.args
        buffers = [self._buffer(arguments[array.data].type.pointee) for array in self.arrays]
        size = ir.Constant(_INDEX, 1)
        for place in self.arrays[0].sizes:
            size = builder.mul(size, arguments[place])
        vectors = builder.udiv(size, ir.Constant(_INDEX, self.lanes))
        whole = builder.mul(vectors, ir.Constant(_INDEX, self.lanes))
        left_over = builder.sub(size, whole)
        with builder.if_then(builder.icmp_signed(">", vectors, ir.Constant(_INDEX, 0))):
            self._call([arguments[array.data] for array in self.arrays], vectors)
        with builder.if_then(builder.icmp_signed(">", left_over, ir.Constant(_INDEX, 0))):
            lanes, last = ir.Constant(_INDEX, self.lanes), builder.sub(size, ir.Constant(_INDEX, 1))
            with one_by_one(builder, lanes) as lane:
                place = builder.add(whole, lane)
                place = builder.select(builder.icmp_signed("<", place, last), place, last)
                for array, buffer in zip(self.arrays, buffers, strict=True):
                    value = builder.load(builder.gep(arguments[array.data], [place]))
                    builder.store(value, builder.gep(buffer, [lane]))
            self._call(buffers, ir.Constant(_INDEX, 1))
            with one_by_one(builder, left_over) as lane:
                for array, buffer in zip(self.arrays, buffers, strict=True):
                    if array.name.startswith(_OUTPUT):
                        value = builder.load(builder.gep(buffer, [lane]))
                        place = builder.add(whole, lane)
                        builder.store(value, builder.gep(arguments[array.data], [place]))
        # A kernel's loop raises nothing.
        builder.store(ir.Constant(arguments[0].type.pointee, None), arguments[0])
        builder.ret(ir.Constant(ir.IntType(32), 0))

    def _buffer(self, element: Any) -> Any:
        buffer = self.builder.alloca(element, self.lanes)
        buffer.align = _ALIGNMENT
        return buffer

    def _call(self, memory: Sequence[Any], vectors: Any) -> None:
        arguments = list(self.padded.args)
        for array, data in zip(self.arrays, memory, strict=True):
            arguments[array.data] = data
            for place in array.sizes:
                arguments[place] = ir.Constant(_INDEX, 1)
            arguments[array.sizes[0]] = vectors
        self.builder.call(self.function, arguments)
