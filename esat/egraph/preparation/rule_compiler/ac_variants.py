"""All generated rules of one AC rule.

- plain and sign-flipped, if a group at the root may be replaced inside a larger one, each for short groups
  and for long ones;
- one per variable that occurs bare in a group and elsewhere too: its class may be an n-ary term of the
group's
  own family, flattened away (``x - floor(x)`` with x a sum);
- in two stages, for a variable that would take the rest of an inner group but whose class a guard reads: the
  first makes the term of the rest, the second finds it once its facts are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from esat.egraph.preparation.rule_compiler.families import (
    PRODUCT,
    SUM,
    canonical,
    contains_family,
    family_of,
    flatten,
    is_trivial,
    negated_operand,
    occurrences,
    variables,
    with_outer_signs,
)
from esat.egraph.preparation.rule_compiler.heads import create_rest, is_subsumption, translate_action
from esat.egraph.preparation.rule_compiler.matching import match_pattern
from esat.egraph.preparation.rule_compiler.rule_guards import translate, translate_shape_guard
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule, reads_class
from esat.egraph.preparation.rule_compiler.variant import RuleVariant, VariantChoice
from esat.rules.language.reader import Sexp, head_of

EXPANSION_LIMIT = 4
"""Most elements a group may have for an expanding rule to look at it in the first place."""

WIDE_EXPANSION_LIMIT = 24
"""Most elements a group may have for an expanding rule of the user, in a rule set and with fuel of its own.

A rule that runs out of fuel does nothing at all in its run: so what it does on short groups stands apart.
"""

STAGED_LIMIT = 6
"""Most elements a group may have for its rests to be made in advance."""


def is_no_operation(surface: SurfaceRule) -> bool:
    """Whether both sides are the same n-ary term; the n-ary layer moves the signs of factors by itself."""
    if len(surface.patterns) != 1 or len(surface.head) != 1 or head_of(surface.head[0]) != "union":
        return False
    variable, term = surface.patterns[0]
    action = surface.head[0]
    sides = (canonical(with_outer_signs(side)) for side in (action[2], term))
    return action[1] == variable and next(sides) == next(sides)


def matches_everything(surface: SurfaceRule) -> bool:
    """Whether a pattern is a group of one bare variable, as ``(Neg (Neg x))``: every term is one."""
    groups = (flatten(term) for _, term in surface.patterns if family_of(term))
    return any(is_trivial(group) and isinstance(group.positives[0], str) for group in groups)


def is_expanding(surface: SurfaceRule) -> bool:
    """Whether repeated application makes ever more terms.

    That is a rule that matches a group and copies a term (distribution), and one that splits an inner group
    in every way there is: two bare variables on one side that nothing constrains.
    """
    makes_groups = any(contains_family(action) for action in surface.head)
    if makes_groups and any(contains_family(term) for _, term in surface.patterns):
        tensors = _tensor_variables(surface)
        for action in surface.head:
            if any(surface.matched_occurrences(name) < occurrences(action, name) for name in tensors):
                return True
    for pattern in surface.patterns:
        for group in _groups(pattern[1], at_root=surface.is_replaceable(pattern)):
            for side in (flatten(group).positives, flatten(group).negatives):
                if sum(_is_unconstrained(surface, operand) for operand in side) > 1:
                    return True
    return False


def _tensor_variables(surface: SurfaceRule) -> set[str]:
    """Operands of the tensor sort in the patterns."""
    found: set[str] = set()

    def visit(term: Sexp) -> None:
        if isinstance(term, str):
            return
        operator = surface.signature.get(head_of(term))
        for index, operand in enumerate(term[1:]):
            is_tensor = family_of(term) or operator is None or index in operator.tensor_operands
            if isinstance(operand, str) and operand.startswith("?") and is_tensor:
                found.add(operand)
            visit(operand)

    for _, term in surface.patterns:
        visit(term)
    return found


def _is_unconstrained(surface: SurfaceRule, operand: Sexp) -> bool:
    return surface.is_linear(operand) and not any(
        occurrences(guard, str(operand)) for guard in surface.guards
    )


def _groups(term: Sexp, *, at_root: bool = False, under: str = "") -> Iterator[Sexp]:
    """The maximal AC terms in `term`; `at_root` leaves out `term` itself."""
    if isinstance(term, str):
        return
    family = family_of(term)
    if family and family != under and not at_root:
        yield term
    for operand in term[1:]:
        yield from _groups(operand, under=family)


def _composites(surface: SurfaceRule) -> Iterator[tuple[str, str]]:
    """(family, variable) pairs: a bare operand of one group of the family that occurs elsewhere too.

    The negative of a variable within a pattern is found whatever the terms of both classes are.
    """
    places: dict[str, list[str]] = {}

    def visit(term: Sexp, place: str) -> None:
        if isinstance(term, str):
            if term.startswith("?"):
                places.setdefault(term, []).append(place)
        elif place and (negated := negated_operand(term)) is not None:
            visit(negated, "negative")
        elif family_of(term):
            for operand in flatten(term).operands:
                visit(operand, family_of(term))
        else:
            for operand in term[1:]:
                visit(operand, "constructor")

    for variable, term in surface.patterns:
        places.setdefault(variable, []).append("class")
        visit(term, "")
    for name, found in places.items():
        for family in (SUM, PRODUCT):
            if found.count(family) == 1 and len(found) > 1 and not (family == SUM and "negative" in found):
                yield family, name


def _late_rests(surface: SurfaceRule) -> Iterator[str]:
    """Variables that could take the rest of an inner group if no guard read their class.

    A rule that only concludes facts makes no terms, so it makes no rests either.
    """
    if not any(head_of(action) == "union" for action in surface.head):
        return
    for pattern in surface.patterns:
        for group in _groups(pattern[1], at_root=surface.is_replaceable(pattern)):
            sides = flatten(group)
            for side in (sides.positives, sides.negatives) if len(sides.operands) > 1 else ():
                linear = [str(operand) for operand in side if surface.is_linear(operand)]
                if all(map(surface.is_read, linear)):
                    yield from (name for name in linear if not _is_constant(surface, name))


def _is_constant(surface: SurfaceRule, name: str) -> bool:
    """Whether a guard reads the value of a variable: the rest of a group is no constant, those are folded."""
    return any(occurrences(guard, ("val", name)) for guard in surface.guards)


def generate(surface: SurfaceRule, choice: VariantChoice, group_limit: int | None) -> RuleVariant:
    """Translate the whole rule for one choice."""
    variant = RuleVariant(surface, choice, group_limit)
    for variable, term in surface.patterns:
        match_pattern(variant, variable, term)
    if choice.stage == "create":
        # The rest does not exist yet: guards that read it wait for the second stage.
        guards = [guard for guard in surface.guards if not reads_class(guard, choice.late_rest)]
        variant.guards += [translate(variant, guard) for guard in guards]
        create_rest(variant, choice.late_rest)
        return variant
    if choice.stage == "join":
        rest = variant.rests.pop(choice.late_rest)
        variant.joins.append(("=", choice.late_rest, (rest.family, rest.positives, rest.negatives)))
    variant.guards += [translate(variant, guard) for guard in surface.guards]
    for variable, word in surface.shape_guards:
        variant.guards.append(translate_shape_guard(variant, variable, word))
    for action in surface.head:
        if choice.is_long and any(is_subsumption(variant, root, action) for root in variant.roots):
            continue
        # What the rule names stands before the groups that later actions are made of.
        made = translate_action(variant, action)
        (variant.lets if head_of(action) == "let" else variant.actions).append(made)
    return variant


def all_variants(surface: SurfaceRule, group_limit: int | None) -> list[RuleVariant]:
    """Every distinct variant of a rule, the plain one first."""
    signs = [False, True] if any(map(surface.is_replaceable, surface.patterns)) else [False]
    composites = (None, *_composites(surface))
    choices = [
        VariantChoice(flipped, composite, is_long=is_long)
        for is_long in (False, True)
        for composite in composites
        for flipped in signs
    ]
    found: dict[tuple[Sexp, ...], RuleVariant] = {}
    for choice in choices:
        variant = generate(surface, choice, group_limit)
        found.setdefault((tuple(variant.body), tuple(variant.head)), variant)
    return list(found.values())


def joins_strangers(surface: SurfaceRule) -> bool:
    """Whether summands that a rule matches have nothing in common, as in ``exp(x) - exp(y)``.

    In a long sum there are as many of them as pairs of summands, and nothing says which belong together.
    """
    for _, term in surface.patterns:
        if family_of(term) == SUM:
            group = flatten(term)
            elements = [one for one in (*group.positives, *group.negatives) if not _is_any(surface, one)]
            named = [names for one in elements if (names := {*variables(one)})]
            known = named.pop() if named else set()
            while related := [names for names in named if names & known]:
                known = known.union(*related)
                named = [names for names in named if names not in related]
            if named:
                return True
    return False


def _is_any(surface: SurfaceRule, element: Sexp) -> bool:
    """Whether an element is a constant, or what a sum has besides."""
    if not isinstance(element, str):
        return False
    return _is_constant(surface, element) or (surface.is_linear(element) and not surface.is_read(element))


def staged_variants(surface: SurfaceRule, group_limit: int | None) -> list[RuleVariant]:
    """Both stages for every variable that takes a rest late."""
    limit = STAGED_LIMIT if group_limit is None else group_limit
    signs = [False, True] if any(map(surface.is_replaceable, surface.patterns)) else [False]
    found: dict[tuple[Sexp, ...], RuleVariant] = {}
    for name in _late_rests(surface):
        for stage in ("create", "join"):
            for flipped in signs:
                variant = generate(surface, VariantChoice(flipped, None, name, stage), limit)
                found.setdefault((tuple(variant.body), tuple(variant.head)), variant)
    return list(found.values())
