"""A rule of the rule files as a local optimizer: its left side is replaced by its right side.

The e-graph keeps both sides of a rule; here one replaces the other, at once and for good. A rule is
used in the direction in which it is written, also with the operands of its commutative ops exchanged.
As in the e-graph, a reciprocal is also a quotient of one, a rule that subsumes a difference subsumes its
opposite, and one that subsumes a product or a quotient finds its factors in longer products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from esat.classic.chains import PRODUCTS, chain_of, is_inner, product
from esat.classic.conditions import Conditions, Unknown, Value
from esat.classic.graph_terms import built, fitted, same, view
from esat.classic.local import LocalOptimizer, Transformed
from esat.egraph.signature import Signature
from esat.egraph.uniform import bare, value_of
from esat.errors import EsatError
from esat.graph import Apply, Op, TensorType, Variable
from esat.graph.registry import op_named, registered_ops
from esat.graph.sparse_type import SparseType
from esat.ops.elementwise.record import Elementwise
from esat.rules.macros import expand
from esat.rules.reader import Sexp, is_number
from esat.rules.rule import Rule


class RuleContext:
    """What all rules of one signature share."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.conditions = Conditions(signature)
        self.commutative = frozenset(
            op.constructor for op in registered_ops() if isinstance(op, Elementwise) and op.facts.commutative
        )


class RuleRewriter(LocalOptimizer):
    """Replaces what matches a rule's left side by its right side.

    Parameters
    ----------
    rule
        Its body equates one variable with a term; its head unites that variable with another term.
    """

    def __init__(self, rule: Rule, context: RuleContext) -> None:
        self.rule = rule
        self.name = rule.name
        self.context = context
        self.root, self.pattern = _defined(rule)
        self.conditions = [part for part in rule.body if not self._is_root(part)]
        self.replacement = _united(rule, self.root)

    @staticmethod
    def applies_to(rule: Rule) -> bool:
        """Whether a rule has the form that can be read as a replacement."""
        try:
            root, _ = _defined(rule)
            _united(rule, root)
        except ValueError:
            return False
        return True

    @cached_property
    def _replaces_for_good(self) -> bool:
        return any(isinstance(action, tuple) and action[0] == "subsume" for action in self.rule.head)

    @property
    def constructor(self) -> str:
        """Constructor of the left side."""
        return str(self.pattern[0])

    def follows(self, op: Op) -> bool:
        if op.name in PRODUCTS and self._finds_factors:
            return True
        return op.constructor == self.constructor or (self.constructor, op.constructor) == (
            "Reciprocal",
            "Div",
        )

    @cached_property
    def _finds_factors(self) -> bool:
        """Whether it looks for two factors among all those of a product."""
        if self.constructor not in ("Mul", "Div") or not self._replaces_for_good:
            return False
        return all(isinstance(part, tuple) for part in self.pattern[1:])

    def _is_root(self, part: Sexp) -> bool:
        return isinstance(part, tuple) and part[0] == "=" and self.root in part[1:] and self.pattern in part

    def transform(self, node: Apply) -> Transformed:
        if len(node.outputs) != 1 or not isinstance(node.outputs[0].type, TensorType | SparseType):
            return False
        output = node.outputs[0]
        for pattern, replacement in self._forms(output):
            for bindings in self.matches(output, pattern):
                found = self.build(replacement, bindings)
                result = fitted(found, output) if isinstance(found, Variable) else None
                if result is not None and result is not output:
                    return [result]
        return self._within_product(output) if self._finds_factors else False

    def _within_product(self, output: Variable) -> Transformed:
        """Replace two factors of a product of three or more."""
        if output.owner is None or output.owner.op.name not in PRODUCTS or is_inner(output, PRODUCTS):
            return False
        chain = chain_of(output, PRODUCTS)
        seconds = chain.below if self.constructor == "Div" else chain.above
        for one in self._candidates(chain.above, self.pattern[1]):
            for other in self._candidates(seconds, self.pattern[2]):
                if one is other or one.tensor_type.ndim != other.tensor_type.ndim:
                    continue
                pair = op_named(self.constructor.lower())(one, other)
                replacement = next(self._replacements(pair), None)
                if replacement is None:
                    continue
                above = [replacement, *_without(chain.above, one)]
                below = chain.below
                if self.constructor == "Div":
                    below = _without(below, other)
                else:
                    above = [replacement, *_without(above[1:], other)]
                result = fitted(product(above, below), output)
                return False if result is None else [result]
        return False

    def _candidates(self, factors: Sequence[Variable], pattern: Sexp) -> list[Variable]:
        terms = ((factor, view(factor)) for factor in factors)
        return [factor for factor, term in terms if term is not None and term[0] == pattern[0]]

    def _replacements(self, variable: Variable) -> Iterator[Variable]:
        for bindings in self.matches(variable):
            found = self.build(self.replacement, bindings)
            result = fitted(found, variable) if isinstance(found, Variable) else None
            if result is not None:
                yield result

    def _forms(self, output: Variable) -> Iterator[tuple[tuple[Sexp, ...], Sexp]]:
        """Left and right side; for a difference that is better not computed also those of its opposite."""
        yield self.pattern, self.replacement
        if self.constructor == "Sub" and self._replaces_for_good and output.tensor_type.kind in "fc":
            name, left, right = self.pattern
            yield (name, right, left), ("Neg", self.replacement)

    # ---- matching

    def matches(
        self, variable: Variable, pattern: tuple[Sexp, ...] | None = None
    ) -> Iterator[dict[str, Value]]:
        """Bindings under which the left side is this Variable and all conditions hold."""
        for bindings in self._match(pattern or self.pattern, variable, {self.root: variable}):
            yield from self._conditions(0, bindings)

    def _conditions(self, position: int, bindings: dict[str, Value]) -> Iterator[dict[str, Value]]:
        if position == len(self.conditions):
            yield bindings
            return
        condition = self.conditions[position]
        located = _term_condition(condition, bindings)
        if located is not None:
            for extended in self._match(located[1], located[0], bindings):
                yield from self._conditions(position + 1, extended)
            return
        extended = dict(bindings)
        if self.context.conditions.holds(condition, extended):
            yield from self._conditions(position + 1, extended)

    def _match(
        self, pattern: Sexp, variable: Variable, bindings: dict[str, Value]
    ) -> Iterator[dict[str, Value]]:
        if isinstance(pattern, str):
            known = bindings.get(pattern)
            if known is None:
                yield {**bindings, pattern: variable}
            elif isinstance(known, Variable) and same(known, variable):
                yield bindings
            return
        term = view(variable)
        if term is not None and (pattern[0], term[0]) == ("Reciprocal", "Div") and value_of(term[1][0]) == 1:
            yield from self._match(pattern[1], term[1][1], bindings)
            return
        if term is None or term[0] != pattern[0] or len(term[1]) + len(term[2]) != len(pattern) - 1:
            return
        constructor, operands, literals = term
        count = len(operands)
        with_literals = self._match_literals(pattern[1 + count :], literals, bindings)
        if with_literals is None:
            return
        parts = pattern[1 : 1 + count]
        yield from self._match_all(parts, operands, with_literals)
        if constructor in self.context.commutative and count == 2:
            yield from self._match_all(parts, operands[::-1], with_literals)

    def _match_all(
        self, patterns: Sequence[Sexp], operands: Sequence[Variable], bindings: dict[str, Value]
    ) -> Iterator[dict[str, Value]]:
        if not patterns:
            yield bindings
            return
        for extended in self._match(patterns[0], operands[0], bindings):
            yield from self._match_all(patterns[1:], operands[1:], extended)

    def _match_literals(
        self, patterns: Sequence[Sexp], literals: Sequence[int | float], bindings: dict[str, Value]
    ) -> dict[str, Value] | None:
        extended = dict(bindings)
        for pattern, literal in zip(patterns, literals, strict=True):
            if isinstance(pattern, str) and not is_number(pattern) and pattern not in extended:
                extended[pattern] = literal
                continue
            try:
                if self.context.conditions.literal(pattern, extended) != literal:
                    return None
            except Unknown:
                return None
        return extended

    # ---- building

    def build(self, term: Sexp, bindings: dict[str, Value]) -> Variable | None:
        """The Variable a term stands for under bindings; None where it cannot be built."""
        if isinstance(term, str):
            value = bindings.get(term)
            return bare(value) if isinstance(value, Variable) else None
        record = self.context.signature.operators.get(str(term[0]))
        if record is None:
            return None
        operands: list[Variable] = []
        literals: list[int | float] = []
        try:
            for position, part in enumerate(term[1:]):
                if position in record.tensor_operands:
                    operand = self.build(part, bindings)
                    if operand is None:
                        return None
                    operands.append(operand)
                else:
                    literals.append(self.context.conditions.literal(expand(part), bindings))
            return built(str(term[0]), operands, literals)
        except (Unknown, EsatError):
            # A term that cannot be typed here: the rule does not apply.
            return None


def _without(factors: Sequence[Variable], one: Variable) -> tuple[Variable, ...]:
    place = next(index for index, factor in enumerate(factors) if factor is one)
    return (*factors[:place], *factors[place + 1 :])


def _defined(rule: Rule) -> tuple[str, tuple[Sexp, ...]]:
    """The variable a rule's head unites, and the term its body equates it with."""
    for action in rule.head:
        if isinstance(action, tuple) and action[0] == "union":
            for fact in rule.body:
                if isinstance(fact, tuple) and fact[0] == "=" and len(fact) == 3:
                    name, term = fact[1], fact[2]
                    if isinstance(name, str) and isinstance(term, tuple) and name in action[1:]:
                        return name, term
    raise ValueError(rule.name)


def _united(rule: Rule, root: str) -> Sexp:
    actions = [action for action in rule.head if isinstance(action, tuple) and action[0] != "subsume"]
    if len(actions) != 1 or actions[0][0] != "union":
        raise ValueError(rule.name)
    left, right = actions[0][1:]
    return right if left == root else left


def _term_condition(condition: Sexp, bindings: dict[str, Value]) -> tuple[Variable, tuple[Sexp, ...]] | None:
    """For ``(= x (Op ...))`` with a bound ``x``: its Variable and the term."""
    if isinstance(condition, tuple) and condition[0] == "=" and len(condition) == 3:
        for name, term in (condition[1:], condition[:0:-1]):
            value = bindings.get(name) if isinstance(name, str) else None
            if isinstance(value, Variable) and isinstance(term, tuple) and str(term[0])[0].isupper():
                return value, term
    return None
