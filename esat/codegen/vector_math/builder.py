"""Formulas over LLVM values: floats, integers and masks with Python's operators.

A :class:`Float` holds an LLVM value, either one number or a vector of lanes, and the place where
instructions go. Writing ``a * b + 1.0`` emits a multiplication and an addition; nothing is emitted
with fast-math flags, so every formula computes exactly what it says, in a vector as in a scalar.

Double words are unevaluated sums of two floats: about twice the significand. The error-free transformations
are Knuth's sum and the product whose error a fused multiply-add finds (see Hida, Li and Bailey, "Library for
double-double and quad-double arithmetic", 2000). The fused operation is asked for by name, so that values are
the same on every processor.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

from llvmlite import ir

from esat.base.records import record
from esat.codegen.ground.target import Target


@record(frozen=True)
class Format:
    """An IEEE 754 binary format, and how many numbers of it stand side by side.

    Attributes
    ----------
    bits
        32 or 64.
    target
        The machine that computes with them.
    lanes
        1 for a scalar.
    """

    bits: int
    target: Target
    lanes: int = 1

    @property
    def fraction_bits(self) -> int:
        """Stored bits of the significand."""
        return 52 if self.bits == 64 else 23

    @property
    def bias(self) -> int:
        """Bias of the exponent."""
        return 1023 if self.bits == 64 else 127

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with a full significand."""
        return math.ldexp(1.0, 1 - self.bias)

    def shaped(self, element: Any) -> Any:
        """The LLVM type of ``lanes`` values of type ``element``."""
        return element if self.lanes == 1 else ir.VectorType(element, self.lanes)

    @property
    def float_type(self) -> Any:
        """The LLVM type of numbers."""
        return self.shaped(ir.DoubleType() if self.bits == 64 else ir.FloatType())

    @property
    def integer_type(self) -> Any:
        """The LLVM type of integers as wide as the numbers."""
        return self.shaped(ir.IntType(self.bits))

    @property
    def suffix(self) -> str:
        """How LLVM's overloaded intrinsics name this type, for example ``v8f64``."""
        return f"f{self.bits}" if self.lanes == 1 else f"v{self.lanes}f{self.bits}"

    def constant(self, element_type: Any, value: float) -> Any:
        """The LLVM constant with ``value`` in every lane."""
        if self.lanes == 1:
            return ir.Constant(element_type, value)
        return ir.Constant(element_type, [ir.Constant(element_type.element, value)] * self.lanes)

    def round(self, value: float) -> float:
        """The number of this format nearest to ``value``."""
        return value if self.bits == 64 else float(struct.unpack("f", struct.pack("f", value))[0])

    def bit_pattern(self, value: float) -> int:
        """The bits of ``value`` as a signed integer."""
        packed = struct.pack("d", value) if self.bits == 64 else struct.pack("f", value)
        return int.from_bytes(packed, "little" if struct.pack("H", 1)[0] else "big", signed=True)


@record(frozen=True, eq=False)
class Expression:
    """An LLVM value together with the builder that emits what is computed from it."""

    builder: Any
    value: Any
    format: Format

    def mask(self, value: Any) -> Mask:
        """Wrap a comparison's result."""
        return Mask(self.builder, value, self.format)

    def float(self, value: Any) -> Float:
        """Wrap an LLVM value, or a constant in every lane."""
        if isinstance(value, Float):
            return value
        if isinstance(value, int | float):
            rounded = self.format.round(float(value))
            value = self.format.constant(self.format.float_type, rounded)
        return Float(self.builder, value, self.format)

    def integer(self, value: Any) -> Integer:
        """Wrap an LLVM value, or a constant in every lane."""
        if isinstance(value, Integer):
            return value
        if isinstance(value, int):
            value = self.format.constant(self.format.integer_type, value)
        return Integer(self.builder, value, self.format)


class Float(Expression):
    """Floating point numbers. Comparisons are ordered: false where an operand is NaN."""

    def __add__(self, other: Float | float) -> Float:
        return self.float(self.builder.fadd(self.value, self.float(other).value))

    def __radd__(self, other: float) -> Float:
        return self.float(other) + self

    def __sub__(self, other: Float | float) -> Float:
        return self.float(self.builder.fsub(self.value, self.float(other).value))

    def __rsub__(self, other: float) -> Float:
        return self.float(other) - self

    def __mul__(self, other: Float | float) -> Float:
        return self.float(self.builder.fmul(self.value, self.float(other).value))

    def __rmul__(self, other: float) -> Float:
        return self.float(other) * self

    def __truediv__(self, other: Float | float) -> Float:
        return self.float(self.builder.fdiv(self.value, self.float(other).value))

    def __rtruediv__(self, other: float) -> Float:
        return self.float(other) / self

    def __neg__(self) -> Float:
        return self.float(self.builder.fneg(self.value))

    def __abs__(self) -> Float:
        return self._intrinsic("fabs")

    def _compare(self, comparison: str, other: Float | float) -> Mask:
        return self.mask(self.builder.fcmp_ordered(comparison, self.value, self.float(other).value))

    def __lt__(self, other: Float | float) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: Float | float) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: Float | float) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: Float | float) -> Mask:
        return self._compare(">=", other)

    def equals(self, other: Float | float) -> Mask:
        """Equal as numbers: zeros of either sign are, NaN never is."""
        return self._compare("==", other)

    def is_nan(self) -> Mask:
        """Not a number."""
        return self.mask(self.builder.fcmp_unordered("uno", self.value, self.value))

    def _intrinsic(self, name: str, *others: Float) -> Float:
        """Call an overloaded LLVM intrinsic whose operands and result all have this type."""
        type_ = self.format.float_type
        function_type = ir.FunctionType(type_, [type_] * (1 + len(others)))
        full_name = f"llvm.{name}.{self.format.suffix}"
        module = self.builder.module
        function = module.globals.get(full_name) or ir.Function(module, function_type, full_name)
        return self.float(self.builder.call(function, [self.value, *(other.value for other in others)]))

    def times_power_of_two(self, exponent: Integer) -> Float:
        """``self * 2**exponent``, rounded once; slow library calls where the processor cannot."""
        numbers, integers = self.format.float_type, self.format.integer_type
        function_type = ir.FunctionType(numbers, [numbers, integers])
        suffix = self.format.suffix
        full_name = f"llvm.ldexp.{suffix}.{suffix.replace('f', 'i')}"
        module = self.builder.module
        function = module.globals.get(full_name) or ir.Function(module, function_type, full_name)
        return self.float(self.builder.call(function, [self.value, exponent.value]))

    def multiply_add(self, factor: Float | float, addend: Float | float) -> Float:
        """``self * factor + addend``, rounded once or twice, as the processor prefers."""
        return self._intrinsic("fmuladd", self.float(factor), self.float(addend))

    def fused_multiply_add(self, factor: Float, addend: Float) -> Float:
        """``self * factor + addend`` rounded once; a slow library call where the processor cannot."""
        return self._intrinsic("fma", factor, addend)

    def sqrt(self) -> Float:
        """Square root, correctly rounded; NaN below zero."""
        return self._intrinsic("sqrt")

    def round_to_even(self) -> Float:
        """The nearest integer, ties to even."""
        return self._intrinsic("rint")

    def floor(self) -> Float:
        """The largest integer not above."""
        return self._intrinsic("floor")

    def with_sign_of(self, other: Float) -> Float:
        """Take this magnitude with another number's sign bit."""
        return self._intrinsic("copysign", other)

    def clamp(self, low: float, high: float) -> Float:
        """Within ``[low, high]``; NaN stays NaN."""
        above = (self < low).select(low, self)
        return (above > high).select(high, above)

    def polynomial(self, coefficients: tuple[float, ...]) -> Float:
        """``sum(coefficients[i] * self**i)``.

        Short polynomials follow Horner's rule; longer ones are two of the square, one for even and
        one for odd powers, so that the processor works on both at once.
        """
        if len(coefficients) < 6:
            return self._horner(coefficients)
        square = self * self
        odd = square._horner(coefficients[1::2])
        return odd.multiply_add(self, square._horner(coefficients[::2]))

    def _horner(self, coefficients: tuple[float, ...]) -> Float:
        result = self.float(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = result.multiply_add(self, coefficient)
        return result

    def bits(self) -> Integer:
        """The bit pattern."""
        return self.integer(self.builder.bitcast(self.value, self.format.integer_type))

    def sign_everywhere(self) -> Integer:
        """All bits are the sign bit."""
        return self.bits() >> (self.format.bits - 1)

    def is_below_zero(self) -> Mask:
        """Less than zero; of NaN and -0.0, for which no choice may depend on it, it says anything.

        Where choices are made by sign bits, that of the number itself serves as well.
        """
        return self < 0.0 if self.format.target.selects_by_masks else self.bits() < 0

    def integral_to_integer(self) -> Integer:
        """An integral number of magnitude below ``2**(fraction_bits - 2)`` as an integer.

        Adding 1.5 * 2**fraction_bits leaves the integer in the low bits: cheaper than a conversion,
        which many processors lack for vectors of 64-bit integers.
        """
        magic = 1.5 * 2.0**self.format.fraction_bits
        return (self + magic).bits() - self.format.bit_pattern(magic)

    def nearest_multiple(self, factor: float) -> tuple[Float, Integer]:
        """The integer nearest to ``self * factor``, of magnitude as there, as a number and as an integer.

        The addition that leaves the integer in the low bits also rounds: two operations fewer than by itself.
        """
        magic = 1.5 * 2.0**self.format.fraction_bits
        shifted = self.multiply_add(factor, magic)
        return shifted - magic, shifted.bits() - self.format.bit_pattern(magic)

    def convert(self, bits: int) -> Float:
        """The same number in the format of ``bits`` bits, rounded if that is narrower."""
        target = replace(self.format, bits=bits)
        if bits == self.format.bits:
            return self
        emit = self.builder.fpext if bits > self.format.bits else self.builder.fptrunc
        return Float(self.builder, emit(self.value, target.float_type), target)


class Integer(Expression):
    """Signed integers in two's complement."""

    def __add__(self, other: Integer | int) -> Integer:
        return self.integer(self.builder.add(self.value, self.integer(other).value))

    def __sub__(self, other: Integer | int) -> Integer:
        return self.integer(self.builder.sub(self.value, self.integer(other).value))

    def __lshift__(self, count: int) -> Integer:
        return self.integer(self.builder.shl(self.value, self.integer(count).value))

    def __rshift__(self, count: int) -> Integer:
        return self.integer(self.builder.ashr(self.value, self.integer(count).value))

    def unsigned_half(self) -> Integer:
        """Half of an integer that is not negative, rounded down; AVX2 has no other shift for 64 bits."""
        return self.integer(self.builder.lshr(self.value, self.integer(1).value))

    def __and__(self, other: Integer | int) -> Integer:
        return self.integer(self.builder.and_(self.value, self.integer(other).value))

    def __or__(self, other: Integer | int) -> Integer:
        return self.integer(self.builder.or_(self.value, self.integer(other).value))

    def __xor__(self, other: Integer | int) -> Integer:
        return self.integer(self.builder.xor(self.value, self.integer(other).value))

    def __gt__(self, other: Integer | int) -> Mask:
        return self.mask(self.builder.icmp_signed(">", self.value, self.integer(other).value))

    def __lt__(self, other: Integer | int) -> Mask:
        return self.mask(self.builder.icmp_signed("<", self.value, self.integer(other).value))

    def is_zero(self) -> Mask:
        """All bits are clear."""
        return self.mask(self.builder.icmp_signed("==", self.value, self.integer(0).value))

    def to_float(self) -> Float:
        """The integer as a number."""
        return self.float(self.builder.sitofp(self.value, self.format.float_type))

    def small_to_float(self, less: tuple[Mask, int] | None = None) -> Float:
        """An integer of magnitude below ``2**(fraction_bits - 2)`` as a number, without a conversion.

        Parameters
        ----------
        less
            Where to take away a small integer; that costs nothing besides the choice.
        """
        magic = 1.5 * 2.0**self.format.fraction_bits
        base = self.float(magic) if less is None else less[0].select(magic + less[1], magic)
        return (self + self.format.bit_pattern(magic)).bits_to_float() - base

    def narrow(self) -> Integer:
        """The low 32 bits."""
        target = replace(self.format, bits=32)
        return Integer(self.builder, self.builder.trunc(self.value, target.integer_type), target)

    def bits_to_float(self) -> Float:
        """The number with this bit pattern."""
        return self.float(self.builder.bitcast(self.value, self.format.float_type))

    def power_of_two(self) -> Float:
        """``2.0**self`` for exponents of normal numbers; garbage, but no trap, elsewhere."""
        return ((self + self.format.bias) << self.format.fraction_bits).bits_to_float()


class Mask(Expression):
    """Truth values, one per lane."""

    def __and__(self, other: Mask) -> Mask:
        return self.mask(self.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return self.mask(self.builder.or_(self.value, other.value))

    def __xor__(self, other: Mask) -> Mask:
        return self.mask(self.builder.xor(self.value, other.value))

    def __invert__(self) -> Mask:
        return self.mask(self.builder.not_(self.value))

    def select(self, when_true: Float | float, when_false: Float | float) -> Float:
        """One of two numbers per lane; both are computed."""
        yes, no = self.float(when_true), self.float(when_false)
        return self.float(self.builder.select(self.value, yes.value, no.value))

    def select_integer(self, when_true: Integer | int, when_false: Integer | int) -> Integer:
        """One of two integers per lane."""
        yes, no = self.integer(when_true), self.integer(when_false)
        return self.integer(self.builder.select(self.value, yes.value, no.value))


@record(frozen=True)
class DoubleWord:
    """The value ``high + low``, where ``low`` is below the last bit of ``high``."""

    high: Float
    low: Float

    def __add__(self, other: DoubleWord) -> DoubleWord:
        total = two_sum(self.high, other.high)
        return fast_two_sum(total.high, total.low + (self.low + other.low))

    def __mul__(self, other: DoubleWord) -> DoubleWord:
        product = two_product(self.high, other.high)
        cross = self.high * other.low + self.low * other.high
        return fast_two_sum(product.high, product.low + cross)

    def __truediv__(self, other: DoubleWord) -> DoubleWord:
        reciprocal = 1.0 / other.high
        quotient = self.high * reciprocal
        remainder = (-quotient).fused_multiply_add(other.high, self.high) + self.low - quotient * other.low
        return fast_two_sum(quotient, remainder * reciprocal)


def two_sum(a: Float, b: Float) -> DoubleWord:
    """``a + b`` exactly."""
    total = a + b
    part = total - a
    return DoubleWord(total, (a - (total - part)) + (b - part))


def fast_two_sum(a: Float, b: Float) -> DoubleWord:
    """``a + b`` exactly, for ``abs(a) >= abs(b)``."""
    total = a + b
    return DoubleWord(total, b - (total - a))


def two_product(a: Float, b: Float) -> DoubleWord:
    """``a * b`` exactly, unless it overflows or its low word underflows."""
    product = a * b
    return DoubleWord(product, a.fused_multiply_add(b, -product))
