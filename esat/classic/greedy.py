"""The greedy baseline: merge, then the same rules as replacements until nothing changes.

It is what a compiler without an e-graph can do with these rules: each replacement is made where it
is found and destroys what it replaces, so rules that only pay off after a detour, or that lead both
ways, must be left out or cost progress. A replacement is made if it makes the graph cheaper by the
cost model, or more stable; that keeps rules from undoing each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext

from esat.classic.canonizer import Canonizer
from esat.classic.equilibrium import EquilibriumOptimizer
from esat.classic.local import LocalOptimizer, Transformed
from esat.classic.merge import MergeOptimizer
from esat.classic.optimizer import OptimizerProfile, SeqOptimizer
from esat.classic.rule_rewriter import RuleContext, RuleRewriter
from esat.classic.terms import DropReducedAxes, KeepReducedAxes, view
from esat.egraph.encode import encode
from esat.egraph.prepare import Program
from esat.egraph.terms import TermType, broadcast_word, dtype_number
from esat.extract.cost import CostModel, MachineProfile, Value
from esat.extract.merge import merge_only
from esat.extract.optimizer import OptimizationReport, Stage, predicted_seconds
from esat.extract.values import term_value
from esat.graph import Apply, FunctionGraph, Variable
from esat.ops.dimshuffle import DimShuffle
from esat.rules.database import RuleSelection
from esat.rules.rule import Rule


class CheaperRule(RuleRewriter):
    """A rule applied where it makes the graph cheaper, or where it stabilizes."""

    def __init__(self, rule: Rule, context: RuleContext, model: CostModel) -> None:
        super().__init__(rule, context)
        self.model = model
        self.stabilizes = any(isinstance(part, tuple) and part[0] == "subsume" for part in rule.head)

    def transform(self, node: Apply) -> Transformed:
        if view(node.outputs[0]) is None:
            return False
        answer = super().transform(node)
        if not isinstance(answer, list) or answer[0] is None or self.stabilizes:
            return answer
        return answer if self._cheaper(node.outputs[0], answer[0]) else False

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
        return self.model.price(
            constructor, literals, [_value(operand) for operand in operands], _value(node.outputs[0])
        )


def _value(variable: Variable) -> Value:
    type = variable.tensor_type
    sizes = tuple((0, axis) if size is None else size for axis, size in enumerate(type.shape))
    return term_value(TermType(dtype_number(type.dtype), broadcast_word(type.broadcastable), sizes))


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


def greedy_optimizer(program: Program, rules: Iterable[Rule], model: CostModel) -> SeqOptimizer:
    """Merge, canonicalize and specialize to a fixed point, merge again."""
    context = RuleContext(program.signature)
    locals: list[LocalOptimizer] = [Canonizer("add"), Canonizer("mul")]
    locals += [CheaperRule(rule, context, model) for rule in rules if RuleRewriter.applies_to(rule)]
    return SeqOptimizer(
        [
            MergeOptimizer(),
            KeepReducedAxes(),
            EquilibriumOptimizer([MergeOptimizer(), *_by_constructor(locals)], name="greedy"),
            DropReducedAxes(),
            MergeOptimizer(),
        ],
        name="greedy",
    )


class _Dispatch(LocalOptimizer):
    """Rules of one constructor, tried in order at nodes of that constructor alone."""

    def __init__(self, rule: CheaperRule) -> None:
        self.rule = rule
        self.name = rule.name

    def transform(self, node: Apply) -> Transformed:
        return self.rule.transform(node) if node.op.constructor == self.rule.constructor else False


def _by_constructor(locals: Sequence[LocalOptimizer]) -> list[LocalOptimizer]:
    return [_Dispatch(local) if isinstance(local, CheaperRule) else local for local in locals]


def optimize_greedily(
    graph: FunctionGraph,
    program: Program,
    selection: RuleSelection,
    *,
    machine: MachineProfile | None = None,
    stage: Stage = lambda _: nullcontext(),
) -> tuple[FunctionGraph, OptimizationReport]:
    """The graph after the greedy optimizer; it is not changed itself.

    Raises
    ------
    OptimizerError
        When a rule gives a result whose type does not fit.
    """
    profile_machine = machine or MachineProfile()
    result, before = merge_only(graph, machine=profile_machine, stage=stage)
    with stage("greedy"):
        model = CostModel(profile_machine)
        profile = greedy_optimizer(program, selection.rules, model).optimize(result)
    with stage("predict"):
        terms = encode(result)
        cost = predicted_seconds(terms, CostModel(profile_machine, terms.opaque))
    report = OptimizationReport(
        "greedy", len(graph), len(result), before.cost_before, cost, _applied(profile)
    )
    return result, report


def _applied(profile: OptimizerProfile) -> dict[str, int]:
    counts: dict[str, int] = {}
    pending = [profile]
    while pending:
        part = pending.pop()
        pending += part.parts
        for name, count in part.applied.items():
            counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
