"""Logarithms, roots, circular and hyperbolic functions of complex numbers, computed of their parts.

Values at infinities, NaN and signed zeros are those of C's functions (Annex G), which NumPy calls. Where
squares or exponentials would overflow, or what is left after a difference be rounded, numbers are scaled, or
kept as two, so that results overflow and vanish where C's do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from esat.ops.elementwise.complex_forms import SCALES, SHIFTED, ComplexForm, Parts, Real, scaled_root


def _choose(real: Real, condition: int, one: int, other: int) -> int:
    return real("select({0}, {1}, {2})", condition, one, other)


def log(real: Real, x: Parts) -> Parts:
    """Of sizes near 1 by ``log1p`` of the square less one, each term of which is kept with its error."""
    a, b = x
    root, scale = scaled_root(real, x)
    unit = repr(SCALES[real.dtype][2] * math.log(2.0))
    shift = f"select({{1}} < const(1), const({unit}), select({{1}} > const(1), const(-{unit}), const(0)))"
    far = real(f"log({{0}}) + {shift}", root, scale)
    large = real("maximum(absolute({0}), absolute({1}))", a, b)
    small = real("minimum(absolute({0}), absolute({1}))", a, b)
    squares = [real("{0} * {0}", one) for one in (large, small)]
    errors = [
        real("fused_multiply_add({0}, {0}, -{1})", one, square)
        for one, square in zip((large, small), squares, strict=True)
    ]
    less = real("{0} - const(1)", squares[0])
    lost = real("{0} - ({1} + const(1))", squares[0], less)
    excess = real("({0} + {1}) + ({2} + {3} + {4})", less, squares[1], *errors, lost)
    is_near = real.is_true("({0} + {1} > const(0.5)) & ({0} + {1} < const(3))", *squares)
    near = real("const(0.5) * log1p({0})", excess)
    size = real("select(isinf({0}) | isinf({1}), const(inf), {2})", a, b, _choose(real, is_near, near, far))
    return size, real("arctan2({1}, {0})", a, b)


def scaled_log(base: float) -> ComplexForm:
    """The logarithm to a base, as NumPy multiplies both parts of the natural one."""
    factor = repr(1.0 / math.log(base))

    def form(real: Real, x: Parts) -> Parts:
        first, second = log(real, x)
        return real(f"{{0}} * const({factor})", first), real(f"{{0}} * const({factor})", second)

    return form


def sqrt(real: Real, x: Parts) -> Parts:
    """The root with a real part that is not negative; ``csqrt``."""
    a, b = x
    root, scale = scaled_root(real, x)
    power = SCALES[real.dtype][2] // 2
    back = real(
        f"select({{0}} < const(1), const({2.0**power!r}),"
        f" select({{0}} > const(1), const({2.0**-power!r}), const(1)))",
        scale,
    )
    larger = real("sqrt(const(0.5) * ({0} + absolute({1} * {2}))) * {3}", root, a, scale, back)
    smaller = real("const(0.5) * (absolute({0}) / {1})", b, larger)
    is_negative = real.is_true("{0} < const(0)", a)
    first = _choose(real, is_negative, smaller, larger)
    second = real("copysign({0}, {1})", _choose(real, is_negative, larger, smaller), b)
    is_zero = real.is_true("({0} == const(0)) & ({1} == const(0))", a, b)
    first, second = real("select({0}, const(0), {1})", is_zero, first), _choose(real, is_zero, b, second)
    # Of infinite real parts.
    along = real("select(isnan({0}), {0}, copysign(const(0), {0}))", b)
    across = real("select(isnan({0}), {0}, const(0))", b)
    infinite = real("copysign(const(inf), {0})", b)
    first = real("select(isinf({0}), select({0} > const(0), {0}, {1}), {2})", a, across, first)
    second = real("select(isinf({0}), select({0} > const(0), {1}, {2}), {3})", a, along, infinite, second)
    return (
        real("select(isinf({0}), const(inf), {1})", b, first),
        real("select(isinf({0}), {0}, {1})", b, second),
    )


def _circular(real: Real, b: int) -> tuple[int, int, int]:
    """Whether an angle is finite, its cosine and its sine."""
    has_angle = real.is_true("isfinite({0})", b)
    angle = real("select({0}, {1}, const(0))", has_angle, b)
    return has_angle, real("cos({0})", angle), real("sin({0})", angle)


def _hyperbolic(real: Real, a: int) -> tuple[int, int, int]:
    """Hyperbolic sine and cosine, both divided by the third, which a sine or cosine is multiplied by first:
    what it makes of the smallest numbers is not rounded then."""
    limit, factor = SHIFTED[real.dtype]
    is_large = real.is_true(f"absolute({{0}}) > const({limit})", a)
    half = real(f"const(0.5) * exp(absolute({{0}}) - const({limit}))", a)
    near = real("select({0}, const(0), {1})", is_large, a)
    return (
        real("select({0}, copysign({1}, {2}), sinh({3}))", is_large, half, a, near),
        real("select({0}, {1}, cosh({2}))", is_large, half, near),
        real(f"select({{0}}, const({factor}), const(1))", is_large),
    )


def sinh(real: Real, x: Parts) -> Parts:
    """``csinh``."""
    a, b = x
    has_angle, cosine, sine = _circular(real, b)
    odd, even, scale = _hyperbolic(real, a)
    limiting = real("select({0} == const(0), {0}, select(isinf({0}), const(inf), const(nan)))", a)
    first = _choose(real, has_angle, real("{0} * ({1} * {2})", odd, cosine, scale), limiting)
    second = real("select({0}, {1} * ({2} * {3}), const(nan))", has_angle, even, sine, scale)
    return first, real("select({0} == const(0), {0}, {1})", b, second)


def cosh(real: Real, x: Parts) -> Parts:
    """``ccosh``."""
    a, b = x
    has_angle, cosine, sine = _circular(real, b)
    odd, even, scale = _hyperbolic(real, a)
    limiting = real("select(isinf({0}), const(inf), const(nan))", a)
    first = _choose(real, has_angle, real("{0} * ({1} * {2})", even, cosine, scale), limiting)
    vanishing = real("select({0} == const(0), const(0), const(nan))", a)
    second = _choose(real, has_angle, real("{0} * ({1} * {2})", odd, sine, scale), vanishing)
    signed = real("select(isnan({0}), {1}, {1} * copysign(const(1), {0}))", a, b)
    return first, real("select({0} == const(0), {1}, {2})", b, signed, second)


_FLAT: Mapping[str, str] = MappingProxyType({"float64": "354.0", "float32": "44.0"})
"""From here on hyperbolic tangents are 1, and exponentials of twice that are finite: those of glibc."""


def tanh(real: Real, x: Parts) -> Parts:
    """``ctanh``, over ``sinh**2 + cos**2``; far off the imaginary part is four times an exponential."""
    a, b = x
    has_angle, cosine, sine = _circular(real, b)
    is_far = real.is_true(f"absolute({{0}}) > const({_FLAT[real.dtype]})", a)
    near = real("select({0}, const(0), {1})", is_far, a)
    odd, even = real("sinh({0})", near), real("cosh({0})", near)
    divisor = real("{0} * {0} + {1} * {1}", odd, cosine)
    one = real("copysign(const(1), {0})", a)
    first = _choose(real, is_far, one, real("{0} * {1} / {2}", odd, even, divisor))
    far = real("const(4) * {0} * {1} * exp(const(-2) * absolute({2}))", sine, cosine, a)
    second = _choose(real, is_far, far, real("{0} * {1} / {2}", sine, cosine, divisor))
    # Where the angle is not finite, and beside infinities.
    limiting = real("select({0} == const(0), {0}, const(nan))", a)
    first = _choose(real, has_angle, first, limiting)
    second = real("select({0}, {1}, const(nan))", has_angle, second)
    first = real("select(isinf({0}), {1}, {2})", a, one, first)
    turns = real.is_true("{0} & (absolute({1}) > const(1))", has_angle, b)
    zero = real("copysign(const(0), select({0}, {1} * {2}, {3}))", turns, sine, cosine, b)
    second = real("select(isinf({0}), {1}, {2})", a, zero, second)
    return first, real("select(({0} == const(0)) & isnan({1}), {0}, {2})", b, a, second)


def turned(form: ComplexForm) -> ComplexForm:
    """A circular function from the hyperbolic one: ``sin(z) = -i sinh(iz)``, and tangents alike."""

    def circular(real: Real, x: Parts) -> Parts:
        first, second = form(real, (x[1], x[0]))  # type: ignore[misc]
        return second, first

    return circular


def cos(real: Real, x: Parts) -> Parts:
    """``cosh(iz)``."""
    return cosh(real, (real("-{0}", x[1]), x[0]))
