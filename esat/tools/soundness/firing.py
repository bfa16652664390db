"""Whether a rule fires: its left side, loaded into an e-graph with all rules, is matched by the rule.

A rule can be true and useless: its pattern may be a form that the n-ary layer or another rule takes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from esat.base.records import record
from esat.classic.rules.graph_terms import is_tensor
from esat.egraph.analyses.structure import RELATIONS, with_structure
from esat.egraph.analyses.uniform import as_tensor, broadcast_of, dtype_of, value_of
from esat.egraph.language.constructors import op_signature
from esat.egraph.language.loader import flatten, load
from esat.egraph.language.terms import TermBuilder, TermGraph, TermType
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.replacements import opaque_rules, saturating
from esat.egraph.preparation.rule_database import RULES
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.saturation_report import SaturationReport
from esat.egraph.saturation.schedule import Budgets
from esat.extract.arrays import EGraphArrays
from esat.extract.readout import TableLayout, read_out
from esat.graph import Constant, Variable
from esat.graph.sparse_type import SparseType
from esat.ops.inference.structure import RANGES
from esat.rules.language.query import Query
from esat.rules.language.reader import Sexp, head_of
from esat.rules.language.rule import Rule, RuleFile
from esat.rules.language.rule_signature import TENSOR, Signature
from esat.tools.soundness.construction import Construction, IllTypedError
from esat.tools.soundness.dtype_plans import dtype_plans
from esat.tools.soundness.situation import Situation, SituationSampler
from esat.tools.soundness.statement import Statement, operators_for, statement_of

ATTEMPTS = 30
"""Draws for one choice of dtypes, since not every draw meets the rule's conditions."""
CASES = 6
"""Situations tried before a rule is said not to fire."""

BUDGETS = Budgets(nodes=2_000, rounds=5)

GIVERS: Mapping[str, tuple[str, ...]] = {
    "positive": ("Erfcx",),
    "nonnegative": ("Arccos",),
    "negative": ("Erfcx", "Neg", "Floor"),
    "nonpositive": ("LogNdtr",),
    "integral": ("Trunc",),
}
"""Fact -> functions, innermost first, of which it is known and which rules have little to say about."""

FIRST_DTYPES = ("float64", "bool", "int64", "complex128", "float32")


@record(frozen=True)
class Firing:
    """What became of a rule's left side.

    Attributes
    ----------
    fired
        Whether the rule matched it.
    united
        Whether both sides are one class afterwards.
    terms
        What was loaded: the left sides, then the right sides.
    report
        Of the saturation; None where no situation was found.
    """

    fired: bool
    united: bool
    terms: TermGraph | None = None
    report: SaturationReport | None = None


def saturated(
    terms: TermGraph, program: RuleProgram, budgets: Budgets = BUDGETS
) -> tuple[SaturationReport, EGraphArrays]:
    """Load terms into an engine with a program, saturate, and read out."""
    engine, rules = prepared_engine(program, terms), prepared(program)
    load(engine, terms, flatten(terms, program.strict))
    report = saturate(engine, rules.schedule_for(terms), budgets, program.constructors)
    return report, read_out(engine.freeze(), engine.values, TableLayout(not_operators=rules.helpers))


def fires(rule: Rule, program: RuleProgram, operators: Signature | None = None, seed: int = 0) -> Firing:
    """Whether a rule fires on its own left side, and unites its sides.

    Parameters
    ----------
    rule
        The rule.
    program
        A program that has it, beside others.
    operators
        What the rule may name; by default ops and facts.
    seed
        Of the random choices.
    """
    signature = op_signature()
    if operators is None:
        operators = operators_for(signature)
    statement = statement_of(rule, operators)
    random = Random(f"{seed} {rule.name}")
    construction = Construction(signature, operators)
    sampler = SituationSampler(statement, signature, construction, random)
    last = Firing(False, False)
    for situation in situations(statement, sampler, random):
        terms = left_sides(statement, situation, construction, operators)
        report, arrays = saturated(terms, program)
        matched = {statistics.name for statistics in report.rules if statistics.matches}
        half = len(terms.roots) // 2
        classes = [int(arrays.term_class[root]) for root in terms.roots]
        last = Firing(rule.name in matched, classes[:half] == classes[half:], terms, report)
        if last.fired and last.united:
            return last
    return last


def situations(statement: Statement, sampler: SituationSampler, random: Random) -> Iterable[Situation]:
    """A few situations in which a rule fires, those of the commonest dtypes first, all dtypes twice."""
    plans = list(dtype_plans(statement, random))
    order = {dtype: place for place, dtype in enumerate(FIRST_DTYPES)}
    plans.sort(key=lambda plan: max((order.get(dtype, len(order)) for dtype in plan.values()), default=0))
    found = 0
    for plan in (*plans, *plans):
        for _ in range(ATTEMPTS):
            try:
                situation = sampler.draw(plan, "usual")
            except IllTypedError:
                break
            if situation is not None:
                found += 1
                yield situation
                break
        if found == CASES:
            return


def left_sides(
    statement: Statement, situation: Situation, construction: Construction, operators: Signature
) -> TermGraph:
    """The terms of a situation as patterns have them; roots are the left sides, then the right ones."""
    return _Terms(statement, situation, construction, operators).graph()


class _Terms:
    def __init__(
        self, statement: Statement, situation: Situation, construction: Construction, operators: Signature
    ) -> None:
        self.statement = statement
        self.situation = situation
        self.construction = construction
        self.operators = operators
        self.builder = TermBuilder()
        self.inputs: list[Variable] = []
        self.arrays: list[Constant] = []
        self.numbers: dict[str, int] = {}

    def graph(self) -> TermGraph:
        for name in self.statement.leaves:
            variable = self.situation.bindings[name]
            assert isinstance(variable, Variable)
            self.numbers[name] = self._leaf(name, variable)
        for name, term in self.statement.patterns:
            self.numbers[name] = self._add(term)
        roots = [self._add(left) for left, _ in self.statement.equalities]
        roots += [self._add(right) for _, right in self.statement.equalities]
        facts = [(self.numbers[name], fact) for name in self.numbers for fact in self._assumed(name)]
        terms = TermGraph(
            tuple(self.builder.terms),
            tuple(self.builder.types),
            tuple(roots),
            tuple(self.inputs),
            tuple(self.arrays),
            tuple(self.construction.opaque),
            facts=tuple(facts),
        )
        terms.verify()
        return with_structure(terms)

    def _assumed(self, name: str) -> list[str]:
        """Facts of a leaf that are assumed of it, for no function has them whatever its operand."""
        return sorted(self.statement.facts_of(name).intersection((*RELATIONS, *RANGES, "finite")))

    def _leaf(self, name: str, variable: Variable) -> int:
        if isinstance(variable, Constant):
            value = value_of(variable)
            if variable.data.size == 1 and value is not None:
                return self.builder.add("K", (), (value, dtype_of(variable)), _type_of(variable))
            self.arrays.append(variable)
            return self.builder.add("Array", (), (len(self.arrays) - 1,), _type_of(variable))
        self.inputs.append(variable)
        number = self.builder.add("In", (), (len(self.inputs) - 1,), _type_of(variable))
        if is_tensor(variable) and variable.tensor_type.kind == "f":
            for fact in sorted(self.statement.facts_of(name) & GIVERS.keys()):
                for giver in GIVERS[fact]:
                    number = self.builder.add(giver, (number,), (), _type_of(variable))
        return number

    def _add(self, term: Sexp) -> int:
        if isinstance(term, str):
            return self.numbers[term]
        operator = self.operators[head_of(term)]
        bindings = self.situation.bindings
        operands: list[int] = []
        literals: list[int | float] = []
        for part, sort in zip(term[1:], operator.operands, strict=True):
            if sort == TENSOR:
                operands.append(self._add(part))
            else:
                literals.append(self.construction.judge.literal(part, bindings))
        if head_of(term) == "K":
            literals[0] = float(literals[0])
        return self.builder.add(
            head_of(term), operands, literals, _type_of(self.construction.build(term, bindings))
        )


def _type_of(variable: Variable) -> TermType:
    return TermType(dtype_of(variable), broadcast_of(variable), _sizes(variable), value_of(variable))


def _sizes(variable: Variable) -> tuple[int | tuple[int, int], ...]:
    """Sizes are not known; symbols need no meaning here, but one an axis."""
    if broadcast_of(variable) == -1:
        return ()
    sizes: tuple[int | None, ...] = as_tensor(variable.type).shape
    if isinstance(variable.type, SparseType):
        sizes = (*sizes, None)
    return tuple(1 if size == 1 else (0, axis) for axis, size in enumerate(sizes))


def never_fired(
    rules: Sequence[Rule], programs: Sequence[RuleProgram], operators: Signature | None = None, seed: int = 0
) -> list[tuple[Rule, Firing]]:
    """Rules that fire in none of the programs that hold them, with what became of them in the last one."""
    found = []
    for given in rules:
        firing = Firing(False, False)
        rule = _known(given) or given
        for program in programs:
            if any(module.rule == rule for module in prepared(program).modules):
                firing = fires(rule, program, operators, seed)
                if firing.fired and firing.united:
                    break
        else:
            found.append((rule, firing))
    return found


def _known(rule: Rule) -> Rule | None:
    """The database's own record of a rule, if it has the rule."""
    known = (other for other in RULES.list() if other.name == rule.name and other.source == rule.source)
    return next(known, None)


def programs_with(file: RuleFile) -> tuple[RuleProgram, RuleProgram]:
    """All rules of the database and those of a file: with sums and products of any number, and strictly."""
    tags = {tag for rule in RULES.list() for tag in (*rule.tags, rule.ruleset)}
    # A file of the package is in the database already.
    opaque = opaque_rules(file.rules, op_signature(), file.declarations)
    own = (rule for rule in file.rules if _known(rule) is None and rule not in opaque)
    file = replace(file, rules=tuple(own))
    loose = RULES.query(Query(tags), soundness="unsafe", extra=(file,))
    strict = RULES.query(Query(tags), soundness="exact", extra=(file,))
    loose, strict = (saturating(selection)[0] for selection in (loose, strict))
    return program_for(loose), program_for(strict, strict=True)
