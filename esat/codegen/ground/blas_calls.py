"""Calls of BLAS by address, from compiled code that holds no interpreter lock."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_CGUTILS: Any = cgutils
_BYTE = ir.IntType(8)


@intrinsic
def call_blas(typing_context: Any, function: Any, arguments: Any) -> Any:
    """Call the function at an address, ``dgemm`` say, which takes pointers to all it is told.

    Parameters
    ----------
    function
        The address.
    arguments
        A tuple of what pointers are made to: an array's elements, an integer of 32 bits, a float, and for a
        boolean ``T`` or ``N``, which tell whether a matrix is transposed.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _BYTE.as_pointer()
        unpacked = zip(_CGUTILS.unpack_tuple(builder, values[1]), arguments.types, strict=True)
        passed = [
            builder.bitcast(_pointer(context, builder, value, type_), pointer) for value, type_ in unpacked
        ]
        called = ir.FunctionType(ir.VoidType(), [pointer] * len(passed))
        builder.call(builder.inttoptr(values[0], called.as_pointer()), passed)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate


def _pointer(context: Any, builder: Any, value: Any, type_: Any) -> Any:
    if isinstance(type_, types.Array):
        return context.make_array(type_)(context, builder, value).data
    if isinstance(type_, types.Boolean):
        is_turned = context.cast(builder, value, type_, types.boolean)
        value = builder.select(builder.trunc(is_turned, ir.IntType(1)), _BYTE(ord("T")), _BYTE(ord("N")))
    elif isinstance(type_, types.Integer):
        value = context.cast(builder, value, type_, types.int32)
    return _CGUTILS.alloca_once_value(builder, value)
