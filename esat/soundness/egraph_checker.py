"""Debug mode over e-graphs: each e-node and each fact of a saturated e-graph is compared with values."""

from __future__ import annotations

import re
from typing import Any

from esat.egraph.fact_rules import rules_that_conclude
from esat.egraph.rule_program import RuleProgram
from esat.egraph.saturation_report import SaturationReport
from esat.egraph.terms import TermGraph
from esat.errors import DebugError
from esat.extract.arrays import EGraphArrays
from esat.graph import FunctionGraph, SharedVariable, Variable
from esat.phases.graph_checker import GraphChecker, Values
from esat.soundness.check import check
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
                blamed = _blamed(errors, saturation) or _unsound(program, saturation)
                raise DebugError(f"debug mode: after equality saturation, {shown}{blamed}")


def checker_of(graph: FunctionGraph, samples: Values | None, exact: bool) -> EGraphChecker:
    """The checker of a compilation, which has compared a copy of the graph with itself."""
    checker = EGraphChecker(graph.clone(), samples, exact)
    checker.check("building", checker.graph)
    return checker


_SAID = re.compile(r"is said to have (\S+) ")


def _blamed(errors: tuple[str, ...], saturation: SaturationReport) -> str:
    """The rules that matched and conclude a fact which is wrong, in words; empty where no fact is."""
    facts = [match[1] for match in map(_SAID.search, errors) if match]
    if not facts:
        return ""
    fired = rules_that_conclude(facts, saturation)
    return f"; rules that matched and conclude it: {', '.join(fired)}" if fired else ""


def _unsound(program: RuleProgram, saturation: SaturationReport) -> str:
    """The rules that matched and are wrong by themselves, in words; where none is, the n-ary layer's."""
    matched = {rule.name for rule in saturation.rules if rule.matches}
    report = check(rule for rule in program.selection.rules if rule.name in matched)
    wrong = [verdict for verdict in report.verdicts if verdict.failures or verdict.invented is not None]
    if wrong:
        return "".join(f"; the rule that matched, {verdict}" for verdict in wrong)
    united = rules_that_conclude(("union", "replace", "shorten"), saturation)
    return f"; no rule file's rule is wrong by itself; of the n-ary layer matched {', '.join(united)}"
