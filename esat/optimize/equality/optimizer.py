"""From a FunctionGraph to the cheapest equal one: encode, saturate, read out, choose, decode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from esat.base.records import record
from esat.egraph.language.encode import encode
from esat.egraph.language.terms import Claim
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.saturation_report import SaturationReport, SaturationTrace
from esat.egraph.saturation.schedule import Budgets
from esat.extract.accuracy.validation import validated
from esat.extract.decode import decode
from esat.extract.extraction import Extraction, SaturatedGraph, extract
from esat.extract.kept_graphs import KeptGraphs
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected, hints_of
from esat.extract.prices.lasting import Repeated
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.pricing import predicted_seconds
from esat.extract.verdicts import Accuracy, Verdicts
from esat.graph import FunctionGraph
from esat.optimize.equality.repeated_search import RepeatedSearch
from esat.optimize.equality.report import OptimizationReport, Stage, untimed
from esat.optimize.equality.search import EqualitySearch

Judge = Callable[[SaturatedGraph], Verdicts]
"""Tells what the e-nodes of a graph lose in digits."""


def optimize(  # noqa: PLR0913 (all but three are options with defaults, by name)
    graph: FunctionGraph,
    program: RuleProgram,
    budgets: Budgets,
    *,
    machine: MachineProfile | None = None,
    method: Literal["area", "tree", "optimal"] = "area",
    shapes: Expected = (),
    equalities: Sequence[Claim] = (),
    stage: Stage = untimed,
    trace: SaturationTrace | None = None,
    kept: KeptGraphs | None = None,
    check_types: bool = False,
    keeps: bool = False,
    accuracy: Accuracy = "best",
    judge: Judge | None = None,
) -> tuple[FunctionGraph, OptimizationReport]:
    """The cheapest graph that the rules prove equal.

    Parameters
    ----------
    graph
        What to optimize; it is not changed.
    program
        The rules.
    budgets
        Limits of saturation.
    machine
        Throughputs of the cost model.
    method
        How e-nodes are chosen; see :func:`esat.extract.choice.choose.choose`.
    shapes
        Expected shapes of the inputs, by position.
    equalities
        Variables that are known to be equal, two each, beside what the rules say.
    stage
        Called with the name of each stage, to time it.
    trace
        Receives one entry for each step of the saturation.
    kept
        E-graphs of other processes, which need not be saturated again.
    check_types
        Compute types after every step, so that a rule that changed one is found out at once.
    keeps
        Whether the program will keep what depends on constants alone from call to call.
    accuracy
        What the choice goes by before time.
    judge
        Tells what e-nodes lose in digits; None where nothing is to be known of it.

    Raises
    ------
    RuleError, SaturationError, CompileError
        For a rule that egglog refuses, an e-graph that breaks off, a result of the wrong type.
    """
    search = EqualitySearch(program, budgets, stage, trace, kept, check_types)
    choosing = Choosing(graph, machine, method, shapes, stage, keeps, accuracy, judge)
    found = choosing.searched(search, equalities)
    assert found is not None
    return found


@record(frozen=True, eq=False)
class FoundGraph:
    """The e-graph that a search found, and how.

    Attributes
    ----------
    repeated
        The search, to be done once more.
    """

    graph: SaturatedGraph
    saturation: SaturationReport
    repeated: RepeatedSearch


@record(frozen=True)
class Choosing:
    """How a graph is chosen from an e-graph; the attributes are the parameters of :func:`optimize`.

    Of the body of a loop, ``repeated`` says what is computed once.
    """

    graph: FunctionGraph
    machine: MachineProfile | None = None
    method: Literal["area", "tree", "optimal"] = "area"
    shapes: Expected = ()
    stage: Stage = untimed
    keeps: bool = False
    accuracy: Accuracy = "best"
    judge: Judge | None = None
    repeated: Repeated | None = None

    def searched(
        self, search: EqualitySearch, equalities: Sequence[Claim]
    ) -> tuple[FunctionGraph, OptimizationReport] | None:
        """The cheapest graph of what a search finds; None where nothing new is found, see there."""
        found = self.found(search, equalities)
        return None if found is None else self.validated(*self.chosen(found))

    def found(self, search: EqualitySearch, equalities: Sequence[Claim]) -> FoundGraph | None:
        """What a search finds, of which nothing is known yet; None where nothing is new."""
        with self.stage("encode"):
            terms = encode(self.graph, equalities)
        known = search.saturated(terms)
        if known is None:
            return None
        graph, saturation = known
        graph = replace(graph, keeps=self.keeps, accuracy=self.accuracy, repeated=self.repeated)
        repeated = RepeatedSearch(search.program, search.budgets, search.check_types, search.told)
        return FoundGraph(graph, saturation, repeated)

    def chosen(self, known: FoundGraph) -> tuple[FunctionGraph, OptimizationReport]:
        """The cheapest accurate graph of what was found, and what is to be said of it."""
        found, saturation, program = known.graph, known.saturation, known.repeated.program
        if self.judge is not None and self.accuracy != "ignore":
            with self.stage("accuracy"):
                found = replace(found, verdicts=self.judge(found))
        result, extraction = self.read(found)
        with self.stage("encode"):
            written = encode(self.graph)
        with self.stage("predict"):
            model = CostModel(self.machine or MachineProfile(), written.opaque)
            before = predicted_seconds(written, model, hints_of(written, self.shapes))
        report = OptimizationReport(
            "egraph",
            len(self.graph),
            len(result),
            before,
            extraction.seconds,
            _fired(program, saturation),
            found.arrays.node_count,
            found.arrays.class_count,
            saturation.stop_reason,
            saturation,
            extraction,
            program.report_names,
            reasons=known.repeated,
        )
        return result, report

    def validated(
        self, result: FunctionGraph, report: OptimizationReport
    ) -> tuple[FunctionGraph, OptimizationReport]:
        """What was chosen, or the cheapest graph that is no farther off than this one was written."""
        found = report.extraction
        assert found is not None
        with self.stage("accuracy"):
            extraction = validated(found, self._extracted)
        if extraction is found:
            return result, report
        result = self._decoded(extraction)
        return result, replace(
            report, nodes_after=len(result), cost_after=extraction.seconds, extraction=extraction
        )

    def read(self, found: SaturatedGraph) -> tuple[FunctionGraph, Extraction]:
        """The cheapest graph of an e-graph: among the accurate ones where there are verdicts on it."""
        with self.stage("extract"):
            extraction = self._extracted(found)
        return self._decoded(extraction), extraction

    def _extracted(self, found: SaturatedGraph) -> Extraction:
        terms = found.terms
        model = CostModel(self.machine or MachineProfile(), terms.opaque)
        return extract(found, model, hints_of(terms, self.shapes), self.method)

    def _decoded(self, extraction: Extraction) -> FunctionGraph:
        with self.stage("decode"):
            chosen, sizes = extraction.terms()
            return decode(chosen, self.graph, sizes)


def _fired(program: RuleProgram, saturation: SaturationReport) -> dict[str, int]:
    """Matches of the rules from rule files, most first."""
    names = {rule.name: rule.report_name for rule in program.selection.rules}
    counts: dict[str, int] = {}
    for statistics in saturation.rules:
        name = names.get(statistics.name)
        if name is not None:
            counts[name] = counts.get(name, 0) + statistics.matches
    counts = {name: count for name, count in counts.items() if count}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
