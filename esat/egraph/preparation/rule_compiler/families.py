"""The two AC families, and the algebra of patterns modulo their laws.

`Add`, `Sub` and `Neg` build sums, `Mul`, `Div`, `Sqr` and `Reciprocal` products. A maximal tree of one
family is a *group*: a list of positive and a list of negative operands (numerators and denominators), which
is what the n-ary constructors hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from esat.base.records import record
from esat.rules.language.reader import Sexp, head_of

SUM = "NarySum"
PRODUCT = "NaryProd"

FAMILY_OF: Mapping[str, str] = {
    "Add": SUM,
    "Sub": SUM,
    "Neg": SUM,
    "Mul": PRODUCT,
    "Div": PRODUCT,
    "Sqr": PRODUCT,
    "Reciprocal": PRODUCT,
}
"""Binary (and unary) constructor -> n-ary constructor."""

DIVIDING = frozenset({"Div", "Reciprocal"})
"""The constructors that exist for floats and complex numbers only."""


@record(frozen=True, slots=True)
class FamilyOperands:
    """The operands of a maximal tree of one family."""

    family: str
    positives: tuple[Sexp, ...]
    negatives: tuple[Sexp, ...]

    @property
    def operands(self) -> tuple[Sexp, ...]:
        return self.positives + self.negatives


def family_of(term: Sexp) -> str:
    """The n-ary constructor of an AC term; empty for any other."""
    return "" if isinstance(term, str) else FAMILY_OF.get(head_of(term), "")


def contains_family(term: Sexp) -> bool:
    """Whether an AC term occurs in `term`."""
    return not isinstance(term, str) and (
        bool(family_of(term)) or any(contains_family(part) for part in term)
    )


@lru_cache(maxsize=4096)
def flatten(term: Sexp) -> FamilyOperands:
    """The group of an AC term."""
    family = family_of(term)
    positives: list[Sexp] = []
    negatives: list[Sexp] = []

    def collect(part: Sexp, positive: bool) -> None:
        if isinstance(part, str) or family_of(part) != family:
            (positives if positive else negatives).append(part)
            return
        name = head_of(part)
        if name in ("Neg", "Reciprocal"):
            collect(part[1], not positive)
            return
        collect(part[1], positive)
        if name == "Sqr":
            collect(part[1], positive)
        else:
            collect(part[2], positive if name in ("Add", "Mul") else not positive)

    collect(term, True)
    return FamilyOperands(family, tuple(positives), tuple(negatives))


def is_trivial(group: FamilyOperands) -> bool:
    """Whether a group is just its one operand, as ``(Neg (Neg x))``."""
    return len(group.positives) == 1 and not group.negatives


def negated_operand(term: Sexp) -> Sexp | None:
    """The operand of which a term is the negative; None for a term that is no negative of one operand."""
    if family_of(term) != SUM:
        return None
    group = flatten(term)
    return group.negatives[0] if not group.positives and len(group.negatives) == 1 else None


def simplified(term: Sexp) -> Sexp:
    """`term` with every trivial group replaced by its operand, as the n-ary layer stores it."""
    if isinstance(term, str):
        return term
    parts = tuple(simplified(part) for part in term)
    if family_of(parts):
        group = flatten(parts)
        if is_trivial(group):
            return group.positives[0]
    return parts


@lru_cache(maxsize=4096)
def canonical(term: Sexp) -> Sexp:
    """A form that is equal for terms equal by associativity and commutativity."""
    if isinstance(term, str):
        return term
    if family_of(term):
        group = flatten(term)
        if is_trivial(group):
            return canonical(group.positives[0])
        positives = tuple(sorted(map(canonical, group.positives), key=repr))
        negatives = tuple(sorted(map(canonical, group.negatives), key=repr))
        return (group.family, positives, negatives)
    if head_of(term) in ("=", "!=", "union"):
        return (head_of(term), *sorted(map(canonical, term[1:]), key=repr))
    return tuple(map(canonical, term))


def with_outer_signs(term: Sexp) -> Sexp:
    """`term` with the signs of factors moved out of products and into sums, as the n-ary layer does it."""
    negative, result = _signed(term)
    return ("Neg", result) if negative else result


def _signed(term: Sexp) -> tuple[bool, Sexp]:
    """Whether a term is the opposite of another, and that other or the term itself."""
    if isinstance(term, str):
        return False, term
    name, family = head_of(term), family_of(term)
    if name == "Neg":
        negative, inner = _signed(term[1])
        return not negative, inner
    if family == PRODUCT:
        factors = [_signed(factor) for factor in term[1:]]
        odd = name != "Sqr" and sum(negative for negative, _ in factors) % 2 == 1
        return odd, (name, *(factor for _, factor in factors))
    if family != SUM:
        return False, tuple(with_outer_signs(part) for part in term)
    (first_negative, first), (second_negative, second) = _signed(term[1]), _signed(term[2])
    second_negative ^= name == "Sub"
    if first_negative and not second_negative:
        return False, ("Sub", second, first)
    first = ("Neg", first) if first_negative else first
    return False, ("Sub" if second_negative else "Add", first, second)


def substitute(term: Sexp, replacements: Mapping[str, str]) -> Sexp:
    """`term` with atoms replaced, all at once."""
    if isinstance(term, str):
        return replacements.get(term, term)
    return tuple(substitute(part, replacements) for part in term)


def occurrences(term: Sexp, part: Sexp) -> int:
    """How often `part` occurs in `term`."""
    if term == part:
        return 1
    return 0 if isinstance(term, str) else sum(occurrences(other, part) for other in term)


def variables(term: Sexp) -> Iterator[str]:
    """Every occurrence of a renamed rule variable (see `surface`)."""
    if isinstance(term, str):
        if term.startswith("?"):
            yield term
    else:
        for part in term:
            yield from variables(part)


def without_squares(term: Sexp) -> Sexp:
    """`term` with every ``(Sqr t)`` written ``(Mul t t)``.

    How often a variable occurs must be counted on this form: x is not linear in ``(Sqr x)``.
    """
    if isinstance(term, str):
        return term
    parts = tuple(without_squares(part) for part in term)
    return ("Mul", parts[1], parts[1]) if head_of(parts) == "Sqr" and len(parts) == 2 else parts


def swap(left: Sexp, right: Sexp) -> dict[str, str] | None:
    """The exchange of variables that turns `left` into `right` and back, if there is one."""
    exchange: dict[str, str] = {}

    def agree(one: Sexp, other: Sexp) -> bool:
        if isinstance(one, str) or isinstance(other, str):
            if not (isinstance(one, str) and isinstance(other, str)):
                return False
            if one.startswith("?") and other.startswith("?"):
                return exchange.setdefault(one, other) == other and exchange.setdefault(other, one) == one
            return one == other
        return len(one) == len(other) and all(map(agree, one, other))

    return exchange if agree(left, right) else None
