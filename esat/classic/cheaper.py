"""A rule of the rule files as a replacement that is made where it pays.

A replacement destroys what it replaces. One that makes an expression smaller is always made, as in the
documents' optimizer: such rules come to an end. So is one that moves a scalar or a sign out of a view, which
costs nothing and lets it go on. Rules that lead both ways, or that only pay off after a
detour, would undo each other or lose ground; so theirs are made if they make the graph cheaper by the cost
model, or more stable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from math import prod

from esat.classic.graph_terms import view
from esat.classic.local import Transformed
from esat.classic.rule_rewriter import RuleContext, RuleRewriter
from esat.classic.sizes import ExpectedSizes
from esat.egraph.terms import RankedOp, TermType, broadcast_word, dtype_number
from esat.egraph.uniform import as_tensor
from esat.extract.class_values import term_value
from esat.extract.cost import CostModel
from esat.extract.value import Value
from esat.graph import Apply, Variable
from esat.graph.sparse_type import SparseType
from esat.ops.dimshuffle import DimShuffle
from esat.ops.sparse.record import EXPECTED_DENSITY
from esat.rules.reader import Sexp, is_number
from esat.rules.rule import Rule


class CheaperRule(RuleRewriter):
    """A rule applied where it makes an expression smaller or the graph cheaper, or where it stabilizes.

    Attributes
    ----------
    model
        Prices of ops.
    sizes
        What they are priced for.
    leaves_view
        Whether a scalar or a sign moves out of a view.
    """

    def __init__(self, rule: Rule, context: RuleContext, model: CostModel, sizes: ExpectedSizes) -> None:
        super().__init__(rule, context)
        self.model = model
        self.sizes = sizes
        self.leaves_view = self.constructor == "DimShuffle" and "outward" in rule.tags

    @cached_property
    def shrinks(self) -> bool:
        """Whether it has fewer ops than what it replaces, and none of its variables more often."""
        return _is_smaller(self.replacement, self.pattern)

    @property
    def is_always_made(self) -> bool:
        """Whether no price is asked wherever fewer ops are left than there were, or for good."""
        return self.stabilizes or self.shrinks or self.leaves_view

    def transform(self, node: Apply) -> Transformed:
        answer = super().transform(node)
        if self.stabilizes or self.leaves_view:
            return answer
        if isinstance(answer, Mapping):
            return {old: new for old, new in answer.items() if self._pays(old, new)} or False
        if not isinstance(answer, list) or answer[0] is None:
            return answer
        return answer if self._pays(node.outputs[0], answer[0]) else False

    def _pays(self, old: Variable, new: Variable) -> bool:
        """Whether a replacement makes an expression smaller, or cheaper."""
        smaller = self.shrinks and len(_unknown_nodes(new)) <= len(_freed_nodes(old, new))
        return smaller or self._cheaper(old, new)

    def _cheaper(self, old: Variable, new: Variable) -> bool:
        """Whether what would be added costs less than what would no longer be needed."""
        added = sum(self._price(fresh) for fresh in _unknown_nodes(new))
        saved = sum(self._price(freed) for freed in _freed_nodes(old, new))
        return added < saved * (1.0 - 1e-9)

    def _price(self, node: Apply) -> float:
        # A view of a scalar is looked through: it would be priced as what it shows.
        term = None if isinstance(node.op, DimShuffle) else view(node.outputs[0])
        if term is None:
            return 0.0
        constructor, operands, literals = term
        values = [self._value(operand) for operand in operands]
        result = self._value(node.outputs[0])
        numbers = [literal for literal in literals if isinstance(literal, int | float)]
        if constructor in self.context.signature and len(numbers) == len(literals):
            return self.model.price(constructor, numbers, values, result)
        ranks = [as_tensor(operand.type).ndim for operand in operands]
        return self.model.opaque_price(RankedOp(node.op, tuple(ranks)), values, result)

    def _value(self, variable: Variable) -> Value:
        type = as_tensor(variable.type)
        sizes: tuple[int | tuple[int, int], ...] = tuple(
            (0, axis) if size is None else size for axis, size in enumerate(self.sizes.of(variable))
        )
        value = term_value(TermType(dtype_number(type.dtype), broadcast_word(type.broadcastable), sizes))
        if isinstance(variable.type, SparseType):
            return Value((*value.shape, EXPECTED_DENSITY * prod(value.shape)), value.dtype)
        return value


_SHAPES = frozenset({"Fill", "K"})
"""What stands for a number, or for many of them."""


def _is_smaller(term: Sexp, than: Sexp) -> bool:
    """Whether a term has fewer ops than another, and none of its variables more often."""
    (ops, variables), (more, others) = _contents(term), _contents(than)
    return ops < more and variables <= others


def _contents(term: Sexp) -> tuple[int, Counter[str]]:
    """The number of ops of a term, and how often each of its variables occurs."""
    if isinstance(term, str):
        return 0, Counter(() if is_number(term) else (term,))
    ops, variables = int(term[0] not in _SHAPES), Counter[str]()
    for part in term[1:]:
        if isinstance(part, str) or str(part[0])[0].isupper():  # arithmetic on literals is no op
            within, own = _contents(part)
            ops, variables = ops + within, variables + own
    return ops, variables


def _unknown_nodes(variable: Variable) -> list[Apply]:
    """Nodes below a replacement that are not in the graph yet."""
    found: dict[Apply, None] = {}
    pending = [variable]
    while pending:
        candidate = pending.pop()
        node = candidate.owner
        if node is not None and candidate.clients is None and node not in found:
            found[node] = None
            pending += node.inputs
    return list(found)


def _freed_nodes(old: Variable, new: Variable) -> list[Apply]:
    """Nodes that nobody needs once ``new`` stands where ``old`` stood."""
    needed = {operand for node in _unknown_nodes(new) for operand in node.inputs} | {new}
    released: dict[Variable, int] = {}
    freed: list[Apply] = []
    pending = [old]
    while pending:
        variable = pending.pop()
        node = variable.owner
        if node is None or (variable in needed and variable is not old):
            continue
        freed.append(node)
        for operand in node.inputs:
            released[operand] = released.get(operand, 0) + 1
            if released[operand] == len(operand.clients or ()):
                pending.append(operand)
    return freed
