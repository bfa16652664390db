"""A rule of the rule files as a local optimizer: its left side is replaced by its right side.

The e-graph keeps both sides of a rule; here one replaces the other, at once and for good. A rule is
used in the direction in which it is written, also with the operands of its commutative ops exchanged.
As in the e-graph, a reciprocal is also a quotient of one, a rule that subsumes a difference subsumes its
opposite, and one that subsumes a product or a quotient finds its factors in longer products.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from esat.classic.chains import PRODUCTS, SUMS, chain_of, chained, is_inner, product
from esat.classic.conditions import Conditions, Unknown, Value
from esat.classic.graph_terms import (
    built,
    fitted,
    is_one_of_several,
    is_tensor,
    kept_order,
    node_view,
    same,
    view,
)
from esat.classic.local import LocalOptimizer, Tracked, Transformed
from esat.egraph.named_ops import NamedOp, named_in, named_ops, op_name
from esat.egraph.op_parameters import Parameter, matches_parameter, parameter_of
from esat.egraph.signature import Signature
from esat.egraph.terms import SCALAR
from esat.egraph.uniform import bare, broadcast_of, may_shrink, value_of
from esat.errors import EsatError, EsatWarning
from esat.graph import Apply, Op, TensorType, Variable
from esat.graph.identity import place_of
from esat.graph.registry import op_constructed, op_named, registered_ops
from esat.graph.sparse_type import SparseType
from esat.ops.dimshuffle import dimshuffle
from esat.ops.elementwise.record import Elementwise
from esat.ops.reduction import Reduction
from esat.rules.macros import expand
from esat.rules.reader import Sexp, show
from esat.rules.replacement import replacement_of
from esat.rules.rule import Rule


class RuleContext:
    """What all rules of one signature share.

    Parameters
    ----------
    signature
        Constructors of the term language.
    added
        Files of rules that stay where they do not fit a graph.
    """

    def __init__(self, signature: Signature, added: Collection[str] = ()) -> None:
        self.signature = signature
        self.added = added
        self.conditions = Conditions(signature)
        self.commutative = frozenset(
            op.constructor for op in registered_ops() if isinstance(op, Elementwise) and op.facts.commutative
        )

    @cached_property
    def named(self) -> Mapping[str, NamedOp]:
        """Ops that only Python types, by their names in rules."""
        return {name: op for name, op in named_ops().items() if name not in self.signature}

    def complain(self, rule: Rule, reason: str) -> None:
        """Raise RuleError about a rule; warn if it stands in a text that was added for all compilations."""
        error = rule.error(reason)
        if rule.file not in self.added:
            raise error
        warnings.warn(f"the rule is not used here: {error}", EsatWarning, stacklevel=2)


_SUMS_OF_TERMS = ("ReduceSum", "MatMul", "StructuredDot")


class RuleRewriter(LocalOptimizer):
    """Replaces what matches a rule's left side by its right side.

    Parameters
    ----------
    rule
        Its body equates one variable with a term; its head unites that variable with another term.
    """

    def __init__(self, rule: Rule, context: RuleContext) -> None:
        replacement = replacement_of(rule)
        if replacement is None:
            raise rule.error("it replaces no term by another one")
        self.rule = rule
        self.name = rule.name
        self.context = context
        self.root, self.pattern = replacement.root, replacement.pattern
        self.conditions = replacement.conditions
        self.replacement = replacement.term
        self.stabilizes = replacement.for_good

    @cached_property
    def is_opaque(self) -> bool:
        """Whether it names an op that only Python types."""
        return bool(named_in(self.rule, self.context.named))

    @property
    def constructor(self) -> str:
        """Constructor of the left side; of one of several results that of the whole."""
        is_output = self.pattern[0] == "Output" and isinstance(self.pattern[1], tuple)
        return str(self.pattern[1][0] if is_output else self.pattern[0])

    def tracks(self) -> Sequence[Tracked]:
        named, op = self.context.named.get(self.constructor), op_constructed(self.constructor)
        return [named.family if named is not None else op if op is not None else Op]

    def follows(self, op: Op) -> bool:
        if self._chain and op.name in self._chain:
            return True
        return op.constructor == self.constructor or (self.constructor, op.constructor) == (
            "Reciprocal",
            "Div",
        )

    @cached_property
    def _chain(self) -> Sequence[str]:
        """Ops of the sums or products among all of whose operands it looks for two; maybe none."""
        names = {"Mul": PRODUCTS, "Div": PRODUCTS, "Add": SUMS, "Sub": SUMS}.get(self.constructor, ())
        return names if all(isinstance(part, tuple) for part in self.pattern[1:]) else ()

    def transform(self, node: Apply) -> Transformed:
        if self.pattern[0] == "Output":
            found = {
                output: new for output in node.outputs for new in [self._replaced(output)] if new is not None
            }
            return found or False
        if len(node.outputs) != 1 or not isinstance(node.outputs[0].type, TensorType | SparseType):
            return False
        output = node.outputs[0]
        if isinstance(node.op, Reduction) and not node.op.keepdims:
            return self._of_reduction(node, node.op)
        result = self._replaced(output)
        if result is not None:
            return [result]
        return self._within_chain(output, self._chain) if self._chain else False

    def _replaced(self, output: Variable) -> Variable | None:
        for pattern, replacement in self._forms(output):
            for bindings in self.matches(output, pattern):
                found = self.build(replacement, bindings)
                result = fitted(found, output) if isinstance(found, Variable) else None
                if result is not None and result is not output and not self._weighs_sum(result):
                    return result
        return None

    def _weighs_sum(self, result: Variable) -> bool:
        """Whether a sum is made smaller by a constant that made its terms smaller before.

        ``sum(x / 4)`` has a value where ``sum(x)`` leaves the range. In saturating modes accuracy decides.
        """
        node = bare(result).owner
        if self.constructor not in _SUMS_OF_TERMS or node is None or node.op.name not in ("mul", "div"):
            return False
        return any(may_shrink(node.op.name, scale) for scale in node.inputs[node.op.name == "div" :])

    def _of_reduction(self, node: Apply, op: Reduction) -> Transformed:
        """Of a reduction that drops its axes: rules speak of one that keeps them."""
        kept = Reduction(op.reducer, op.axes, keepdims=True)(node.inputs[0])
        result = self._replaced(kept)
        return False if result is None else [dimshuffle(result, kept_order(op, kept))]

    def _within_chain(self, output: Variable, names: Sequence[str]) -> Transformed:
        """Replace two factors of a product of three or more, or two terms of a sum."""
        if output.owner is None or output.owner.op.name not in names or is_inner(output, names):
            return False
        chain = chain_of(output, names)
        if chain.nodes < 2:
            return False
        opposed = self.constructor in ("Div", "Sub")
        seconds = chain.below if opposed else chain.above
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
                if opposed:
                    below = _without(below, other)
                else:
                    above = [replacement, *_without(above[1:], other)]
                result = fitted(chained(names, above, below), output)
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
        if self.constructor == "Sub" and self.stabilizes and output.tensor_type.kind in "fc":
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
            if known is None or pattern == "_":
                yield {**bindings, pattern: variable}
            elif isinstance(known, Variable) and same(known, variable):
                yield bindings
            return
        if pattern[0] == "Output" and is_one_of_several(variable):
            yield from self._match_output(pattern, variable, bindings)
            return
        term = view(variable)
        if term is None:
            self._require_known(pattern, variable)
        if term is not None and (pattern[0], term[0]) == ("Reciprocal", "Div") and value_of(term[1][0]) == 1:
            yield from self._match(pattern[1], term[1][1], bindings)
            return
        within = self.stabilizes and pattern is not self.pattern
        if within and term is not None and {pattern[0], term[0]} <= {"Mul", "Div"}:
            yield from self._match_factor(pattern, variable, bindings)
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

    def _match_factor(
        self, pattern: tuple[Sexp, ...], variable: Variable, bindings: dict[str, Value]
    ) -> Iterator[dict[str, Value]]:
        """One factor of a product of three or more, and the product of the others for a variable."""
        name, first, second = pattern
        wanted, rest = (second, first) if isinstance(first, str) else (first, second)
        if isinstance(wanted, str) or not isinstance(rest, str) or rest in bindings:
            return
        chain = chain_of(variable, PRODUCTS)
        if chain.nodes < 2:
            return
        divides = name == "Div" and wanted is second
        factors, others = (chain.below, chain.above) if divides else (chain.above, chain.below)
        for one in self._candidates(factors, wanted):
            left = _without(factors, one)
            above, below = (left, others) if name == "Mul" else (others, left)
            if above and one.tensor_type.ndim in (0, variable.tensor_type.ndim):
                yield from self._match(wanted, one, {**bindings, rest: product(above, below)})

    def _match_output(
        self, pattern: tuple[Sexp, ...], variable: Variable, bindings: dict[str, Value]
    ) -> Iterator[dict[str, Value]]:
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
        self, patterns: Sequence[Sexp], operands: Sequence[Variable], bindings: dict[str, Value]
    ) -> Iterator[dict[str, Value]]:
        if not patterns:
            yield bindings
            return
        for extended in self._match(patterns[0], operands[0], bindings):
            yield from self._match_all(patterns[1:], operands[1:], extended)

    def _match_literals(
        self, patterns: Sequence[Sexp], literals: Sequence[Parameter], bindings: dict[str, Value]
    ) -> dict[str, Value] | None:
        extended = dict(bindings)
        try:
            fits = all(
                matches_parameter(pattern, literal, extended, self.context.conditions.literal)
                for pattern, literal in zip(patterns, literals, strict=True)
            )
        except Unknown:
            return None
        return extended if fits else None

    def _require_known(self, pattern: tuple[Sexp, ...], variable: Variable) -> None:
        """Raise RuleError where the rule names an op that rules cannot look into."""
        op = None if variable.owner is None else variable.owner.op
        if op is not None and op.constructor == pattern[0]:
            reason = op_name(op).missing(op)
            if reason:
                reason = f"{reason}, by which a rule could tell what they were made with"
                self.context.complain(self.rule, reason)

    # ---- building

    def build(self, term: Sexp, bindings: Mapping[str, Value]) -> Variable | None:
        """The Variable a term stands for under bindings; None where it cannot be built."""
        if isinstance(term, str):
            value = bindings.get(term)
            return bare(value) if isinstance(value, Variable) else None
        record = self.context.signature.operators.get(str(term[0]))
        if record is None:
            return self._named(term, bindings)
        operands: list[Variable] = []
        literals: list[Parameter] = []
        try:
            for position, part in enumerate(term[1:]):
                if position in record.tensor_operands:
                    operand = self.build(part, bindings)
                    if operand is None:
                        return None
                    operands.append(operand)
                else:
                    literals.append(parameter_of(expand(part), bindings, self.context.conditions.literal))
            return built(str(term[0]), operands, literals)
        except Unknown:
            return None
        except EsatError as error:
            # A term that cannot be typed here: the rule does not apply.
            if self.is_opaque:
                self._ill_typed(term, operands, error)
            return None

    def _named(self, term: tuple[Sexp, ...], bindings: Mapping[str, Value]) -> Variable | None:
        """The Variable of a term of an op that only Python types."""
        named = self.context.named.get(str(term[0]))
        if named is None or named.parameters is None:
            return None
        first = len(term) - len(named.parameters)
        operands = [self._operand(part, bindings) for part in term[1:first]]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        try:
            number = self.context.conditions.literal
            values = [parameter_of(expand(part), bindings, number) for part in term[first:]]
        except Unknown:
            return None
        try:
            made: Variable = named.make(values).make_node(*known).outputs[0]
        except Exception as error:  # the class may be a user's
            self._ill_typed(term, known, error)
            return None
        return made

    def _operand(self, term: Sexp, bindings: Mapping[str, Value]) -> Variable | None:
        """An operand in the rank that it has in the graph, which such an op may ask for."""
        value = bindings.get(term) if isinstance(term, str) else None
        return value if isinstance(value, Variable) else self.build(term, bindings)

    def _ill_typed(self, term: tuple[Sexp, ...], operands: Sequence[Variable], error: Exception) -> None:
        """Tell that a rule makes what an op does not take, unless an operand lost its axes of size 1."""
        if any(is_tensor(operand) and broadcast_of(operand) == SCALAR for operand in operands):
            return
        types = ", ".join(str(operand.type) for operand in operands)
        self.context.complain(self.rule, f"it makes {show(term)} of {types}: {error}")


def _without(factors: Sequence[Variable], one: Variable) -> tuple[Variable, ...]:
    place = next(index for index, factor in enumerate(factors) if factor is one)
    return (*factors[:place], *factors[place + 1 :])


def _term_condition(condition: Sexp, bindings: dict[str, Value]) -> tuple[Variable, tuple[Sexp, ...]] | None:
    """For ``(= x (Op ...))`` with a bound ``x``: its Variable and the term."""
    if isinstance(condition, tuple) and condition[0] == "=" and len(condition) == 3:
        for name, term in (condition[1:], condition[:0:-1]):
            value = bindings.get(name) if isinstance(name, str) else None
            if isinstance(value, Variable) and isinstance(term, tuple) and str(term[0])[0].isupper():
                return value, term
    return None
