"""Elementwise functions of complex numbers as computations of real and imaginary parts.

Arrays hold complex numbers; between loads and stores there are only real ones, which loops over vectors
compute as they do others. Results are NumPy's: a product is ``(ac - bd, ad + bc)`` without exceptions, of
which the second term is rounded before it is added, as in NumPy's loops over vectors; a quotient is Smith's
(Algorithm 116, Comm. ACM 5, 1962).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

Parts: TypeAlias = tuple[int, int]
"""The values of a real and of an imaginary part."""
Operand: TypeAlias = int | Parts
"""A number, or the parts of a complex one."""
ComplexForm: TypeAlias = "Callable[..., Operand]"
"""From what computes real values, and the operands, to the result; bools among the operands are numbers."""

PART_DTYPES: Mapping[str, str] = MappingProxyType({"complex64": "float32", "complex128": "float64"})
"""The dtype of the parts of each complex dtype."""


class Real(Protocol):
    """Computes values of the dtype of the parts: ``real(template, *operands)``, and bools of them."""

    dtype: str

    def __call__(self, template: str, *operands: int) -> int: ...

    def is_true(self, template: str, *operands: int) -> int:
        """A bool of operands."""


def real_part(real: Real, x: Parts) -> int:
    """The real part."""
    return x[0]


def imaginary_part(real: Real, x: Parts) -> int:
    """The imaginary part."""
    return x[1]


def filled(real: Real, x: Operand, y: Parts) -> Parts:
    """The last operand."""
    return y


def add(real: Real, x: Parts, y: Parts) -> Parts:
    """The sums of the parts."""
    return real("{0} + {1}", x[0], y[0]), real("{0} + {1}", x[1], y[1])


def sub(real: Real, x: Parts, y: Parts) -> Parts:
    """The differences of the parts."""
    return real("{0} - {1}", x[0], y[0]), real("{0} - {1}", x[1], y[1])


def neg(real: Real, x: Parts) -> Parts:
    """Both parts with the other sign."""
    return real("-{0}", x[0]), real("-{0}", x[1])


def conj(real: Real, x: Parts) -> Parts:
    """The imaginary part with the other sign."""
    return x[0], real("-{0}", x[1])


def mul(real: Real, x: Parts, y: Parts) -> Parts:
    """``(ac - bd, ad + bc)``."""
    (a, b), (c, d) = x, y
    return (
        real("multiply_add({0}, {1}, -{2} * {3})", a, c, b, d),
        real("multiply_add({0}, {1}, {2} * {3})", a, d, b, c),
    )


def div(real: Real, x: Parts, y: Parts) -> Parts:
    """Smith's quotient; by zero, that of each part."""
    (a, b), (c, d) = x, y
    in_order = real.is_true("absolute({0}) >= absolute({1})", c, d)
    larger = real("select({0}, {1}, {2})", in_order, c, d)
    smaller = real("select({0}, {1}, {2})", in_order, d, c)
    ratio = real("{0} / {1}", smaller, larger)
    scale = real("const(1) / ({0} + {1} * {2})", larger, smaller, ratio)
    first = real("select({0}, {1} + {2} * {3}, {1} * {3} + {2})", in_order, a, b, ratio)
    second = real("select({0}, {2} - {1} * {3}, {2} * {3} - {1})", in_order, a, b, ratio)
    by_zero = real.is_true("({0} == const(0)) & ({1} == const(0))", c, d)
    quotient = "select({0}, {1} / absolute({2}), {3} * {4})"
    return real(quotient, by_zero, a, c, first, scale), real(quotient, by_zero, b, c, second, scale)


def reciprocal(real: Real, x: Parts) -> Parts:
    """As NumPy's loop: of zero both parts are what division by it makes of them."""
    c, d = x
    in_order = real.is_true("absolute({0}) >= absolute({1})", c, d)
    larger = real("select({0}, {1}, {2})", in_order, c, d)
    smaller = real("select({0}, {1}, {2})", in_order, d, c)
    ratio = real("{0} / {1}", smaller, larger)
    divisor = real("{0} + {1} * {2}", larger, smaller, ratio)
    return (
        real("select({0}, const(1), {1}) / {2}", in_order, ratio, divisor),
        real("select({0}, -{1}, const(-1)) / {2}", in_order, ratio, divisor),
    )


SCALES = {"float64": ("1e150", "1e-140", 600), "float32": ("1e18", "1e-15", 100)}
"""Between the first two numbers the squares of parts neither overflow nor lose bits that count; others are
scaled by two to this power, or one by it."""


def scaled_root(real: Real, x: Parts) -> tuple[int, int]:
    """The root of the sum of squares of both parts multiplied by the second result."""
    high, low, power = SCALES[real.dtype]
    largest = real("fmax(absolute({0}), absolute({1}))", *x)
    scale = real(_scaling(high, low, 2.0**-power, 2.0**power), largest)
    return real("sqrt({0} * {0} + {1} * {1})", *(real("{0} * {1}", one, scale) for one in x)), scale


def _scaling(high: str, low: str, above: float, below: float) -> str:
    smaller = f"select({{0}} < const({low}), const({below!r}), const(1))"
    return f"select({{0}} > const({high}), const({above!r}), {smaller})"


def absolute(real: Real, x: Parts) -> int:
    """The root of the sum of squares; infinite where a part is, NaN or not."""
    root, scale = scaled_root(real, x)
    power = SCALES[real.dtype][2]
    back = real(
        f"select({{0}} < const(1), const({2.0**power!r}),"
        f" select({{0}} > const(1), const({2.0**-power!r}), const(1)))",
        scale,
    )
    return real("select(isinf({0}) | isinf({1}), const(inf), {2} * {3})", *x, root, back)


SHIFTED = {"float64": ("700.0", "1.0142320547350045e+304"), "float32": ("80.0", "5.54062238439351e+34")}
"""Real parts above the first number have it taken away; its exponential is the factor afterwards."""


def exp(real: Real, x: Parts) -> Parts:
    """As C's ``cexp`` (Annex G): large real parts overflow only where the result does, the imaginary part of
    a real number stays what it is, and next to minus infinity any angle gives zero."""
    a, b = x
    limit, factor = SHIFTED[real.dtype]
    is_large = real.is_true(f"({{0}} > const({limit})) & isfinite({{0}})", a)
    power = real(f"exp({{0}} - select({{1}}, const({limit}), const(0)))", a, is_large)
    scale = real(f"select({{0}}, const({factor}), const(1))", is_large)
    has_angle = real.is_true("isfinite({0})", b)
    angle = real("select({0}, {1}, const(0))", has_angle, b)
    first = real("{0} * cos({1}) * {2}", power, angle, scale)
    second = real("{0} * sin({1}) * {2}", power, angle, scale)
    limiting = real("select(isfinite({0}), const(nan), {1})", a, power)
    vanishing = real("select({0} == -inf, copysign(const(0), {1}), const(nan))", a, b)
    second = real("select({0}, {1}, {2})", has_angle, second, vanishing)
    return (
        real("select({0}, {1}, {2})", has_angle, first, limiting),
        real("select({0} == const(0), {0}, {1})", b, second),
    )


def sqr(real: Real, x: Parts) -> Parts:
    """A product with itself."""
    return mul(real, x, x)


def angle(real: Real, x: Parts) -> int:
    """The angle in the complex plane."""
    return real("arctan2({1}, {0})", *x)


def switch(real: Real, condition: int, x: Parts, y: Parts) -> Parts:
    """The parts of one of two numbers."""
    return tuple(real("select({0}, {1}, {2})", condition, *pair) for pair in zip(x, y, strict=True))  # type: ignore[return-value]


def either(template: str) -> ComplexForm:
    """A bool of one number: whether ``template`` holds of its two parts."""
    return lambda real, x: real.is_true(template, *x)


def both(template: str) -> ComplexForm:
    """A bool of two numbers, of which ``template`` compares real parts and imaginary ones."""
    return lambda real, x, y: real.is_true(template, x[0], y[0], x[1], y[1])
