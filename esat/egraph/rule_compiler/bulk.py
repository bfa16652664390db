"""Homomorphisms, compiled to one map over all elements of a sum or product.

Three shapes of rule would match once per pair, and once more per pair of what that made, which enumerates
the set partitions of a sum. All elements at once give the same result with one new term:

collect     ``(Mul (Exp x) (Exp y)) -> (Exp (Add x y))``,
            ``(Add (MatMul a x r) (MatMul a y r)) -> (MatMul a (Add x y) r)``
distribute  ``(Log (Mul x y)) -> (Add (Log x) (Log y))``
conclude    ``(Add x y)``, a fact of x, the same fact of y -> that fact of the sum

The guards of the rule must treat x and y alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from esat.egraph.rule_compiler.families import (
    PRODUCT,
    SUM,
    canonical,
    family_of,
    flatten,
    substitute,
    variables,
)
from esat.egraph.rule_compiler.guarding import with_type_guards
from esat.egraph.rule_compiler.heads import RULE_MADE_BUDGET
from esat.egraph.rule_compiler.surface import SurfaceRule
from esat.egraph.rule_compiler.variant import EMPTY, combined, length_of
from esat.rules.reader import Sexp, head_of

Generated = tuple[list[Sexp], list[Sexp]]
"""Body and head of a generated rule."""

INDEX_RULESET = "esat-index"
LIFT_RULESET = "esat-lift"

_ROOT, _P, _N, _ELEMENT, _ARGUMENT, _GROUP = "?%e", "?%p", "?%n", "?%s", "?%x", "?%u"


@dataclass
class Bulk:
    """A rule in bulk: declarations, helper rules with their core rule set, and the rules themselves."""

    declarations: list[str] = field(default_factory=list)
    helpers: list[tuple[str, Generated]] = field(default_factory=list)
    rules: list[Generated] = field(default_factory=list)


@dataclass(frozen=True)
class _Conditions:
    """The guards of a rule that treats two operands alike."""

    each: tuple[Sexp, ...]
    shared: tuple[Sexp, ...]
    same_shape: bool
    same_dtype: bool


@dataclass(frozen=True)
class _Application:
    """A constructor applied to one operand in question, its other operands being atoms."""

    name: str
    place: int
    operands: tuple[Sexp, ...]

    def of(self, operand: Sexp) -> Sexp:
        return (self.name, *self.operands[: self.place], operand, *self.operands[self.place + 1 :])

    @property
    def others(self) -> tuple[Sexp, ...]:
        return self.operands[: self.place] + self.operands[self.place + 1 :]


def bulk_rules(surface: SurfaceRule) -> Bulk | None:
    """The rule in bulk, or None if it has none of the three shapes."""
    if len(surface.patterns) != 1 or len(surface.head) != 1:
        return None
    variable, left = surface.patterns[0]
    action = surface.head[0]
    if head_of(action) != "union":
        return _conclude(surface, variable, left, action)
    if action[1] != variable or not surface.is_term(action[2]):
        return None
    if family_of(left):
        return _collect(surface, variable, left, action[2])
    return _distribute(surface, variable, left, action[2])


def _application(term: Sexp, operand: Sexp) -> _Application | None:
    """`term` as a constructor applied to `operand` and atoms."""
    if isinstance(term, str) or family_of(term) or term[1:].count(operand) != 1:
        return None
    if any(not isinstance(other, str) for other in term[1:] if other != operand):
        return None
    return _Application(str(term[0]), term[1:].index(operand), term[1:])


def _conditions(surface: SurfaceRule, one: str, other: str) -> _Conditions | None:
    """The guards sorted; None if they tell the two operands apart or relate them in another way."""
    each: list[Sexp] = []
    mirrored: list[Sexp] = []
    shared: list[Sexp] = []
    same = {"bp": False, "dt": False}
    for guard in surface.guards:
        names = set(variables(guard))
        if {one, other} <= names:
            function = next((name for name in same if _equates(guard, name, one, other)), None)
            if function is None:
                return None
            same[function] = True
        elif one in names:
            each.append(guard)
        elif other in names:
            mirrored.append(substitute(guard, {other: one}))
        else:
            shared.append(guard)
        if (one in names or other in names) and names - {one, other}:
            return None
    if set(map(canonical, each)) != set(map(canonical, mirrored)):
        return None
    return _Conditions(tuple(each), tuple(shared), same["bp"], same["dt"])


def _equates(guard: Sexp, function: str, one: str, other: str) -> bool:
    return canonical(guard) == canonical(("=", (function, one), (function, other)))


def _is_typed_as_written(surface: SurfaceRule) -> bool:
    """Whether the rule keeps types without guards, but for the demand that its numbers are numbers."""
    guarded = with_type_guards(surface)
    added = guarded.guards[len(surface.guards) :]
    return not guarded.shape_guards and not guarded.binary_heads and all(g[0] in ("!=", ">=") for g in added)


def _number_guards(surface: SurfaceRule, variable: str) -> list[Sexp]:
    """The guards that a right side needs to be an n-ary term, on the class it is united with."""
    added = with_type_guards(surface).guards[len(surface.guards) :]
    return [(guard[0], ("dt", variable), guard[2]) for guard in added]


def _two_operands(surface: SurfaceRule, term: Sexp, *, signed: bool) -> tuple[Sexp, Sexp, bool] | None:
    """Both operands of a group of two, and whether the second is negative (only if `signed`)."""
    if not family_of(term):
        return None
    group = flatten(term)
    if len(group.positives) == 2 and not group.negatives:
        return group.positives[0], group.positives[1], False
    if signed and len(group.positives) == 1 and len(group.negatives) == 1:
        return group.positives[0], group.negatives[0], True
    return None


def _name(surface: SurfaceRule, purpose: str) -> str:
    """The name of a helper table; characters that symbols may not hold are written as hexadecimal codes."""
    return purpose + "/" + re.sub(r"[^\w.=<>-]", lambda match: f"~{ord(match.group()):x}", surface.rule.name)


def _function(name: str, *bound: Sexp) -> Sexp:
    return ("unstable-fn", f'"{name}"', *bound)


def _new_group(name: str, family: str, positives: Sexp, negatives: Sexp) -> list[Sexp]:
    return [
        ("let", name, (family, positives, negatives)),
        ("need-type", name),
        ("set", ("flatten-budget", name), RULE_MADE_BUDGET),
    ]


def _shared_sorts(surface: SurfaceRule, application: _Application) -> tuple[str, ...] | None:
    """Sorts of the operands that all elements share."""
    if not application.others:
        return ()
    operator = surface.signature.get(application.name)
    if operator is None or len(operator.operands) != len(application.operands):
        return None
    return operator.operands[: application.place] + operator.operands[application.place + 1 :]


def _collect(surface: SurfaceRule, variable: str, left: Sexp, right: Sexp) -> Bulk | None:
    """``F(x) * F(y) -> F(x + y)``: all elements that are an F with the same other operands."""
    operands = _two_operands(surface, left, signed=True)
    inner = [operand for operand in right[1:] if family_of(operand)]
    if operands is None or family_of(right) or len(inner) != 1:
        return None
    inside = _two_operands(surface, inner[0], signed=True)
    if inside is None or inside[2] != operands[2] or not all(map(surface.is_linear, inside[:2])):
        return None
    one, other = str(inside[0]), str(inside[1])
    first, second, result = _application(operands[0], one), _application(operands[1], other), None
    if first is None and not operands[2]:
        one, other = other, one
        first, second = _application(operands[0], one), _application(operands[1], other)
    result = _application(right, inner[0])
    if first is None or second is None or result is None:
        return None
    if not first.of("") == second.of("") == result.of(""):
        return None
    conditions, sorts = _conditions(surface, one, other), _shared_sorts(surface, first)
    if conditions is None or sorts is None or conditions.shared or not _is_typed_as_written(surface):
        return None
    each = tuple(substitute(guard, {one: _ARGUMENT}) for guard in conditions.each)
    conditions = replace(conditions, each=each)
    return _collected(surface, (family_of(left), family_of(inner[0])), first, conditions, sorts, operands[2])


def _collected(
    surface: SurfaceRule,
    families: tuple[str, str],
    application: _Application,
    conditions: _Conditions,
    sorts: tuple[str, ...],
    opposite: bool,
) -> Bulk:
    """The rules that map over the elements; `opposite` if the pattern's second element is negative."""
    family, inner_family = families
    argument, has = _name(surface, "argument"), _name(surface, "has")
    keys: list[Sexp] = list(application.others)
    key_sorts = list(sorts)
    helper_body: list[Sexp] = [("=", _ELEMENT, application.of(_ARGUMENT)), *conditions.each]
    if conditions.same_shape:
        keys.append("?%w")
        key_sorts.append("i64")
        helper_body.append(("=", "?%w", ("bp", _ARGUMENT)))
    columns = " ".join([*key_sorts, "T"])
    bulk = Bulk(
        [f"(function {argument} ({columns}) T :merge old)", f"(function {has} ({columns}) Unit :merge old)"]
    )
    actions: list[Sexp] = [
        ("set", (argument, *keys, _ELEMENT), _ARGUMENT),
        ("set", (has, *keys, _ELEMENT), ()),
    ]
    bulk.helpers.append((INDEX_RULESET, (helper_body, actions)))

    def chosen(multiset: str, purpose: str) -> list[Sexp]:
        found, stays, arguments = f"?%f{purpose}", f"?%r{purpose}", f"?%x{purpose}"
        return [
            ("=", found, ("unstable-multiset-filter", _function(has, *keys), multiset)),
            ("=", stays, ("unstable-multiset-filter-not", _function(has, *keys), multiset)),
            ("=", arguments, ("unstable-multiset-map", _function(argument, *keys), found)),
            ("=", length_of(found), length_of(arguments)),
        ]

    floats: list[Sexp] = [(">=", ("dt", _ROOT), "9")] if opposite and inner_family == PRODUCT else []
    for own, positive in ((_P, True),) if opposite else ((_P, True), (_N, False)):
        body: list[Sexp] = [
            ("=", _ROOT, (family, _P, _N)),
            ("element-count", own, _ELEMENT),
            (has, *keys, _ELEMENT),
            *chosen(own, "1"),
            *floats,
        ]
        arguments: tuple[Sexp, Sexp] = ("?%x1", EMPTY)
        sides: tuple[Sexp, Sexp]
        made = ("multiset-insert", "?%r1", application.of("?%h"))
        if opposite:
            body += [*chosen(_N, "2"), (">", length_of("?%f2"), "0")]
            arguments = ("?%x1", "?%x2")
            sides = (made, "?%r2")
        else:
            body.append((">", length_of("?%f1"), "1"))
            sides = (made, _N) if positive else (_P, made)
        if conditions.same_dtype or not _keeps_dtype(surface, application):
            body += _all_alike("dt", combined(*arguments))
        head = [*_new_group("?%h", inner_family, *arguments), ("union", _ROOT, (family, *sides))]
        bulk.rules.append((body, head))
    return bulk


def _keeps_dtype(surface: SurfaceRule, application: _Application) -> bool:
    """Whether elements of one dtype come from operands of one dtype."""
    operator = surface.signature.get(application.name)
    return operator is not None and operator.dtype == "same" and operator.operand_dtypes is None


def _all_alike(function: str, multiset: Sexp) -> list[Sexp]:
    """Facts: all elements of a multiset have the same dtype or broadcast word."""
    values = f"?%all-{function}"
    return [
        ("=", values, ("unstable-multiset-map", _function(function), multiset)),
        ("=", length_of(values), length_of(multiset)),
        ("=", "1", length_of(("multiset-reset-counts", values))),
    ]


def _distribute(surface: SurfaceRule, variable: str, left: Sexp, right: Sexp) -> Bulk | None:
    """``F(x * y) -> F(x) + F(y)``: F of every element.

    Negative elements follow: F(x) = F(x / y * y) = F(x / y) + F(y).
    """
    inner = [operand for operand in left[1:] if family_of(operand)]
    inside = _two_operands(surface, inner[0], signed=False) if len(inner) == 1 else None
    made = _two_operands(surface, right, signed=False)
    if inside is None or made is None or not all(map(surface.is_linear, inside[:2])):
        return None
    one, other = str(inside[0]), str(inside[1])
    outer = _application(left, inner[0])
    images = [_application(term, name) for term, name in zip(made[:2], (one, other), strict=True)]
    if None in images:
        images = [_application(term, name) for term, name in zip(made[:2], (other, one), strict=True)]
    if outer is None or any(image is None or image.of("") != outer.of("") for image in images):
        return None
    conditions, sorts = _conditions(surface, one, other), _shared_sorts(surface, outer)
    if conditions is None or sorts is None or not _is_typed_as_written(surface):
        return None
    bulk = Bulk()
    function = _mapped_function(surface, outer, sorts, bulk)
    holds = _holds(surface, conditions, one, bulk)
    family, result = family_of(inner[0]), family_of(right)
    body: list[Sexp] = [
        ("=", variable, outer.of(_GROUP)),
        ("=", _GROUP, (family, _P, _N)),
        (">", length_of(_P, _N), "1"),
        *conditions.shared,
        *_number_guards(surface, variable),
    ]
    if family == SUM and result == PRODUCT:
        body.append((">=", ("dt", variable), "9"))
    everything: Sexp = ("multiset-sum", _P, _N)
    for function_name, wanted in (("bp", conditions.same_shape), ("dt", conditions.same_dtype)):
        if wanted:
            body.append(("=", f"?%g-{function_name}", (function_name, _GROUP)))
            body += _all_alike(function_name, everything)
    maps = tuple(("unstable-multiset-map", function, multiset) for multiset in (_P, _N))
    head = [*_new_group("?%h", result, *maps), ("union", variable, "?%h")]
    for own in (_P, _N) if holds else ("",):
        bulk.rules.append(([*body, *_all_hold(holds, own, everything)], head))
    return bulk


def _mapped_function(surface: SurfaceRule, outer: _Application, sorts: tuple[str, ...], bulk: Bulk) -> Sexp:
    """The function that applies the constructor to an element.

    A function is bound to its leading operands only, so a constructor with further operands is applied
    through one that takes them first.
    """
    if not outer.others:
        return _function(outer.name)
    apply = _name(surface, "apply")
    bulk.declarations.append(f"(constructor {apply} ({' '.join([*sorts, 'T'])}) T :unextractable)")
    body: list[Sexp] = [("=", _ROOT, (apply, *outer.others, _ARGUMENT))]
    bulk.helpers.append((LIFT_RULESET, (body, [("union", _ROOT, outer.of(_ARGUMENT))])))
    return _function(apply, *outer.others)


def _holds(surface: SurfaceRule, conditions: _Conditions, one: str, bulk: Bulk) -> str:
    """A table of the classes that satisfy what the rule asks of each operand; empty if it asks nothing."""
    if not conditions.each:
        return ""
    holds = _name(surface, "holds")
    bulk.declarations.append(f"(function {holds} (T) Unit :merge old)")
    bulk.helpers.append((INDEX_RULESET, (list(conditions.each), [("set", (holds, one), ())])))
    return holds


def _all_hold(holds: str, own: str, everything: Sexp) -> list[Sexp]:
    """Facts: every element satisfies the condition; the row of one element triggers the rule."""
    if not holds:
        return []
    satisfying: Sexp = ("unstable-multiset-filter", _function(holds), everything)
    return [
        ("element-count", own, _ELEMENT),
        (holds, _ELEMENT),
        ("=", "?%ok", satisfying),
        ("=", length_of("?%ok"), length_of(everything)),
    ]


def _conclude(surface: SurfaceRule, variable: str, left: Sexp, action: Sexp) -> Bulk | None:
    """``P(x), P(y) => P(x + y)``: P of all elements, if there are no negative ones."""
    operands = _two_operands(surface, left, signed=False)
    if operands is None or not all(map(surface.is_linear, operands[:2])):
        return None
    one, other = str(operands[0]), str(operands[1])
    conditions = _conditions(surface, one, other)
    if conditions is None or not conditions.each or conditions.same_shape or conditions.same_dtype:
        return None
    concluded = ("=", *action[1:]) if head_of(action) == "set" else action
    premises = {canonical(substitute(guard, {one: variable})) for guard in conditions.each}
    if premises != {canonical(concluded)}:
        return None
    bulk = Bulk()
    holds = _holds(surface, conditions, one, bulk)
    body: list[Sexp] = [
        ("=", variable, (family_of(left), _P, _N)),
        ("=", "0", length_of(_N)),
        (">", length_of(_P), "1"),
        *conditions.shared,
        *_all_hold(holds, _P, _P),
    ]
    bulk.rules.append((body, [action]))
    return bulk
