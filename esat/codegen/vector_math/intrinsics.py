"""The vector functions as numba intrinsics, callable from jitted code."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from esat.codegen.ground.host import library_target
from esat.codegen.vector_math.builder import Format
from esat.codegen.vector_math.formulas import emit_call
from esat.codegen.vector_math.function_table import FUNCTIONS
from esat.codegen.vector_math.linking import link

_LINE = 64
_SLOT = "start_of_line"


@functools.cache
def function(name: str, bits: int) -> Any:
    """The intrinsic for the function ``name`` of floats of ``bits`` bits (32 or 64).

    Its arguments are converted to that type, which is also the type of the result.

    Raises
    ------
    KeyError
        When there is no such function.
    """
    entry = FUNCTIONS[name]
    type_: Any = {32: types.float32, 64: types.float64}[bits]

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        library = context.active_code_library
        link(library, name, bits)
        _align_stack(builder)
        return emit_call(name, Format(bits, library_target(library)), builder, arguments)

    def unary(typing_context: Any, x: Any) -> Any:
        return type_(type_), emit

    def binary(typing_context: Any, x: Any, y: Any) -> Any:
        return type_(type_, type_), emit

    definition = unary if entry.arity == 1 else binary
    # The name tells intrinsics apart in cache keys.
    definition.__name__ = definition.__qualname__ = f"{name}_float{bits}"
    return intrinsic(definition)


def _align_stack(builder: Any) -> None:
    """Let the stack frame of the function under construction begin with a line of the cache.

    Formulas need more vectors than there are registers, and functions that are called leave none: loops keep
    some on the stack. Systems align it for smaller ones. Where a vector lies in two lines, depending on where
    the system put the stack of the process, such loops take 1.25 times as long.
    """
    entry = builder.function.entry_basic_block
    if any(instruction.name == _SLOT for instruction in entry.instructions):
        return
    with builder.goto_block(entry):
        builder.position_at_start(entry)
        slot = builder.alloca(ir.IntType(32), name=_SLOT)
        slot.align = _LINE
        # LLVM keeps what an instruction uses that it does not know. This one is empty.
        unknown = ir.FunctionType(ir.VoidType(), [slot.type])
        builder.asm(unknown, "", "r", [slot], side_effect=True)
