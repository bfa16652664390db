"""The rules of the layers below the rule files, by name, and which facts each of them concludes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from esat.egraph.analyses.facts import FACTS, facts_program
from esat.egraph.analyses.numbers import numbers_program
from esat.egraph.analyses.structure import RELATIONS, structure_program
from esat.egraph.preparation.core import core_program
from esat.egraph.preparation.rule_program import signature_of_registered
from esat.egraph.saturation.saturation_report import SaturationReport, rule_name
from esat.engine.vocabulary import forms_of
from esat.rules.language.reader import show

FactsTold = dict[str, tuple[str, ...]]
_TOLD = frozenset((*RELATIONS, *FACTS))


@cache
def conclusions(of_facts: bool = True) -> Mapping[str, str]:
    """Name -> what it concludes, as text, of each rule about matrices and numbers, or of all layers' rules.

    The others are needed where something is wrong, and take twice as long to read.
    """
    programs = [structure_program(), numbers_program(), *map(facts_program, (False, True))]
    if not of_facts:
        signature = signature_of_registered()
        programs += [signature.program, *(core_program(signature, strict) for strict in (False, True))]
    found: dict[str, str] = {}
    for name, text in (pair for program in programs for pair in _named(program)):
        found[name] = found.get(name, "") + text
    return found


def _named(text: str) -> Iterator[tuple[str, str]]:
    for form in forms_of(text):
        if form[0] == "rule" and ":name" in form:
            name = str(form[form.index(":name") + 1]).strip('"')
            yield rule_name(name), show(form[2])


def rules_that_conclude(facts: Collection[str], saturation: SaturationReport) -> tuple[str, ...]:
    """Names of the rules that matched in a saturation and conclude one of some facts."""
    known = conclusions(_TOLD.issuperset(facts))
    wanted = tuple(f"({fact} " for fact in facts)
    matched = (rule.name for rule in saturation.rules if rule.matches)
    return tuple(name for name in matched if any(fact in known.get(name, "") for fact in wanted))


def facts_told(saturation: SaturationReport, facts: Iterable[str] = (*RELATIONS, *FACTS)) -> FactsTold:
    """The facts about matrices and numbers that rules concluded, each with these rules."""
    told = {fact: rules_that_conclude([fact], saturation) for fact in facts}
    return {fact: rules for fact, rules in told.items() if rules}
