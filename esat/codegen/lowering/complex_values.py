"""Elementwise functions of complex numbers as computations of real and imaginary parts.

Arrays hold complex numbers; between loads and stores there are only real ones, which loops over vectors
compute as they do others. Results are NumPy's: a product is ``(ac - bd, ad + bc)`` without exceptions, a
quotient is Smith's (Algorithm 116, Comm. ACM 5, 1962).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

Parts: TypeAlias = tuple[int, int]
"""The values of a real and of an imaginary part."""
Operand: TypeAlias = int | Parts
"""A number, or the parts of a complex one."""

PART_DTYPES: Mapping[str, str] = MappingProxyType({"complex64": "float32", "complex128": "float64"})
"""The dtype of the parts of each complex dtype."""


class Real(Protocol):
    """Computes values of the dtype of the parts: ``real(template, *operands)``, and bools of them."""

    dtype: str

    def __call__(self, template: str, *operands: int) -> int: ...

    def is_true(self, template: str, *operands: int) -> int:
        """A bool of operands."""


def _add(real: Real, x: Parts, y: Parts) -> Parts:
    return real("{0} + {1}", x[0], y[0]), real("{0} + {1}", x[1], y[1])


def _sub(real: Real, x: Parts, y: Parts) -> Parts:
    return real("{0} - {1}", x[0], y[0]), real("{0} - {1}", x[1], y[1])


def _neg(real: Real, x: Parts) -> Parts:
    return real("-{0}", x[0]), real("-{0}", x[1])


def _conj(real: Real, x: Parts) -> Parts:
    return x[0], real("-{0}", x[1])


def _mul(real: Real, x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    return real("{0} * {1} - {2} * {3}", a, c, b, d), real("{0} * {1} + {2} * {3}", a, d, b, c)


def _div(real: Real, x: Parts, y: Parts) -> Parts:
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


def _reciprocal(real: Real, x: Parts) -> Parts:
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


_SCALES = {"float64": ("1e150", "1e-140", 600), "float32": ("1e18", "1e-15", 100)}
"""Between the first two numbers the squares of parts neither overflow nor lose bits that count; others are
scaled by two to this power, or one by it."""


def _abs(real: Real, x: Parts) -> int:
    """The root of the sum of squares; infinite where a part is, NaN or not."""
    high, low, power = _SCALES[real.dtype]
    largest = real("fmax(absolute({0}), absolute({1}))", *x)
    scaling = (
        f"select({{0}} > const({high}), const({{1}}), select({{0}} < const({low}), const({{2}}), const(1)))"
    )
    small, large = repr(2.0**-power), repr(2.0**power)
    scale = real(scaling.format("{0}", small, large), largest)
    back = real(scaling.format("{0}", large, small), largest)
    root = real("sqrt({0} * {0} + {1} * {1})", *(real("{0} * {1}", one, scale) for one in x))
    return real("select(isinf({0}) | isinf({1}), const(inf), {2} * {3})", *x, root, back)


_SHIFTED = {"float64": ("700.0", "1.0142320547350045e+304"), "float32": ("80.0", "5.54062238439351e+34")}
"""Real parts above the first number have it taken away; its exponential is the factor afterwards."""


def _exp(real: Real, x: Parts) -> Parts:
    """As C's ``cexp`` (Annex G): large real parts overflow only where the result does, the imaginary part of
    a real number stays what it is, and next to minus infinity any angle gives zero."""
    a, b = x
    limit, factor = _SHIFTED[real.dtype]
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


RULES: Mapping[str, Callable[..., Operand]] = MappingProxyType(
    {
        "add": _add,
        "sub": _sub,
        "neg": _neg,
        "conj": _conj,
        "mul": _mul,
        "div": _div,
        "sqr": lambda real, x: _mul(real, x, x),
        "reciprocal": _reciprocal,
        "abs": _abs,
        "exp": _exp,
        "real": lambda real, x: x[0],
        "imag": lambda real, x: x[1],
        "angle": lambda real, x: real("arctan2({1}, {0})", *x),
        "fill": lambda real, x, y: y,
        "switch": lambda real, condition, x, y: tuple(
            real("select({0}, {1}, {2})", condition, one, other) for one, other in zip(x, y, strict=True)
        ),
        "eq": lambda real, x, y: real.is_true("({0} == {1}) & ({2} == {3})", x[0], y[0], x[1], y[1]),
        "ne": lambda real, x, y: real.is_true("({0} != {1}) | ({2} != {3})", x[0], y[0], x[1], y[1]),
        "isnan": lambda real, x: real.is_true("isnan({0}) | isnan({1})", *x),
        "isinf": lambda real, x: real.is_true("isinf({0}) | isinf({1})", *x),
        "isfinite": lambda real, x: real.is_true("isfinite({0}) & isfinite({1})", *x),
    }
)
"""Names of elementwise ops -> their results for complex operands; bool operands are numbers."""
