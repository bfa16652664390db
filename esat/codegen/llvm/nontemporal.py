"""Non-temporal stores: results written past the caches, where they are too large to stay in them.

A line of memory that is stored in part must be read first, and drives other lines out of the caches. So a
loop collects half a kilobyte of its result in a buffer, which stays in the first-level cache, and then stores
that as whole lines, with a hint that nobody reads them soon.

Rows may begin and end within a line. The last line of each is prefetched while the row is written: what is
stored in part waits for memory, and all later stores wait behind it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from esat.codegen.ground.memory_access import BYTE, LINE, WORD, item_size, pointer_to, stack_array, word

_ARRAYS: Any = arrayobj
_CGUTILS: Any = cgutils

BUFFER = 512
"""Bytes of a buffer. Larger ones drive out what else a loop keeps in the first-level cache."""


@intrinsic
def past_boundary(typing_context: Any, array: Any, index: Any, length: Any) -> Any:
    """How many elements lie between an element and the last address before it that ``length`` of them divide.

    The array is C-contiguous, and the bytes of ``length`` elements are a power of two.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = item_size(context, array)
        pointer = pointer_to(context, builder, array, arguments[0], signature.args[1], arguments[1])
        whole = builder.mul(context.cast(builder, arguments[2], length, types.int64), word(size))
        beyond = builder.and_(builder.ptrtoint(pointer, WORD), builder.sub(whole, word(1)))
        return builder.udiv(beyond, word(size))

    return types.int64(array, index, length), generate


@intrinsic
def line_buffer(typing_context: Any, dtype: Any) -> Any:
    """An array of :data:`BUFFER` bytes on the stack, from the start of a line, uninitialised."""
    if not isinstance(dtype, types.NumberClass):
        return None
    result = types.Array(dtype.instance_type, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return stack_array(context, builder, result, BUFFER // item_size(context, result))

    return result(dtype), generate


@intrinsic
def stream(typing_context: Any, array: Any, index: Any, buffer: Any, count: Any) -> Any:
    """Write the first ``count`` elements of a buffer to a C-contiguous array from a tuple of places on.

    Whole lines go past the caches; what lies before the first and behind the last of them is stored as ever.
    """
    if not isinstance(array, types.Array) or not isinstance(index, types.BaseTuple):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = item_size(context, array)
        target = pointer_to(context, builder, array, arguments[0], signature.args[1], arguments[1])
        source = builder.bitcast(
            _ARRAYS.make_array(buffer)(context, builder, arguments[2]).data, BYTE.as_pointer()
        )
        length = builder.mul(context.cast(builder, arguments[3], count, types.int64), word(size))
        missing = builder.and_(builder.neg(builder.ptrtoint(target, WORD)), word(LINE - 1))
        head = builder.select(builder.icmp_unsigned("<", missing, length), missing, length)
        whole = builder.and_(builder.sub(length, head), word(-LINE))
        _copy(builder, target, source, word(0), head)
        _store_lines(builder, builder.gep(target, [head]), builder.gep(source, [head]), whole)
        _copy(builder, target, source, builder.add(head, whole), length)
        return context.get_dummy_value()

    return types.void(array, index, buffer, count), generate


def _copy(builder: Any, target: Any, source: Any, begin: Any, end: Any) -> None:
    """Store the bytes between two places, if there are any."""
    with builder.if_then(builder.icmp_unsigned("<", begin, end), likely=False):
        parts = (builder.gep(pointer, [begin]) for pointer in (target, source))
        _CGUTILS.raw_memcpy(builder, *parts, builder.sub(end, begin), 1)


def _store_lines(builder: Any, target: Any, source: Any, length: Any) -> None:
    line = ir.VectorType(WORD, LINE // 8).as_pointer()
    hint = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
    with _CGUTILS.for_range_slice(builder, word(0), length, word(LINE), inc=True) as (place, _):
        value = builder.load(builder.bitcast(builder.gep(source, [place]), line), align=8)
        store = builder.store(value, builder.bitcast(builder.gep(target, [place]), line), align=LINE)
        store.set_metadata("nontemporal", hint)


@intrinsic
def end_of_stream(typing_context: Any) -> Any:
    """Let no store that follows be seen before those past the caches are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if str(builder.module.triple).startswith(("x86_64", "i686")):
            function_type = ir.FunctionType(ir.VoidType(), [])
            fence = _CGUTILS.get_or_insert_function(builder.module, function_type, "llvm.x86.sse.sfence")
            builder.call(fence, [])
        else:
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate
