"""What kernel texts call, as functions that numba compiles for the host.

Accesses are intrinsics, because numba takes longer to compile the smallest function than a whole kernel of
them. The first words of ``tables`` tell of an access that is refused: line, kind of fault, place, size; then
a plain exception ends the thread.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np import arrayobj

from esat.codegen.llvm.scalar import fmod
from esat.gpu.kernel_text.launches import DTYPES, LANES, WARP

OUTSIDE, MISALIGNED, WRITTEN, READ = 1, 2, 3, 4
"""Kinds of faults: outside an array; a vector whose address is no multiple of its bytes; an element of a
shared array that another thread has written, or read, with no barrier between."""
THREAD_WORD, NOW_WORD, FAULT_WORDS = 4, 5, 6
"""Words of ``tables``: a fault, the thread that runs where none waits for another, the present *moment*.
Then two for each pointer, after two for arrays that none reaches: the place of its element, its address."""
_ARRAYS: Any = arrayobj
_TYPES: Any = types
# Numba annotates itself in part; these modules are used where it does not.
_WORD = ir.IntType(64)
_LANE_BITS = WARP.bit_length() - 1


class RefusedAccessError(Exception):
    """Ends a thread; what happened is in ``tables``."""


class _Access:
    """The code of one access: where it goes, and the faults that end the thread instead.

    Parameters
    ----------
    arguments
        The array, the place, the number of its pointer (0 for none), the line, the tables.
    kinds
        Their types.
    """

    def __init__(self, context: Any, builder: Any, kinds: Any, arguments: Any) -> None:
        self.context, self.builder = context, builder
        kind, place, *_ = kinds
        self.array = _ARRAYS.make_array(kind)(context, builder, arguments[0])
        self.place = context.cast(builder, arguments[1], place, types.int64)
        self.pointer, self.line = arguments[2], arguments[3]
        self.tables = _ARRAYS.make_array(kinds[4])(context, builder, arguments[4]).data
        self.first = self.table(0)

    def table(self, word: int) -> Any:
        """What the tables know of the pointer: the place it points to, or its address."""
        place = self.builder.add(self.builder.shl(self.pointer, _word(1)), _word(FAULT_WORDS + word))
        return self.builder.load(self.builder.gep(self.tables, [place]))

    def refuse(self, condition: Any, kind: int, size: Any) -> None:
        """End the thread where a condition holds."""
        builder = self.builder
        with builder.if_then(condition, likely=False):
            for word, value in enumerate((self.line, _word(kind), self.place, size)):
                builder.store(value, builder.gep(self.tables, [_word(word)]))
            self.context.call_conv.return_user_exc(builder, RefusedAccessError, ())

    def inside(self, lanes: int) -> Any:
        """Where in the array ``lanes`` elements begin, all of which are in it; -1 is outside."""
        builder, size = self.builder, self.array.nitems
        start = builder.add(self.place, self.first)
        self.refuse(
            builder.or_(
                builder.icmp_signed("<", start, _word(0)),
                builder.icmp_signed(">", builder.add(start, _word(lanes)), size),
            ),
            OUTSIDE,
            size,
        )
        return start

    def lanes(self, lanes: int) -> list[Any]:
        """Addresses of the elements of a vector, the first of which is a multiple of its bytes."""
        builder, width = self.builder, self.array.itemsize
        start, whole = self.inside(lanes), builder.mul(width, _word(lanes))
        address = builder.add(self.table(1), builder.mul(self.place, width))
        self.refuse(builder.icmp_signed("!=", builder.urem(address, whole), _word(0)), MISALIGNED, whole)
        return [builder.gep(self.array.data, [builder.add(start, _word(lane))]) for lane in range(lanes)]


_NJIT: Any = njit
_helper = _NJIT(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")


def _word(number: int) -> ir.Constant:
    return ir.Constant(_WORD, number)


@intrinsic
def checked(typing, array, place, pointer, line, tables):  # type: ignore[no-untyped-def]
    """``place`` counted from the start of its array, if there is such an element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _Access(context, builder, signature.args, arguments).inside(1)

    return types.int64(array, place, types.int64, types.int64, tables), generate


@intrinsic
def checked_own(typing, place, size, thread, line, tables):  # type: ignore[no-untyped-def]
    """Where ``place`` of a thread's own array of ``size`` elements is among those of the block."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = (tables, place, None, None, tables)
        access = _Access(context, builder, kinds, [arguments[4], arguments[0], _word(0), *arguments[3:]])
        outside = builder.icmp_unsigned(">=", access.place, arguments[1])
        access.refuse(outside, OUTSIDE, arguments[1])
        thread_place = context.cast(builder, arguments[2], thread, types.int64)
        return builder.add(access.place, builder.mul(thread_place, arguments[1]))

    return types.int64(place, types.int64, thread, types.int64, tables), generate


SEEN = 3
"""Words that are kept for an element of a shared array: when it was written, and read by two threads."""
THREAD_BITS, WARP_BITS = 11, 21
"""Of a moment, which is a number of three parts: barriers that a block and a warp have passed, a thread."""


def moment(block: int, warp: int) -> int:
    """When it is, after so many barriers of a block and of a warp."""
    return (block << (THREAD_BITS + WARP_BITS)) | (warp % (1 << WARP_BITS) << THREAD_BITS)


def _shared(is_write: bool) -> Any:
    @intrinsic
    def access(typing, array, place, seen, thread, line, tables):  # type: ignore[no-untyped-def]
        """``place`` of a shared array, if no other thread's access may come before as well as after."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds = (array, place, None, None, tables)
            access = _Access(context, builder, kinds, [*arguments[:2], _word(0), *arguments[4:]])
            start = access.inside(1)
            now = builder.load(builder.gep(access.tables, [_word(NOW_WORD)]))
            now = builder.or_(now, context.cast(builder, arguments[3], thread, types.int64))
            first = builder.mul(start, _word(SEEN))
            data = _ARRAYS.make_array(seen)(context, builder, arguments[2]).data
            slots = [builder.gep(data, [builder.add(first, _word(number))]) for number in range(SEEN)]
            written, *read = (builder.load(slot) for slot in slots)
            access.refuse(_meets(builder, written, now), WRITTEN, written)
            if is_write:
                for one in read:
                    access.refuse(_meets(builder, one, now), READ, one)
                builder.store(now, slots[0])
            else:
                is_again = builder.icmp_signed("==", read[0], now)
                builder.store(builder.select(is_again, read[1], read[0]), slots[2])
                builder.store(now, slots[1])
            return start

        return types.int64(array, place, seen, thread, types.int64, tables), generate

    return access


def _meets(builder: Any, one: Any, other: Any) -> Any:
    """Whether accesses at two moments are of different threads, and no barrier comes between."""
    apart = builder.xor(one, other)

    def differs(first: int, bits: int) -> Any:
        part = builder.and_(apart, _word((2**bits - 1) << first))
        return builder.icmp_unsigned("!=", part, _word(0))

    passed = differs(THREAD_BITS + WARP_BITS, 64 - THREAD_BITS - WARP_BITS)
    other_warp = differs(_LANE_BITS, THREAD_BITS - _LANE_BITS)
    together = builder.or_(other_warp, builder.not_(differs(THREAD_BITS, WARP_BITS)))
    return builder.and_(builder.and_(builder.not_(passed), differs(0, THREAD_BITS)), together)


def _load(lanes: int) -> Any:
    @intrinsic
    def load(typing, array, place, pointer, line, tables):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            access = _Access(context, builder, signature.args, arguments)
            values = [builder.load(address) for address in access.lanes(lanes)]
            return context.make_tuple(builder, signature.return_type, values)

        return _TYPES.UniTuple(array.dtype, lanes)(array, place, types.int64, types.int64, tables), generate

    return load


def _store(lanes: int) -> Any:
    @intrinsic
    def store(typing, array, place, values, pointer, line, tables):  # type: ignore[no-untyped-def]
        if len(values) != lanes:
            raise numba.TypingError(f"{len(values)} values for a vector of {lanes}")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kinds, given = list(signature.args), list(arguments)
            kept, value = kinds.pop(2), given.pop(2)
            for lane, address in enumerate(_Access(context, builder, kinds, given).lanes(lanes)):
                part = builder.extract_value(value, lane)
                builder.store(context.cast(builder, part, kept[lane], array.dtype), address)
            return context.get_dummy_value()

        return types.void(array, place, values, types.int64, types.int64, tables), generate

    return store


@intrinsic
def _fma(typing, a, b, c):  # type: ignore[no-untyped-def]
    """``a * b + c``, rounded once."""
    if not a == b == c or not isinstance(a, types.Float):
        raise numba.TypingError("fma is of three floats of one dtype")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, b, c), generate


@_helper
def _atomic_add(array, place, value):  # type: ignore[no-untyped-def]
    old = array[place]
    array[place] = old + value
    return old


@_helper
def _atomic_min(array, place, value):  # type: ignore[no-untyped-def]
    old = array[place]
    array[place] = min(old, value)
    return old


@_helper
def _atomic_max(array, place, value):  # type: ignore[no-untyped-def]
    old = array[place]
    array[place] = max(old, value)
    return old


@_helper
def _from_half(bits):  # type: ignore[no-untyped-def]
    """The number of binary16 that ``bits`` encode."""
    exponent = (np.int32(bits) >> 10) & 31
    fraction = np.int32(bits) & 1023
    if exponent == 31:
        size = math.inf if fraction == 0 else math.nan
    elif exponent == 0:
        size = math.ldexp(float(fraction), -24)
    else:
        size = math.ldexp(float(fraction + 1024), int(exponent - 25))
    return np.float32(math.copysign(size, -1.0 if np.int32(bits) & 0x8000 else 1.0))


@_helper
def _to_half(number):  # type: ignore[no-untyped-def]
    """Bits of the nearest number of binary16, ties to even."""
    value = float(number)
    size = abs(value)
    if math.isnan(size):
        bits = 0x7E00
    elif size >= 65520.0:
        bits = 0x7C00
    elif size < 0.00006103515625:  # 2**-14, the least normal one
        bits = int(np.rint(size * 16777216.0))
    else:
        fraction, exponent = math.frexp(size)
        bits = ((exponent + 14) << 10) + int(np.rint(fraction * 2048.0)) - 1024
    return np.uint16(bits | (0x8000 if math.copysign(1.0, value) < 0.0 else 0))


def rubbish(size: int, dtype: str) -> np.ndarray:
    """Memory that nothing was written to yet: NaN, or a number that no kernel means."""
    return np.full(size, np.nan if dtype.startswith("float") else 0x25, dtype)


def environment() -> dict[str, Any]:
    """The names of kernel texts, after translation."""
    names: dict[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    names |= {name: getattr(numba, name) for name in DTYPES}
    for lanes in LANES:
        names |= {f"load{lanes}": _load(lanes), f"store{lanes}": _store(lanes)}
    names |= {
        "math": math,
        "atomic_add": _atomic_add,
        "atomic_min": _atomic_min,
        "atomic_max": _atomic_max,
        "fma": _fma,
        "fmod": fmod,  # which numba has for devices only
        "from_half": _from_half,
        "to_half": _to_half,
        "_checked": checked,
        "_own": checked_own,
        "_read": _shared(is_write=False),
        "_written": _shared(is_write=True),
    }
    return names
