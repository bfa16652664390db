"""Algebraic facts of elementwise ops, from which rules and the e-graph's sign analysis are generated."""

from __future__ import annotations

import math

from esat.base.records import record

ANY = "any"
POSITIVE = "positive"
NONNEGATIVE = "nonnegative"
NEGATIVE = "negative"
NONPOSITIVE = "nonpositive"
FINITE = "finite"
"""Neither infinite nor NaN: what is called so has been computed without overflow, too."""

SignRule = tuple[tuple[str, ...], str]
"""Signs of the operands, and the sign of the result that follows from them."""


@record(frozen=True, slots=True)
class Facts:
    """What holds of an op for all operands of real floating dtype.

    Integers wrap around and complex numbers have no order: there only ``commutative``, ``associative``
    and ``idempotent`` hold. A NaN, in an operand or as the result, satisfies every claim but that of being
    finite.

    ``nonnegative`` and ``nonpositive`` results and the bounds hold for the rounded results of floating-point
    arithmetic (a bound after rounding it to the dtype; zeros of either sign count as both). ``positive``
    and ``negative`` speak of the real numbers: the float may have underflowed to zero. What follows from
    them in ``signs`` is as good as they are.

    Attributes
    ----------
    commutative
        ``f(x, y) = f(y, x)``.
    associative
        ``f(f(x, y), z) = f(x, f(y, z))`` over the reals.
    idempotent
        ``f(f(x)) = f(x)`` of one operand, ``f(x, x) = x`` of two.
    parity
        ``odd``: ``f(-x) = -f(x)``; ``even``: ``f(-x) = f(x)``; else empty.
    monotone
        ``increasing`` or ``decreasing``, not necessarily strictly, wherever the function is defined (up to
        the rounding of results); else empty.
    lowest, highest
        Bounds of the result, both attained or approached.
    positive
        Whether every result is greater than zero over the reals.
    integral
        Whether every finite result is an integer.
    keeps_finite
        Whether the result of finite operands is finite, for all of them: no overflow, no NaN. What chooses
        between operands or gives but its shape need not be finite.
    overflows, vanishes
        Whether the result leaves the range of floats, upwards or towards zero, for operands of ordinary
        size (some hundreds), and there is a better way to its logarithm.
    signs
        What the signs of operands say about the result's. For a commutative op each rule holds with the
        operands exchanged too.
    """

    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    parity: str = ""
    monotone: str = ""
    lowest: float = -math.inf
    highest: float = math.inf
    positive: bool = False
    integral: bool = False
    keeps_finite: bool = False
    overflows: bool = False
    vanishes: bool = False
    signs: tuple[SignRule, ...] = ()

    @property
    def nonnegative(self) -> bool:
        """Whether no result is less than zero."""
        return self.lowest >= 0

    @property
    def nonpositive(self) -> bool:
        """Whether no result is greater than zero."""
        return self.highest <= 0

    @property
    def bounded(self) -> bool:
        """Whether results have finite bounds on both sides."""
        return math.isfinite(self.lowest) and math.isfinite(self.highest)


NO_FACTS = Facts()

KEEPS_WEAK_SIGN: tuple[SignRule, ...] = (
    ((NONNEGATIVE,), NONNEGATIVE),
    ((NONPOSITIVE,), NONPOSITIVE),
)
"""Of functions like rounding: the result may be zero where the operand is not."""

KEEPS_SIGN: tuple[SignRule, ...] = (
    ((POSITIVE,), POSITIVE),
    ((NEGATIVE,), NEGATIVE),
    *KEEPS_WEAK_SIGN,
)
"""Of functions whose result has the operand's sign."""
