"""What is known of the structure of a Variable's matrices from the ops that compute it.

Local optimizers ask it, and rules of ops that only Python types. What follows is told by the rules that the
e-graph has, ``esat/egraph/analyses/structure.egg``, of the ops that are there: no other form is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from esat.base.records import record
from esat.classic.rules.conditions import Conditions, Value
from esat.classic.rules.graph_terms import Term, node_view, same, view
from esat.classic.rules.term_matcher import Bindings, Matcher
from esat.egraph.analyses.structure import (
    SAME,
    STRUCTURE_TABLES,
    TRANSPOSED,
    WANTED,
    relation_of,
    structure_forms,
    tables_of,
)
from esat.egraph.language.constructors import op_signature
from esat.graph import Apply, Constant, TensorType, Variable
from esat.ops.annotations.assume import Assume
from esat.ops.inference.structure import STRUCTURES
from esat.rules.language.reader import Sexp, head_of, is_number, read_forms

_DEPTH = 8
"""Ops looked through."""
_ABOVE = {"Add": 2, "Sub": 1, "Neg": 0, "Mul": 2, "Div": 1, "Reciprocal": 0}
"""How many of their operands sums and products do not subtract, or divide by."""
_QUOTIENTS = ("Div", "Reciprocal")
_PRODUCTS = ("Mul", *_QUOTIENTS)


def has_structure(variable: Variable, relation: str) -> bool:
    """Whether a fact about matrices, as rules call it, is known of a Variable."""
    return relation in _Question().facts_of(variable, _DEPTH)


def is_known_square(matrix: Variable) -> bool:
    """Whether a matrix is square by its type or by what computes it."""
    rows, columns = matrix.tensor_type.shape[-2:]
    return (rows is not None and rows == columns) or has_structure(matrix, "square")


def facts_of_matrix(variable: Variable) -> frozenset[str]:
    """All that is known of the structure of a Variable's matrices."""
    found = _Question().facts_of(variable, _DEPTH)
    return frozenset(fact for fact in STRUCTURES if relation_of(fact) in found)


@record(frozen=True)
class _FactRule:
    """A rule that tells of ``e``: what it asks, and what it concludes.

    Attributes
    ----------
    body
        Its conditions; the first one that says what computes ``e`` is the first of all.
    facts
        What is true of ``e`` then.
    related
        A relation, and the variable that ``e`` then stands in it to; or empty.
    """

    body: tuple[Sexp, ...]
    facts: frozenset[str]
    related: tuple[str, ...]


@cache
def _rules() -> Mapping[str, Sequence[_FactRule]]:
    """The rules by what computes ``e``: a constructor, or an empty name where they ask for facts alone."""
    found: dict[str, list[_FactRule]] = {}
    for form in read_forms("\n".join(structure_forms()), "structure.egg"):
        if form[0] != "rule":
            continue
        body, head = list(form[1]), form[2]
        facts = frozenset(str(told[1][0]) for told in head if told[0] == "set" and told[1][1] == "e")
        related = next((told for told in head if told[0] in (SAME, TRANSPOSED) and told[1] == "e"), ())
        if facts <= STRUCTURE_TABLES and (facts or related):
            first = next((part for part in body if _tells_of(part)), None)
            if first is not None:
                body.remove(first)
                body.insert(0, first)
            rule = _FactRule(tuple(body), facts, tuple(map(str, related[:1])) + tuple(map(str, related[2:])))
            found.setdefault(_constructor(first), []).append(rule)
    return found


def _tells_of(condition: Sexp) -> bool:
    """Whether a condition says what computes ``e``, or of what it is a view."""
    name = head_of(condition)
    return (name in (SAME, TRANSPOSED) or (name == "=" and isinstance(condition[2], tuple))) and (
        condition[1] == "e"
    )


def _constructor(condition: Sexp | None) -> str:
    if condition is None:
        return ""
    if head_of(condition) in (SAME, TRANSPOSED):
        return "DimShuffle"
    term = condition[2]
    return head_of(term[1]) if head_of(term) == "Output" else head_of(term)


@cache
def _conditions() -> Conditions:
    return Conditions(op_signature())


class _Question(Matcher):
    """The facts of a Variable and of those it is computed from, each of which is asked for once."""

    def __init__(self) -> None:
        super().__init__(_conditions())
        self._depth = 0
        self._facts: dict[tuple[Variable, int], set[str]] = {}
        self._related: dict[tuple[str, Variable, int], list[Variable]] = {}

    def facts_of(self, variable: Variable, depth: int) -> set[str]:
        """What is known of a Variable, so many ops looked through."""
        key = variable, depth
        if key in self._facts:
            return self._facts[key]
        found = self._facts[key] = set()
        if not _is_matrix(variable):
            return found
        rows, columns = variable.tensor_type.shape[-2:]
        if rows is not None and rows == columns:
            found.add("square")
        if isinstance(variable, Constant):
            found.update(tables_of(variable.data))
        node = variable.owner
        if node is not None and isinstance(node.op, Assume):
            found.update(map(relation_of, node.op.facts), self.facts_of(node.inputs[0], depth))
        rules = list(_rules()[""])
        if node is not None and depth:
            rules += _rules().get(_as_term(node), ())
        outer, self._depth = self._depth, depth
        while any(self._applies(rule, variable, found) for rule in rules):
            pass
        self._depth = outer
        return found

    def _applies(self, rule: _FactRule, variable: Variable, found: set[str]) -> bool:
        """Whether a rule tells something new, which is added."""
        if rule.facts <= found or not any(self.under(rule.body, {"e": variable})):
            return False
        found |= rule.facts
        return True

    def view(self, variable: Variable) -> Term | None:
        term = view(variable)
        return None if term is None else _nary(term)

    def condition(self, condition: Sexp, bindings: Bindings) -> Iterator[Bindings]:
        name, *operands = map(str, condition)
        if name == WANTED or (name == "matrices" and _is_matrix(bindings[operands[0]])):
            yield bindings
        elif name in (SAME, TRANSPOSED):
            yield from self._relation(name, operands, bindings)
        elif name == "element-count":
            for element in _multiset(condition[1], bindings):
                yield from self.match(operands[1], element, bindings)
        elif name == "all":
            if all(self._has(element, operands[0], bindings) for element in _multiset(operands[1], bindings)):
                yield bindings
        elif name in STRUCTURE_TABLES:
            if self._has(bindings[operands[0]], name, bindings):
                yield bindings
        elif name == "=" and head_of(condition[2]).startswith("multiset-"):
            value = _multiset(condition[2], bindings)
            if not is_number(operands[0]):
                yield {**bindings, operands[0]: value}
            elif int(operands[0]) == value:
                yield bindings
        else:
            yield from super().condition(condition, bindings)

    def _has(self, variable: Value, table: str, bindings: Bindings) -> bool:
        assert isinstance(variable, Variable)
        if variable is bindings["e"]:
            return table in self.facts_of(variable, self._depth)
        return self._depth > 0 and table in self.facts_of(variable, self._depth - 1)

    def _relation(self, name: str, operands: Sequence[str], bindings: Bindings) -> Iterator[Bindings]:
        left, right = bindings[operands[0]], bindings.get(operands[1])
        assert isinstance(left, Variable)
        for related in self._related_to(name, left):
            yield from self.match(operands[1], related, bindings)
        if name == SAME or not isinstance(right, Variable):
            return
        if any(same(related, left) for related in self._related_to(name, right)):
            yield bindings

    def _related_to(self, name: str, variable: Variable) -> Sequence[Variable]:
        """The Variables to which one stands in a relation."""
        key = name, variable, self._depth
        if key not in self._related:
            rules = [rule for rule in _rules()["DimShuffle"] if rule.related[:1] == (name,)]
            found = [
                bindings[rule.related[1]]
                for rule in rules
                for bindings in self.under(rule.body, {"e": variable})
            ]
            self._related[key] = [one for one in found if isinstance(one, Variable)]
        return self._related[key]


def _is_matrix(variable: Value) -> bool:
    """Whether there are two axes or more, neither of the last two of size 1 by type."""
    type = variable.type if isinstance(variable, Variable) else None
    return isinstance(type, TensorType) and type.ndim >= 2 and 1 not in type.shape[-2:]


def _as_term(node: Apply) -> str:
    """Constructor of what computes a Variable, as the rules know it."""
    term = node_view(node)
    return "" if term is None else _nary(term)[0]


def _nary(term: Term) -> Term:
    """A term, or if it is one of two operands the sum or product without order that it is."""
    name, operands, _ = term
    if name == "Sqr":
        return "NaryProd", (), ((operands[0], operands[0]), ())
    if name not in _ABOVE or (name in _QUOTIENTS and operands[0].tensor_type.kind not in "fc"):
        return term
    sides = tuple(operands[: _ABOVE[name]]), tuple(operands[_ABOVE[name] :])
    return "NaryProd" if name in _PRODUCTS else "NarySum", (), sides


def _multiset(expression: Sexp, bindings: Bindings) -> Any:
    """A multiset of Variables, one of them, or how many there are."""
    if isinstance(expression, str):
        return bindings[expression]
    first, *others = (_multiset(part, bindings) for part in expression[1:])
    match expression[0]:
        case "multiset-sum":
            return first + others[0]
        case "multiset-length":
            return len(first)
        case "multiset-pick-max":
            return first[0]
    place = next(place for place, element in enumerate(first) if same(element, others[0]))
    return (*first[:place], *first[place + 1 :])
