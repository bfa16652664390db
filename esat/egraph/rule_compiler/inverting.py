"""``(Reciprocal (Exp x)) -> (Exp (Neg x))``: all divisors that are exponentials become factors."""

from __future__ import annotations

from esat.egraph.rule_compiler.families import PRODUCT, SUM, family_of, flatten, negated_operand
from esat.egraph.rule_compiler.homomorphisms import (
    ELEMENT,
    INDEX_RULESET,
    LIFT_RULESET,
    ROOT,
    Application,
    Bulk,
    N,
    P,
    application_of,
    function_value,
    helper_name,
    is_typed_as_written,
    new_group,
)
from esat.egraph.rule_compiler.surface import SurfaceRule
from esat.egraph.rule_compiler.variant import EMPTY, combined
from esat.rules.reader import Sexp


def invert(surface: SurfaceRule, left: Sexp, right: Sexp) -> Bulk | None:
    """``1 / F(x) -> F(-x)``: all divisors that are an F, whatever their other operands."""
    group = flatten(left)
    if group.family != PRODUCT or group.positives or len(group.negatives) != 1 or isinstance(right, str):
        return None
    divisor = group.negatives[0]
    negated = [operand for operand in right[1:] if negated_operand(operand) is not None]
    if len(negated) != 1 or family_of(right) or family_of(divisor):
        return None
    argument = negated_operand(negated[0])
    if not isinstance(argument, str) or not surface.is_linear(argument):
        return None
    made, found = application_of(right, negated[0]), application_of(divisor, argument)
    if made is None or found is None or made.of("") != found.of("") or not is_typed_as_written(surface):
        return None
    return _inverted(surface, found, argument)


def _inverted(surface: SurfaceRule, application: Application, argument: str) -> Bulk:
    """A constructor from a divisor to its inverse, which is made where a divisor is there, and the rule."""
    inverse, has = helper_name(surface, "inverse"), helper_name(surface, "has")
    bulk = Bulk([f"(constructor {inverse} (T) T :unextractable)", f"(function {has} (T) Unit :merge old)"])
    is_such: list[Sexp] = [("=", ELEMENT, application.of(argument)), *surface.guards]
    bulk.helpers.append((INDEX_RULESET, (is_such, [("set", (has, ELEMENT), ())])))
    opposite = [*new_group("?%h", SUM, EMPTY, ("multiset-of", argument))]
    # Asked for again, the inverse of what is its own, as that of one is, would be made of itself without end.
    making: list[Sexp] = [*opposite, ("union", ROOT, application.of("?%h")), ("delete", (inverse, ELEMENT))]
    bulk.helpers.append((LIFT_RULESET, ([("=", ROOT, (inverse, ELEMENT)), *is_such], making)))
    inverses = ("unstable-multiset-map", function_value(inverse), "?%f")
    sides: tuple[Sexp, Sexp] = (combined(P, inverses), "?%r")
    body: list[Sexp] = [
        ("=", ROOT, (PRODUCT, P, N)),
        ("element-count", N, ELEMENT),
        (has, ELEMENT),
        ("=", "?%f", ("unstable-multiset-filter", function_value(has), N)),
        ("=", "?%r", ("unstable-multiset-filter-not", function_value(has), N)),
    ]
    bulk.rules.append((body, [("union", ROOT, (PRODUCT, *sides))]))
    return bulk
