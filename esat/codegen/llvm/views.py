"""Intrinsics that generated kernels use besides op templates: views, scratch and exact rounding errors."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from esat.codegen.ground.memory_access import stack_array

_ARRAYS: Any = arrayobj
_CGUTILS: Any = cgutils

TILE_WIDTH = 1024
"""Elements of a scratch array: a few of them stay in the first-level cache."""

_NUMBERS_ONLY = ("nnan", "nsz")


@intrinsic
def contiguous_view(typing_context: Any, array: Any, shape: Any) -> Any:
    """A C-contiguous array's memory as an array of another shape with as many elements, unchecked.

    ``shape`` is a tuple of sizes. The view does not own the memory.
    """
    if not isinstance(array, types.Array) or array.layout != "C" or not isinstance(shape, types.UniTuple):
        return None
    result = types.Array(array.dtype, len(shape), "C", readonly=not array.mutable)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = _ARRAYS.make_array(array)(context, builder, arguments[0])
        view = _ARRAYS.make_array(result)(context, builder)
        sizes = [
            context.cast(builder, size, shape.dtype, types.intp)
            for size in _CGUTILS.unpack_tuple(builder, arguments[1])
        ]
        itemsize = context.get_constant(
            types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype))
        )
        stride = itemsize
        strides: list[Any] = []
        for size in reversed(sizes):
            strides.insert(0, stride)
            stride = builder.mul(stride, size)
        _ARRAYS.populate_array(
            view, data=source.data, shape=sizes, strides=strides, itemsize=itemsize, meminfo=None
        )
        return view._getvalue()

    return result(array, shape), generate


@intrinsic
def load_in_row(typing_context: Any, array: Any, index: Any) -> Any:
    """The element at a tuple of non-negative places, unchecked, of an array whose last axis is contiguous.

    That the last stride is the size of an element is not in the array's type, and loops over it would
    not vectorise if it were read from the array.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = _ARRAYS.make_array(array)(context, builder, arguments[0])
        kinds = signature.args[1]
        places = [
            context.cast(builder, place, kind, types.intp)
            for place, kind in zip(_CGUTILS.unpack_tuple(builder, arguments[1]), kinds, strict=True)
        ]
        strides = _CGUTILS.unpack_tuple(builder, source.strides, array.ndim)
        offset = context.get_constant(types.intp, 0)
        for place, stride in zip(places[:-1], strides[:-1], strict=True):
            offset = builder.add(offset, builder.mul(place, stride, flags=["nsw"]), flags=["nsw"])
        row = _CGUTILS.pointer_add(builder, source.data, offset)
        return context.unpack_value(builder, array.dtype, builder.gep(row, [places[-1]], inbounds=True))

    return array.dtype(array, index), generate


@intrinsic
def scratch(typing_context: Any, dtype: Any) -> Any:
    """An array of :data:`TILE_WIDTH` elements of a numba type on the stack, uninitialised.

    That costs nothing at run time, and tells LLVM that no argument shares its memory.
    """
    if not isinstance(dtype, types.NumberClass):
        return None
    result = types.Array(dtype.instance_type, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return stack_array(context, builder, result, TILE_WIDTH)

    return result(dtype), generate


def _number(comparison: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gathered, x = arguments
        better = builder.fcmp_ordered(comparison, x, gathered, flags=_NUMBERS_ONLY)
        return builder.select(better, x, gathered, flags=_NUMBERS_ONLY)

    return generate


@intrinsic
def larger_number(typing_context: Any, gathered: Any, x: Any) -> Any:
    """The larger of two floats, undefined for NaN: half the work of one that hands NaN on."""
    return (gathered(gathered, gathered), _number(">")) if _are_floats(gathered, x) else None


@intrinsic
def smaller_number(typing_context: Any, gathered: Any, x: Any) -> Any:
    """The smaller of two floats, undefined for NaN."""
    return (gathered(gathered, gathered), _number("<")) if _are_floats(gathered, x) else None


def _are_floats(a: Any, b: Any) -> bool:
    return a == b and isinstance(a, types.Float)


@intrinsic
def rounding_error(typing_context: Any, a: Any, b: Any) -> Any:
    """What ``a + b`` loses by rounding, exactly (Knuth's two-sum); NaN if the sum is not finite."""
    if not _are_floats(a, b):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = arguments
        total = builder.fadd(first, second)
        part = builder.fsub(total, first)
        left = builder.fsub(first, builder.fsub(total, part))
        return builder.fadd(left, builder.fsub(second, part))

    return a(a, a), generate


@intrinsic
def corrected(typing_context: Any, total: Any, error: Any) -> Any:
    """``total + error`` for a finite error, else ``total``: a sum that overflowed has no error."""
    if not _are_floats(total, error):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        gathered, lost = arguments
        function_type = ir.FunctionType(lost.type, [lost.type])
        magnitude = builder.call(
            builder.module.declare_intrinsic("llvm.fabs", [lost.type], function_type), [lost]
        )
        finite = builder.fcmp_ordered("<", magnitude, ir.Constant(lost.type, float("inf")))
        return builder.select(finite, builder.fadd(gathered, lost), gathered)

    return total(total, total), generate
