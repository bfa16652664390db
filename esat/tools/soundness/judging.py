"""Judging one equality at sampled points, by its soundness class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.tools.soundness.samples import Array
from esat.tools.soundness.term_evaluation import MARGIN, Outcome

WELL_CONDITIONED = 2.0**-6
"""A point decides something if the error allowed there is at most this part of the value."""


@record(frozen=True)
class Verdict:
    """What the points of one sample said.

    Attributes
    ----------
    points
        How many decided something.
    wrong
        Index of the first point where the sides differ more than their class allows; None if nowhere.
    reason
        What is wrong there.
    right
        Index of a point that decided something, of a number other than zero where there is one; None if
        none did.
    """

    points: int
    wrong: tuple[int, ...] | None = None
    reason: str = ""
    right: tuple[int, ...] | None = None


def first(mask: NDArray[np.bool_]) -> tuple[int, ...] | None:
    """The index of the first True."""
    if not mask.any():
        return None
    return tuple(int(axis) for axis in np.unravel_index(int(np.argmax(mask)), mask.shape))


def exact(left: Array, right: Array) -> Verdict:
    """Bitwise equality, but any NaN equals any other, in each part of a complex number."""
    different = ~same_bits(left, right)
    telling = _telling(~different, left)
    return Verdict(left.size, first(different), "the sides differ in their bits", telling)


def same_bits(left: Array, right: Array) -> NDArray[np.bool_]:
    """Where two arrays of one dtype and shape have the same bits, or both NaN."""
    if left.dtype.kind == "c":
        return same_bits(left.real, right.real) & same_bits(left.imag, right.imag)
    if left.dtype.kind != "f":
        return np.asarray(left == right)
    both_nan = np.isnan(left) & np.isnan(right)
    return np.asarray(both_nan | ((left == right) & (np.signbit(left) == np.signbit(right))))


def real(left: Outcome, right: Outcome, *, ordinary: bool, must_be_defined: bool) -> Verdict:
    """Equality over the reals: within rounding, where both sides are defined.

    Parameters
    ----------
    left, right
        The sides, equal in dtype and shape.
    ordinary
        Whether the sample consists of ordinary numbers. Only there a side that is not defined says
        something: elsewhere it may have overflowed.
    must_be_defined
        Whether the right side must be defined wherever the left one is.
    """
    if left.value.dtype.kind not in "fc":
        judged = left.steady & right.steady & ~left.tainted & ~right.tainted
        wrong = judged & (left.value != right.value)
        telling = _telling(judged & ~wrong, left.value)
        return Verdict(int(judged.sum()), first(wrong), "the sides differ", telling)
    sound = left.steady & ~left.tainted
    if ordinary and must_be_defined:
        lost = sound & np.isnan(right.value)
        if lost.any():
            return Verdict(0, first(lost), "the right side is not defined where the left one is")
    judged = sound & right.steady & ~right.tainted
    with np.errstate(all="ignore"):
        difference = np.abs(_wide(left.value) - _wide(right.value))
        allowed = MARGIN * (left.spread + right.spread) + _unit(left.value)
        scale = np.maximum(np.abs(_wide(left.value)), np.abs(_wide(right.value)))
        wrong = judged & (difference > allowed)
        decided = judged & ((allowed <= WELL_CONDITIONED * scale) | (difference == 0))
    reason = "the sides differ by more than rounding explains"
    return Verdict(int(decided.sum()), first(wrong), reason, _telling(decided & ~wrong, left.value))


def _telling(right: NDArray[np.bool_], value: Array) -> tuple[int, ...] | None:
    return first(right & (value != 0)) or first(right)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _unit(value: Array) -> Array:
    """Rounding of the results themselves, for sides that compute nothing else."""
    limits = np.finfo(value.real.dtype)
    return 4 * float(limits.eps) * np.abs(_wide(value)) + 16 * float(limits.tiny)
