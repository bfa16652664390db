"""The oracle over whole e-graphs: every e-node must have its class's value, every fact must be true of it.

A rule that is true by itself can still do harm beside others: a fact flows through an equality that holds
only where both sides are defined, a type is kept by luck. So a saturated e-graph is evaluated as a whole.
Classes of loaded terms have the values of those terms, as the user wrote them; all other e-nodes are
computed from the values of their operands' classes and compared with their own class's. Every value carries
the spread that rounding may have caused (:mod:`esat.tools.soundness.term_evaluation`). Debug mode does so,
too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.stages import blamed_as
from esat.egraph.analyses.fact_rules import rules_that_conclude
from esat.egraph.analyses.matrices import BY_CONSTRUCTOR
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.language.forms import op_of
from esat.egraph.language.terms import SCALAR, RankedOp, Term, TermGraph, broadcast_word, rank_of
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.saturation_report import SaturationReport
from esat.errors import DebugError, EsatError
from esat.extract.arrays import Attribute, EGraphArrays
from esat.graph import Family, FunctionGraph, SharedVariable, Variable
from esat.graph.registry import op_constructed
from esat.graph.sparse_type import is_sparse_matrix
from esat.graph.types import DTYPES
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.inference.structure import RANGES
from esat.phases.graph_checker import GraphChecker, Values
from esat.tools.soundness.check import check
from esat.tools.soundness.judging import real
from esat.tools.soundness.samples import Array, holds
from esat.tools.soundness.statement import FACTS
from esat.tools.soundness.term_evaluation import (
    TRIALS,
    Trials,
    dense,
    disturbed,
    not_finite,
    perturbed,
    tainted,
)

_NARY = {
    "NarySum": (np.add, np.subtract, 0),
    "NaryProd": (np.multiply, np.divide, 1),
}
_MARKS = "Superseded"


@record(frozen=True)
class OracleReport:
    """What the oracle found.

    Attributes
    ----------
    compared
        E-nodes compared with their class.
    unknown
        E-nodes that could not be computed: the op is an error for these values, or the class has no value.
    facts
        Facts compared with values.
    errors
        Disagreements, as text.
    """

    compared: int
    unknown: int
    facts: int
    errors: tuple[str, ...]


def check_egraph(
    arrays: EGraphArrays, terms: TermGraph, inputs: Mapping[Variable, Array], seed: int = 0
) -> OracleReport:
    """Compare all e-nodes and facts of a saturated e-graph with the values of its classes.

    Parameters
    ----------
    arrays
        The e-graph, read out.
    terms
        The terms that were loaded.
    inputs
        A value for every one of ``terms.inputs``.
    seed
        Of the errors put on intermediate results.
    """
    return _Oracle(arrays, terms, inputs, np.random.default_rng(seed)).run()


@record(frozen=True)
class _Whole:
    """The results of an op that has several, before ``Output`` tells which."""

    outputs: tuple[Trials, ...]


class _Oracle:
    def __init__(
        self,
        arrays: EGraphArrays,
        terms: TermGraph,
        inputs: Mapping[Variable, Array],
        generator: np.random.Generator,
    ) -> None:
        self.arrays = arrays
        self.terms = terms
        self.inputs = inputs
        self.generator = generator
        self.broadcast = arrays.facts.get("bp", {})
        self.samples: dict[int, Trials | _Whole] = {}
        self.compared = self.facts = 0
        self.errors: list[str] = []

    def run(self) -> OracleReport:
        self._load()
        unknown = self._compare_nodes()
        self._compare_facts()
        return OracleReport(self.compared, unknown, self.facts, tuple(self.errors))

    # ---- values

    def _load(self) -> None:
        """The values of the loaded terms are those of their classes."""
        known: list[Trials | _Whole | None] = []
        for number, (term, type) in enumerate(zip(self.terms.terms, self.terms.types, strict=True)):
            operands = [known[operand] for operand in term.operands]
            sample = self._compute(term, operands, type.broadcast)
            known.append(sample)
            klass = int(self.arrays.term_class[number]) if number < len(self.arrays.term_class) else -1
            if sample is None or klass < 0:
                continue
            if klass in self.samples:
                self._compare(f"term {number}, {term.constructor},", klass, sample)
            else:
                self.samples[klass] = sample

    def _compare_nodes(self) -> int:
        """Compare every e-node whose operands have values; returns how many have none."""
        # Functions with terms as values are tables like those of constructors, but lower-case.
        waiting = [
            node for node in range(self.arrays.node_count) if self.arrays.operator_of(node)[0].isupper()
        ]
        while waiting:
            blocked = []
            for node in waiting:
                klass = int(self.arrays.class_of[node])
                operands = [self.samples.get(int(operand)) for operand in self.arrays.operands_of(node)]
                term = Term(
                    self.arrays.operator_of(node).removeprefix(_MARKS),
                    tuple(range(len(operands))),
                    self.arrays.attributes_of(node),
                )
                sample = self._compute(term, operands, int(self.broadcast.get(klass, SCALAR)))
                if sample is None:
                    blocked.append(node)
                elif klass in self.samples:
                    self._compare(self.arrays.describe(node), klass, sample)
                else:
                    self.samples[klass] = sample
            if len(blocked) == len(waiting):
                break
            waiting = blocked
        return len(waiting)

    def _compute(
        self, term: Term, operands: Sequence[Trials | _Whole | None], broadcast: int
    ) -> Trials | _Whole | None:
        if term.constructor == "Output":
            (whole,) = operands
            return whole.outputs[int(term.attributes[0])] if isinstance(whole, _Whole) else None
        known = [operand for operand in operands if isinstance(operand, Trials)]
        if len(known) < len(operands):
            return None
        function = self._function(term, [operand.value.ndim for operand in known])
        if function is None:
            return None
        results: list[list[Array]] = []
        try:
            with np.errstate(all="ignore"):
                for trial in range(TRIALS + 1):
                    found = function([operand.trials[trial] for operand in known], trial > 0)
                    is_noisy = trial > 0 and bool(operands)
                    results.append([self._result(term, value, broadcast, is_noisy) for value in found])
        except EsatError:
            return None
        except ValueError as error:
            # No op of a graph could have these operands: the types of some class are wrong.
            shapes = ", ".join(str(operand.value.shape) for operand in known)
            self._note(f"{term.constructor} of shapes {shapes} cannot be computed: {error}")
            return None
        masks, by_element = [operand.tainted for operand in known], _is_elementwise(term.constructor)
        outputs = tuple(
            Trials(trials, tainted(trials[0], [*masks, not_finite(trials[0])], by_element))
            for trials in zip(*results, strict=True)
        )
        return outputs[0] if len(outputs) == 1 else _Whole(outputs)

    def _result(self, term: Term, result: Array, broadcast: int, is_noisy: bool) -> Array:
        """A result as the e-graph has it, with errors put on it where it is noisy."""
        if is_sparse_matrix(result):
            return perturbed(result, self.generator) if is_noisy else result
        result = np.asarray(result)
        result = result.reshape(()) if broadcast == SCALAR and result.size == 1 else result
        return disturbed(result, self.generator, term.constructor in BY_CONSTRUCTOR) if is_noisy else result

    def _function(
        self, term: Term, ranks: Sequence[int]
    ) -> Callable[[list[Array], bool], Sequence[Array]] | None:
        """How to compute a term from the values of its operands, with or without errors on partial sums."""
        name, attributes = term.constructor, term.attributes
        if name in ("In", "Array", "K"):
            leaf = self._leaf(name, attributes)
            return lambda *_: [leaf]
        if name in _NARY:
            return partial(self._nary, name, int(attributes[0]))
        known = op_of(name, attributes, ranks, self.terms.opaque)
        if known is None or known.op.family is Family.RANDOM:  # draws are not the same again
            return None
        return partial(_performed, known)

    def _nary(self, name: str, count: int, operands: list[Array], noisy: bool) -> list[Array]:
        combine, undo, unit = _NARY[name]
        result = np.asarray(operands[0].dtype.type(unit))
        for place, operand in enumerate(operands):
            result = np.asarray((combine if place < count else undo)(result, operand))
            result = perturbed(result, self.generator) if noisy else result
        return [result]

    def _leaf(self, name: str, attributes: Sequence[Attribute]) -> Array:
        if name == "In":
            value = self.inputs[self.terms.inputs[int(attributes[0])]]
            return value if is_sparse_matrix(value) else np.asarray(value)
        if name == "Array":
            return np.asarray(self.terms.arrays[int(attributes[0])].data)
        return np.asarray(attributes[0]).astype(DTYPES[int(attributes[1])])

    # ---- comparisons

    def _compare(self, what: str, klass: int, sample: Trials | _Whole) -> None:
        known = self.samples[klass]
        if isinstance(known, _Whole) or isinstance(sample, _Whole):
            # Factors of a matrix are not unique; what is equated with an output is compared as such.
            return
        self.compared += 1
        one, other = dense(known.value), dense(sample.value)
        if one.dtype != other.dtype or one.shape != other.shape:
            self._note(f"{what} is {other.dtype} {other.shape}, its class c{klass} {one.dtype} {one.shape}")
            return
        verdict = real(known.outcome, sample.outcome, ordinary=False, must_be_defined=False)
        if verdict.wrong is not None:
            values = f"{other[verdict.wrong]}, its class c{klass} {one[verdict.wrong]}"
            self._note(f"{what} is {values} at {verdict.wrong}")

    def _compare_facts(self) -> None:
        for fact in ("dt", "bp", "val", *FACTS):
            for klass, stated in self.arrays.facts.get(fact, {}).items():
                sample = self.samples.get(klass)
                if not isinstance(sample, Trials) or sample.value.dtype.kind == "O":
                    continue  # a generator, of which dtypes say nothing
                self.facts += 1
                if not self._is_true(fact, stated, sample):
                    self._note(f"c{klass} is said to have {fact} {stated}, which is false of {sample.value}")

    def _is_true(self, fact: str, stated: Attribute, sample: Trials) -> bool:
        value = sample.value
        if fact == "dt":
            return DTYPES[int(stated)] == value.dtype.name
        if fact == "bp":
            # A size that is 1 at run time only is no broadcast axis.
            word = broadcast_word([size == 1 for size in value.shape])
            return (
                stated == SCALAR
                if value.ndim == 0
                else rank_of(int(stated)) == value.ndim and int(stated) | word == word
            )
        outcome = sample.outcome
        if fact in RELATIONS:
            kept = np.where(np.abs(value) <= 8 * outcome.spread, 0, value)
            return bool(outcome.tainted.any() or holds(fact, kept, strict=False).all())
        if fact in RANGES:
            return True
        if fact == "finite":
            return bool(np.all(np.isfinite(value)))
        judged = outcome.steady & ~outcome.tainted
        slack = 8 * outcome.spread
        if fact == "val":
            with np.errstate(all="ignore"):
                return bool(np.all(~judged | (np.abs(value - stated) <= slack)))
        if value.dtype.kind == "c":
            return False
        if fact == "integral":
            return bool(np.all(~judged | (np.abs(value - np.rint(value)) <= slack)))
        near = np.abs(value.astype(np.float64)) <= slack
        return bool(np.all(holds(fact, value, strict=False) | near))

    def _note(self, error: str) -> None:
        self.errors.append(error)


def _is_elementwise(constructor: str) -> bool:
    """Whether each element of a result comes from those at its place; leaves have no others."""
    alone = (*_NARY, "In", "Array", "K", "Cast")
    return constructor in alone or isinstance(op_constructed(constructor), Elementwise)


def _performed(known: RankedOp, operands: list[Array], noisy: bool) -> Sequence[Array]:
    """What an op makes of operands, scalars in the ranks that it needs: those of the e-graph have none."""
    ranked = [
        operand.reshape((1,) * rank) if rank and operand.ndim == 0 else operand
        for operand, rank in zip(operands, known.operand_ranks, strict=True)
    ]
    return known.op.perform(ranked)


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
                raise DebugError(f"debug mode: after {blamed_as('decode')}, {shown}{blamed}")


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
