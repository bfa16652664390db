"""Actions of a rule: right sides built as n-ary terms, put in the place of what was matched."""

from __future__ import annotations

from esat.egraph.preparation.rule_compiler.families import PRODUCT, SUM, canonical, family_of, flatten
from esat.egraph.preparation.rule_compiler.variant import EMPTY, RuleVariant, combined
from esat.rules.language.reader import Sexp, head_of

OFFERS = {SUM: "nary-sum-offer", PRODUCT: "nary-product-offer"}
"""The tables of what rules would make of long sums and products."""

RULE_MADE_BUDGET = "64"
"""Flattening budget of an n-ary term that a rule makes: nothing else holds on to it."""


def translate_action(variant: RuleVariant, action: Sexp) -> Sexp:
    """`action` over the variables of the generated rule."""
    name = head_of(action)
    if name == "union":
        for variable, other in ((action[1], action[2]), (action[2], action[1])):
            if isinstance(variable, str) and variable in variant.roots:
                return _replace_in_root(variant, variable, other)
    if name == "subsume":
        return ("subsume", _matched_term(variant, action[1]))
    if name == "let":
        return ("let", action[1], _build(variant, action[2]))
    return (action[0], *(_build(variant, part) for part in action[1:]))


def create_rest(variant: RuleVariant, name: str) -> str:
    """Build the n-ary term of the rest that `name` is bound to; afterwards `name` is its class."""
    if name not in variant.built_rests:
        variant.built_rests.add(name)
        rest = variant.rests[name]
        _bind_new_group(variant, name, (rest.family, rest.positives, rest.negatives))
    return name


def _bind_new_group(variant: RuleVariant, name: str, term: Sexp) -> None:
    variant.lets += [
        ("let", name, term),
        ("need-type", name),
        ("set", ("flatten-budget", name), RULE_MADE_BUDGET),
    ]


def _matched_term(variant: RuleVariant, term: Sexp) -> Sexp:
    """The e-node that `term` of the body matched."""
    if canonical(term) in variant.matched_groups:
        return variant.matched_groups[canonical(term)]
    return (term[0], *(_build(variant, operand) for operand in term[1:]))


def _build(variant: RuleVariant, term: Sexp) -> Sexp:
    if isinstance(term, str):
        return create_rest(variant, term) if term in variant.rests else term
    if variant.surface.is_term(term):
        known = variant.known.get(canonical(term))
        if known is not None:
            return known
        if family_of(term) and canonical(term) not in variant.surface.binary_heads:
            name = variant.fresh("h")
            group = _build_group(variant, term)
            _bind_new_group(variant, name, group)
            return name
    return (term[0], *(_build(variant, operand) for operand in term[1:])) if term else term


def _build_group(variant: RuleVariant, term: Sexp) -> tuple[str, Sexp, Sexp]:
    """The n-ary term of a group; rests of its family are merged into it."""
    group = flatten(term)
    members: tuple[list[Sexp], list[Sexp]] = ([], [])
    merged: tuple[list[Sexp], list[Sexp]] = ([], [])
    for side, operands in enumerate((group.positives, group.negatives)):
        for operand in operands:
            rest = variant.rests.get(operand) if isinstance(operand, str) else None
            if rest is not None and rest.family == group.family:
                merged[side].append(rest.positives)
                merged[1 - side].append(rest.negatives)
            else:
                members[side].append(_build(variant, operand))

    def multiset(side: int) -> Sexp:
        total: Sexp = ("multiset-of", *members[side])
        for rest in merged[side]:
            total = combined(total, rest)
        return total

    return group.family, multiset(0), multiset(1)


def _replace_in_root(variant: RuleVariant, variable: str, replacement: Sexp) -> Sexp:
    """Unite the root with what stays of it and the replacement."""
    root = variant.roots[variable]
    rest = variant.rests.get(replacement) if isinstance(replacement, str) else None
    if family_of(replacement) == root.family and canonical(replacement) not in variant.surface.binary_heads:
        _, positives, negatives = _build_group(variant, replacement)
    elif rest is not None and rest.family == root.family:
        positives, negatives = rest.positives, rest.negatives
    else:
        positives, negatives = ("multiset-of", _build(variant, replacement)), EMPTY
    if root.flipped:
        positives, negatives = negatives, positives
    new = (_inserted(root.left[0], positives), _inserted(root.left[1], negatives))
    if (
        root.left == (EMPTY, EMPTY)
        and new[1] == EMPTY
        and head_of(new[0]) == "multiset-of"
        and len(new[0]) == 2
    ):
        return ("union", variable, new[0][1])
    if not variant.choice.is_long or root.left == (EMPTY, EMPTY):
        return ("union", variable, (root.family, *new))
    is_superseded = any(is_subsumption(variant, variable, action) for action in variant.surface.head)
    return (OFFERS[root.family], *root.sides, *root.left, *new, str(int(is_superseded)))


def is_subsumption(variant: RuleVariant, variable: str, action: Sexp) -> bool:
    """Whether an action subsumes a root."""
    root = variant.roots[variable]
    return head_of(action) == "subsume" and _matched_term(variant, action[1]) == (root.family, *root.sides)


def _inserted(multiset: Sexp, added: Sexp) -> Sexp:
    if multiset != EMPTY and head_of(added) == "multiset-of" and len(added) == 2:
        return ("multiset-insert", multiset, added[1])
    return combined(multiset, added)
