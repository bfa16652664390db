"""Homomorphisms, compiled to one map over all elements of a sum or product.

Five shapes of rule would match once per pair, and once more per pair of what that made, which enumerates
the set partitions of a sum, or its subsets. All elements at once give the same result with one new term:

collect     ``(Mul (Exp x) (Exp y)) -> (Exp (Add x y))``,
            ``(Add (MatMul a x r) (MatMul a y r)) -> (MatMul a (Add x y) r)``
invert      ``(Reciprocal (Exp x)) -> (Exp (Neg x))``
distribute  ``(Log (Mul x y)) -> (Add (Log x) (Log y))``
take out    the same, where the guards ask something of x alone, and y is the rest of the product
conclude    ``(Add x y)``, a fact of x, the same fact of y -> that fact of the sum

But for what is taken out, the guards of the rule must treat x and y alike.
"""

from __future__ import annotations

from esat.egraph.preparation.rule_compiler.collecting import collect
from esat.egraph.preparation.rule_compiler.distributing import conclude, distribute, take_out
from esat.egraph.preparation.rule_compiler.families import family_of
from esat.egraph.preparation.rule_compiler.homomorphisms import Bulk
from esat.egraph.preparation.rule_compiler.inverting import invert
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.rules.language.reader import head_of


def bulk_rules(surface: SurfaceRule, ruleset: str) -> Bulk | None:
    """The rule in bulk, as one of a rule set; None if it has none of the five shapes."""
    if len(surface.patterns) != 1:
        return None
    variable, left = surface.patterns[0]
    action, *others = surface.head
    if others:
        return take_out(surface, variable, left) if others == [("subsume", left)] else None
    if head_of(action) != "union":
        return conclude(surface, variable, left, action)
    if action[1] != variable or not surface.is_term(action[2]):
        return None
    if family_of(left):
        return collect(surface, variable, left, action[2]) or invert(surface, ruleset)
    return distribute(surface, variable, left, action[2]) or take_out(surface, variable, left)
