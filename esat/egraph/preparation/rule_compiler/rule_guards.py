"""Guards of a rule as facts about what its patterns matched.

A guard may speak of the type of a variable that took the rest of a group, or of the matched part of a root
group: classes that do not exist. Dtypes are those of the whole group; broadcast words are met over the
elements.
"""

from __future__ import annotations

from esat.egraph.preparation.rule_compiler.broadcast_words import ALL_ONES, is_meet_of_leaves, normalised
from esat.egraph.preparation.rule_compiler.families import canonical, family_of, flatten
from esat.egraph.preparation.rule_compiler.matching import operand_class
from esat.egraph.preparation.rule_compiler.variant import EMPTY, RuleVariant, combined, length_of
from esat.rules.language.reader import Sexp, head_of


def translate(variant: RuleVariant, guard: Sexp) -> Sexp:
    """`guard` over the variables of the generated rule."""
    if isinstance(guard, str):
        return guard
    if head_of(guard) in ("bp", "dt") and len(guard) == 2:
        return _type_of(variant, head_of(guard), guard[1])
    if variant.surface.is_term(guard):
        return operand_class(variant, guard)
    return (guard[0], *(translate(variant, part) for part in guard[1:])) if guard else guard


def translate_shape_guard(variant: RuleVariant, variable: str, word: Sexp) -> Sexp:
    """The fact that the class of `variable` keeps its broadcast word when a part of it is replaced."""
    computed = translate(variant, word)
    root = variant.roots.get(variable)
    if root is not None:
        stays = combined(*root.left)
        if stays != EMPTY:
            computed = ("&", computed, _word_of_elements(variant, stays, variable))
    if is_meet_of_leaves(word):
        return ("=", ("bp", variable), computed)
    name = variant.fresh("w")
    variant.removals.append(("=", name, computed))
    return ("=", ("bp", variable), normalised(name))


def _type_of(variant: RuleVariant, function: str, term: Sexp) -> Sexp:
    """The dtype id or broadcast word of `term`."""
    if isinstance(term, str):
        return _type_of_variable(variant, function, term)
    if family_of(term):
        known = variant.known.get(canonical(term))
        if known is not None and known not in variant.roots:
            return (function, known)
        return _met(variant, function, list(flatten(term).operands))
    return (function, operand_class(variant, term))


def _type_of_variable(variant: RuleVariant, function: str, name: str) -> Sexp:
    rest, root = variant.rests.get(name), variant.roots.get(name)
    if rest is not None:
        return (
            ("dt", rest.owner)
            if function == "dt"
            else _word_of_elements(variant, rest.everything, rest.owner)
        )
    if root is not None and function == "bp":
        rests = [other for other, rest in variant.rests.items() if rest.owner == name]
        return _met(variant, function, [*root.matched, *rests])
    return (function, name)


def _met(variant: RuleVariant, function: str, terms: list[Sexp]) -> Sexp:
    """The common dtype, or the meet of the words, of several terms."""
    if function == "dt":
        return _type_of(variant, function, terms[0])
    words = list(dict.fromkeys(_type_of(variant, function, term) for term in terms))
    meet = words[0]
    for word in words[1:]:
        meet = ("&", meet, word)
    return meet


def _word_of_elements(variant: RuleVariant, multiset: Sexp, owner: str) -> str:
    """A variable bound to the meet of the broadcast words of all elements of a multiset of group `owner`."""
    if multiset not in variant.words:
        words, meet = variant.fresh("b"), variant.fresh("m")
        # Higher-order primitives read tables unseen by semi-naive evaluation: the group's own word, which
        # is set after its elements' words, triggers the rule; the lengths differ while an element has no
        # word.
        if owner not in variant.triggers:
            variant.triggers.add(owner)
            variant.joins.append(("=", variant.fresh("g"), ("bp", owner)))
        variant.removals.append(("=", words, ("unstable-multiset-map", ("unstable-fn", '"bp"'), multiset)))
        variant.removals.append(("=", length_of(words), length_of(multiset)))
        reduction = ("unstable-multiset-reduce", ("unstable-fn", '"&"'), ALL_ONES, words)
        variant.removals.append(("=", meet, reduction))
        variant.words[multiset] = meet
    return variant.words[multiset]
