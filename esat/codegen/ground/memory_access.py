"""Addresses of elements and memory on the stack, for intrinsics that work on memory rather than values."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

_ARRAYS: Any = arrayobj
_CGUTILS: Any = cgutils
WORD, BYTE = ir.IntType(64), ir.IntType(8)
LINE = 64
"""Bytes of a line of the cache."""


def word(value: int) -> Any:
    """The LLVM constant of a size or an address."""
    return ir.Constant(WORD, value)


def item_size(context: Any, array: Any) -> int:
    """Bytes of an element of an array of this numba type."""
    return int(context.get_abi_sizeof(context.get_data_type(array.dtype)))


def pointer_to(context: Any, builder: Any, array: Any, value: Any, index: Any, places: Any) -> Any:
    """A pointer to the bytes of an array from the element at a tuple of places on.

    Parameters
    ----------
    array, value
        The array's numba type and the LLVM value.
    index, places
        The same of the tuple, of as many integers as the array has axes.
    """
    fields = _ARRAYS.make_array(array)(context, builder, value)
    offset = word(0)
    strides = _CGUTILS.unpack_tuple(builder, fields.strides, array.ndim)
    for place, kind, stride in zip(_CGUTILS.unpack_tuple(builder, places), index, strides, strict=True):
        number = context.cast(builder, place, kind, types.int64)
        offset = builder.add(offset, builder.mul(number, stride))
    return builder.gep(builder.bitcast(fields.data, BYTE.as_pointer()), [offset])


def stack_array(context: Any, builder: Any, result: Any, length: int) -> Any:
    """An array on the stack, uninitialised, that begins with a line of the cache.

    Parameters
    ----------
    result
        Its numba type, of one axis and C-contiguous.
    length
        Elements.
    """
    array = _ARRAYS.make_array(result)(context, builder)
    size = item_size(context, result)
    memory = _CGUTILS.alloca_once(builder, context.get_data_type(result.dtype), size=length)
    memory.align = LINE
    _ARRAYS.populate_array(
        array, data=memory, shape=[word(length)], strides=[word(size)], itemsize=word(size), meminfo=None
    )
    return array._getvalue()
