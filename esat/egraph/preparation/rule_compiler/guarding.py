"""Type safety: the guards without which a rule could unite terms of different dtype, rank or broadcast mask.

For every ``(union a b)`` of the head the types of both sides are computed symbolically from the signature.
Where they are equal no guard is needed; where they are not, or not known to be, a guard makes the rule fire
only if they are. A right side whose op has no typing in the signature is its author's responsibility.
"""

from __future__ import annotations

from dataclasses import replace

from esat.egraph.preparation.rule_compiler.broadcast_words import Shapes, is_meet_of_leaves, normalised
from esat.egraph.preparation.rule_compiler.families import FAMILY_OF, family_of
from esat.egraph.preparation.rule_compiler.known_dtypes import Dtypes
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.rules.language.reader import Sexp, head_of, subforms


def with_type_guards(surface: SurfaceRule) -> SurfaceRule:
    """`surface` with the guards that keep every class well typed.

    Errors
    ------
    RuleError
        If no operands make the rule well typed.
    """
    dtypes, shapes = Dtypes(surface), Shapes(surface)
    shape_guards: list[tuple[str, Sexp]] = []
    word_guards: list[Sexp] = []
    bound: dict[str, Sexp] = {}
    for action in surface.head:
        name = head_of(action)
        if name == "let":
            bound[str(action[1])] = _resolve(action[2], bound)
        for part in subforms(action):
            if name != "union" and surface.is_term(part):
                dtypes.of_built(part)
        if name == "union":
            left, right = (_resolve(side, bound) for side in action[1:])
            _guard_dtypes(dtypes, left, right)
            _guard_shapes(surface, shapes, (left, right), shape_guards, word_guards)
    dtypes.require_possible()
    return replace(
        surface,
        guards=(*surface.guards, *dtypes.demands, *word_guards),
        shape_guards=tuple(shape_guards),
        binary_heads=frozenset(dtypes.binary_heads),
    )


def _resolve(term: Sexp, bound: dict[str, Sexp]) -> Sexp:
    """`term` with variables that a ``let`` of the head binds replaced by their terms."""
    if isinstance(term, str):
        return bound.get(term, term)
    return tuple(_resolve(part, bound) for part in term) if bound else term


def _guard_dtypes(dtypes: Dtypes, left: Sexp, right: Sexp) -> None:
    one, other = dtypes.of_built(left), dtypes.of_built(right)
    if one is not None and other is not None:
        dtypes.demand_equal(one, other)


def _guard_shapes(
    surface: SurfaceRule,
    shapes: Shapes,
    sides: tuple[Sexp, Sexp],
    shape_guards: list[tuple[str, Sexp]],
    word_guards: list[Sexp],
) -> None:
    left, right = sides
    if shapes.are_equal(shapes.of(left), shapes.of(right)):
        return
    # Words of the operands as they are bound in the body, not of what those are matched against.
    words = shapes.of(left, define=False), shapes.of(right, define=False)
    if not all(map(shapes.is_readable, words)):
        return
    roots = [variable for variable, _ in surface.patterns]
    for side, word in ((left, words[1]), (right, words[0])):
        if isinstance(side, str) and side in roots:
            shape_guards.append((side, word))
            return
    word_guards.append(("=", *(word if is_meet_of_leaves(word) else normalised(word) for word in words)))


def concerns_bools(surface: SurfaceRule) -> bool:
    """Whether the patterns of a rule match AC terms of bools, where `Add` and `Mul` are "or" and "and"."""
    dtypes = Dtypes(surface)
    return any(family_of(term) and dtypes.is_bool(variable) for variable, term in _ac_terms(surface))


def _ac_terms(surface: SurfaceRule) -> list[tuple[str, Sexp]]:
    return [(variable, term) for variable, term in surface.patterns if head_of(term) in FAMILY_OF]
