"""Logic on truth values and on the bits of integers.

The logical ops take any dtype, as NumPy's do, and cast it to bool first: zero is False, everything
else, NaN included, is True.
"""

from __future__ import annotations

import numpy as np

from esat.ops.elementwise.records.code import Code, integers
from esat.ops.elementwise.records.facts import Facts
from esat.ops.elementwise.records.record import ZERO, Elementwise

_LATTICE = Facts(commutative=True, associative=True, idempotent=True)
_GROUP = Facts(commutative=True, associative=True)

logical_and = Elementwise(
    "logical_and", 2, np.logical_and, Code(boolean="{0} & {1}"), ZERO, facts=_LATTICE,
    formula="Whether both operands are nonzero",
)  # fmt: skip
logical_or = Elementwise(
    "logical_or", 2, np.logical_or, Code(boolean="{0} | {1}"), ZERO, facts=_LATTICE,
    formula="Whether an operand is nonzero",
)  # fmt: skip
logical_xor = Elementwise(
    "logical_xor", 2, np.logical_xor, Code(boolean="{0} ^ {1}"), ZERO, facts=_GROUP,
    formula="Whether exactly one operand is nonzero",
)  # fmt: skip
logical_not = Elementwise(
    "logical_not", 1, np.logical_not, Code(boolean="not {0}"), ZERO, formula="Whether x is zero"
)

bitwise_and = Elementwise(
    "bitwise_and", 2, np.bitwise_and, integers("{0} & {1}", boolean="{0} & {1}"), ZERO, facts=_LATTICE,
    formula="x1 & x2, bit by bit",
)  # fmt: skip
bitwise_or = Elementwise(
    "bitwise_or", 2, np.bitwise_or, integers("{0} | {1}", boolean="{0} | {1}"), ZERO, facts=_LATTICE,
    formula="x1 | x2, bit by bit",
)  # fmt: skip
bitwise_xor = Elementwise(
    "bitwise_xor", 2, np.bitwise_xor, integers("{0} ^ {1}", boolean="{0} ^ {1}"), ZERO, facts=_GROUP,
    formula="x1 ^ x2, bit by bit",
)  # fmt: skip
invert = Elementwise(
    "invert", 1, np.invert, integers("~{0}", boolean="not {0}"), ZERO, formula="~x, bit by bit"
)

# A shift by at least the width gives 0, or -1 for a negative number to the right.
left_shift = Elementwise(
    "left_shift", 2, np.left_shift, integers("shift_left({0}, {1})"), ZERO, formula="x1 << x2"
)
right_shift = Elementwise(
    "right_shift", 2, np.right_shift, integers("shift_right({0}, {1})"), ZERO, formula="x1 >> x2"
)
gcd = Elementwise("gcd", 2, np.gcd, None, ZERO, flops=40.0, formula="The greatest common divisor")
lcm = Elementwise("lcm", 2, np.lcm, None, ZERO, flops=40.0, formula="The lowest common multiple")

OPS: tuple[Elementwise, ...] = (
    logical_and,
    logical_or,
    logical_xor,
    logical_not,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
    gcd,
    lcm,
)
