"""Powers with a whole number as exponent: which products make them, and how accurately each is computed.

Each product rounds by half a unit in the last place (ulp), and what comes after it multiplies that by the
power it is raised to: by squaring alone, ``x**64`` would be 31 ulp off at worst, where ``pow`` is off by one.
So the first products are computed with what they were rounded by, as pairs of floats, which takes a fused
multiply-add or two more each (Graillat, "Accurate floating-point product and exponentiation", IEEE
Transactions on Computers 58(7), 2009); the last ones, whose errors are multiplied by little, are not.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from esat.base.records import record
from esat.graph.variables import Constant, Variable

MOST_HALVES = 7
"""Halves of ulp that a power may be off by, to first order: as many as ``x**8`` by squaring alone."""

LARGEST_EXPONENT = 1024
"""Up to here, pairs of float32 are exact enough."""


class Rounding(Enum):
    """How a product of a power is computed; the value is by how many operations, of squares and of others."""

    PAIR = (4, 3)
    """As a pair, from a pair."""
    LAST_PAIR = (6, 5)
    """As one float, from a pair."""
    PLAIN = (1, 1)
    """From one float."""


@record(frozen=True)
class PowerStep:
    """A product: the square of the result so far, or that times the base.

    Attributes
    ----------
    squares
        Which of both.
    rounding
        How.
    """

    squares: bool
    rounding: Rounding


@record(frozen=True)
class PowerPlan:
    """How to compute a power.

    Attributes
    ----------
    inverts
        Whether the base is the reciprocal. (The reciprocal of the power would be zero where that overflows.)
    steps
        The products, in order.
    """

    inverts: bool
    steps: tuple[PowerStep, ...]

    @property
    def has_pairs(self) -> bool:
        """Whether the base is a pair where it is a reciprocal."""
        return any(step.rounding is not Rounding.PLAIN for step in self.steps)

    @property
    def flops(self) -> float:
        """Additions that the power takes as long as."""
        reciprocal = (8.0 if self.has_pairs else 4.0) if self.inverts else 0.0
        return reciprocal + sum(step.rounding.value[0 if step.squares else 1] for step in self.steps)


def power_plan(exponent: int) -> PowerPlan:
    """The plan for an exponent that is neither zero nor one."""
    inverts, bits = exponent < 0, f"{abs(exponent):b}"[1:]
    squares = [square for bit in bits for square in ((True, False) if bit == "1" else (True,))]
    plain, halves, multiplied = 0, 0, 1
    for square in reversed(squares):
        halves += multiplied * (2 if inverts and not square else 1)  # a reciprocal is rounded, too
        if halves > MOST_HALVES:
            break
        plain += 1
        multiplied *= 2 if square else 1
    pairs = len(squares) - plain
    kinds = [Rounding.PLAIN] * len(squares)
    if pairs or (inverts and halves + abs(exponent) > MOST_HALVES):
        kinds[: pairs + 1] = [*[Rounding.PAIR] * pairs, Rounding.LAST_PAIR]
    return PowerPlan(inverts, tuple(map(PowerStep, squares, kinds)))


def whole_power_flops(exponent: int) -> float:
    """Additions that a power with this exponent takes as long as."""
    return power_plan(exponent).flops


def whole_exponent(exponent: Variable) -> int | None:
    """The whole number that all elements of an exponent are, if products compute the power; else None."""
    if not isinstance(exponent, Constant) or exponent.data.size == 0:
        return None
    first = exponent.data.flat[0]
    if exponent.data.size > 1 and np.any(exponent.data != first):
        return None
    if exponent.tensor_type.kind in "iu":
        return int(first)
    is_whole = np.isfinite(first) and first == np.rint(first) and abs(first) <= LARGEST_EXPONENT
    return int(first) if is_whole else None
