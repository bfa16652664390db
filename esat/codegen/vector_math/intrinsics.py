"""The vector functions as numba intrinsics, callable from jitted code."""

from __future__ import annotations

import functools
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from esat.codegen.vector_math import variants
from esat.codegen.vector_math.builder import Float, Format
from esat.codegen.vector_math.functions import FUNCTIONS, VectorFunction


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
        return emit_function(entry, Format(bits), builder, arguments)

    def unary(typing_context: Any, x: Any) -> Any:
        return type_(type_), emit

    def binary(typing_context: Any, x: Any, y: Any) -> Any:
        return type_(type_, type_), emit

    definition = unary if entry.arity == 1 else binary
    # The name tells intrinsics apart in cache keys.
    definition.__name__ = definition.__qualname__ = f"{name}_float{bits}"
    return intrinsic(definition)


def emit_function(entry: VectorFunction, format_: Format, builder: Any, arguments: tuple[Any, ...]) -> Any:
    """Emit one evaluation and return its LLVM value."""
    if entry.guarded:
        name = f"esat_{entry.name}_float{format_.bits}"
        return variants.emit_call(name, entry.formula, format_.bits, builder, arguments)
    return entry.formula(*(Float(builder, argument, format_) for argument in arguments)).value
