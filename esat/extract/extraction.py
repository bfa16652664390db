"""Pricing a saturated e-graph for given sizes and choosing from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.language.loader import NARY_FORM, LoadPlan, signed_operands
from esat.egraph.language.terms import Term, TermGraph
from esat.egraph.preparation.rule_program import SUPERSEDED
from esat.extract.arrays import EGraphArrays, FloatArray, IntArray
from esat.extract.choice.choose import choose
from esat.extract.choice.initial import initial_choice
from esat.extract.choice.selected import selected_terms
from esat.extract.choice.selection import Problem, Selection
from esat.extract.choice.source_order import WrittenSums
from esat.extract.choice.stability import of_long_products, products_with_inverses
from esat.extract.prices.class_values import Hints, class_values
from esat.extract.prices.cost import CostModel
from esat.extract.prices.growth import good_for_growth, grown
from esat.extract.prices.lasting import Repeated, shares_of_a_call, shares_of_a_step
from esat.extract.prices.nary import Shape, plan_written, work_of
from esat.extract.prices.pricing import node_costs
from esat.extract.prices.value import Value
from esat.extract.verdicts import Accuracy, Verdicts

SUPERSEDED_NAMES = (f"{SUPERSEDED}NarySum", f"{SUPERSEDED}NaryProd")
SUPERSEDED_PENALTY = 1.0e3
"""Seconds added to e-nodes that lose digits, so that they are a last resort; the more, the more they lose.

Where nothing is known of what e-nodes lose, those count as such that a rule replaced for good: a form that
overflows or cancels must not come back because it is predicted to be faster.
"""


@record(frozen=True, eq=False)
class SaturatedGraph:
    """A graph and all that the rules found to be equal to it.

    Attributes
    ----------
    arrays
        The e-graph.
    terms
        What was loaded.
    plan
        In which form.
    keeps
        Whether programs keep what depends on constants alone from call to call.
    accuracy
        What the choice goes by before time.
    verdicts
        What e-nodes lose in digits; None where nothing is known.
    repeated
        Of the body of a loop, what is computed once.
    kept
        Classes that are computed as they were written.
    """

    arrays: EGraphArrays
    terms: TermGraph
    plan: LoadPlan
    keeps: bool = False
    accuracy: Accuracy = "best"
    verdicts: Verdicts | None = None
    repeated: Repeated | None = None
    kept: frozenset[int] = frozenset()

    @property
    def roots(self) -> list[int]:
        """Class of each output, in order."""
        return [int(self.arrays.term_class[root]) for root in self.terms.roots]

    @property
    def strict(self) -> frozenset[int]:
        """Sums and products of which everything that was written together has to stay together."""
        return frozenset() if self.verdicts is None or self.accuracy == "ignore" else self.verdicts.strict

    @cached_property
    def bits_too_many(self) -> FloatArray:
        """By how many bits, over all points, each e-node is worse than its class allows, float64."""
        if self.verdicts is None or self.accuracy == "ignore":
            return np.zeros(self.arrays.node_count)
        return self.verdicts.bits_too_many(self.accuracy, self.arrays.class_of)

    def loss_of(self, node: int) -> str:
        """How much an e-node loses where it is worst, in words; empty where it is no more than it may."""
        klass = int(self.arrays.class_of[node])
        if klass in self.kept and node != self.initial[klass]:
            return "digits beside what else is chosen"
        if self.verdicts is None or self.bits_too_many[node] <= 0.0:
            return ""
        return self.verdicts.places.get(node, "digits")

    @cached_property
    def penalties(self) -> FloatArray:
        """Seconds added to each e-node for the choice, float64 ``(nodes,)``."""
        penalties = self._penalties_of_verdicts()
        if self.kept:
            kept = np.array(sorted(self.kept), np.int64)
            penalties[np.isin(self.arrays.class_of, kept)] = SUPERSEDED_PENALTY
            penalties[self.initial[kept]] = 0.0
        return penalties

    def _penalties_of_verdicts(self) -> FloatArray:
        superseded = superseded_nodes(self.arrays)
        if self.verdicts is None or self.accuracy == "ignore":
            return np.where(superseded, SUPERSEDED_PENALTY, 0.0)
        class_of = self.arrays.class_of
        marked_only = np.isin(class_of, class_of[superseded & of_long_products(self.arrays)])
        bits = np.where(marked_only, 0.0, self.bits_too_many)
        unstable = (superseded & (marked_only | ~self.verdicts.judged)) | products_with_inverses(self.arrays)
        marked = np.where(unstable, SUPERSEDED_PENALTY, 0.0)
        return np.where(bits > 0.0, SUPERSEDED_PENALTY * (1.0 + bits), marked)

    @cached_property
    def initial(self) -> IntArray:
        """The selection that the loaded graph itself is; see :func:`initial_choice`."""
        return initial_choice(self.arrays, self.terms, self.plan)


@record(frozen=True, eq=False)
class Extraction:
    """A choice from a saturated e-graph, and what it was based on.

    Attributes
    ----------
    graph
        The e-graph.
    values
        Shape and dtype of each class.
    costs
        float64 ``(nodes,)``: predicted seconds of each e-node, in the mean of many calls.
    penalties
        float64 ``(nodes,)``: what was added to them for the choice.
    selection
        The choice; its cost includes penalties.
    hints
        Expected sizes of the axes that types leave open, as far as they were told.
    """

    graph: SaturatedGraph
    values: list[Value | None]
    costs: FloatArray
    penalties: FloatArray
    selection: Selection
    hints: Hints

    @property
    def seconds(self) -> float:
        """Predicted seconds of the choice."""
        chosen = self.selection.chosen
        return fsum(self.costs[chosen[chosen >= 0]].tolist())

    @cached_property
    def seconds_for_accuracy(self) -> float:
        """Predicted seconds by which the choice is slower than one that time alone makes."""
        graph = self.graph
        if not graph.bits_too_many.any() and not graph.strict and not graph.kept:
            return 0.0
        superseded = np.where(superseded_nodes(graph.arrays), SUPERSEDED_PENALTY, 0.0)
        other = choose(graph.arrays, self.costs + superseded, graph.roots, initial=graph.initial).chosen
        return self.seconds - fsum(self.costs[other[other >= 0]].tolist())

    def terms(self) -> tuple[TermGraph, list[Shape]]:
        """The chosen e-nodes as terms, with the sizes they were priced with."""
        graph = self.graph
        chosen = self.selection.chosen.tolist()
        return selected_terms(graph.arrays, chosen, graph.roots, graph.terms, self.values, graph.strict)


def extract(
    graph: SaturatedGraph,
    model: CostModel,
    hints: Hints | None = None,
    method: Literal["area", "tree", "optimal"] = "area",
    time_limit: float = 60.0,
) -> Extraction:
    """The cheapest way to compute a graph's outputs that its e-graph holds.

    Unless the method is ``"tree"``, it costs at most as much as the graph that was loaded, unless a rule
    replaced parts of that for good.

    Parameters
    ----------
    model
        Prices of e-nodes.
    hints
        Expected sizes of axes that the types leave open.
    method
        See :func:`esat.extract.choice.choose.choose`.
    time_limit
        Seconds.

    Raises
    ------
    CompileError
        When an output cannot be computed.
    """
    arrays = graph.arrays
    values = class_values(arrays, graph.terms, hints)
    costs = node_costs(arrays, values, model)
    if graph.keeps:
        costs *= shares_of_a_call(arrays, values, costs, model.machine)
    if graph.repeated is not None:
        costs *= shares_of_a_step(arrays, graph.repeated)
    for node, share in _strict_shares(graph, values):
        costs[node] *= share
    penalties = graph.penalties

    def search(prices: FloatArray, initial: IntArray) -> Selection:
        return choose(arrays, prices, graph.roots, method=method, time_limit=time_limit, initial=initial)

    selection = search(costs + penalties, graph.initial)
    larger = grown(graph.terms, hints)
    if larger is not None:
        large = node_costs(arrays, class_values(arrays, graph.terms, larger), model) + penalties
        problem = Problem.of(arrays, costs + penalties, graph.roots)
        start = selection.chosen
        call = model.machine.call
        selection = good_for_growth(problem, selection, large, lambda prices: search(prices, start), call)
    return Extraction(graph, values, costs, penalties, selection, hints or {})


def _strict_shares(graph: SaturatedGraph, values: Sequence[Value | None]) -> Iterator[tuple[int, float]]:
    """Sums and products that are computed strictly as written, and how many times the work that takes."""
    if not graph.strict:
        return
    arrays = graph.arrays
    written = WrittenSums(graph.terms, arrays.term_class.tolist(), graph.initial.tolist())
    for node in sorted(graph.strict):
        operands, klass = arrays.operands_of(node).tolist(), int(arrays.class_of[node])
        known = [values[operand] for operand in operands]
        shapes = [value.shape for value in known if value is not None]
        if len(shapes) < len(operands):
            continue
        name, positives = arrays.operator_of(node), int(arrays.attributes_of(node)[0])
        joins = written.joins(name, klass, operands, positives)
        usual, strict = (
            work_of(plan_written(name, operands, shapes, positives, joins, strict=flag))
            for flag in (False, True)
        )
        yield node, strict / usual if usual > 0.0 else 1.0


def superseded_nodes(arrays: EGraphArrays) -> NDArray[np.bool_]:
    """Which e-nodes a rule of a file subsumed.

    Of sums and products the core subsumes those it has written in a better form. Where a rule subsumed
    that form, all are as bad as it: ``exp(x) / s`` is not to come back as ``1 / (s * exp(-x))``. Nor is a
    difference to come back as the binary op that it was given before a rule subsumed it.
    """
    names = arrays.operator_names
    nary = [index for index, name in enumerate(names) if name in ("NarySum", "NaryProd")]
    by_core = arrays.subsumed & np.isin(arrays.operator, nary)
    found = arrays.subsumed & ~by_core
    for index, name in enumerate(names):
        if name in SUPERSEDED_NAMES:
            marks = np.flatnonzero(arrays.operator == index)
            form = name.removeprefix(SUPERSEDED)
            for mark in marks.tolist():
                found[_twin(arrays, mark, form)] = True
                found |= by_core & (arrays.class_of == arrays.class_of[mark])
            for klass in dict.fromkeys(arrays.class_of[marks].tolist()):
                found[_views(arrays, klass, form, found)] = True
    return found


def _twin(arrays: EGraphArrays, mark: int, constructor: str) -> list[int]:
    """The e-node of the constructor that has the operands of a mark."""
    wanted = (arrays.operands_of(mark).tolist(), arrays.attributes_of(mark))
    return [
        node
        for node in arrays.nodes_of(int(arrays.class_of[mark]))
        if arrays.operator_of(node) == constructor
        and (arrays.operands_of(node).tolist(), arrays.attributes_of(node)) == wanted
    ]


def _views(arrays: EGraphArrays, klass: int, form: str, superseded: NDArray[np.bool_]) -> list[int]:
    """The binary ops of a class that have the operands of a superseded sum or product, and of no other."""
    units = arrays.facts.get("val", {}) if form == "NaryProd" else {}
    better: set[tuple[tuple[int, int], ...]] = set()
    worse: set[tuple[tuple[int, int], ...]] = set()
    views: dict[int, tuple[tuple[int, int], ...]] = {}
    for node in arrays.nodes_of(klass):
        name = arrays.operator_of(node)
        if NARY_FORM.get(name) != form:
            continue
        term = Term(name, tuple(arrays.operands_of(node).tolist()), arrays.attributes_of(node))
        # A reciprocal is a quotient of one.
        operands = tuple(sorted(pair for pair in signed_operands(term) if units.get(pair[0]) != 1.0))
        if name != form:
            views[node] = operands
        else:
            (worse if superseded[node] else better).add(operands)
    return [node for node, operands in views.items() if operands in worse and operands not in better]
