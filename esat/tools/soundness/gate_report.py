"""What the soundness gate found, as data and as text."""

from __future__ import annotations

import numpy as np

from esat.base.records import record
from esat.rules.language.rule import Rule


@record(frozen=True)
class Failure:
    """A sample on which a rule is wrong.

    Attributes
    ----------
    reason
        What is wrong.
    dtypes
        Of the rule's variables.
    operands
        What the variables were, as text: values at the point, or shapes.
    values
        The two sides there, as text; empty where there are none.
    """

    reason: str
    dtypes: tuple[str, ...]
    operands: str = ""
    values: str = ""

    def __str__(self) -> str:
        parts = [f"{self.reason} ({', '.join(self.dtypes)})"]
        parts += [f"where {self.operands}"] if self.operands else []
        parts += [self.values] if self.values else []
        return "; ".join(parts)


@record(frozen=True)
class SampledPoint:
    """A point at which a rule was tried, and held.

    Attributes
    ----------
    numbers
        Which numbers were drawn: ``ordinary``, ``finite`` or ``special``.
    dtypes
        Of the rule's variables.
    operands
        What the variables were, as text: values at the point, or shapes.
    left, right
        The two sides there.
    """

    numbers: str
    dtypes: tuple[str, ...]
    operands: str
    left: np.generic
    right: np.generic

    @property
    def difference(self) -> float:
        """How far the sides are apart, as a part of the left one; 0 where they are equal, or both NaN."""
        left, right = (complex(side) for side in (self.left, self.right))
        if left == right or (np.isnan(left) and np.isnan(right)):
            return 0.0
        return abs(left - right) / abs(left) if left else abs(right)


@record(frozen=True)
class RuleVerdict:
    """The gate's judgement of one rule.

    Attributes
    ----------
    rule
        The rule; a birewrite has two.
    situations
        Combinations of dtypes, shapes and literals under which it was tried.
    points
        Elements that decided something.
    dtypes
        Dtypes of its variables under which it fires.
    failures
        Samples on which it is wrong, at most a few.
    untested
        Why it could not be tested; empty where it was.
    samples
        One point at which it held for each kind of numbers and dtypes.
    invented
        A point of ordinary numbers at which the left side is NaN and the right side a number: class ``real``
        allows it, and users lose the NaN that told them of an error. None where there is none.
    """

    rule: Rule
    situations: int
    points: int
    dtypes: tuple[str, ...]
    failures: tuple[Failure, ...] = ()
    untested: str = ""
    samples: tuple[SampledPoint, ...] = ()
    invented: Failure | None = None

    @property
    def sound(self) -> bool:
        """Whether it was tested and no sample speaks against it."""
        return not self.failures and not self.untested

    def __str__(self) -> str:
        head = f"{self.rule.position}: rule {self.rule.name!r} ({self.rule.soundness})"
        if self.sound:
            told = f"\n    {self.invented}" if self.invented is not None else ""
            return f"{head}: sound at {self.points} points, {', '.join(self.dtypes)}{told}"
        if self.untested:
            return f"{head}: not tested: {self.untested}"
        return "\n".join([f"{head}: wrong", *(f"    {failure}" for failure in self.failures)])


@record(frozen=True)
class SoundnessReport:
    """The gate's judgement of several rules."""

    verdicts: tuple[RuleVerdict, ...]

    @property
    def sound(self) -> bool:
        """Whether every rule was tested and found to be sound."""
        return all(verdict.sound for verdict in self.verdicts)

    @property
    def unsound(self) -> tuple[RuleVerdict, ...]:
        """The rules that are wrong, or could not be tested."""
        return tuple(verdict for verdict in self.verdicts if not verdict.sound)

    def __str__(self) -> str:
        told = (verdict for verdict in self.verdicts if not verdict.sound or verdict.invented is not None)
        lines = [str(verdict) for verdict in told]
        points = sum(verdict.points for verdict in self.verdicts)
        good = len(self.verdicts) - len(self.unsound)
        lines.append(f"{good} of {len(self.verdicts)} rules are sound, by {points} points")
        return "\n".join(lines)
