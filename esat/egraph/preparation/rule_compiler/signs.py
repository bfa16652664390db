"""Rules about the negative of an operand, ``F(-x) = -G(x)`` and ``F(-x) = G(x)``, where sums have both signs.

``a - b`` is the negative of ``b - a``, and neither is simpler. If such a rule said of each ``F(a - b)`` what
it is in terms of ``b - a``, all that is made of differences would double, operation by operation. So here
``-x`` stands for a sum of negatives alone. Of two differences that are each other's negatives the rule says
something where ``F`` of the one and ``G`` of the other are there: that is the second rule made here.
"""

from __future__ import annotations

from dataclasses import replace

from esat.egraph.preparation.rule_compiler.families import family_of, negated_operand, occurrences
from esat.egraph.preparation.rule_compiler.surface import GENERATED, SurfaceRule
from esat.rules.language.reader import Sexp, head_of

_NEGATIVE, _OTHER = f"{GENERATED}negative", f"{GENERATED}other"


def negated_variable(surface: SurfaceRule) -> str:
    """The variable x of a rule ``F(-x) = -G(x)`` or ``F(-x) = G(x)``; empty for other rules."""
    found = _sides(surface)
    return found[0] if found is not None else ""


def about_opposites(surface: SurfaceRule) -> SurfaceRule | None:
    """What such a rule says of two terms that are each other's negatives, where both sides are there."""
    found = _sides(surface)
    if found is None:
        return None
    variable, place, result = found
    ((root, term),) = surface.patterns
    negative = (*term[:place], _NEGATIVE, *term[place + 1 :])
    inner = negated_operand(result)
    other: Sexp = _OTHER if inner is None else ("Neg", _OTHER)
    return replace(
        surface,
        patterns=((root, negative), (_OTHER, result if inner is None else inner)),
        guards=(*surface.guards, ("nary-opposite", _NEGATIVE, variable)),
        head=(("union", root, other),),
    )


def _sides(surface: SurfaceRule) -> tuple[str, int, Sexp] | None:
    """The variable, the place of its negative in the pattern, and what the pattern is equal to."""
    if len(surface.patterns) != 1 or len(surface.head) != 1 or head_of(surface.head[0]) != "union":
        return None
    ((root, term),) = surface.patterns
    first, result = tuple(surface.head[0])[1:]
    if first != root or not surface.is_term(term) or family_of(term):
        return None
    places = [place for place, operand in enumerate(term) if place and not isinstance(operand, str)]
    negated = negated_operand(term[places[0]]) if len(places) == 1 else None
    if not isinstance(negated, str) or not surface.is_linear(negated) or surface.is_read(negated):
        return None
    inner = negated_operand(result)
    inner = result if inner is None else inner
    if isinstance(inner, str) or family_of(inner) or any(not isinstance(part, str) for part in inner[1:]):
        return None
    return (negated, places[0], result) if occurrences(inner, negated) == 1 else None
