"""Leaving a kernel before its end, with a status by which its caller tells why."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from esat.codegen.ground.builtin_function import OUT_OF_BOUNDS


@intrinsic
def leave_if(typing_context: Any, condition: Any) -> Any:
    """Return :data:`OUT_OF_BOUNDS` from the function that calls this, where a condition is True."""
    if condition != types.boolean:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        with builder.if_then(context.cast(builder, arguments[0], types.boolean, types.boolean), likely=False):
            builder.ret(ir.Constant(ir.IntType(32), OUT_OF_BOUNDS))
        return context.get_dummy_value()

    return types.void(condition), generate
