"""Reduction of large angles by pi/2, after Payne and Hanek ("Radian reduction for trigonometric
functions", SIGNUM Newsletter 18, 1983), in integer arithmetic, behind a branch that is rarely taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from llvmlite import ir

from esat.codegen.ground.llvm_loops import one_by_one
from esat.codegen.ground.target import Target
from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import DoubleWord, Float, Format, Integer, Mask, fast_two_sum

_WORD = ir.IntType(64)
_WINDOW_BITS = 192
_WINDOW = ir.IntType(_WINDOW_BITS)
_DOUBLE = ir.DoubleType()
_RESULT = ir.LiteralStructType((_WORD, _DOUBLE, _DOUBLE))
_REDUCTION = "esat_reduce_large_angle"
_DIGITS = "esat_two_over_pi"


def reduce_large_angles(
    x: Float, limit: float, quadrant: Integer, high: Float, low: Float
) -> tuple[Integer, Float, Float]:
    """Replace a reduction (quadrant and remainder) in the lanes where ``abs(x) >= limit``.

    The current block of the builder ends in a branch; emission goes on in a new block.
    """
    is_large = abs(x) >= limit
    parts = (quadrant.value, high.value, low.value)
    merged = where_any(is_large, parts, lambda: _reduce_lanes(x, limit, parts))
    return quadrant.integer(merged[0]), high.float(merged[1]), low.float(merged[2])


def where_any(rare: Mask, values: Sequence[Any], replace: Callable[[], Sequence[Any]]) -> list[Any]:
    """LLVM values, or those that ``replace`` emits in a branch that is taken where a lane is rare.

    The current block of the builder ends in that branch; emission goes on in a new block.
    """
    builder, lanes = rare.builder, rare.format.lanes
    any_rare = rare.value
    if lanes > 1:
        packed = builder.bitcast(rare.value, ir.IntType(lanes))
        any_rare = builder.icmp_unsigned("!=", packed, ir.Constant(packed.type, 0))
    entry_block = builder.block
    with builder.if_then(any_rare, likely=False):
        replaced = replace()
        slow_block = builder.block
    merged = []
    for fast, slow in zip(values, replaced, strict=True):
        phi = builder.phi(fast.type)
        phi.add_incoming(fast, entry_block)
        phi.add_incoming(slow, slow_block)
        merged.append(phi)
    return merged


def _reduce_lanes(x: Float, limit: float, parts: Sequence[Any]) -> Sequence[Any]:
    """Reduce each large lane by a call, keeping the given parts of the others.

    In a loop: written out for every lane, it would be most of the code of a sine.
    """
    builder = x.builder
    reduction = _declare_reduction(builder.module, x.format.target)
    if x.format.lanes == 1:
        result = builder.call(reduction, [x.value])
        return [builder.extract_value(result, number) for number in range(len(parts))]
    angles, *reduced = (_in_memory(builder, value) for value in (x.value, *parts))
    with one_by_one(builder, ir.Constant(_WORD, x.format.lanes)) as lane:
        angle = Float(builder, builder.load(builder.gep(angles, [lane])), replace(x.format, lanes=1))
        with builder.if_then((abs(angle) >= limit).value):
            result = builder.call(reduction, [angle.value])
            for number, lanes in enumerate(reduced):
                builder.store(builder.extract_value(result, number), builder.gep(lanes, [lane]))
    return [
        builder.load(builder.bitcast(lanes, part.type.as_pointer()))
        for lanes, part in zip(reduced, parts, strict=True)
    ]


def _in_memory(builder: Any, vector: Any) -> Any:
    """Store a vector; the address of its first lane."""
    with builder.goto_entry_block():
        address = builder.alloca(vector.type)
    builder.store(vector, address)
    return builder.bitcast(address, vector.type.element.as_pointer())


def _declare_reduction(module: Any, target: Target) -> Any:
    """The function that reduces one angle: ``double -> (quadrant, high, low)``, defined once per module."""
    function = module.globals.get(_REDUCTION)
    if function is None:
        function = ir.Function(module, ir.FunctionType(_RESULT, [_DOUBLE]), _REDUCTION)
        function.linkage = "linkonce_odr"
        for attribute in ("noinline", "nounwind", "readnone"):
            function.attributes.add(attribute)
        _define_reduction(function, Format(64, target))
    return function


def _digits(module: Any) -> Any:
    """The digits of 2/pi as a constant array, after one word of zeros: digit i is at bit 63 + i."""
    table = module.globals.get(_DIGITS)
    if table is None:
        words = (0, *coefficients.TWO_OVER_PI_WORDS)
        type_ = ir.ArrayType(_WORD, len(words))
        table = ir.GlobalVariable(module, type_, _DIGITS)
        table.initializer = ir.Constant(type_, [ir.Constant(_WORD, word) for word in words])
        table.global_constant = True
        table.linkage = "linkonce_odr"
    return table


def _define_reduction(function: Any, format_: Format) -> None:
    """Fill in the body.

    With ``x = m 2**p``, ``m`` an integer of 53 bits, digits of 2/pi before the one numbered ``p - 1`` give
    multiples of four quarter turns. The 192 digits from there on, times ``m``, modulo ``2**192``, hold
    the quadrant in their two leading bits and the fraction of a quarter turn in the other 190, of
    which at least 137 are right; no 64-bit number comes closer than 62 bits to a multiple of pi/2.
    """
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    x = Float(builder, function.args[0], format_)
    pattern = abs(x).bits()
    significand = (pattern & ((1 << 52) - 1)) | (1 << 52)
    power = (pattern >> 52) - (1023 + 52)
    window = _window(builder, _digits(function.module), power + 62)
    product = builder.mul(builder.zext(significand.value, _WINDOW), window)
    quarter = builder.add(product, ir.Constant(_WINDOW, 1 << (_WINDOW_BITS - 3)))
    quadrant = Integer(builder, _top_bits(builder, quarter, 2), x.format)
    # The fraction as a signed number in [-1/2, 1/2), at the top of the window.
    fraction = builder.shl(product, ir.Constant(_WINDOW, 2))
    sign = builder.ashr(fraction, ir.Constant(_WINDOW, _WINDOW_BITS - 1))
    size = builder.sub(builder.xor(fraction, sign), sign)
    remainder = _times_half_pi(builder, size, format_)
    is_negative = x.mask(builder.xor(builder.trunc(sign, ir.IntType(1)), (x < 0.0).value))
    quadrant = (x < 0.0).select_integer(quadrant.integer(0) - quadrant, quadrant)
    high = is_negative.select(-remainder.high, remainder.high)
    low = is_negative.select(-remainder.low, remainder.low)
    is_finite = abs(x) < float("inf")
    high = is_finite.select(high, float("nan"))
    result = ir.Constant(_RESULT, ir.Undefined)
    for number, part in enumerate((quadrant, high, low)):
        result = builder.insert_value(result, part.value, number)
    builder.ret(result)


def _window(builder: Any, table: Any, offset: Integer) -> Any:
    """The 192 bits of the table from the bit ``offset`` on, as one integer."""
    # Infinity and NaN have exponents one past the last: their window is inside the table too.
    first = (offset >> 6).value
    wide = ir.IntType(256)
    joined = ir.Constant(wide, 0)
    for word in range(4):
        index = builder.add(first, ir.Constant(_WORD, word))
        pointer = builder.gep(table, [ir.Constant(_WORD, 0), index], inbounds=True)
        value = builder.zext(builder.load(pointer), wide)
        joined = builder.or_(joined, builder.shl(value, ir.Constant(wide, 64 * (3 - word))))
    shift = builder.zext((offset & 63).value, wide)
    aligned = builder.shl(joined, shift)
    return builder.trunc(builder.lshr(aligned, ir.Constant(wide, 64)), _WINDOW)


def _top_bits(builder: Any, window: Any, count: int) -> Any:
    """The leading bits of a window as a word."""
    return builder.trunc(builder.lshr(window, ir.Constant(_WINDOW, _WINDOW_BITS - count)), _WORD)


def _times_half_pi(builder: Any, size: Any, format_: Format) -> DoubleWord:
    """``size / 2**192 * pi/2`` for a nonzero integer ``size``."""
    count_type = ir.FunctionType(_WINDOW, [_WINDOW, ir.IntType(1)])
    count_zeros = builder.module.declare_intrinsic("llvm.ctlz", [_WINDOW], count_type)
    zeros = builder.call(count_zeros, [size, ir.Constant(ir.IntType(1), 0)])
    normal = builder.shl(size, zeros)
    head = Integer(builder, _top_bits(builder, normal, 53), format_).to_float()
    rest = builder.shl(normal, ir.Constant(_WINDOW, 53))
    tail = Integer(builder, _top_bits(builder, rest, 53), format_).to_float()
    exponent = Integer(builder, builder.trunc(zeros, _WORD), format_)
    unit = (exponent.integer(0) - exponent).power_of_two()
    turn = DoubleWord(head * 2.0**-53 * unit, tail * 2.0**-106 * unit)
    half_pi = coefficients.HALF_PI_DOUBLE_WORD[64]
    product = turn * DoubleWord(turn.high.float(half_pi[0]), turn.high.float(half_pi[1]))
    return fast_two_sum(product.high, product.low)
