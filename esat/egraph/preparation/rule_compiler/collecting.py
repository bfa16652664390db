"""``(Mul (Exp x) (Exp y)) -> (Exp (Add x y))``: all elements that are exponentials become one."""

from __future__ import annotations

from dataclasses import replace

from esat.egraph.preparation.rule_compiler.families import PRODUCT, SUM, family_of, substitute, variables
from esat.egraph.preparation.rule_compiler.homomorphisms import (
    ARGUMENT,
    ELEMENT,
    INDEX_RULESET,
    ROOT,
    Application,
    Bulk,
    N,
    OperandConditions,
    P,
    all_alike,
    application_of,
    conditions_of,
    function_value,
    helper_name,
    in_its_place,
    is_typed_as_written,
    keeps_dtype,
    new_group,
    shared_sorts,
    two_operands,
)
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.egraph.preparation.rule_compiler.variant import EMPTY, combined, length_of
from esat.rules.language.reader import Sexp


def collect(surface: SurfaceRule, variable: str, left: Sexp, right: Sexp) -> Bulk | None:
    """``F(x) * F(y) -> F(x + y)``: all elements that are an F with the same other operands.

    Factors of one shape have a normal form then, which takes the place of what it is made of. With those of
    other shapes, as scalars that may leave an operation, what is made is one form of several.
    """
    operands = two_operands(surface, left, signed=True)
    inner = [operand for operand in right[1:] if family_of(operand)]
    if operands is None or family_of(right) or len(inner) != 1:
        return None
    inside = two_operands(surface, inner[0], signed=True)
    if inside is None or inside[2] != operands[2] or not all(map(surface.is_linear, inside[:2])):
        return None
    one, other = str(inside[0]), str(inside[1])
    first, second, result = application_of(operands[0], one), application_of(operands[1], other), None
    if first is None and not operands[2]:
        one, other = other, one
        first, second = application_of(operands[0], one), application_of(operands[1], other)
    result = application_of(right, inner[0])
    if first is None or second is None or result is None:
        return None
    if not first.of("") == second.of("") == result.of(""):
        return None
    has_one_dtype = keeps_dtype(surface, first)
    conditions = conditions_of(surface, one, other, same_dtype=has_one_dtype)
    sorts = shared_sorts(surface, first)
    if conditions is None or sorts is None or not is_typed_as_written(surface):
        return None
    if any(not set(variables(guard)) <= set(first.others) for guard in conditions.shared):
        return None
    each = tuple(substitute(guard, {one: ARGUMENT}) for guard in (*conditions.each, *conditions.shared))
    conditions = replace(conditions, each=each)
    families = family_of(left), family_of(inner[0])
    collected = _collected(surface, families, first, conditions, sorts, operands[2])
    if families == (PRODUCT, SUM) and not conditions.same_shape:
        alike = replace(conditions, same_shape=True)
        normal = _collected(surface, families, first, alike, sorts, operands[2], takes_place=True)
        collected.declarations += normal.declarations
        collected.helpers += normal.helpers
        collected.rules += normal.rules
    return collected


def _collected(
    surface: SurfaceRule,
    families: tuple[str, str],
    application: Application,
    conditions: OperandConditions,
    sorts: tuple[str, ...],
    opposite: bool,
    *,
    takes_place: bool = False,
) -> Bulk:
    """The rules that map over the elements; `opposite` if the pattern's second element is negative.

    With `takes_place` what is made takes the place of what is matched.
    """
    family, inner_family = families
    alike = "-alike" if takes_place else ""
    argument, has = (helper_name(surface, f"{purpose}{alike}") for purpose in ("argument", "has"))
    keys: list[Sexp] = list(application.others)
    key_sorts = list(sorts)
    helper_body: list[Sexp] = [("=", ELEMENT, application.of(ARGUMENT)), *conditions.each]
    helper_body.append(("!=", ELEMENT, ARGUMENT))  # as of |x| = x, which would be |x| in all products
    if conditions.same_shape:
        keys.append("?%w")
        key_sorts.append("i64")
        helper_body.append(("=", "?%w", ("bp", ARGUMENT)))
    columns = " ".join([*key_sorts, "T"])
    bulk = Bulk(
        [f"(function {argument} ({columns}) T :merge old)", f"(function {has} ({columns}) Unit :merge old)"]
    )
    actions: list[Sexp] = [
        ("set", (argument, *keys, ELEMENT), ARGUMENT),
        ("set", (has, *keys, ELEMENT), ()),
    ]
    bulk.helpers.append((INDEX_RULESET, (helper_body, actions)))

    def chosen(multiset: str, purpose: str) -> list[Sexp]:
        found, stays, arguments = f"?%f{purpose}", f"?%r{purpose}", f"?%x{purpose}"
        having: Sexp = ("unstable-multiset-filter", function_value(has, *keys), multiset)
        return [
            ("=", found, ("multiset-reset-counts", having) if conditions.distinct else having),
            ("=", stays, ("multiset-subtract", multiset, found)),
            ("=", arguments, ("unstable-multiset-map", function_value(argument, *keys), found)),
            ("=", length_of(found), length_of(arguments)),
        ]

    # Of what turns products into sums, divisors are factors, F(x) F(y) / F(z) = F(x + y - z): all go at once.
    is_asked = any(ARGUMENT in variables(guard) for guard in conditions.each)
    both = families == (PRODUCT, SUM) and not opposite and not is_asked
    floats: list[Sexp] = [(">=", ("dt", ROOT), "9")] if opposite and inner_family == PRODUCT else []
    for own, positive in ((P, True),) if opposite else ((P, True), (N, False)):
        body: list[Sexp] = [
            ("=", ROOT, (family, P, N)),
            ("element-count", own, ELEMENT),
            (has, *keys, ELEMENT),
            *conditions.shared,  # once more: a base may have turned out to be an exponential
            *chosen(own, "1"),
            *floats,
        ]
        arguments: tuple[Sexp, Sexp] = ("?%x1", EMPTY)
        sides: tuple[Sexp, Sexp]
        made = ("multiset-insert", "?%r1", application.of("?%h"))
        body.append((">", length_of("?%f1"), "0" if opposite else "1"))
        if opposite or both:
            body += chosen(N if positive else P, "2")
        if opposite or (both and not positive):
            body.append((">" if opposite else "=", length_of("?%f2"), "0"))
        if positive and (opposite or both):
            arguments, sides = ("?%x1", "?%x2"), (made, "?%r2")
        else:
            sides = (made, N) if positive else (P, made)
        if conditions.same_dtype or not keeps_dtype(surface, application):
            body += all_alike("dt", combined(*arguments))
        made_of = in_its_place(family, sides) if takes_place else [("union", ROOT, (family, *sides))]
        bulk.rules.append((body, [*new_group("?%h", inner_family, *arguments), *made_of]))
    return bulk
