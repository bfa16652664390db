"""``x / (1 + e^y) -> x s(-y)``, ``1 / e^x -> e^-x``: all divisors of such a form become factors.

Matched in products, it would make one for each set of their divisors, as each may be replaced or not. So each
divisor gets its inverse, and products all of their divisors' inverses.
"""

from __future__ import annotations

from dataclasses import replace

from esat.egraph.preparation.rule_compiler.ac_variants import generate
from esat.egraph.preparation.rule_compiler.families import PRODUCT, family_of, flatten
from esat.egraph.preparation.rule_compiler.guarding import with_type_guards
from esat.egraph.preparation.rule_compiler.homomorphisms import (
    ELEMENT,
    LIFT_RULESET,
    ROOT,
    Bulk,
    N,
    P,
    function_value,
    helper_name,
)
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.egraph.preparation.rule_compiler.variant import VariantChoice, combined
from esat.rules.language.reader import Sexp, head_of

_QUOTIENT, _ABOVE, _BELOW = "?%quotient", "?%above", "?%below"


def invert(surface: SurfaceRule, ruleset: str) -> Bulk | None:
    """``x / F -> x G``: all divisors that are an F, in whatever they divide.

    Divisors get their inverses in the rule set of the rule, where its guards may read all that is known.
    """
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
    union: Sexp = ("union", ROOT, (PRODUCT, combined(P, "?%made"), "?%left"))
    return Bulk(
        [f"(function {inverses} (T) T :merge old)", f"(function {has} (T) Unit :merge old)"],
        [(ruleset, (variant.body, variant.head)), (LIFT_RULESET, (body, [union]))],
    )


def _divisor_of(surface: SurfaceRule) -> tuple[Sexp | None, Sexp]:
    """What a rule replaces division by, and what it multiplies by instead."""
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
    is_term = not isinstance(group.negatives[0], str)
    return (group.negatives[0], factors[0]) if is_alone and is_term else (None, ())
