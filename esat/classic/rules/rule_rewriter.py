"""A rule of an op that only Python types as a local optimizer: its left side is replaced by its right side.

A rule is used in the direction in which it is written, also with the operands of its commutative ops
exchanged.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from esat.classic.optimizers.local import LocalOptimizer, Tracked, Transformed
from esat.classic.rules.conditions import Conditions, Unknown, Value
from esat.classic.rules.graph_terms import built, fitted, is_tensor, kept_order
from esat.classic.rules.matrix_facts import has_structure
from esat.classic.rules.term_matcher import Bindings, Matcher
from esat.egraph.analyses.uniform import bare, broadcast_of
from esat.egraph.language.named_ops import NamedOp, named_ops, op_name
from esat.egraph.language.op_parameters import Parameter, parameter_of
from esat.egraph.language.signature import Signature
from esat.egraph.language.terms import SCALAR
from esat.errors import EsatError, EsatWarning
from esat.graph import Apply, Op, TensorType, Variable
from esat.graph.registry import op_constructed
from esat.graph.sparse_type import SparseType
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.reduction import Reduction
from esat.rules.language.macros import expand
from esat.rules.language.reader import Sexp, show
from esat.rules.language.replacement import replacement_of
from esat.rules.language.rule import Rule


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
        self.conditions = Conditions(signature, has_structure)

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


class RuleRewriter(Matcher, LocalOptimizer):
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
        super().__init__(context.conditions)
        self.rule = rule
        self.name = rule.name
        self.context = context
        self.root, self.pattern = replacement.root, replacement.pattern
        self.conditions = replacement.conditions
        self.replacement = replacement.term

    @property
    def constructor(self) -> str:
        """Constructor of the left side; of one of several results that of the whole."""
        is_output = self.pattern[0] == "Output" and isinstance(self.pattern[1], tuple)
        return str(self.pattern[1][0] if is_output else self.pattern[0])

    def tracks(self) -> Sequence[Tracked]:
        named, op = self.context.named.get(self.constructor), op_constructed(self.constructor)
        return [named.family if named is not None else op if op is not None else Op]

    def follows(self, op: Op) -> bool:
        return op.constructor == self.constructor

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
        return False if result is None else [result]

    def _replaced(self, output: Variable) -> Variable | None:
        for bindings in self.matches(output):
            found = self.build(self.replacement, bindings)
            result = fitted(found, output) if isinstance(found, Variable) else None
            if result is not None and result is not output:
                return result
        return None

    def _of_reduction(self, node: Apply, op: Reduction) -> Transformed:
        """Of a reduction that drops its axes: rules speak of one that keeps them."""
        kept = Reduction(op.reducer, op.axes, keepdims=True)(node.inputs[0])
        result = self._replaced(kept)
        return False if result is None else [dimshuffle(result, kept_order(op, kept))]

    # ---- matching

    def matches(self, variable: Variable) -> Iterator[Bindings]:
        """Bindings under which the left side is this Variable and all conditions hold."""
        for bindings in self.match(self.pattern, variable, {self.root: variable}):
            yield from self.under(self.conditions, bindings)

    def require_known(self, pattern: tuple[Sexp, ...], variable: Variable) -> None:
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
