"""Scalar functions with NumPy's semantics that op templates call, as numba intrinsics.

They are emitted as straight LLVM IR, without branches, so that loops over them vectorise; the two
exceptions, ``integer_power`` and the floating remainders, loop or call the C library. Each works for
every dtype NumPy's function of that meaning has a kernel for; operands share one type, which is also
the type of the result unless a function is documented otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

Emitter = Callable[..., Any]


def _numeric(*arguments: Any) -> Any:
    """The common type of all arguments, None where they differ."""
    first = arguments[0]
    return first if all(argument == first for argument in arguments) else None


def _common_floats(*arguments: Any) -> Any:
    common = _numeric(*arguments)
    return common if isinstance(common, types.Float) else None


def _typed(type_: Any, count: int, emit: Emitter, result: Any = None) -> Any:
    """What an intrinsic returns: its signature and its emitter, or None to refuse the operands."""
    if type_ is None:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return emit(builder, type_, *arguments)

    return (type_ if result is None else result)(*([type_] * count)), generate


def _is_float(type_: Any) -> bool:
    return isinstance(type_, types.Float)


def _is_signed(type_: Any) -> bool:
    return isinstance(type_, types.Integer) and bool(getattr(type_, "signed", False))


def _call(builder: Any, name: str, *operands: Any) -> Any:
    """Call an overloaded LLVM intrinsic of one floating type."""
    kind = operands[0].type
    function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind] * len(operands)))
    return builder.call(function, operands)


def _constant(operand: Any, value: float) -> Any:
    return ir.Constant(operand.type, value)


def _less(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    if _is_float(type_):
        return builder.fcmp_ordered("<", a, b)
    return (builder.icmp_signed if _is_signed(type_) else builder.icmp_unsigned)("<", a, b)


# ---- choice and order


@intrinsic
def select(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    """``a`` where the bool ``condition`` holds, else ``b``; both are computed."""
    common = _numeric(a, b)
    if common is None or condition != types.boolean:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return common(types.boolean, common, common), generate


@intrinsic
def fused_multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of floats, rounded once."""

    def emit(builder: Any, type_: Any, *operands: Any) -> Any:
        return _call(builder, "llvm.fma", *operands)

    return _typed(_common_floats(a, b, c), 3, emit)


@intrinsic
def multiply_add(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of floats, rounded once where the machine has an instruction for that."""

    def emit(builder: Any, type_: Any, *operands: Any) -> Any:
        return _call(builder, "llvm.fmuladd", *operands)

    return _typed(_common_floats(a, b, c), 3, emit)


def _extremum(llvm_name: str, first_is_less: bool) -> Emitter:
    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        if _is_float(type_):
            return _call(builder, llvm_name, a, b)
        chosen, other = (a, b) if first_is_less else (b, a)
        return builder.select(_less(builder, type_, a, b), chosen, other)

    return emit


@intrinsic
def maximum(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger; NaN if either is."""
    return _typed(_numeric(a, b), 2, _extremum("llvm.maximum", first_is_less=False))


@intrinsic
def minimum(typing_context: Any, a: Any, b: Any) -> Any:
    """The smaller; NaN if either is."""
    return _typed(_numeric(a, b), 2, _extremum("llvm.minimum", first_is_less=True))


def _extremum_of_numbers(comparison: str) -> Emitter:
    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        wins = builder.or_(builder.fcmp_ordered(comparison, a, b), builder.fcmp_unordered("uno", b, b))
        return builder.select(wins, a, b)

    return emit


@intrinsic
def fmax(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger of two floats; the other one if one is NaN."""
    return _typed(_common_floats(a, b), 2, _extremum_of_numbers(">="))


@intrinsic
def fmin(typing_context: Any, a: Any, b: Any) -> Any:
    """The smaller of two floats; the other one if one is NaN."""
    return _typed(_common_floats(a, b), 2, _extremum_of_numbers("<="))


# ---- integers that wrap around


def _wrapping(operation: str) -> Emitter:
    def emit(builder: Any, type_: Any, a: Any, b: Any) -> Any:
        return getattr(builder, operation)(a, b)

    return emit


def _common_integers(*arguments: Any) -> Any:
    common = _numeric(*arguments)
    return common if isinstance(common, types.Integer) else None


@intrinsic
def wrapping_add(typing_context: Any, a: Any, b: Any) -> Any:
    """The sum of two integers modulo ``2**bits``. numba's own promises LLVM that none overflows."""
    return _typed(_common_integers(a, b), 2, _wrapping("add"))


@intrinsic
def wrapping_sub(typing_context: Any, a: Any, b: Any) -> Any:
    """The difference of two integers modulo ``2**bits``."""
    return _typed(_common_integers(a, b), 2, _wrapping("sub"))


@intrinsic
def wrapping_mul(typing_context: Any, a: Any, b: Any) -> Any:
    """The product of two integers modulo ``2**bits``."""
    return _typed(_common_integers(a, b), 2, _wrapping("mul"))


# ---- signs


def _emit_absolute(builder: Any, type_: Any, x: Any) -> Any:
    if _is_float(type_):
        return _call(builder, "llvm.fabs", x)
    if _is_signed(type_):
        return builder.select(_less(builder, type_, x, _constant(x, 0)), builder.neg(x), x)
    return x


@intrinsic
def absolute(typing_context: Any, x: Any) -> Any:
    """The magnitude; the least signed integer stays as it is."""
    return _typed(x, 1, _emit_absolute)


def _emit_sign(builder: Any, type_: Any, x: Any) -> Any:
    zero, one = _constant(x, 0), _constant(x, 1)
    above = builder.select(_less(builder, type_, zero, x), one, zero)
    if not _is_float(type_):
        if not _is_signed(type_):
            return above
        return builder.select(_less(builder, type_, x, zero), _constant(x, -1), above)
    known = builder.select(_less(builder, type_, x, zero), _constant(x, -1.0), above)
    return builder.select(builder.fcmp_unordered("uno", x, x), x, known)


@intrinsic
def sign(typing_context: Any, x: Any) -> Any:
    """-1, 0 or 1; NaN for NaN."""
    return _typed(x, 1, _emit_sign)


@intrinsic
def copysign(typing_context: Any, magnitude: Any, signed: Any) -> Any:
    """The magnitude of the first float with the sign of the second."""
    common = _common_floats(magnitude, signed)
    return _typed(common, 2, lambda builder, type_, a, b: _call(builder, "llvm.copysign", a, b))


def _emit_signbit(builder: Any, type_: Any, x: Any) -> Any:
    bits = builder.bitcast(x, ir.IntType(type_.bitwidth))
    return builder.icmp_signed("<", bits, _constant(bits, 0))


@intrinsic
def signbit(typing_context: Any, x: Any) -> Any:
    """Whether the sign of a float is negative, that of zero and NaN too. A bool."""
    return _typed(_common_floats(x), 1, _emit_signbit, types.boolean)


# ---- classes of floats


@intrinsic
def isnan(typing_context: Any, x: Any) -> Any:
    """Whether a float is NaN. A bool."""
    emit: Emitter = lambda builder, type_, a: builder.fcmp_unordered("uno", a, a)  # noqa: E731
    return _typed(_common_floats(x), 1, emit, types.boolean)


def _compare_with_infinity(comparison: str) -> Emitter:
    def emit(builder: Any, type_: Any, x: Any) -> Any:
        return builder.fcmp_ordered(comparison, _call(builder, "llvm.fabs", x), _constant(x, float("inf")))

    return emit


@intrinsic
def isinf(typing_context: Any, x: Any) -> Any:
    """Whether a float is infinite. A bool."""
    return _typed(_common_floats(x), 1, _compare_with_infinity("=="), types.boolean)


@intrinsic
def isfinite(typing_context: Any, x: Any) -> Any:
    """Whether a float is neither infinite nor NaN. A bool."""
    return _typed(_common_floats(x), 1, _compare_with_infinity("<"), types.boolean)


# ---- rounding


def _rounding(llvm_name: str) -> Emitter:
    def emit(builder: Any, type_: Any, x: Any) -> Any:
        return _call(builder, llvm_name, x)

    return emit


@intrinsic
def floor(typing_context: Any, x: Any) -> Any:
    """The largest whole float that is not larger."""
    return _typed(_common_floats(x), 1, _rounding("llvm.floor"))


@intrinsic
def ceil(typing_context: Any, x: Any) -> Any:
    """The smallest whole float that is not smaller."""
    return _typed(_common_floats(x), 1, _rounding("llvm.ceil"))


@intrinsic
def trunc(typing_context: Any, x: Any) -> Any:
    """The float without its fraction."""
    return _typed(_common_floats(x), 1, _rounding("llvm.trunc"))


@intrinsic
def rint(typing_context: Any, x: Any) -> Any:
    """The nearest whole float; the even one of two equally near."""
    return _typed(_common_floats(x), 1, _rounding("llvm.rint"))


# ---- division


def _safe_divisor(builder: Any, type_: Any, dividend: Any, divisor: Any) -> tuple[Any, Any]:
    """Whether a divisor is zero, and the divisor with 1 in place of those the processor refuses."""
    zero = builder.icmp_signed("==", divisor, _constant(divisor, 0))
    refused = zero
    if _is_signed(type_):
        lowest = _constant(dividend, -(1 << (type_.bitwidth - 1)))
        overflows = builder.and_(
            builder.icmp_signed("==", dividend, lowest),
            builder.icmp_signed("==", divisor, _constant(divisor, -1)),
        )
        refused = builder.or_(zero, overflows)
    return zero, builder.select(refused, _constant(divisor, 1), divisor)


def _needs_adjusting(builder: Any, type_: Any, remainder_: Any, divisor: Any) -> Any:
    """Whether a remainder with the sign of the dividend must move to the sign of the divisor."""
    if _is_float(type_):
        zero = _constant(remainder_, 0.0)
        signs = builder.xor(
            builder.fcmp_ordered("<", remainder_, zero), builder.fcmp_ordered("<", divisor, zero)
        )
        return builder.and_(builder.fcmp_unordered("!=", remainder_, zero), signs)
    zero = _constant(remainder_, 0)
    signs = builder.xor(builder.icmp_signed("<", remainder_, zero), builder.icmp_signed("<", divisor, zero))
    return builder.and_(builder.icmp_signed("!=", remainder_, zero), signs)


def _emit_floor_divide(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    if _is_float(type_):
        return _emit_float_floor_divide(builder, type_, a, b)
    zero, divisor = _safe_divisor(builder, type_, a, b)
    if not _is_signed(type_):
        return builder.select(zero, _constant(a, 0), builder.udiv(a, divisor))
    quotient = builder.sdiv(a, divisor)
    adjust = _needs_adjusting(builder, type_, builder.srem(a, divisor), divisor)
    lowered = builder.sub(quotient, builder.zext(adjust, a.type))
    return builder.select(zero, _constant(a, 0), lowered)


def _emit_float_floor_divide(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    """The steps of ``npy_floor_divide`` in NumPy's npymath."""
    zero, one = _constant(a, 0.0), _constant(a, 1.0)
    plain = builder.fdiv(a, b)
    rest = builder.frem(a, b)
    quotient = builder.fdiv(builder.fsub(a, rest), b)
    adjust = _needs_adjusting(builder, type_, rest, b)
    quotient = builder.select(adjust, builder.fsub(quotient, one), quotient)
    whole = _call(builder, "llvm.floor", quotient)
    below = builder.fcmp_ordered(">", builder.fsub(quotient, whole), _constant(a, 0.5))
    rounded = builder.select(below, builder.fadd(whole, one), whole)
    vanishes = builder.fcmp_ordered("==", quotient, zero)
    rounded = builder.select(vanishes, _call(builder, "llvm.copysign", zero, plain), rounded)
    return builder.select(builder.fcmp_ordered("==", b, zero), plain, rounded)


@intrinsic
def floor_divide(typing_context: Any, a: Any, b: Any) -> Any:
    """The quotient rounded down; of integers by zero, 0."""
    return _typed(_numeric(a, b), 2, _emit_floor_divide)


def _emit_remainder(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    if _is_float(type_):
        # npy_remainder of NumPy's npymath.
        rest = builder.frem(a, b)
        moved = builder.select(_needs_adjusting(builder, type_, rest, b), builder.fadd(rest, b), rest)
        vanishes = builder.fcmp_ordered("==", rest, _constant(a, 0.0))
        return builder.select(vanishes, _call(builder, "llvm.copysign", _constant(a, 0.0), b), moved)
    zero, divisor = _safe_divisor(builder, type_, a, b)
    if not _is_signed(type_):
        return builder.select(zero, _constant(a, 0), builder.urem(a, divisor))
    rest = builder.srem(a, divisor)
    moved = builder.select(_needs_adjusting(builder, type_, rest, divisor), builder.add(rest, divisor), rest)
    return builder.select(zero, _constant(a, 0), moved)


@intrinsic
def remainder(typing_context: Any, a: Any, b: Any) -> Any:
    """The remainder of :func:`floor_divide`, with the sign of the divisor; of integers by zero, 0."""
    return _typed(_numeric(a, b), 2, _emit_remainder)


def _emit_fmod(builder: Any, type_: Any, a: Any, b: Any) -> Any:
    if _is_float(type_):
        return builder.frem(a, b)
    zero, divisor = _safe_divisor(builder, type_, a, b)
    rest = builder.srem(a, divisor) if _is_signed(type_) else builder.urem(a, divisor)
    return builder.select(zero, _constant(a, 0), rest)


@intrinsic
def fmod(typing_context: Any, a: Any, b: Any) -> Any:
    """The remainder of the quotient rounded to zero, with the sign of the dividend; by integer zero, 0."""
    return _typed(_numeric(a, b), 2, _emit_fmod)


# ---- powers and shifts of integers


def _emit_integer_power(builder: Any, type_: Any, base: Any, exponent: Any) -> Any:
    """Squaring and multiplying, wrapping around; the exponent counts as unsigned."""
    before = builder.block
    head = builder.append_basic_block("power.head")
    body = builder.append_basic_block("power.body")
    after = builder.append_basic_block("power.end")
    builder.branch(head)
    builder.position_at_end(head)
    power, square, rest = (builder.phi(base.type) for _ in range(3))
    builder.cbranch(builder.icmp_unsigned("==", rest, _constant(rest, 0)), after, body)
    builder.position_at_end(body)
    odd = builder.trunc(rest, ir.IntType(1))
    multiplied = builder.select(odd, builder.mul(power, square), power)
    squared = builder.mul(square, square)
    halved = builder.lshr(rest, _constant(rest, 1))
    builder.branch(head)
    for phi, first, following in (
        (power, _constant(base, 1), multiplied),
        (square, base, squared),
        (rest, exponent, halved),
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(following, body)
    builder.position_at_end(after)
    return power


@intrinsic
def integer_power(typing_context: Any, base: Any, exponent: Any) -> Any:
    """An integer to the power of a non-negative integer, wrapping around."""
    common = _numeric(base, exponent)
    return _typed(common if isinstance(common, types.Integer) else None, 2, _emit_integer_power)


def _shift(left: bool) -> Emitter:
    def emit(builder: Any, type_: Any, x: Any, count: Any) -> Any:
        inside = builder.icmp_unsigned("<", count, _constant(count, type_.bitwidth))
        safe = builder.select(inside, count, _constant(count, 0))
        outside = _constant(x, 0)
        if left:
            shifted = builder.shl(x, safe)
        elif _is_signed(type_):
            shifted = builder.ashr(x, safe)
            outside = builder.ashr(x, _constant(x, type_.bitwidth - 1))
        else:
            shifted = builder.lshr(x, safe)
        return builder.select(inside, shifted, outside)

    return emit


@intrinsic
def shift_left(typing_context: Any, x: Any, count: Any) -> Any:
    """Bits moved up; 0 when moved by the width or more, or by a negative count."""
    return _typed(_numeric(x, count), 2, _shift(left=True))


@intrinsic
def shift_right(typing_context: Any, x: Any, count: Any) -> Any:
    """Bits moved down, copies of the sign moving in; all of them when moved by the width or more."""
    return _typed(_numeric(x, count), 2, _shift(left=False))


# ---- casts


def _whole(builder: Any, x: Any, bits: int) -> Any:
    """A float without its fraction as a signed integer; ``-2**(bits - 1)`` for NaN and beyond the range.

    The processor's instruction gives that, too; LLVM says nothing of such numbers, and puts whatever a
    register holds where it knows at compile time that ``x`` is one.
    """
    whole = ir.IntType(bits)
    fits = builder.fcmp_ordered("<", _call(builder, "llvm.fabs", x), _constant(x, 2.0 ** (bits - 1)))
    return builder.select(fits, builder.fptosi(x, whole), ir.Constant(whole, -(2 ** (bits - 1))))


def _emit_float_to_integer(builder: Any, source: Any, target: Any, x: Any) -> Any:
    """The steps C compilers take on x86-64, which decide what NumPy gives beyond the target's range."""
    if target.bitwidth == 64 and not target.signed:
        limit = _constant(x, 2.0**63)
        above = _whole(builder, builder.fsub(x, limit), 64)
        high = builder.xor(above, ir.Constant(ir.IntType(64), -(2**63)))
        return builder.select(builder.fcmp_ordered(">=", x, limit), high, _whole(builder, x, 64))
    through = 64 if target.bitwidth == 64 or (target.bitwidth == 32 and not target.signed) else 32
    whole = _whole(builder, x, through)
    return whole if through == target.bitwidth else builder.trunc(whole, ir.IntType(target.bitwidth))


@intrinsic
def float_to_integer(typing_context: Any, x: Any, dtype: Any) -> Any:
    """A float without its fraction as an integer of ``dtype``, a numba type."""
    if not isinstance(x, types.Float) or not isinstance(dtype, types.NumberClass):
        return None
    target = dtype.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit_float_to_integer(builder, x, target, arguments[0])

    return target(x, dtype), generate
