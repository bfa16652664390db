"""The soundness gate: every rule is tried on samples, and judged by the class it claims.

For each dtype and several ranks, broadcast masks, sizes (1 and 0 among them) and literals, both sides of a
rule are built from the ops' own records and computed with NumPy. Rules of class

``exact``   must agree bit by bit on every input, NaN (of whatever payload) and signed zeros included, and
            the right side must not refuse input that the left one takes;
``real``    must agree within rounding wherever both sides are defined; on ordinary numbers the right side
            must be defined wherever the left one is; and no fact that the e-graph derives of one side may be
            false of the other, even where the first is not defined: facts flow through equalities;
``unsafe``  must agree within rounding on ordinary numbers where both sides are defined.

Integers and bools must agree bit by bit in the first two classes: wrapping around is what they mean. The
sides must have one dtype and one broadcast word, and terms must give ops the dtypes they compute in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np

from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.analyses.uniform import broadcast_of, dtype_of
from esat.egraph.language.constructors import op_signature
from esat.egraph.language.signature import Signature as OpSignature
from esat.egraph.preparation.replacements import opaque_rules
from esat.egraph.preparation.rule_database import RULES
from esat.errors import EsatError
from esat.graph import Variable
from esat.graph.sparse_type import SparseType
from esat.graph.types import DTYPES, Type
from esat.ops.sparse.structure import DENSE_FROM_SPARSE, STORED_VALUES
from esat.ops.table import register_all
from esat.rules.language.rule import Rule, RuleFile, read_rules
from esat.rules.language.rule_signature import Signature
from esat.rules.language.rule_signature import check as check_names
from esat.tools.soundness.construction import Construction, IllTypedError
from esat.tools.soundness.derivation import derived_facts
from esat.tools.soundness.dtype_plans import DtypePlan, dtype_plans
from esat.tools.soundness.gate_report import Failure, RuleVerdict, SampledPoint, SoundnessReport
from esat.tools.soundness.judging import Verdict, exact, first, real
from esat.tools.soundness.opaque_rules import DTYPE_PLANS, OpaqueSampler
from esat.tools.soundness.samples import (
    Array,
    Population,
    draw,
    holds,
    satisfied,
    scattered,
    well_conditioned,
)
from esat.tools.soundness.situation import Situation, SituationSampler
from esat.tools.soundness.statement import operators_for, statement_of
from esat.tools.soundness.term_evaluation import Outcome, dense, outcomes, plain

SITUATIONS = 5
"""Situations wanted for each dtype; more where too few points decided something: sums have one each."""

ATTEMPTS = 60
"""Draws for each dtype; most end early, with shapes that do not fit."""

FEWEST_POINTS = 20
"""A rule with fewer points that decide something was not tested."""

MOST_FAILURES = 3
"""Failures reported of one rule, of different kinds or dtypes."""

_MODES = ("usual", "usual", "ones", "usual", "empty")

Leaves = Mapping[Variable, Array]


def check(source: str | Path | RuleFile | Iterable[Rule] | None = None, *, seed: int = 0) -> SoundnessReport:
    """Try rules on samples.

    Parameters
    ----------
    source
        Path or text of a rule file, rules, or None for all rules of the database.
    seed
        Of the random choices; equal seeds give equal reports.

    Raises
    ------
    RuleError
        With file, line and column, when the text cannot be read, names an unknown op, or gives one a wrong
        number of operands.
    """
    register_all()
    signature = op_signature()
    if source is None:
        source = RULES.list()
    if isinstance(source, str | Path):
        source = read_rules(source)
    rules = source.rules if isinstance(source, RuleFile) else tuple(source)
    declarations = source.declarations if isinstance(source, RuleFile) else ()
    operators = operators_for(signature, declarations)
    opaque = opaque_rules(rules, signature, declarations)
    check_names((rule for rule in rules if rule not in opaque), operators)
    return SoundnessReport(
        tuple(
            check_opaque_rule(rule, signature, seed)
            if rule in opaque
            else check_rule(rule, signature, operators, seed)
            for rule in rules
        )
    )


def check_rule(rule: Rule, signature: OpSignature, operators: Signature, seed: int = 0) -> RuleVerdict:
    """Try one rule on samples; see :func:`check`."""
    statement = statement_of(rule, operators)
    if statement.unjudged or not (statement.equalities or statement.claims):
        return RuleVerdict(rule, 0, 0, (), untested="its head says something other than what terms are equal")
    random = _random(rule, seed)
    sampler = SituationSampler(statement, signature, Construction(signature, operators), random)
    return _RuleTrial(rule, sampler, dtype_plans(statement, random), random).run()


def check_opaque_rule(rule: Rule, signature: OpSignature, seed: int = 0) -> RuleVerdict:
    """Try a rule that names ops which only Python types; see :func:`check`."""
    random = _random(rule, seed)
    # What users' classes raise for what they do not take may be anything.
    return _RuleTrial(rule, OpaqueSampler(rule, signature, random), DTYPE_PLANS, random, (Exception,)).run()


def _random(rule: Rule, seed: int) -> Random:
    return Random(f"{seed} {rule.name}")


@dataclass
class _RuleTrial:
    rule: Rule
    sampler: SituationSampler | OpaqueSampler
    plans: Iterable[DtypePlan]
    random: Random
    refusals: tuple[type[Exception], ...] = (EsatError,)
    situations: int = 0
    points: int = 0
    dtypes: dict[str, None] = field(default_factory=dict)
    failures: dict[tuple[str, tuple[str, ...]], Failure] = field(default_factory=dict)
    obstacles: list[str] = field(default_factory=list)
    samples: dict[tuple[str, tuple[str, ...]], SampledPoint] = field(default_factory=dict)
    invented: Failure | None = None

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.random.getrandbits(64))

    def run(self) -> RuleVerdict:
        for plan in self.plans:
            for situation in self._drawn(plan):
                self._try(situation)
            if len(self.failures) >= MOST_FAILURES:
                break
        untested = ""
        if not self.failures and self.points < FEWEST_POINTS:
            untested = f"only {self.points} points decided something"
            if not self.situations:
                reasons = f" ({self.obstacles[-1]})" if self.obstacles else ""
                untested = f"no sample satisfies its patterns and guards{reasons}"
        failures = tuple(self.failures.values())[:MOST_FAILURES]
        return RuleVerdict(
            self.rule,
            self.situations,
            self.points,
            tuple(self.dtypes),
            failures,
            untested,
            tuple(self.samples.values()),
            self.invented,
        )

    def _drawn(self, plan: Mapping[str, str]) -> Iterator[Situation]:
        found = 0
        for _ in range(ATTEMPTS):
            try:
                situation = self.sampler.draw(plan, _MODES[found % len(_MODES)])
            except IllTypedError as error:
                if self.sampler.matched:
                    self._fail(f"the right side is ill typed: {error}", tuple(dict.fromkeys(plan.values())))
                else:
                    self.obstacles.append(str(error))
                return
            if situation is not None:
                found += 1
                yield situation
            if found >= SITUATIONS and self.points >= FEWEST_POINTS:
                return

    # ---- one situation

    def _try(self, situation: Situation) -> None:
        self.situations += 1
        for left, right in situation.equalities:
            ours, theirs = left.type, right.type
            same = dtype_of(left) == dtype_of(right) and broadcast_of(left) == broadcast_of(right)
            if not same or _format(ours) != _format(theirs):
                self._fail(f"the sides have different types, {ours} and {theirs}", situation.dtypes)
                return
        situation = replace(situation, equalities=tuple(_as_tensors(situation.equalities)))
        for population, share in self._populations(situation):
            leaves = self._values(situation, population, share)
            if leaves is not None:
                self._judge(situation, leaves, population)

    def _populations(self, situation: Situation) -> Iterator[tuple[Population, float]]:
        """Few special elements at a time as well: one NaN is all that is left of a sum with one."""
        if self.rule.soundness == "exact":
            return iter([("ordinary", 0.0), ("special", 0.6), ("special", 0.1)])
        if self.rule.soundness == "unsafe":
            return iter([("ordinary", 0.0), ("ordinary", 0.0)])
        return iter([("ordinary", 0.0), ("ordinary", 0.0), ("finite", 0.4)])

    def _values(
        self, situation: Situation, population: Population, share: float
    ) -> dict[Variable, Array] | None:
        """Values of the leaves that satisfy what the guards ask; None if those of other terms do not."""
        leaves = {}
        for variable, shape in situation.leaves.values():
            facts = {fact for fact, of in situation.required if of is variable}
            dtype = DTYPES[dtype_of(variable)]
            if not isinstance(variable.type, SparseType):
                array = draw(dtype, shape, facts, population, share, self.generator)
                leaves[variable] = well_conditioned(array, facts) if self.sampler.inverts else array
                continue
            rows, columns, stored = shape
            if stored > rows * columns:
                return None
            numbers = draw(dtype, (stored,), facts, population, share, self.generator)
            leaves[variable] = scattered(numbers, (rows, columns), variable.type.format, self.generator)
        inner = [(fact, of) for fact, of in situation.required if of not in leaves or fact in RELATIONS]
        try:
            values = plain([of for _, of in inner], leaves)
        except self.refusals:
            return None
        true = all(satisfied(fact, value) for (fact, _), value in zip(inner, values, strict=True))
        return leaves if true else None

    def _judge(self, situation: Situation, leaves: Leaves, population: Population) -> None:
        for fact, variable, number in situation.claims:
            self._judge_claim(situation, leaves, fact, variable, number)
        for left, right in situation.equalities:
            try:
                plain([left], leaves)
            except self.refusals:
                continue  # the left side is an error there, so the rule says nothing
            try:
                self._judge_sides(situation, leaves, population, left, right)
            except self.refusals as error:
                if self.rule.soundness != "exact" and any(0 in array.shape for array in leaves.values()):
                    continue  # an op may refuse to reduce nothing: the right side is not defined there
                reason = f"the right side cannot be computed where the left one can: {error}"
                self._fail(reason.split("\n", maxsplit=1)[0], situation.dtypes)

    def _judge_sides(
        self, situation: Situation, leaves: Leaves, population: Population, left: Variable, right: Variable
    ) -> None:
        soundness = self.rule.soundness
        if soundness == "exact":
            ours, theirs = map(_normal, plain([left, right], leaves), (left, right))
            same = ours.shape == theirs.shape
            verdict = exact(ours, theirs) if same else _shapes_differ(ours.shape, theirs.shape)
            self._note(verdict, situation, leaves, (ours, theirs))
            self._keep(verdict, situation, leaves, population, (ours, theirs))
            return
        rounded = {variable for fact, variable in situation.required if fact in RELATIONS} & leaves.keys()
        one, other = outcomes([left, right], leaves, self.generator, rounded)
        ours, theirs = _normal(one.value, left), _normal(other.value, right)
        if ours.shape != theirs.shape:
            self._note(_shapes_differ(ours.shape, theirs.shape), situation, leaves, (ours, theirs))
            return
        one, other = _reshaped(one, ours.shape), _reshaped(other, theirs.shape)
        safe = soundness == "real"
        verdict = real(one, other, ordinary=population == "ordinary", must_be_defined=safe)
        self._note(verdict, situation, leaves, (ours, theirs))
        self._keep(verdict, situation, leaves, population, (ours, theirs))
        if safe and population == "ordinary" and verdict.wrong is None and ours.dtype.kind == "f":
            self._judge_leaks(situation, leaves, (left, one), (right, other))
            if self.invented is None and ours.dtype == np.float64:  # narrow dtypes overflow sooner
                self.invented = _invented(situation, leaves, (ours, theirs))

    def _judge_leaks(
        self,
        situation: Situation,
        leaves: Leaves,
        left: tuple[Variable, Outcome],
        right: tuple[Variable, Outcome],
    ) -> None:
        """Facts of one side must be true of the other where the first is not defined."""
        given: dict[Variable, list[str]] = {}
        for fact, variable in situation.required:
            given.setdefault(variable, []).append(fact)
        for (term, outcome), (_, other) in ((left, right), (right, left)):
            undefined = outcome.tainted & ~other.tainted
            if not undefined.any():
                continue
            # In narrow dtypes even ordinary numbers have powers that underflow.
            strict = other.value.dtype == np.float64
            for fact in sorted(derived_facts(term, given)):
                false = undefined & ~holds(fact, other.value, strict=strict)
                reason = f"facts leak: one side is known to be {fact}, which is false of the other"
                verdict = Verdict(0, first(false), reason)
                self._note(verdict, situation, leaves, (left[1].value, right[1].value))

    def _judge_claim(
        self, situation: Situation, leaves: Leaves, fact: str, variable: Variable, number: int | float | None
    ) -> None:
        if fact in ("dt", "bp"):
            true = number == (dtype_of(variable) if fact == "dt" else broadcast_of(variable))
            self.points += 20 * true
            if not true:
                self._fail(f"the claim {fact} = {number} is false", situation.dtypes)
            return
        try:
            (value,) = plain([variable], leaves)
        except self.refusals:
            return
        true_at = value == number if fact == "val" else holds(fact, value, strict=False)
        claim = f"val = {number}" if fact == "val" else fact
        verdict = Verdict(value.size, first(~np.asarray(true_at)), f"the claim {claim} is false")
        self._note(verdict, situation, leaves, (value, value))

    # ---- notes

    def _note(
        self, verdict: Verdict, situation: Situation, leaves: Leaves, sides: tuple[Array, Array]
    ) -> None:
        self.points += verdict.points
        if verdict.points:
            self.dtypes.update(dict.fromkeys(situation.dtypes))
        if verdict.wrong is None:
            return
        failure = _failure(verdict.wrong, verdict.reason, situation, leaves, sides)
        self.failures.setdefault((failure.reason, failure.dtypes), failure)

    def _keep(
        self,
        verdict: Verdict,
        situation: Situation,
        leaves: Leaves,
        population: Population,
        sides: tuple[Array, Array],
    ) -> None:
        """Remember a point at which the rule held, one for each kind of numbers and dtypes."""
        kind = population, situation.dtypes
        if verdict.right is None or kind in self.samples:
            return
        operands = _operands(situation, leaves, verdict.right, sides[0].shape)
        left, right = (side[verdict.right] for side in sides)
        self.samples[kind] = SampledPoint(population, situation.dtypes, operands, left, right)

    def _fail(self, reason: str, dtypes: tuple[str, ...]) -> None:
        self.failures.setdefault((reason, dtypes), Failure(reason, dtypes))


def _invented(situation: Situation, leaves: Leaves, sides: tuple[Array, Array]) -> Failure | None:
    """A point at which the left side is NaN and the right one a number."""
    place = first(np.isnan(sides[0]) & np.isfinite(sides[1]))
    if place is None:
        return None
    reason = "it gives numbers where the left side is NaN; a guard would keep the NaN"
    return _failure(place, reason, situation, leaves, sides)


def _failure(
    place: tuple[int, ...], reason: str, situation: Situation, leaves: Leaves, sides: tuple[Array, Array]
) -> Failure:
    operands = _operands(situation, leaves, place, sides[0].shape)
    same = sides[0].shape == sides[1].shape
    values = f"left {sides[0][place]}, right {sides[1][place]}" if same else ""
    return Failure(reason, situation.dtypes, operands, values)


def _format(type: Type) -> str:
    return type.format if isinstance(type, SparseType) else ""


def _as_tensors(equalities: Iterable[tuple[Variable, Variable]]) -> Iterator[tuple[Variable, Variable]]:
    """Sparse matrices are equal if they store the same values at the same places."""
    for left, right in equalities:
        if isinstance(left.type, SparseType):
            yield DENSE_FROM_SPARSE(left), DENSE_FROM_SPARSE(right)
            yield STORED_VALUES(left), STORED_VALUES(right)
        else:
            yield left, right


def _shapes_differ(left: tuple[int, ...], right: tuple[int, ...]) -> Verdict:
    return Verdict(0, (), f"the sides have different shapes, {left} and {right}")


def _normal(value: Array, variable: Variable) -> Array:
    """A value whose axes all have size 1 has no rank of its own."""
    return value.reshape(()) if broadcast_of(variable) == -1 else value


def _reshaped(outcome: Outcome, shape: tuple[int, ...]) -> Outcome:
    return Outcome(
        outcome.value.reshape(shape),
        outcome.spread.reshape(shape),
        outcome.steady.reshape(shape),
        outcome.tainted.reshape(shape),
    )


def _operands(situation: Situation, leaves: Leaves, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The operands of a point, as text."""
    return ", ".join(
        f"{variable.name} = {_shown(leaves[variable], index, shape)}"
        for variable, _ in situation.leaves.values()
    )


def _shown(array: Array, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The element of an operand that belongs to an element of the result, or the operand's shape."""
    array = dense(array)
    if array.size == 1:
        return str(array.item())
    try:
        stretched = np.broadcast_to(array, shape)
    except ValueError:
        return f"an array of {array.shape}"
    return f"{stretched[index]} of {array.shape}"
