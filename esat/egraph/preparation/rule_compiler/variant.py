"""One generated rule in the making: what its body and its head collect while patterns are translated.

A rule yields several variants: plain and sign-flipped at the root, and one per variable that may itself be
a sum or product (see `ac_variants`). Each is translated anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from esat.base.records import record
from esat.egraph.preparation.rule_compiler.surface import GENERATED, SurfaceRule
from esat.rules.language.reader import Sexp

EMPTY: Sexp = ("multiset-of",)
"""The empty multiset."""

SHORT_GROUP = 6
"""Up to so many elements, all that a rule replaces in a group makes a group each, 64 at most.
``core.egg`` has the same number."""


@record(frozen=True, slots=True)
class VariantChoice:
    """Which variant of a rule.

    Attributes
    ----------
    flipped
        The roots match with positives and negatives exchanged.
    composite
        (family, variable): that variable is bound to an n-ary term that was flattened into the group.
    late_rest
        A variable that takes the rest of a group although a guard reads its class: see `stage`.
    stage
        With a `late_rest`: "create" makes the term of the rest, "join" finds it and reads its facts.
    is_long
        The roots are long groups, where the n-ary layer chooses what is replaced next.
    """

    flipped: bool = False
    composite: tuple[str, str] | None = None
    late_rest: str = ""
    stage: str = ""
    is_long: bool = False


@record(frozen=True, slots=True)
class Rest:
    """A variable bound to what a group leaves over: the n-ary term of two multisets.

    `owner` is the variable of the group's class, whose dtype the rest shares.
    """

    family: str
    positives: Sexp
    negatives: Sexp
    owner: str

    @property
    def everything(self) -> Sexp:
        """All its elements as one multiset."""
        return combined(self.positives, self.negatives)


@record(frozen=True, slots=True)
class RootGroup:
    """A matched group whose unmatched elements stay in the sum or product.

    `sides` are those of the n-ary term; `left` the (positive, negative) multisets that stay, in the same
    order; `matched` the variables of the matched elements.
    """

    family: str
    sides: tuple[Sexp, Sexp]
    left: tuple[Sexp, Sexp]
    flipped: bool
    matched: tuple[str, ...]


@dataclass
class RuleVariant:
    """The facts and actions of one generated rule."""

    surface: SurfaceRule
    choice: VariantChoice
    group_limit: int | None = None
    joins: list[Sexp] = field(default_factory=list)
    removals: list[Sexp] = field(default_factory=list)
    guards: list[Sexp] = field(default_factory=list)
    orderings: list[Sexp] = field(default_factory=list)
    lengths: list[Sexp] = field(default_factory=list)
    lets: list[Sexp] = field(default_factory=list)
    actions: list[Sexp] = field(default_factory=list)
    rests: dict[str, Rest] = field(default_factory=dict)
    roots: dict[str, RootGroup] = field(default_factory=dict)
    matched_groups: dict[Sexp, Sexp] = field(default_factory=dict)
    known: dict[Sexp, str] = field(default_factory=dict)
    words: dict[Sexp, str] = field(default_factory=dict)
    triggers: set[str] = field(default_factory=set)
    built_rests: set[str] = field(default_factory=set)
    _counter: int = 0

    def fresh(self, purpose: str) -> str:
        """A new variable; `purpose` makes the generated rule readable."""
        self._counter += 1
        return f"{GENERATED}{purpose}{self._counter}"

    @property
    def has_limited_roots(self) -> bool:
        """Whether roots are either short groups or long ones; an expanding rule looks at short ones alone."""
        return self.group_limit is None or self.group_limit > SHORT_GROUP

    @property
    def body(self) -> list[Sexp]:
        """All facts."""
        return [*self.joins, *self.removals, *self.guards, *self.orderings, *self.lengths]

    @property
    def head(self) -> list[Sexp]:
        """All actions."""
        return [*self.lets, *self.actions]


def length_of(*multisets: Sexp) -> Sexp:
    """Expression for the number of elements of multisets together."""
    total: Sexp = ("multiset-length", multisets[0])
    for multiset in multisets[1:]:
        total = ("+", total, ("multiset-length", multiset))
    return total


def combined(one: Sexp, other: Sexp) -> Sexp:
    """Expression for the sum of two multisets."""
    if one == EMPTY:
        return other
    return one if other == EMPTY else ("multiset-sum", one, other)
