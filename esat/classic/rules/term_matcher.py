"""Matches patterns of rules with Variables of a FunctionGraph, and finds where their conditions hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from esat.classic.rules.conditions import Conditions, Unknown, Value
from esat.classic.rules.graph_terms import Term, is_one_of_several, node_view, same, view
from esat.egraph.language.op_parameters import Parameter, matches_parameter
from esat.graph import Variable
from esat.graph.identity import place_of
from esat.graph.registry import registered_ops
from esat.ops.elementwise.records.record import Elementwise
from esat.rules.language.reader import Sexp

Bindings = dict[str, Value]


@cache
def commutative() -> frozenset[str]:
    """Constructors of ops whose two operands may be exchanged."""
    ops = registered_ops()
    return frozenset(op.constructor for op in ops if isinstance(op, Elementwise) and op.facts.commutative)


class Matcher:
    """Matches patterns, also with the operands of commutative ops exchanged.

    Parameters
    ----------
    decides
        What evaluates conditions that match no term.
    """

    def __init__(self, decides: Conditions) -> None:
        self.decides = decides

    def view(self, variable: Variable) -> Term | None:
        """A Variable as a term; None for one that rules cannot look into."""
        return view(variable)

    def require_known(self, pattern: tuple[Sexp, ...], variable: Variable) -> None:
        """What is done where a pattern names an op that rules cannot look into: nothing."""

    def under(self, conditions: Sequence[Sexp], bindings: Bindings) -> Iterator[Bindings]:
        """Bindings that add to these, under which all conditions hold."""
        if not conditions:
            yield bindings
            return
        for extended in self.condition(conditions[0], bindings):
            yield from self.under(conditions[1:], extended)

    def condition(self, condition: Sexp, bindings: Bindings) -> Iterator[Bindings]:
        """Bindings that add to these, under which one condition holds."""
        located = _term_condition(condition, bindings)
        if located is not None:
            yield from self.match(located[1], located[0], bindings)
            return
        extended = dict(bindings)
        if self.decides.holds(condition, extended):
            yield extended

    def match(self, pattern: Sexp, variable: Variable, bindings: Bindings) -> Iterator[Bindings]:
        """Bindings that add to these, under which a pattern is a Variable."""
        if isinstance(pattern, str):
            known = bindings.get(pattern)
            if known is None or pattern == "_":
                yield {**bindings, pattern: variable}
            elif isinstance(known, Variable) and same(known, variable):
                yield bindings
            return
        if pattern[0] == "Output" and is_one_of_several(variable):
            yield from self._match_output(pattern, variable, bindings)
            return
        term = self.view(variable)
        if term is None:
            self.require_known(pattern, variable)
        if term is None or term[0] != pattern[0] or len(term[1]) + len(term[2]) != len(pattern) - 1:
            return
        constructor, operands, literals = term
        count = len(operands)
        with_literals = self._match_literals(pattern[1 + count :], literals, bindings)
        if with_literals is None:
            return
        parts = pattern[1 : 1 + count]
        yield from self._match_all(parts, operands, with_literals)
        if constructor in commutative() and count == 2:
            yield from self._match_all(parts, operands[::-1], with_literals)

    def _match_output(
        self, pattern: tuple[Sexp, ...], variable: Variable, bindings: Bindings
    ) -> Iterator[Bindings]:
        """One of the results of a node with several."""
        whole, place = pattern[1:]
        node = variable.owner
        assert node is not None
        bound = self._match_literals([place], [place_of(variable, node.outputs)], bindings)
        term = node_view(node)
        if bound is None or term is None or isinstance(whole, str) or whole[0] != term[0]:
            return
        _, operands, literals = term
        if len(whole) - 1 == len(operands) + len(literals):
            first = 1 + len(operands)
            with_literals = self._match_literals(whole[first:], literals, bound)
            if with_literals is not None:
                yield from self._match_all(whole[1:first], operands, with_literals)

    def _match_all(
        self, patterns: Sequence[Sexp], operands: Sequence[Variable], bindings: Bindings
    ) -> Iterator[Bindings]:
        if not patterns:
            yield bindings
            return
        for extended in self.match(patterns[0], operands[0], bindings):
            yield from self._match_all(patterns[1:], operands[1:], extended)

    def _match_literals(
        self, patterns: Sequence[Sexp], literals: Sequence[Parameter], bindings: Bindings
    ) -> Bindings | None:
        extended = dict(bindings)
        try:
            fits = all(
                matches_parameter(pattern, literal, extended, self.decides.literal)
                for pattern, literal in zip(patterns, literals, strict=True)
            )
        except Unknown:
            return None
        return extended if fits else None


def _term_condition(condition: Sexp, bindings: Bindings) -> tuple[Variable, tuple[Sexp, ...]] | None:
    """For ``(= x (Op ...))`` with a bound ``x``: its Variable and the term."""
    if isinstance(condition, tuple) and condition[0] == "=" and len(condition) == 3:
        for name, term in (condition[1:], condition[:0:-1]):
            value = bindings.get(name) if isinstance(name, str) else None
            if isinstance(value, Variable) and isinstance(term, tuple) and str(term[0])[0].isupper():
                return value, term
    return None
