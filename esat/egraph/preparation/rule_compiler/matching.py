"""Patterns into joins: terms over the constructors' tables, groups over the element index.

A group ``(Add s t)`` becomes a join of one n-ary term with the index rows of its elements::

    (= e (NarySum p n)) (element-count p s) (element-count p t)
    (= r (multiset-remove (multiset-remove p s) t))

Removing an element that is absent fails, which alone makes the elements distinct and counts multiplicities.
What remains stays in the sum where the group is a root; elsewhere it must be empty, unless a linear bare
variable of the pattern takes it (one variable per side). The negative of one operand within a pattern, as in
``(Exp (Neg x))``, is a row of the index, in whatever way the terms of its class and of x are negatives.
"""

from __future__ import annotations

from itertools import chain, combinations

from esat.egraph.preparation.rule_compiler.families import (
    PRODUCT,
    SUM,
    canonical,
    family_of,
    flatten,
    negated_operand,
    occurrences,
    substitute,
    swap,
)
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.egraph.preparation.rule_compiler.variant import (
    EMPTY,
    SHORT_GROUP,
    Rest,
    RootGroup,
    RuleVariant,
    length_of,
)
from esat.rules.language.reader import Sexp

LENGTHS_BASE = 1000
"""What ``core.egg`` multiplies the length above by, to tell both lengths of a term in one number."""

LONG_GROUPS = {SUM: "nary-sum-long", PRODUCT: "nary-product-long"}
"""The tables of long groups. In most programs they are empty, and what joins with them is never searched."""

Row = list[tuple[str, Sexp]]
"""The matched elements of one side: their variables and patterns."""


def match_pattern(variant: RuleVariant, variable: str, term: Sexp) -> None:
    """Add the facts for a pattern of the body."""
    if variant.surface.is_replaceable((variable, term)):
        _match_group(variant, variable, term, is_root=True, inside_group=False)
    else:
        if family_of(term):
            variant.known.setdefault(canonical(term), variable)
        _match_term(variant, variable, term, inside_group=False)


def operand_class(variant: RuleVariant, operand: Sexp) -> Sexp:
    """The variable of an operand's class, matching the operand where that has not been done."""
    if isinstance(operand, str):
        return operand
    if not variant.surface.is_term(operand):
        return (operand[0], *(operand_class(variant, part) for part in operand[1:])) if operand else operand
    key = canonical(operand)
    if key not in variant.known:
        variant.known[key] = variant.fresh("t")
        _match_inner(variant, variant.known[key], operand, inside_group=False)
    return variant.known[key]


def _match_inner(variant: RuleVariant, variable: str, term: Sexp, *, inside_group: bool) -> None:
    """Match a term that is an operand of another."""
    negated = negated_operand(term)
    if negated is None or may_take_rest(variant, negated):
        _match_term(variant, variable, term, inside_group=inside_group)
    else:
        variant.joins.append(("nary-opposite", variable, operand_class(variant, negated)))


def _match_term(variant: RuleVariant, variable: str, term: Sexp, *, inside_group: bool) -> None:
    if family_of(term):
        _match_group(variant, variable, term, is_root=False, inside_group=inside_group)
    else:
        variant.joins.append(("=", variable, (term[0], *(operand_class(variant, part) for part in term[1:]))))


def _match_group(
    variant: RuleVariant, variable: str, term: Sexp, *, is_root: bool, inside_group: bool
) -> None:
    """Match a group; `inside_group` says that its class is an element of a group of the other family."""
    group = flatten(term)
    flipped = is_root and variant.choice.flipped
    positives, negatives = variant.fresh("p"), variant.fresh("n")
    variant.joins.append(("=", variable, (group.family, positives, negatives)))
    variant.matched_groups[canonical(term)] = (group.family, positives, negatives)
    if variant.group_limit is not None:
        variant.lengths.append(("<=", length_of(positives, negatives), str(variant.group_limit)))
    # Side 0 is what the pattern's positives match, side 1 what its negatives match.
    sources = (negatives, positives) if flipped else (positives, negatives)
    sides = (group.positives, group.negatives)
    takers = [_rest_variable(variant, operands) for operands in sides]
    remaining: list[Sexp] = list(sources)
    rows: list[Row] = []
    for side in (0, 1):
        elements = [operand for operand in sides[side] if operand != takers[side]]
        rows.append(_match_elements(variant, group.family, elements, sources[side], remaining, side))
    # Few products divide: the search begins there.
    if group.family == PRODUCT and rows[0 if flipped else 1]:
        variant.joins.append(("=", variant.fresh("u"), ("nary-is-quotient", variable)))
    counts = [len(sides[side]) for side in (0, 1)]
    is_inverse = not group.positives and not is_root
    if is_inverse and group.family == PRODUCT:
        _remove_unit(variant, positives, remaining)
        is_inverse = False
        counts[0] = 1
    for side in (0, 1):
        if not isinstance(remaining[side], str):
            rest = variant.fresh("r")
            variant.removals.append(("=", rest, remaining[side]))
            remaining[side] = rest
    is_negation = is_inverse and len(group.negatives) == 1 and not inside_group
    left = _bind_rests(variant, variable, group.family, takers, remaining, (is_root, flipped, is_negation))
    if is_root:
        stays = (left[1], left[0]) if flipped else (left[0], left[1])
        matched = tuple(name for row in rows for name, _ in row)
        variant.roots[variable] = RootGroup(group.family, (positives, negatives), stays, flipped, matched)
        if variant.has_limited_roots and stays != (EMPTY, EMPTY):
            if variant.choice.is_long:
                variant.joins.append((LONG_GROUPS[group.family], positives, negatives))
            else:
                variant.lengths.append(("<=", length_of(positives, negatives), str(SHORT_GROUP)))
        return
    variant.lengths.extend(("=", "0", length_of(multiset)) for multiset in left if multiset != EMPTY)
    has_composite = any((group.family, operand) == variant.choice.composite for operand in chain(*sides))
    if takers == [None, None] and not has_composite and sum(counts) > 1:
        table = "nary-product-lengths" if group.family == PRODUCT else "nary-sum-lengths"
        lengths = str(LENGTHS_BASE * counts[0] + counts[1])
        variant.joins.append(("=", lengths, (table, positives, negatives)))


def may_take_rest(variant: RuleVariant, operand: Sexp) -> bool:
    """Whether `operand` is a variable that may be bound to what a group leaves over."""
    surface, choice = variant.surface, variant.choice
    if not isinstance(operand, str) or not surface.is_linear(operand):
        return False
    if operand == choice.late_rest:
        return True
    return not surface.is_read(operand) and (choice.composite is None or operand != choice.composite[1])


def _rest_variable(variant: RuleVariant, operands: tuple[Sexp, ...]) -> str | None:
    """The operand that takes the rest of its side: of those that may, the one with the fewest guards."""
    candidates = [str(operand) for operand in operands if may_take_rest(variant, operand)]
    if variant.choice.late_rest in candidates:
        return variant.choice.late_rest
    guards = variant.surface.guards
    cost = {name: sum(occurrences(guard, name) for guard in guards) for name in candidates}
    return min(reversed(candidates), key=lambda name: cost[name], default=None)


def _match_elements(
    variant: RuleVariant, family: str, elements: list[Sexp], source: str, remaining: list[Sexp], side: int
) -> Row:
    """Match the elements of one side and take them out of `remaining`."""
    row: Row = []
    for element in elements:
        if variant.choice.composite == (family, element):
            _remove_composite(variant, family, str(element), remaining, side)
            continue
        name = next((name for name, other in row if canonical(other) == canonical(element)), None)
        if name is None:
            if isinstance(element, str):
                name = element
                variant.joins.append(("element-count", source, name))
            else:
                name = variant.fresh("s")
                variant.joins.append(("element-count", source, name))
                variant.known.setdefault(canonical(element), name)
                _match_inner(variant, name, element, inside_group=True)
            row.append((name, element))
        remaining[side] = ("multiset-remove", remaining[side], name)
    for (one, first), (other, second) in combinations(row, 2):
        if is_automorphism(variant.surface, first, second):
            variant.orderings.append(("=", one, ("ordering-min", one, other)))
    return row


def _remove_composite(variant: RuleVariant, family: str, name: str, remaining: list[Sexp], side: int) -> None:
    """Take an n-ary term of the same family out of the group, element by element."""
    positives, negatives = variant.fresh("cp"), variant.fresh("cn")
    variant.joins.append(("=", name, (family, positives, negatives)))
    for index, multiset in ((side, positives), (1 - side, negatives)):
        rest = variant.fresh("r")
        variant.removals.append(("=", rest, ("multiset-subtract", remaining[index], multiset)))
        # Subtraction leaves out what is absent; the lengths tell that nothing was.
        variant.removals.append(("=", length_of(remaining[index]), length_of(rest, multiset)))
        remaining[index] = rest


def _remove_unit(variant: RuleVariant, positives: str, remaining: list[Sexp]) -> None:
    """Take the numerator 1 out of a product that the pattern writes without a numerator.

    The n-ary layer keeps 1 / x with its numerator, so that patterns which divide 1 match it as well.
    """
    unit = variant.fresh("one")
    variant.joins += [("element-count", positives, unit), ("nary-is-one", unit)]
    remaining[0] = ("multiset-remove", remaining[0], unit)


def _bind_rests(
    variant: RuleVariant,
    variable: str,
    family: str,
    takers: list[str | None],
    remaining: list[Sexp],
    where: tuple[bool, bool, bool],
) -> list[Sexp]:
    """Give what remains to the variables that take rests; returns what is left of both sides."""
    is_root, flipped, is_negation = where
    first, second = takers
    own, opposite = remaining

    def bind(name: str, positives: Sexp, negatives: Sexp, nonempty: Sexp) -> None:
        variant.rests[name] = Rest(family, positives, negatives, variable)
        minimum = "1" if name == variant.choice.late_rest else "0"
        variant.lengths.append((">", nonempty, minimum))

    if first and second:
        bind(first, own, EMPTY, length_of(own))
        bind(second, opposite, EMPTY, length_of(opposite))
        return [EMPTY, EMPTY]
    if first:
        if is_root and flipped:
            bind(first, own, EMPTY, length_of(own))
            return [EMPTY, opposite]
        bind(first, own, opposite, length_of(own, opposite))
        return [EMPTY, EMPTY]
    if second:
        if is_negation and second != variant.surface.negated:
            bind(second, opposite, own, length_of(opposite))
            return [EMPTY, EMPTY]
        bind(second, opposite, EMPTY, length_of(opposite))
        return [own, EMPTY]
    return [own, opposite]


def is_automorphism(surface: SurfaceRule, one: Sexp, other: Sexp) -> bool:
    """Whether exchanging two operands maps the whole rule onto itself: one order of them is enough."""
    exchange = swap(one, other)
    if exchange is None:
        return False
    facts: list[Sexp] = [("=", variable, term) for variable, term in surface.patterns]
    facts += [*surface.guards, *(("=", variable, word) for variable, word in surface.shape_guards)]

    def images(forms: list[Sexp]) -> tuple[list[str], list[str]]:
        before = sorted(repr(canonical(form)) for form in forms)
        return before, sorted(repr(canonical(substitute(form, exchange))) for form in forms)

    return all(before == after for before, after in (images(facts), images(list(surface.head))))
