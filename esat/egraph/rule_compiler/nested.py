"""Keys for groups within groups: ``x * (a / x + b)`` matches a product, a sum in it, and a quotient in that.

Joined in one go, all elements of all products meet all elements of the sums in them. So what an inner group
has to be is matched once per group, into a table of the group and of the variables it shares with the rest of
the pattern; the rule then joins that small table instead of trying every element::

    (relation key/distribute (T T))
    (rule ((= s (NarySum p n)) (element-count p t) (= t (NaryProd q r)) (element-count r x))
          ((key/distribute s x)))
    (rule ((= e (NaryProd p n)) (element-count p x) (element-count p s) (key/distribute s x) ...) (...))

What a row says of a group is true of it for good, whatever becomes of the term that showed it. So the rule
leaves out the facts about an inner group. Where something else needs a variable that only they bind, to make
a term of what a group has left, say, the row has the sides of the groups as well: the rule looks the terms
up, for they may have given way to others, and leaves out how they were found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from esat.egraph.rule_compiler.families import PRODUCT, SUM, variables
from esat.rules.reader import Sexp, head_of, subforms
from esat.rules.rule_signature import Signature

_FINDING = frozenset({"element-count", "nary-opposite"})
"""Tables of the index in which the second operand is found by way of the first."""

_UNSTABLE = frozenset({"ordering-min", "ordering-max"})


@dataclass
class NestedKeys:
    """The key tables of one rule: declarations, and the rules that fill them."""

    name: str
    signature: Signature
    declarations: list[str] = field(default_factory=list)
    rules: list[tuple[list[Sexp], list[Sexp]]] = field(default_factory=list)
    tables: dict[tuple[Sexp, ...], str] = field(default_factory=dict)

    def with_keys(self, facts: Sequence[Sexp], head: Sequence[Sexp]) -> list[Sexp]:
        """The facts of a generated rule, with a row of its table for each inner group worth one.

        That is a group of several elements that shares variables with the rest of the pattern. `head` are
        the actions of the rule.
        """
        result = list(facts)
        for group in _inner_groups(facts):
            inside = _inside(facts, group)
            shared = self._shared(inside, facts, group)
            elements = sum(head_of(fact) == "element-count" for fact in inside)
            if elements < 2 or len(shared) < 2:
                continue
            others = [fact for fact in result if fact not in inside]
            read = self._shared(inside, (*others, *head), group)
            hidden = {name for fact in inside for name in variables(fact)}.difference(read)
            if hidden.isdisjoint(name for form in (*others, *head) for name in variables(form)):
                result = [*others, (self._table(inside, read), *read)]
            else:
                kept = _told(inside, (*others, *head))
                read = self._columns(inside, (*others, *kept, *head), group)
                result = [*others, (self._table(inside, read), *read), *kept]
        return result

    def _columns(self, inside: Sequence[Sexp], forms: Sequence[Sexp], group: str) -> tuple[str, ...]:
        """The group, and the tensors and multisets that both its facts and other forms mention."""
        within = {name for fact in inside for name in self._tensors(fact)}
        within.update(str(fact[1]) for fact in inside if _is_term(fact))
        others = {name for form in forms for name in variables(form)}
        return (group, *sorted((within | _multisets(inside)) & others - {group}))

    def _shared(self, inside: Sequence[Sexp], forms: Sequence[Sexp], group: str) -> tuple[str, ...]:
        """The group, and the tensors that both its facts and other forms mention."""
        within = {name for fact in inside for name in self._tensors(fact)}
        others = {name for form in forms if form not in inside for name in variables(form)}
        return (group, *sorted((within & others) - {group}))

    def _tensors(self, fact: Sexp) -> Iterator[str]:
        if head_of(fact) in _FINDING:
            yield str(fact[2])
        elif head_of(fact) == "=" and not isinstance(fact[2], str):
            operator = self.signature.get(head_of(fact[2]))
            operands = fact[2][1:]
            places = () if operator is None else operator.tensor_operands
            yield from (str(operands[place]) for place in places if place < len(operands))

    def _table(self, inside: list[Sexp], shared: tuple[str, ...]) -> str:
        key = (*inside, shared)
        if key not in self.tables:
            table = f"{self.name}/{len(self.tables)}"
            self.tables[key] = table
            multisets = _multisets(inside)
            sorts = " ".join("MS" if name in multisets else "T" for name in shared)
            self.declarations.append(f"(relation {table} ({sorts}))")
            self.rules.append((inside, [(table, *shared)]))
        return self.tables[key]


def _inner_groups(facts: Sequence[Sexp]) -> Iterator[str]:
    """Classes of groups that are elements of a group which is no element itself."""
    groups = {str(fact[1]): fact[2] for fact in facts if _is_group(fact)}
    elements = {str(fact[2]) for fact in facts if head_of(fact) == "element-count"}
    for fact in facts:
        if head_of(fact) == "element-count" and fact[2] in groups:
            owner = next((name for name, term in groups.items() if fact[1] in term[1:]), None)
            if owner is not None and owner not in elements:
                yield str(fact[2])


def _is_group(fact: Sexp) -> bool:
    return head_of(fact) == "=" and head_of(fact[2]) in (SUM, PRODUCT) and isinstance(fact[1], str)


def _is_term(fact: Sexp) -> bool:
    """Whether a fact is a term of an op, or of a group, and the variable of its class."""
    if head_of(fact) != "=" or not isinstance(fact[1], str) or isinstance(fact[2], str):
        return False
    return any(head_of(fact[2]).startswith(letter) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _multisets(facts: Sequence[Sexp]) -> set[str]:
    """The variables of the sides of groups."""
    return {str(side) for fact in facts if _is_group(fact) for side in fact[2][1:]}


def _told(inside: Sequence[Sexp], forms: Sequence[Sexp]) -> list[Sexp]:
    """The facts about a group that others need with it: its terms, and what binds variables of theirs."""
    needed = {name for form in forms for name in variables(form)}
    kept: list[Sexp] = []
    for fact in reversed(inside):
        binds = head_of(fact) == "=" and isinstance(fact[1], str) and fact[1] in needed
        if _is_term(fact) or (binds and not isinstance(fact[2], str)):
            kept.append(fact)
            needed.update(variables(fact))
    return kept[::-1]


def _inside(facts: Sequence[Sexp], group: str) -> list[Sexp]:
    """The facts that say what a group is: its term, its elements, theirs, and conditions on these alone."""
    known = {group}
    chosen: list[int] = []
    growing = True
    while growing:
        growing = False
        for index, fact in enumerate(facts):
            if index not in chosen and _follows(fact, known):
                chosen.append(index)
                known.update(variables(fact))
                growing = True
    return [facts[index] for index in sorted(chosen)]


def _follows(fact: Sexp, known: set[str]) -> bool:
    """Whether a fact is about known variables, or finds others by way of them."""
    if any(head_of(form) in _UNSTABLE for form in subforms(fact)):
        return False
    if head_of(fact) in _FINDING:
        return fact[1] in known
    if head_of(fact) == "=" and isinstance(fact[1], str) and not isinstance(fact[2], str):
        return fact[1] in known if _is_term(fact) else set(variables(fact[2])) <= known
    return set(variables(fact)) <= known
