"""Rounding to integers. Integers and booleans stay as they are; derivatives are zero."""

from __future__ import annotations

import numpy as np

from esat.ops.elementwise.records.code import Code, floats
from esat.ops.elementwise.records.facts import KEEPS_WEAK_SIGN, NEGATIVE, POSITIVE, Facts
from esat.ops.elementwise.records.record import ZERO, Elementwise

floor = Elementwise(
    "floor", 1, np.floor, Code("floor({0})", "{0}", "{0}", "{0}"), ZERO,
    facts=Facts(
        keeps_finite=True, idempotent=True, monotone="increasing", integral=True,
        signs=(((NEGATIVE,), NEGATIVE), *KEEPS_WEAK_SIGN),
    ),
    formula="The largest whole number that is at most x",
)  # fmt: skip

ceil = Elementwise(
    "ceil", 1, np.ceil, Code("ceil({0})", "{0}", "{0}", "{0}"), ZERO,
    facts=Facts(
        keeps_finite=True, idempotent=True, monotone="increasing", integral=True,
        signs=(((POSITIVE,), POSITIVE), *KEEPS_WEAK_SIGN),
    ),
    formula="The smallest whole number that is at least x",
)  # fmt: skip

trunc = Elementwise(
    "trunc", 1, np.trunc, Code("trunc({0})", "{0}", "{0}", "{0}"), ZERO,
    facts=Facts(
        keeps_finite=True, idempotent=True, parity="odd", monotone="increasing", integral=True,
        signs=KEEPS_WEAK_SIGN,
    ),
    formula="x rounded towards zero",
)  # fmt: skip

# Halves go to the even neighbour. NumPy rounds integers as floats here.
rint = Elementwise(
    "rint", 1, np.rint, floats("rint({0})"), ZERO,
    facts=Facts(
        keeps_finite=True, idempotent=True, parity="odd", monotone="increasing", integral=True,
        signs=KEEPS_WEAK_SIGN,
    ),
    formula="x rounded to the nearest whole number, halves to the even one",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (floor, ceil, trunc, rint)
