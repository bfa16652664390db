"""Broadcast words as symbolic expressions, and when two of them are equal.

The broadcast word of an elementwise result is the meet ``&`` of its operands' words, that of a reduction
the join ``|`` with the axis mask. An expression is normalised to a meet of joins of leaves (a conjunctive
normal form), so that equal expressions over ``&`` and ``|`` have equal forms.
"""

from __future__ import annotations

from collections.abc import Mapping

from esat.egraph.preparation.rule_compiler.families import canonical, family_of, flatten
from esat.egraph.preparation.rule_compiler.surface import SurfaceRule
from esat.rules.language.reader import Sexp, head_of

Normal = frozenset[frozenset[Sexp]]
"""A meet of joins of leaves."""

ALL_ONES = "-1"
"""The word of a rank-free scalar: neutral in a meet."""


class Shapes:
    """Broadcast words of the terms of one rule.

    Parameters
    ----------
    surface
        The rule: a variable's word is that of the term its class is matched against, where that is known.
    """

    def __init__(self, surface: SurfaceRule) -> None:
        self.surface = surface
        self._definitions: dict[str, Sexp] = {}
        matched: set[Sexp] = set()
        for variable, term in surface.patterns:
            self._definitions.setdefault(variable, term)
            _collect_terms(term, matched)
        self._matched = matched
        self._expanding: set[str] = set()
        self._normal: dict[Sexp, Normal] = {}
        self._equal = [
            frozenset((self.normal(guard[1]), self.normal(guard[2])))
            for guard in surface.guards
            if head_of(guard) == "=" and len(guard) == 3 and any(head_of(side) == "bp" for side in guard[1:])
        ]

    def of(self, term: Sexp, *, define: bool = True) -> Sexp:
        """Expression for the broadcast word of `term`; leaves are ``(bp ...)`` terms and integers.

        With `define`, a variable stands for the term its class is matched against.
        """
        if isinstance(term, str):
            definition = self._definitions.get(term)
            if not define or definition is None or term in self._expanding or self._is_opaque(definition):
                return ("bp", term)
            self._expanding.add(term)
            try:
                return self.of(definition)
            finally:
                self._expanding.discard(term)
        if family_of(term):
            return _meet([self.of(operand, define=define) for operand in flatten(term).operands])
        operator = self.surface.signature.get(head_of(term))
        if operator is None or not operator.broadcast or len(operator.operands) != len(term) - 1:
            return ("bp", term)
        values = {
            f"#{index}": self.of(operand, define=define) if index in operator.tensor_operands else operand
            for index, operand in enumerate(term[1:])
        }
        return _fill_in(_without_normalisation(operator.broadcast_expression), values)

    def _is_opaque(self, term: Sexp) -> bool:
        operator = self.surface.signature.get(head_of(term))
        return not family_of(term) and (operator is None or not operator.broadcast)

    def normal(self, expression: Sexp) -> Normal:
        """The normal form of an expression."""
        known = self._normal.get(expression)
        if known is None:
            known = self._normal[expression] = self._computed_normal(expression)
        return known

    def _computed_normal(self, expression: Sexp) -> Normal:
        if expression == ALL_ONES:
            return frozenset()
        name = head_of(expression)
        if name == "bp" and len(expression) == 2:
            word = self.of(expression[1])
            return self.normal(word) if word != expression else frozenset({frozenset({canonical(word)})})
        if name == "ds-bp":
            return self._permuted(expression)
        if name == "&":
            clauses = frozenset().union(*(self.normal(part) for part in expression[1:]))
        elif name == "|":
            clauses = frozenset({frozenset()})
            for part in expression[1:]:
                clauses = frozenset(one | other for one in clauses for other in self.normal(part))
        else:
            clauses = frozenset({frozenset({canonical(expression)})})
        return frozenset(clause for clause in clauses if not any(map(clause.__gt__, clauses)))

    def _permuted(self, expression: Sexp) -> Normal:
        """Permuting the axes distributes over meets and joins; composed permutations apply one by one."""
        word, permutation = expression[1], expression[2]
        if head_of(permutation) == "ds-comp":
            return self.normal(("ds-bp", ("ds-bp", word, permutation[1]), permutation[2]))
        clauses = self.normal(word)
        return frozenset(
            frozenset(("ds-bp", leaf, canonical(permutation)) for leaf in clause) for clause in clauses
        )

    def are_equal(self, left: Sexp, right: Sexp) -> bool:
        """Whether two expressions are equal, by their normal forms or by a guard of the rule."""
        one, other = self.normal(left), self.normal(right)
        return one == other or frozenset((one, other)) in self._equal

    def is_readable(self, expression: Sexp) -> bool:
        """Whether a guard can compute `expression`: no leaf is the word of a term that only the head has."""
        if isinstance(expression, str):
            return True
        if head_of(expression) == "bp" and len(expression) == 2:
            return isinstance(expression[1], str) or canonical(expression[1]) in self._matched
        return all(self.is_readable(part) for part in expression[1:])


def is_meet_of_leaves(expression: Sexp) -> bool:
    """Whether `expression` is a meet of stored words, and so is normalised already."""
    if isinstance(expression, str):
        return expression == ALL_ONES
    if head_of(expression) == "&":
        return all(is_meet_of_leaves(part) for part in expression[1:])
    return head_of(expression) == "bp"


def normalised(computed: Sexp) -> Sexp:
    """A computed word as the e-graph stores it: -1 where all its axes have size 1.

    ``w & (w + 1)`` is 0 for the words of all-size-1 values alone.
    """
    scalar: Sexp = ("-", ("min", "1", ("&", computed, ("+", computed, "1"))), "1")
    return ("|", computed, scalar)


def stored_word(word: Sexp) -> Sexp:
    """A broadcast word that was computed without regard to scalars, as the e-graph stores it."""
    return word if is_meet_of_leaves(word) else normalised(word)


def _without_normalisation(expression: Sexp) -> Sexp:
    """The word that `normalised` was applied to."""
    if isinstance(expression, str) or head_of(expression) != "|":
        return expression
    word = expression[1]
    return word if expression == normalised(word) else expression


def _meet(words: list[Sexp]) -> Sexp:
    parts = [part for word in words for part in _meet_parts(word)]
    distinct = list(dict.fromkeys(part for part in parts if part != ALL_ONES)) or [ALL_ONES]
    meet = distinct[0]
    for word in distinct[1:]:
        meet = ("&", meet, word)
    return meet


def _meet_parts(word: Sexp) -> list[Sexp]:
    return [part for side in word[1:] for part in _meet_parts(side)] if head_of(word) == "&" else [word]


def _fill_in(expression: Sexp, values: Mapping[str, Sexp]) -> Sexp:
    if isinstance(expression, str):
        return values.get(expression, str(expression))
    name, *operands = expression
    filled = [_fill_in(operand, values) for operand in operands]
    return _meet(filled) if name == "&" else (name, *filled)


def _collect_terms(term: Sexp, found: set[Sexp]) -> None:
    if not isinstance(term, str):
        found.add(canonical(term))
        for operand in term[1:]:
            _collect_terms(operand, found)
