"""What rules in bulk are made of: elements that are one constructor applied to operands in question.

See `bulk` for the four shapes of rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from esat.base.records import record
from esat.egraph.preparation.rule_compiler.families import (
    canonical,
    family_of,
    flatten,
    substitute,
    variables,
)
from esat.egraph.preparation.rule_compiler.guarding import with_type_guards
from esat.egraph.preparation.rule_compiler.heads import RULE_MADE_BUDGET
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.egraph.preparation.rule_compiler.variant import length_of
from esat.rules.language.reader import Sexp, head_of

Generated = tuple[list[Sexp], list[Sexp]]
"""Body and head of a generated rule."""

INDEX_RULESET = "esat-known"
LIFT_RULESET = "esat-lift"

ROOT, P, N, ELEMENT, ARGUMENT, GROUP = "?%e", "?%p", "?%n", "?%s", "?%x", "?%u"


@dataclass
class Bulk:
    """A rule in bulk: declarations, helper rules with their core rule set, and the rules themselves."""

    declarations: list[str] = field(default_factory=list)
    helpers: list[tuple[str, Generated]] = field(default_factory=list)
    rules: list[Generated] = field(default_factory=list)


@record(frozen=True)
class OperandConditions:
    """The guards of a rule that treats two operands alike; whether they ask for two that differ."""

    each: tuple[Sexp, ...]
    shared: tuple[Sexp, ...]
    same_shape: bool
    same_dtype: bool
    distinct: bool = False


@record(frozen=True)
class Application:
    """A constructor applied to one operand in question, its other operands being atoms."""

    name: str
    place: int
    operands: tuple[Sexp, ...]

    def of(self, operand: Sexp) -> Sexp:
        return (self.name, *self.operands[: self.place], operand, *self.operands[self.place + 1 :])

    @property
    def others(self) -> tuple[Sexp, ...]:
        return self.operands[: self.place] + self.operands[self.place + 1 :]


def application_of(term: Sexp, operand: Sexp) -> Application | None:
    """`term` as a constructor applied to `operand` and atoms."""
    if isinstance(term, str) or family_of(term) or term[1:].count(operand) != 1:
        return None
    if any(not isinstance(other, str) for other in term[1:] if other != operand):
        return None
    return Application(str(term[0]), term[1:].index(operand), term[1:])


def conditions_of(
    surface: SurfaceRule, one: str, other: str, *, same_dtype: bool
) -> OperandConditions | None:
    """The guards sorted; None if they tell the two operands apart or relate them in another way.

    With `same_dtype` the operands are known to share their dtype. What two operands share, by a guard or
    otherwise, a guard on one's says of both.
    """
    each: list[Sexp] = []
    mirrored: list[Sexp] = []
    shared: list[Sexp] = []
    same = {name: any(_equates(guard, name, one, other) for guard in surface.guards) for name in ("bp", "dt")}
    alike = {name for name, is_same in same.items() if is_same} | ({"dt"} if same_dtype else set())
    distinct = {("!=", one, other), ("!=", other, one)}
    for guard in surface.guards:
        names = set(variables(guard))
        if guard in distinct:
            continue
        if {one, other} <= names:
            if not any(_equates(guard, name, one, other) for name in same):
                return None
        elif one in names or other in names:
            of_one = substitute(guard, {other: one})
            on_both = _reads_only(guard, alike)
            if on_both or one in names:
                each.append(of_one)
            if on_both or other in names:
                mirrored.append(of_one)
        else:
            shared.append(guard)
        if (one in names or other in names) and names - {one, other}:
            return None
    if set(map(canonical, each)) != set(map(canonical, mirrored)):
        return None
    is_distinct = not distinct.isdisjoint(surface.guards)
    return OperandConditions(tuple(each), tuple(shared), same["bp"], same["dt"], is_distinct)


def _reads_only(guard: Sexp, facts: Collection[str]) -> bool:
    """Whether all that a guard asks of variables is among these facts."""
    if isinstance(guard, str):
        return not guard.startswith("?")
    return head_of(guard) in facts or all(_reads_only(part, facts) for part in guard)


def _equates(guard: Sexp, function: str, one: str, other: str) -> bool:
    return canonical(guard) == canonical(("=", (function, one), (function, other)))


def is_typed_as_written(surface: SurfaceRule) -> bool:
    """Whether the rule keeps types without guards, but for the demand that its numbers are numbers."""
    guarded = with_type_guards(surface)
    added = guarded.guards[len(surface.guards) :]
    return not guarded.shape_guards and not guarded.binary_heads and all(g[0] in ("!=", ">=") for g in added)


def number_guards(surface: SurfaceRule, variable: str) -> list[Sexp]:
    """The guards that a right side needs to be an n-ary term, on the class it is united with."""
    added = with_type_guards(surface).guards[len(surface.guards) :]
    return [(guard[0], ("dt", variable), guard[2]) for guard in added]


def two_operands(surface: SurfaceRule, term: Sexp, *, signed: bool) -> tuple[Sexp, Sexp, bool] | None:
    """Both operands of a group of two, and whether the second is negative (only if `signed`)."""
    if not family_of(term):
        return None
    group = flatten(term)
    if len(group.positives) == 2 and not group.negatives:
        return group.positives[0], group.positives[1], False
    if signed and len(group.positives) == 1 and len(group.negatives) == 1:
        return group.positives[0], group.negatives[0], True
    return None


def helper_name(surface: SurfaceRule, purpose: str) -> str:
    """The name of a helper table; characters that symbols may not hold are written as hexadecimal codes."""
    return purpose + "/" + re.sub(r"[^\w.=<>-]", lambda match: f"~{ord(match.group()):x}", surface.rule.name)


def function_value(name: str, *bound: Sexp) -> Sexp:
    """A table or primitive as a value, with its leading operands bound."""
    return ("unstable-fn", f'"{name}"', *bound)


def new_group(name: str, family: str, positives: Sexp, negatives: Sexp) -> list[Sexp]:
    """Actions that make an n-ary term and bind it to a name."""
    return [
        ("let", name, (family, positives, negatives)),
        ("need-type", name),
        ("set", ("flatten-budget", name), RULE_MADE_BUDGET),
    ]


def in_its_place(family: str, sides: tuple[Sexp, Sexp]) -> list[Sexp]:
    """Actions that equate the root with another form of it, which takes the place of the one matched."""
    return [
        ("union", ROOT, (family, *sides)),
        (f"{family}-line", P, N),
        (f"{family}-line", *sides),
        ("set", (f"{family}-replaced", P, N, *sides), ()),
    ]


def shared_sorts(surface: SurfaceRule, application: Application) -> tuple[str, ...] | None:
    """Sorts of the operands that all elements share."""
    if not application.others:
        return ()
    operator = surface.signature.get(application.name)
    if operator is None or len(operator.operands) != len(application.operands):
        return None
    return operator.operands[: application.place] + operator.operands[application.place + 1 :]


def keeps_dtype(surface: SurfaceRule, application: Application) -> bool:
    """Whether elements of one dtype come from operands of one dtype."""
    operator = surface.signature.get(application.name)
    return operator is not None and operator.dtype == "same" and operator.operand_dtypes is None


def all_alike(function: str, multiset: Sexp) -> list[Sexp]:
    """Facts: all elements of a multiset have the same dtype or broadcast word."""
    values = f"?%all-{function}"
    return [
        ("=", values, ("unstable-multiset-map", function_value(function), multiset)),
        ("=", length_of(values), length_of(multiset)),
        ("=", "1", length_of(("multiset-reset-counts", values))),
    ]


def holds_table(surface: SurfaceRule, conditions: OperandConditions, one: str, bulk: Bulk) -> str:
    """A table of the classes that satisfy what the rule asks of each operand; empty if it asks nothing."""
    if not conditions.each:
        return ""
    holds = helper_name(surface, "holds")
    bulk.declarations.append(f"(function {holds} (T) Unit :merge old)")
    bulk.helpers.append((INDEX_RULESET, (list(conditions.each), [("set", (holds, one), ())])))
    return holds


def all_hold(holds: str, own: str, everything: Sexp) -> list[Sexp]:
    """Facts: every element satisfies the condition; the row of one element triggers the rule."""
    if not holds:
        return []
    satisfying: Sexp = ("unstable-multiset-filter", function_value(holds), everything)
    return [
        ("element-count", own, ELEMENT),
        (holds, ELEMENT),
        ("=", "?%ok", satisfying),
        ("=", length_of("?%ok"), length_of(everything)),
    ]
