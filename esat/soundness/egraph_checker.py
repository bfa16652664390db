"""Debug mode over e-graphs: each e-node and each fact of a saturated e-graph is compared with values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from esat.egraph.core import core_program
from esat.egraph.facts import facts_program
from esat.egraph.numbers import numbers_program
from esat.egraph.rule_program import RuleProgram, signature_of_registered
from esat.egraph.saturation_report import SaturationReport
from esat.egraph.structure import structure_program
from esat.egraph.terms import TermGraph
from esat.errors import DebugError
from esat.extract.arrays import EGraphArrays
from esat.graph import FunctionGraph, SharedVariable, Variable
from esat.phases.graph_checker import GraphChecker, Values
from esat.rules.reader import read_forms, show
from esat.soundness.oracle import check_egraph

MOST_ERRORS = 3
"""Disagreements that an error names: one wrong fact makes many."""


class EGraphChecker(GraphChecker):
    """Compares graphs, programs and e-graphs with the graph a compilation began with."""

    def check_egraph(
        self, arrays: EGraphArrays, terms: TermGraph, program: RuleProgram, saturation: SaturationReport
    ) -> None:
        """Raise DebugError for an e-node that has not its class's value, or a fact that is not true."""
        for sample in self.samples:
            inputs: dict[Variable, Any] = dict(zip(terms.inputs, sample, strict=False))
            for variable in terms.inputs[len(sample) :]:
                if isinstance(variable, SharedVariable):
                    inputs[variable] = variable.get_value()
            errors = check_egraph(arrays, terms, inputs).errors
            if errors:
                shown = "; ".join(errors[:MOST_ERRORS])
                raise DebugError(
                    f"debug mode: after equality saturation, {shown}{_blamed(errors, program, saturation)}"
                )


def checker_of(graph: FunctionGraph, samples: Values | None, exact: bool) -> EGraphChecker:
    """The checker of a compilation, which has compared a copy of the graph with itself."""
    checker = EGraphChecker(graph.clone(), samples, exact)
    checker.check("building", checker.graph)
    return checker


_SAID = re.compile(r"is said to have (\S+) ")


def _blamed(errors: tuple[str, ...], program: RuleProgram, saturation: SaturationReport) -> str:
    """The rules that matched and conclude a fact which is wrong, in words; empty where no fact is."""
    facts = [match[1] for match in map(_SAID.search, errors) if match]
    if not facts:
        return ""
    conclude = {name for name, text in _rules(program.strict) if any(f"({fact} " in text for fact in facts)}
    fired = [rule.name for rule in saturation.rules if rule.name in conclude]
    return f"; rules that matched and conclude it: {', '.join(fired)}" if fired else ""


@cache
def _rules(strict: bool) -> tuple[tuple[str, str], ...]:
    """Name and conclusions of each rule on facts."""
    signature = signature_of_registered()
    programs = (
        facts_program(strict),
        structure_program(),
        numbers_program(),
        core_program(signature, strict),
        signature.program,
    )
    return tuple(pair for text in programs for pair in _named(text))


def _named(text: str) -> Iterator[tuple[str, str]]:
    for form in read_forms(text, "facts"):
        if not isinstance(form, str) and form[0] == "rule" and ":name" in form:
            yield str(form[form.index(":name") + 1]).strip('"'), show(form[2])
