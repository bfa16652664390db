"""One step of greedy modes: rules saturate an e-graph of the graph, of which the cheapest form is left.

The step of a database of local optimizers runs the rules that have its tag, without the algebra of sums and
products. What it replaces is gone: no later step sees another form of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Hashable, Sequence
from functools import cached_property

from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.classic.rules.rule_options import RuleOptions
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.accuracy.kept_verdicts import verdicts_on
from esat.graph import Constant, FunctionGraph, TensorType, Variable, clone
from esat.ops.control import IfElse
from esat.optimize.equality.optimizer import optimize
from esat.phases.branches import join_branches, separate_branches
from esat.rules.language.rule import Rule
from esat.rules.language.rule_selection import RuleSelection


class EGraphStep(Optimizer):
    """Replaces the outputs of a graph by the cheapest forms that rules find for them.

    Parameters
    ----------
    selection
        All rules of the compilation: one program serves the steps of all databases.
    rules
        Those of them that run.
    options
        How they are applied.
    normalizes
        Whether sums and products are brought to their normal form where no rule has anything to say, too.
    """

    name = "rules"

    def __init__(
        self,
        selection: RuleSelection,
        rules: Sequence[Rule],
        options: RuleOptions,
        normalizes: bool,
    ) -> None:
        self.selection = selection
        self.rules = rules
        self.options = options
        self.normalizes = normalizes
        self._left: tuple[weakref.ref[FunctionGraph], Hashable] | None = None

    @cached_property
    def program(self) -> RuleProgram:
        """The rules, ready to run."""
        rulesets = frozenset(rule.ruleset for rule in self.rules)
        return program_for(self.selection, self.options.soundness == "exact", rulesets=rulesets)

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, type(self).__name__)
        before = _content(fgraph)
        if self._left is not None and self._left[0]() is fgraph and self._left[1] == before:
            return profile
        result, fired, is_touched = self._optimized(fgraph)
        if (is_touched or self.normalizes) and _content(result) != before:
            take_over(fgraph, result, self.name)
            for name in (self.name, *fired):
                profile.count(name)
        self._left = weakref.ref(fgraph), _content(fgraph)
        return profile

    def _optimized(self, fgraph: FunctionGraph) -> tuple[FunctionGraph, Collection[str], bool]:
        """The cheapest graph, names of rules that fired, and whether any did, or noted what it could take."""
        graph, options = fgraph, self.options
        lazy = any(isinstance(node.op, IfElse) for node in fgraph.apply_nodes)
        if lazy:
            graph = fgraph.clone()
            separate_branches(graph)
        result, report = optimize(
            graph,
            self.program,
            Budgets(),
            machine=options.machine,
            shapes=options.shapes,
            accuracy=options.accuracy,
            judge=verdicts_on,
        )
        if lazy:
            join_branches(result)
        names = {rule.name for rule in self.program.selection.rules}
        matched = () if report.saturation is None else report.saturation.rules
        return result, report.rules, any(rule.name in names for rule in matched)

    def summary(self) -> list[str]:
        names = dict.fromkeys(rule.report_name for rule in self.rules)
        return [f"{type(self).__name__} {self.label} ({len(names)})", *(f"  {name}" for name in names)]


def take_over(graph: FunctionGraph, result: FunctionGraph, reason: str) -> None:
    """Let a graph compute its outputs as another one does that has copies of its inputs."""
    copies = dict(zip(result.inputs, graph.inputs, strict=True))
    outputs, _ = clone(result.outputs, copies)
    for old, new in zip(list(graph.outputs), outputs, strict=True):
        if old is not new and old not in graph.input_set and any(old is one for one in graph.outputs):
            graph.replace(old, new, reason)


def _content(graph: FunctionGraph) -> Hashable:
    """What a graph computes and how: equal for graphs that differ in nothing but their Variables."""
    numbers: dict[Variable, Hashable] = dict(zip(graph.inputs, range(len(graph.inputs)), strict=True))
    known: dict[Hashable, int] = {}

    def number(variable: Variable) -> Hashable:
        if variable not in numbers:
            if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
                numbers[variable] = variable.type, variable.data.tobytes()
            else:
                numbers[variable] = id(variable)
        return numbers[variable]

    for node in graph.toposort():
        place = known.setdefault((node.op, *map(number, node.inputs)), len(known))
        numbers.update((output, (place, index)) for index, output in enumerate(node.outputs))
    return hash((*known, *map(number, graph.outputs)))
