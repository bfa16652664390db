"""Rules that draw a scalar factor out of an operation, compiled to draw out all of them at once.

``(F (Mul a x)) -> (Mul a (F x)) :when ((= -1 (bp a)))`` would match once for each scalar of a product, and
again for what is left of it: it would make F of every subset of the scalars. Scalars that divide stay, as
divisors do: of no terms a sum is 0, and 0 / 0 is not.
"""

from __future__ import annotations

from esat.egraph.preparation.rule_compiler.families import PRODUCT, family_of, flatten, occurrences
from esat.egraph.preparation.rule_compiler.homomorphisms import function_value
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.rules.language.reader import Sexp, head_of

SCALARS = "?%scalars"


def scalar_factor(surface: SurfaceRule) -> str:
    """The variable of a rule that is any scalar factor of an operand, and one of the result; else empty."""
    if len(surface.patterns) != 1 or len(surface.head) != 1 or head_of(surface.head[0]) != "union":
        return ""
    left, right = surface.patterns[0][1], surface.head[0][2]
    if family_of(left) or family_of(right) != PRODUCT or flatten(right).negatives:
        return ""
    for guard in surface.guards:
        match guard:
            case ("=", "-1", ("bp", str(name))) | ("=", ("bp", str(name)), "-1"):
                own = [one for one in surface.guards if one != guard and _reads(one, name)]
                if name in flatten(right).positives and surface.is_linear(name) and not own:
                    return name
            case _:
                pass
    return ""


def _reads(guard: Sexp, name: str) -> bool:
    """Whether a guard asks for more of a variable than what a product with it has for a shape."""
    if isinstance(guard, str):
        return guard == name
    if family_of(guard):
        return False
    return any(_reads(part, name) for part in guard)


def all_scalars(name: str, body: list[Sexp], head: list[Sexp]) -> tuple[list[Sexp], list[Sexp]]:
    """A generated rule in which all scalars of a product stand in the place of the one it was written for."""
    side = next(
        (
            fact[1]
            for fact in body
            if isinstance(fact, tuple) and fact[0] == "element-count" and fact[2] == name
        ),
        None,
    )
    rest = ("multiset-remove", side or "", name)
    removed = any(_replaced(fact, rest, "") != fact for fact in body)
    if side is None or not removed or sum(occurrences(action, name) for action in head) != 1:
        return body, head
    all_of_side = ("unstable-multiset-filter", function_value("nary-is-scalar"), side)
    moving = ("unstable-multiset-filter-not", function_value("nary-is-quotient"), all_of_side)
    scalars: list[Sexp] = [("=", SCALARS, moving), ("=", name, ("multiset-pick-max", SCALARS))]
    facts = [_replaced(fact, rest, ("multiset-subtract", side, SCALARS)) for fact in body]
    at = next(place for place, fact in enumerate(body) if fact[0] == "element-count") + 1
    return [*facts[:at], *scalars, *facts[at:]], [_widened(action, name) for action in head]


def _replaced(term: Sexp, old: Sexp, new: Sexp) -> Sexp:
    if term == old:
        return new
    return term if isinstance(term, str) else tuple(_replaced(part, old, new) for part in term)


def _widened(term: Sexp, name: str) -> Sexp:
    """A term with all scalars in the multiset in which the one stands."""
    if isinstance(term, str):
        return term
    if term[0] == "multiset-of" and name in term:
        others = tuple(part for part in term[1:] if part != name)
        return ("multiset-sum", SCALARS, ("multiset-of", *others))
    return tuple(_widened(part, name) for part in term)
