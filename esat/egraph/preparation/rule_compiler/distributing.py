"""``(Log (Mul x y)) -> (Add (Log x) (Log y))``, and facts of all elements as facts of the whole."""

from __future__ import annotations

from esat.egraph.preparation.rule_compiler.families import (
    PRODUCT,
    SUM,
    canonical,
    family_of,
    substitute,
    variables,
)
from esat.egraph.preparation.rule_compiler.homomorphisms import (
    ARGUMENT,
    ELEMENT,
    GROUP,
    LIFT_RULESET,
    ROOT,
    Application,
    Bulk,
    N,
    OperandConditions,
    P,
    all_alike,
    all_hold,
    application_of,
    conditions_of,
    function_value,
    helper_name,
    holds_table,
    is_typed_as_written,
    new_group,
    number_guards,
    shared_sorts,
    two_operands,
)
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.egraph.preparation.rule_compiler.variant import EMPTY, length_of
from esat.rules.language.reader import Sexp, head_of


def distribute(surface: SurfaceRule, variable: str, left: Sexp, right: Sexp) -> Bulk | None:
    """``F(x * y) -> F(x) + F(y)``: F of every element.

    Negative elements follow, F(x) = F(x / y * y) = F(x / y) + F(y), and positive ones from a rule on x / y.
    """
    inner = [operand for operand in left[1:] if family_of(operand)]
    inside = two_operands(surface, inner[0], signed=True) if len(inner) == 1 else None
    made = two_operands(surface, right, signed=True)
    if inside is None or made is None or inside[2] != made[2] or not all(map(surface.is_linear, inside[:2])):
        return None
    one, other = str(inside[0]), str(inside[1])
    outer = application_of(left, inner[0])
    images = [application_of(term, name) for term, name in zip(made[:2], (one, other), strict=True)]
    if None in images and not made[2]:
        images = [application_of(term, name) for term, name in zip(made[:2], (other, one), strict=True)]
    if outer is None or any(image is None or image.of("") != outer.of("") for image in images):
        return None
    conditions = conditions_of(surface, one, other, same_dtype=True)
    sorts = shared_sorts(surface, outer)
    if conditions is None or conditions.distinct or sorts is None or not is_typed_as_written(surface):
        return None
    bulk = Bulk()
    function = _mapped_function(surface, outer, sorts, bulk)
    holds = holds_table(surface, conditions, one, bulk)
    family, result = family_of(inner[0]), family_of(right)
    body: list[Sexp] = [
        ("=", variable, outer.of(GROUP)),
        ("=", GROUP, (family, P, N)),
        (">", length_of(P, N), "1"),
        *conditions.shared,
        *number_guards(surface, variable),
    ]
    if family == SUM and result == PRODUCT:
        body.append((">=", ("dt", variable), "9"))
    everything: Sexp = ("multiset-sum", P, N)
    for function_name, wanted in (("bp", conditions.same_shape), ("dt", conditions.same_dtype)):
        if wanted:
            body.append(("=", f"?%g-{function_name}", (function_name, GROUP)))
            body += all_alike(function_name, everything)
    numerator: Sexp = P
    if family == PRODUCT:
        # F(1) is the unit of the other group, which nothing says of the term.
        numerator = ("unstable-multiset-filter-not", function_value("nary-is-one"), P)
        body.append((">", length_of(numerator, N), "0"))
    maps = tuple(("unstable-multiset-map", function, multiset) for multiset in (numerator, N))
    head = [*new_group("?%h", result, *maps), ("union", variable, "?%h")]
    for own in (P, N) if holds else ("",):
        bulk.rules.append(([*body, *all_hold(holds, own, everything)], head))
    return bulk


def take_out(surface: SurfaceRule, variable: str, left: Sexp) -> Bulk | None:
    """``F(x * y) -> F(x) + F(y)`` for an x of some kind: F of all elements of that kind, and F of the others.

    One element at a time would make F of every subset of the others.
    """
    action, *subsumes = surface.head
    inner = [operand for operand in left[1:] if family_of(operand)]
    inside = two_operands(surface, inner[0], signed=True) if len(inner) == 1 else None
    outer = application_of(left, inner[0]) if inside else None
    if inside is None or outer is None or outer.others or head_of(action) != "union" or action[1] != variable:
        return None
    images = (outer.of(inside[0]), outer.of(inside[1]), inside[2])
    is_linear = all(map(surface.is_linear, inside[:2])) and is_typed_as_written(surface)
    if not is_linear or two_operands(surface, action[2], signed=True) != images:
        return None
    kinds = {name for guard in surface.guards for name in variables(guard)}
    element = str(inside[1 if inside[2] else 0])
    if kinds != {element}:
        return None
    bulk = Bulk()
    holds = holds_table(surface, OperandConditions(surface.guards, (), False, False), element, bulk)
    family, result = family_of(inner[0]), family_of(action[2])
    own, other = (N, P) if inside[2] else (P, N)
    some, rest = "?%some", "?%rest"
    body: list[Sexp] = [
        ("=", variable, outer.of(GROUP)),
        ("=", GROUP, (family, P, N)),
        ("element-count", own, ELEMENT),
        (holds, ELEMENT),
        ("=", some, ("unstable-multiset-filter", function_value(holds), own)),
        ("=", rest, ("unstable-multiset-filter-not", function_value(holds), own)),
        *number_guards(surface, variable),
    ]
    mapped: Sexp = ("unstable-multiset-map", function_value(outer.name), some)
    ends: list[Sexp] = [("union", variable, "?%h"), *(("subsume", outer.of(GROUP)) for _ in subsumes)]
    left_over = new_group("?%left", family, *((other, rest) if inside[2] else (rest, other)))
    last = outer.of("?%left")
    sides = (("multiset-of", last), mapped) if inside[2] else (("multiset-insert", mapped, last), EMPTY)
    bulk.rules.append(
        ([*body, (">", length_of(rest, other), "0")], [*left_over, *new_group("?%h", result, *sides), *ends])
    )
    if not inside[2]:
        nothing_left = (("=", "0", length_of(rest, other)), (">", length_of(some), "1"))
        bulk.rules.append(([*body, *nothing_left], [*new_group("?%h", result, mapped, EMPTY), *ends]))
    return bulk


def _mapped_function(surface: SurfaceRule, outer: Application, sorts: tuple[str, ...], bulk: Bulk) -> Sexp:
    """The function that applies the constructor to an element.

    A function is bound to its leading operands only, so a constructor with further operands is applied
    through one that takes them first.
    """
    if not outer.others:
        return function_value(outer.name)
    apply = helper_name(surface, "apply")
    bulk.declarations.append(f"(constructor {apply} ({' '.join([*sorts, 'T'])}) T :unextractable)")
    body: list[Sexp] = [("=", ROOT, (apply, *outer.others, ARGUMENT))]
    bulk.helpers.append((LIFT_RULESET, (body, [("union", ROOT, outer.of(ARGUMENT))])))
    return function_value(apply, *outer.others)


def conclude(surface: SurfaceRule, variable: str, left: Sexp, action: Sexp) -> Bulk | None:
    """``P(x), P(y) => P(x + y)``: P of all elements, if there are no negative ones."""
    operands = two_operands(surface, left, signed=False)
    if operands is None or not all(map(surface.is_linear, operands[:2])):
        return None
    one, other = str(operands[0]), str(operands[1])
    conditions = conditions_of(surface, one, other, same_dtype=True)
    if conditions is None or not conditions.each or conditions.same_shape or conditions.same_dtype:
        return None
    if conditions.distinct:
        return None
    concluded = ("=", *action[1:]) if head_of(action) == "set" else action
    premises = {canonical(substitute(guard, {one: variable})) for guard in conditions.each}
    if premises != {canonical(concluded)}:
        return None
    bulk = Bulk()
    holds = holds_table(surface, conditions, one, bulk)
    body: list[Sexp] = [
        ("=", variable, (family_of(left), P, N)),
        ("=", "0", length_of(N)),
        (">", length_of(P), "1"),
        *conditions.shared,
        *all_hold(holds, P, P),
    ]
    bulk.rules.append((body, [action]))
    return bulk
