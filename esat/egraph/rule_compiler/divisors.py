"""``x / (1 + e^y) -> x s(-y)``: all divisors that are such sums become factors at once.

Matched in products, it would make one for each set of their divisors, as each may be replaced or not. So each
divisor gets its inverse, and products all of their divisors' inverses.
"""

from __future__ import annotations

from dataclasses import replace

from esat.egraph.rule_compiler.ac_variants import generate
from esat.egraph.rule_compiler.families import PRODUCT, SUM, family_of, flatten
from esat.egraph.rule_compiler.guarding import with_type_guards
from esat.egraph.rule_compiler.homomorphisms import ELEMENT, ROOT, Bulk, N, P, function_value, helper_name
from esat.egraph.rule_compiler.surface import SurfaceRule
from esat.egraph.rule_compiler.variant import VariantChoice, combined
from esat.rules.reader import Sexp, head_of

_QUOTIENT, _ABOVE, _BELOW = "?%quotient", "?%above", "?%below"
_MAKING = "esat-lift"


def bulk_of_divisors(surface: SurfaceRule, ruleset: str) -> Bulk | None:
    """The rules for one that replaces division by a sum in whatever it divides; None for others."""
    divisor, inverse = _divisor_of(surface)
    if divisor is None:
        return None
    inverses, has = (helper_name(surface, purpose) for purpose in ("inverse", "has"))
    about = replace(
        surface,
        patterns=((ELEMENT, divisor),),
        guards=(
            *surface.guards,
            ("=", _QUOTIENT, (PRODUCT, _ABOVE, _BELOW)),
            ("element-count", _BELOW, ELEMENT),
        ),
        head=(("union", ELEMENT, ("Reciprocal", inverse)),),
    )
    setting: tuple[Sexp, ...] = (("set", (inverses, ELEMENT), inverse), ("set", (has, ELEMENT), ()))
    variant = generate(replace(with_type_guards(about), head=setting), VariantChoice(), None)
    body: list[Sexp] = [
        ("=", ROOT, (PRODUCT, P, N)),
        ("element-count", N, ELEMENT),
        (has, ELEMENT),
        ("=", "?%made", ("unstable-multiset-map", function_value(inverses), N)),
        ("=", "?%left", ("unstable-multiset-filter-not", function_value(has), N)),
    ]
    return Bulk(
        [f"(function {inverses} (T) T :merge old)", f"(function {has} (T) Unit :merge old)"],
        [(ruleset, (variant.body, variant.head)), (_MAKING, (body, [_union(combined(P, "?%made"))]))],
    )


def _union(above: Sexp) -> Sexp:
    return ("union", ROOT, (PRODUCT, above, "?%left"))


def _divisor_of(surface: SurfaceRule) -> tuple[Sexp | None, Sexp]:
    """The sum that a rule replaces division by, and what it multiplies by instead."""
    if len(surface.patterns) != 1 or len(surface.head) != 1 or head_of(surface.head[0]) != "union":
        return None, ()
    (pattern,), (action,) = surface.patterns, surface.head
    group = flatten(pattern[1]) if surface.is_replaceable(pattern) else None
    if group is None or group.family != PRODUCT or action[1] != pattern[0] or len(group.negatives) != 1:
        return None, ()
    made = flatten(action[2]) if family_of(action[2]) == PRODUCT else None
    factors = [action[2]] if made is None else [*made.positives]
    for other in group.positives:
        if not surface.is_linear(other) or surface.is_read(str(other)) or other not in factors:
            return None, ()
        factors.remove(other)
    is_alone = len(factors) == 1 and (made is None or not made.negatives)
    is_sum = family_of(group.negatives[0]) == SUM
    return (group.negatives[0], factors[0]) if is_alone and is_sum else (None, ())
