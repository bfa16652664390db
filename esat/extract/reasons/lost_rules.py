"""What became of a rule: why nothing of what it says is computed."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.egraph.preparation.rule_database import RULES
from esat.extract.extraction import Extraction
from esat.extract.reasons.reason_chains import ReasonChains
from esat.extract.reasons.why import Reasons
from esat.rules.language.rule import Rule

_MOST_TOLD = 8
"""Forms, or values, that are told of one rule."""


@record(frozen=True, eq=False)
class AskedRule:
    """A rule of which somebody asks what became of it.

    Attributes
    ----------
    name
        What reports call it.
    matches
        How often it matched.
    made
        Lines that tell of forms it made of what is computed.
    offered
        Names of the rules that the mode and the query chose.
    extraction, reasons
        The choice, and what rules did; None where that is not known.
    """

    name: str
    matches: int
    made: Sequence[str]
    offered: frozenset[str]
    extraction: Extraction | None
    reasons: Reasons | None

    def fate(self) -> str:
        """What became of it.

        Raises
        ------
        RuleError
            For a name that no rule has.
        """
        if self.name not in self.offered:
            return self._exclusion(RULES.find(self.name)[0])
        if not self.matches:
            return self._unmatched()
        times = "once" if self.matches == 1 else f"{self.matches} times"
        lines = [f"{self.name} matched {times}"]
        told = [*self.made, *self._needless()]
        lines += _first(told, "forms")
        if not told:
            lines.append("  all that it made was known already")
            unproven = self._unproven()[1]
            if unproven:
                lines += ["  elsewhere a condition of it is not proven:", *_first(unproven, "values")]
        return "\n".join(lines)

    def _exclusion(self, rule: Rule) -> str:
        if self.reasons is not None and self.reasons.program.strict and rule.soundness != "exact":
            return (
                f"{self.name} is excluded by the mode, which takes rules of the soundness class exact alone:"
                f" it is of the class {rule.soundness}"
            )
        tags = ", ".join(sorted(rule.tags)) or "none"
        return (
            f"{self.name} is excluded by the mode: it is not among the rules that its query chooses by their"
            f" names and tags (the rule's tags: {tags}; its soundness class: {rule.soundness})"
        )

    def _needless(self) -> list[str]:
        """Forms that it made of what nothing needs as things are."""
        if self.extraction is None or self.reasons is None:
            return []
        chains = ReasonChains(self.extraction, self.reasons.provenance, self.offered)
        forms = chains.needless_forms_by(self.name)
        return [f"  it made {form}, which nothing that is computed needs" for form in forms]

    def _unmatched(self) -> str:
        if self.reasons is None:
            reason = "no term of the program has its left side, or a condition of it is not proven"
            return f"{self.name} never matched: {reason}"
        places, lines = self._unproven()
        if not places:
            return f"{self.name} never matched: no term of the program has its left side"
        if not lines:
            return (
                f"{self.name} never matched: what has its left side is of other types, or another rule"
                " replaced it before its conditions were proven"
            )
        reason = "its left side is in the program, but a condition of it is not proven:"
        return "\n".join([f"{self.name} never matched: {reason}", *_first(lines, "values")])

    def _unproven(self) -> tuple[int, list[str]]:
        """How often its left side was found, and what of its conditions does not hold there."""
        if self.extraction is None or self.reasons is None:
            return 0, []
        provenance, found = self.reasons.left_sides(self.name)
        chains = ReasonChains(self.extraction, provenance, self.offered)
        lines = []
        for one in found.unproven:
            told = []
            for variable, klass in one.values:
                text = chains.value(klass)
                told.append(text if text == variable or variable.startswith("%") else f"{variable} = {text}")
            lines.append(f"  {one.condition}, for {' and '.join(told)}" if told else f"  {one.condition}")
        return found.places, list(dict.fromkeys(lines))


def _first(lines: Sequence[str], what: str) -> Sequence[str]:
    left = len(lines) - _MOST_TOLD
    return lines if left <= 0 else [*lines[:_MOST_TOLD], f"  and {left} {what} more"]
