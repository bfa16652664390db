"""Why a value is computed as it is: the chain of rules from the form as written to the one that was chosen.

A chain is a run of forms that are equal, each made of the one before by a rule. What a rule needed beside the
form that it matched stands with it: other forms of operands, with chains of their own, and facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from esat.base.records import record

if TYPE_CHECKING:
    from esat.egraph.preparation.rule_program import RuleProgram
    from esat.egraph.reasons.provenance import Provenance
    from esat.egraph.reasons.unproven import LeftSides


class Reasons(Protocol):
    """Tells which rules made what equal; it takes as long as the saturation did."""

    @property
    def program(self) -> RuleProgram:
        """The rules."""

    def anew(self) -> Reasons:
        """The same, to be asked and kept by somebody else."""

    @property
    def provenance(self) -> Provenance:
        """What the rules did."""

    def left_sides(self, rule: str) -> tuple[Provenance, LeftSides]:
        """That, and where the left side of a rule was found."""


@record(frozen=True, slots=True)
class Reason:
    """Why something holds.

    Attributes
    ----------
    fact
        What holds, in words: ``x is positive``.
    rule
        The rule that concluded it; empty for what was assumed, or known of a type or a constant.
    needs
        What the rule needed.
    """

    fact: str
    rule: str
    needs: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        return f"{self.fact}, by {self.rule}" if self.rule else f"{self.fact}, as given"


@record(frozen=True, slots=True)
class ReasonStep:
    """A form, and why it is equal to the one before.

    Attributes
    ----------
    form
        The expression; parts further down are written as ``...``.
    rule
        What made it equal; empty for the first one.
    facts
        What the conditions of the rule needed.
    parts
        ReasonChains of operands whose other forms the rule needed.
    """

    form: str
    rule: str = ""
    facts: tuple[Reason, ...] = ()
    parts: tuple[ReasonChain, ...] = ()


@record(frozen=True, slots=True)
class ReasonChain:
    """Forms of one value, from the one that was written to the one that is computed.

    Attributes
    ----------
    name
        What the user's program calls it; empty if unknown.
    steps
        The forms.
    operands
        ReasonChains of what the last form computes with, where it has changed, too.
    is_written
        Whether the first form was written by the user; else a rule made it.
    """

    name: str
    steps: tuple[ReasonStep, ...]
    operands: tuple[ReasonChain, ...] = ()
    is_written: bool = True

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules of all steps, in order, those of operands and parts included."""
        own = [name for step in self.steps for name in (*(n for p in step.parts for n in p.rules), step.rule)]
        return tuple(filter(None, (*own, *(name for chain in self.operands for name in chain.rules))))

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, indent: int) -> Iterator[str]:
        name = f"{self.name} = " if self.name else ""
        if len(self.steps) > 1:
            ending = ", as written" if self.is_written else ""
        else:
            ending = ", as written, of:" if self.operands else ", as written"
        yield f"{' ' * indent}{name}{self.steps[0].form}{ending}"
        yield from self._step_lines(indent + 2)
        for chain in self.operands:
            yield from chain._lines(indent)

    def _step_lines(self, indent: int) -> Iterator[str]:
        pad = " " * indent
        for step in self.steps[1:]:
            yield f"{pad}= {step.form}, {f'by {step.rule}' if step.rule else 'with equal operands'}"
            for part in step.parts:
                yield f"{pad}    where {part.steps[0].form}"
                yield from part._step_lines(indent + 6)
            for reason in step.facts:
                yield from _reason_lines(reason, indent + 4)


def _reason_lines(reason: Reason, indent: int) -> Iterator[str]:
    yield f"{' ' * indent}since {reason}"
    for need in reason.needs:
        yield from _reason_lines(need, indent + 2)
