"""What a Query means for equality saturation: what runs before it, takes part in it, and runs after it.

The same database serves greedy modes, which run all of it in order, and the rules of each database of local
optimizers as a step (:mod:`esat.classic.rules.rule_step`). Here

* rules saturate,
* local optimizers say what is equal: their replacements are added, nothing is destroyed,
* global optimizers below position 49, and local ones that stabilize, change the graph before,
* local ones that stabilize are asked about the extracted graph, too, and what they change is saturated anew,
* global optimizers from 49 on change the extracted graph.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from esat.base.records import record
from esat.classic.optimizers.equilibrium import EquilibriumOptimizer
from esat.classic.optimizers.global_optimizers import Optimizer, SeqOptimizer
from esat.classic.optimizers.local import LocalOptimizer
from esat.classic.optimizers.marker import Marker
from esat.classic.optimizers.optimizer_database import DB, Entry, EquilibriumDB, SequenceDB
from esat.classic.rewriting import LIFTS, LOCALS
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.rules.rule_phase import RuleSource
from esat.classic.rules.rule_rewriter import RuleRewriter
from esat.classic.simplify import local_shape_lift
from esat.classic.standard import EQUILIBRIA
from esat.egraph.language.loader import NARY_FORM
from esat.egraph.preparation.replacements import saturating
from esat.egraph.preparation.rule_database import RuleDatabase
from esat.errors import EsatWarning
from esat.rules.language.query import Query
from esat.rules.language.reader import Sexp, head_of, is_number
from esat.rules.language.rule import Rule
from esat.rules.language.rule_selection import RuleSelection

AFTER = 49.0
"""Position from which optimizers see the extracted graph."""

FOR_GOOD = "stabilize"
"""The database whose local optimizers replace for good: what overflows must not come back for its price."""


@record(frozen=True)
class SaturationPlan:
    """Python optimizers of one compilation by equality saturation.

    Attributes
    ----------
    before, after
        What runs on the graph before and after.
    equalities
        Local optimizers that contribute equalities.
    stabilizing
        Those of what runs before that replace for good, and are asked about what was found, too.
    rules
        Which rules saturate: those of each source that the Query beside it selects.
    left_out
        What the Query leaves out although saturation does it by itself.
    """

    before: SeqOptimizer
    equalities: tuple[LocalOptimizer, ...]
    after: SeqOptimizer
    stabilizing: SeqOptimizer
    rules: tuple[tuple[RuleSource, Query], ...]
    left_out: tuple[str, ...]

    @property
    def added(self) -> tuple[LocalOptimizer, ...]:
        """Local optimizers that contribute equalities and do not come with esat."""
        return tuple(one for one in self.equalities if id(one) not in _OWN)

    @property
    def lifts(self) -> tuple[LocalOptimizer, ...]:
        """Those that compute parts of results from parts of operands."""
        return tuple(one for one in self.equalities if one in LIFTS)


_OWN = frozenset(id(local.optimizer) for local in LOCALS) | {id(local_shape_lift)}


def saturation_plan(database: SequenceDB, query: Query, options: RuleOptions | None = None) -> SaturationPlan:
    """The plan of what a Query selects.

    Where only exact rules are admitted, a Python optimizer takes part if it is tagged ``exact``.
    """
    chosen = options or RuleOptions()
    before: dict[str, Optimizer] = {}
    after: dict[str, Optimizer] = {}
    stabilizing: dict[str, Optimizer] = {}
    equalities: list[LocalOptimizer] = []
    rules: list[tuple[RuleSource, Query]] = []
    own_query = database.subquery(query)
    chosen_entries = database.selected(query)
    left_out = _left_out(database, chosen_entries)
    for entry in chosen_entries:
        found = entry.object
        where = before if entry.position < AFTER else after
        if isinstance(found, Optimizer):
            if _takes_part(entry, chosen):
                where[entry.name] = found
        elif isinstance(found, EquilibriumDB):
            inside = found.locals(own_query)
            left_out += _left_out(found, inside)
            if found.rules is not None:
                rules.append((found.rules, found.subquery(own_query)))
            own = [inner for inner in inside if _takes_part(inner, chosen)]
            if entry.position >= AFTER or found.name == FOR_GOOD:
                if own:
                    where[entry.name] = _equilibrium(own, found.name)
                if own and entry.position < AFTER:
                    stabilizing[entry.name] = where[entry.name]
                continue
            for inner in own:
                if isinstance(inner.object, LocalOptimizer):
                    equalities.append(inner.object)
                elif isinstance(inner.object, Optimizer):
                    where[inner.name] = inner.object
        elif isinstance(found, SequenceDB):
            part = saturation_plan(found, own_query, chosen)
            where.update(zip(part.before.names, part.before.optimizers, strict=True))
            where.update(zip(part.after.names, part.after.optimizers, strict=True))
            stabilizing.update(zip(part.stabilizing.names, part.stabilizing.optimizers, strict=True))
            equalities += part.equalities
            rules += part.rules
            left_out += part.left_out
    return SaturationPlan(
        SeqOptimizer(before.values(), "before saturation", before),
        tuple(equalities),
        SeqOptimizer(after.values(), "after extraction", after),
        SeqOptimizer(stabilizing.values(), "stabilize what was found", stabilizing),
        tuple(rules),
        tuple(dict.fromkeys(left_out)),
    )


def selected_rules(
    plan: SaturationPlan, rules: RuleDatabase, query: Query, options: RuleOptions
) -> RuleSelection:
    """The rules that take part in a plan, those of one compilation included."""
    shared = {source.tag for source, own in plan.rules if own == query}
    if shared >= set(EQUILIBRIA):
        selection = rules.query(query, soundness=options.soundness, extra=options.extra, users=options.users)
    else:

        def wanted(rule: Rule) -> bool:
            return any(
                source.has(rule) and own.selects(rule.report_name, rule.labels) for source, own in plan.rules
            )

        selection = rules.select(wanted, options.soundness, options.extra, options.users, query)
    return selection


def with_opaque_rules(
    selection: RuleSelection, rules: RuleDatabase, options: RuleOptions
) -> tuple[RuleSelection, tuple[LocalOptimizer, ...]]:
    """The rules that saturate; and as local optimizers those of ops that only Python types."""
    selection, opaque = saturating(selection)
    if not opaque:
        return selection, ()
    context = options.context(rules)
    return selection, tuple(RuleRewriter(rule, context) for rule in opaque)


def warn_of_exclusions(plan: SaturationPlan, rules: RuleDatabase, query: Query) -> None:
    """Warn of what a Query leaves out and e-graphs do all the same."""
    vain = excluded_in_vain(plan, rules, query)
    if vain:
        reason = "saturation merges, folds constants and computes with sums and products by itself"
        text = f"{reason}; leaving out {', '.join(vain)} changes nothing"
        warnings.warn(text, EsatWarning, stacklevel=2)


def excluded_in_vain(plan: SaturationPlan, rules: RuleDatabase, query: Query) -> list[str]:
    """Names of what a Query leaves out and saturation does all the same.

    It merges, folds constants and computes with sums and products of any length by itself: excluding a rule
    that says nothing else changes nothing.
    """
    named = [rule for rule in rules.list() if rule.report_name in query.exclude]
    return [*plan.left_out, *dict.fromkeys(rule.report_name for rule in named if _is_arithmetic(rule))]


def _is_arithmetic(rule: Rule) -> bool:
    """Whether a rule speaks of nothing but sums, products, quotients and constants."""
    ops = {head for form in (*rule.body, *rule.head) for head in _heads(form) if head[:1].isupper()}
    powers = {"Pow"} if any(map(_is_whole_exponent, rule.body)) else set[str]()
    return ops <= {*NARY_FORM, "K"} | powers


def _is_whole_exponent(condition: Sexp) -> bool:
    """Whether a condition is ``(= (val z) 3.0)``: powers with such exponents are products."""
    if isinstance(condition, str) or head_of(condition) != "=" or len(condition) != 3:
        return False
    value, number = condition[1:]
    known = not isinstance(value, str) and head_of(value) == "val"
    exponent = float(number) if isinstance(number, str) and is_number(number) else 0.5
    return known and exponent.is_integer() and exponent >= 1.0


def _heads(form: Sexp) -> set[str]:
    return set() if isinstance(form, str) else {head_of(form)}.union(*map(_heads, form[1:]))


def _left_out(database: DB, selected: Sequence[Entry]) -> list[str]:
    """Names of what saturation does by itself and a Query does not select, although modes do."""
    names = {entry.name for entry in selected}
    found: list[str] = []
    for entry in database:
        if entry.name in names or "fast_run" not in entry.tags:
            continue
        if isinstance(entry.object, DB):
            found += _left_out(entry.object, ())
        elif entry.native and not (isinstance(entry.object, Marker) and isinstance(database, SequenceDB)):
            found.append(entry.name)
    return found


def _takes_part(entry: Entry, options: RuleOptions) -> bool:
    return not entry.native and (options.soundness != "exact" or "exact" in entry.tags)


def _equilibrium(entries: list[Entry], name: str) -> EquilibriumOptimizer:
    found = [entry.object for entry in entries]
    return EquilibriumOptimizer([one for one in found if not isinstance(one, DB)], name=name)
