"""Bessel functions, defined by SciPy's of the same name and computed in its real dtypes.

Derivatives by the argument: NIST Digital Library of Mathematical Functions, 10.6.1 and 10.29.1. Those by the
order have no closed form, and none is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esat.graph.variables import Variable
from esat.ops.elementwise.arithmetic import sign
from esat.ops.elementwise.comparison import eq
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.facts import KEEPS_SIGN, Facts
from esat.ops.elementwise.records.record import Elementwise, slope
from esat.ops.elementwise.records.scipy_functions import Special
from esat.ops.elementwise.selection import switch
from esat.ops.inference.promotion import special


def _of_order(
    name: str,
    formula: str,
    derivative: Callable[[Elementwise, Variable, Variable, Variable], Variable],
    has_code: bool = True,
) -> Elementwise:
    """A function of an order and an argument; ``derivative`` is told function, order, argument and value."""

    def gradient(
        inputs: Sequence[Variable], output: Variable, cotangent: Variable
    ) -> Sequence[Variable | None]:
        order, x = inputs
        return [None, cotangent * derivative(op, order, x, output)]

    op = Elementwise(
        name, 2, Special(name), floats(f"{name}({{0}}, {{1}})") if has_code else None, gradient,
        special(name), flops=300.0,
        formula=formula, parameters=1,
    )  # fmt: skip
    return op


jv = _of_order(
    "jv", "The Bessel function of the first kind of order x1, at x2",
    lambda op, order, x, out: 0.5 * (op(order - 1, x) - op(order + 1, x)),
)  # fmt: skip

yv = _of_order(
    "yv", "The Bessel function of the second kind of order x1, at x2",
    lambda op, order, x, out: 0.5 * (op(order - 1, x) - op(order + 1, x)),
)  # fmt: skip

iv = _of_order(
    "iv", "The modified Bessel function of the first kind of order x1, at x2",
    lambda op, order, x, out: 0.5 * (op(order - 1, x) + op(order + 1, x)),
)  # fmt: skip

ive = _of_order(
    "ive", "exp(-abs(x2)) * iv(x1, x2)",
    lambda op, order, x, out: 0.5 * (op(order - 1, x) + op(order + 1, x)) - sign(x) * out,
)  # fmt: skip

# Without code: SciPy's of float32 computes in float32, where it is NaN for some orders beyond 4e35.
kv = _of_order(
    "kv", "The modified Bessel function of the second kind of order x1, at x2",
    lambda op, order, x, out: -0.5 * (op(order - 1, x) + op(order + 1, x)), has_code=False,
)  # fmt: skip

kve = _of_order(
    "kve", "exp(x2) * kv(x1, x2)",
    lambda op, order, x, out: out - 0.5 * (op(order - 1, x) + op(order + 1, x)),
)  # fmt: skip

# ---- of whole orders, which have faster code


def _order_one_slope(order_zero: Variable, x: Variable, out: Variable) -> Variable:
    """``f0(x) - f1(x) / x``, whose limit at zero is a half, for f = i and f = j alike."""
    at_zero = eq(x, 0)
    derivative: Variable = switch(at_zero, 0.5, order_zero - out / switch(at_zero, 1, x))
    return derivative


i0 = Elementwise(
    "i0", 1, Special("i0"), floats("i0({0})"), slope(lambda x, out: i1(x)), special("i0"), flops=60.0,
    facts=Facts(parity="even", lowest=1, positive=True),
    formula="The modified Bessel function of the first kind of order 0",
)  # fmt: skip

i1: Elementwise = Elementwise(
    "i1", 1, Special("i1"), floats("i1({0})"),
    slope(lambda x, out: _order_one_slope(i0(x), x, out)),
    special("i1"), flops=60.0,
    facts=Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="The modified Bessel function of the first kind of order 1",
)  # fmt: skip

i0e = Elementwise(
    "i0e", 1, Special("i0e"), floats("i0e({0})"),
    slope(lambda x, out: i1e(x) - sign(x) * out), special("i0e"), flops=60.0,
    facts=Facts(parity="even", lowest=0, highest=1),
    formula="exp(-abs(x)) * i0(x)",
)  # fmt: skip

i1e: Elementwise = Elementwise(
    "i1e", 1, Special("i1e"), floats("i1e({0})"),
    slope(lambda x, out: _order_one_slope(i0e(x), x, out) - sign(x) * out), special("i1e"), flops=60.0,
    facts=Facts(parity="odd", lowest=-1, highest=1, signs=KEEPS_SIGN),
    formula="exp(-abs(x)) * i1(x)",
)  # fmt: skip

j0 = Elementwise(
    "j0", 1, Special("j0"), floats("j0({0})"), slope(lambda x, out: -j1(x)), special("j0"), flops=60.0,
    facts=Facts(parity="even", lowest=-1, highest=1),
    formula="The Bessel function of the first kind of order 0",
)  # fmt: skip

j1: Elementwise = Elementwise(
    "j1", 1, Special("j1"), floats("j1({0})"), slope(lambda x, out: _order_one_slope(j0(x), x, out)),
    special("j1"), flops=60.0,
    facts=Facts(parity="odd", lowest=-1, highest=1),
    formula="The Bessel function of the first kind of order 1",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (
    i0,
    i0e,
    i1,
    i1e,
    j0,
    j1,
    jv,
    yv,
    iv,
    ive,
    kv,
    kve,
)
