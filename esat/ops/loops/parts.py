"""A loop taken apart: to be built of traced variables, and changed without touching the op."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, field

from esat.errors import GraphError, describe
from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import ancestors, toposort
from esat.graph.function_graph import FunctionGraph
from esat.graph.op import Family
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.annotations.gradients import without_gradients
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.ops.loops.record import EXPECTED_STEPS, LoopOp, Scan, While


@dataclass(slots=True)
class LoopParts:
    """What a loop is built of. Variables of the body stand for carries, elements and invariants.

    Attributes
    ----------
    control
        How many steps there are; or whether there is a first one.
    carries
        Variables of the body, with their first values.
    following
        What the body computes for the next step, one for each carry.
    kept
        What it computes for traces.
    sequences, invariants
        Variables of the body, with what they stand for outside.
    goes_on
        For a loop with a condition: whether there is a further step.
    reverse, max_steps, sparing
        As of :class:`Scan` and :class:`While`.
    """

    control: Variable
    carries: dict[Variable, Variable]
    following: list[Variable]
    kept: list[Variable] = field(default_factory=list)
    sequences: dict[Variable, Variable] = field(default_factory=dict)
    invariants: dict[Variable, Variable] = field(default_factory=dict)
    goes_on: Variable | None = None
    reverse: bool = False
    max_steps: int | None = None
    sparing: bool = False

    @staticmethod
    def of(node: Apply) -> LoopParts:
        """Those of a node, with variables of its own for the body."""
        op = node.op
        assert isinstance(op, LoopOp)
        fresh = {one: one.clone() for one in op.body.inputs}
        results = clone(op.body.outputs, fresh)[0]
        inner, outer = op.split(list(fresh.values())), op.split(node.inputs[1:])
        pairs = [dict(zip(*both, strict=True)) for both in zip(inner, outer, strict=True)]
        condition = op.carries if isinstance(op, While) else None
        return LoopParts(
            node.inputs[0],
            pairs[0],
            results[: op.carries],
            results[op.carries + (condition is not None) :],
            pairs[1],
            pairs[2],
            None if condition is None else results[condition],
            isinstance(op, Scan) and op.reverse,
            op.max_steps if isinstance(op, While) else None,
            isinstance(op, Scan) and op.sparing,
        )

    @property
    def results(self) -> list[Variable]:
        """All that the body computes."""
        return [*self.following, *([] if self.goes_on is None else [self.goes_on]), *self.kept]

    @property
    def inputs(self) -> dict[Variable, Variable]:
        """The variables of the body that stand for something outside, and for what."""
        return {**self.carries, **self.sequences, **self.invariants}

    def replace(self, replaced: dict[Variable, Variable]) -> None:
        """Put other variables in the place of some of the body's."""
        found = iter(clone(self.results, replaced)[0])
        self.following = [next(found) for _ in self.following]
        self.goes_on = None if self.goes_on is None else next(found)
        self.kept = list(found)

    def forget_gradients(self) -> None:
        """Leave out what only says what derivatives are."""
        found = iter(without_gradients(self.results))
        self.following = [next(found) for _ in self.following]
        self.goes_on = None if self.goes_on is None else next(found)
        self.kept = list(found)

    def close(self, before: Set[Apply] = frozenset()) -> None:
        """Make what the body takes from around it invariants: whatever is computed of nothing in the loop.

        What may raise an error stays inside where nothing says that there is a step.

        Parameters
        ----------
        before
            Nodes that are run before the loop in any case.
        """
        always = isinstance(self.control, Constant) and self.goes_on is None and self.control.data > 0
        inputs = set(self.inputs)
        nodes = toposort(self.results, stop=inputs)
        always = always and not any(node.op.lazy for node in nodes)
        inside, fixed = set(inputs), set[Variable]()
        for node in nodes:
            if node.inputs and all(isinstance(one, Constant) or one in fixed for one in node.inputs):
                fixed.update(node.outputs)  # which stays a constant where it is used
            elif not inside.isdisjoint(node.inputs) or not (always or node in before or never_raises(node)):
                inside.update(node.outputs)
        read = [one for node in nodes if node.outputs[0] in inside for one in node.inputs]
        outside = {
            one: Variable(one.type)
            for one in dict.fromkeys((*read, *self.results))
            if one not in inside and one not in fixed and not isinstance(one, Constant)
        }
        self.replace(dict(outside))
        self.invariants.update({new: old for old, new in outside.items()})

    def prune(self, last: Sequence[bool], kept: Sequence[bool]) -> None:
        """Drop what nobody reads: carries and traces without use, and operands that only these needed.

        Parameters
        ----------
        last
            Which of the last values of carries are read.
        kept
            Which traces.
        """
        pairs = list(zip(self.carries, self.following, strict=True))
        needed = {own for (own, _), is_read in zip(pairs, last, strict=True) if is_read}
        self.kept = [one for one, is_read in zip(self.kept, kept, strict=True) if is_read]
        roots = [*self.kept, *([] if self.goes_on is None else [self.goes_on])]
        while True:
            reached = set(ancestors([*roots, *(after for own, after in pairs if own in needed)]))
            more = (reached & set(self.carries)) - needed
            if not more:
                break
            needed |= more
        self.carries = {own: first for own, first in self.carries.items() if own in needed}
        self.following = [after for own, after in pairs if own in needed]
        self.sequences = {own: one for own, one in self.sequences.items() if own in reached}
        self.invariants = {own: one for own, one in self.invariants.items() if own in reached}

    def settle(self) -> dict[Variable, Variable]:
        """Make carries that never change invariants, equal operands one, and numbers that are known what they
        are.

        Returns
        -------
        Those carries -> their values.
        """
        unchanged = {
            own: first
            for (own, first), after in zip(self.carries.items(), self.following, strict=True)
            if after is own and first.type == own.type
        }
        self.following = [
            after for own, after in zip(self.carries, self.following, strict=True) if own not in unchanged
        ]
        self.carries = {own: first for own, first in self.carries.items() if own not in unchanged}
        self.invariants.update(unchanged)
        numbers = {
            own: outer
            for own, outer in self.invariants.items()
            if isinstance(outer, Constant) and not own.ndim
        }
        if numbers:
            self.replace(dict(numbers))
            self.invariants = {own: one for own, one in self.invariants.items() if own not in numbers}
        for name in ("sequences", "invariants"):
            first: dict[Hashable, Variable] = {}
            replaced: dict[Variable, Variable] = {}
            for own, outer in getattr(self, name).items():
                known = first.setdefault(outer.content if isinstance(outer, Constant) else outer, own)
                if known is not own:
                    replaced[own] = known
            if replaced:
                self.replace(replaced)
                kept = {own: one for own, one in getattr(self, name).items() if own not in replaced}
                setattr(self, name, kept)
        return unchanged

    def node(self) -> Apply:
        """The node of the loop."""
        body = FunctionGraph(list(self.inputs), self.results)
        op: LoopOp
        if self.goes_on is None:
            known = max(int(self.control.data), 0) if isinstance(self.control, Constant) else EXPECTED_STEPS
            op = Scan(body, len(self.carries), len(self.sequences), self.reverse, known, self.sparing)
        else:
            op = While(body, len(self.carries), self.max_steps)
        return op.make_node(self.control, *self.inputs.values())

    def depending(self, active: Iterable[Variable], counts: Callable[[Variable], bool]) -> set[Variable]:
        """Variables of the body, and the carries that depend on them after some steps, if they count."""
        found = set(active)
        while True:
            more = {
                own
                for own, after in zip(self.carries, self.following, strict=True)
                if own not in found and counts(own) and depends(after, found)
            }
            if not more:
                return found
            found |= more

    def count_of_results(self) -> int:
        """How many results of the node come before its traces."""
        return len(self.carries) + (0 if self.goes_on is None else 2)


def depends(variable: Variable, among: Set[Variable]) -> bool:
    """Whether a variable is computed of one of some others, or is one."""
    return not among.isdisjoint(ancestors([variable]))


def refuse_draws(name: str, nodes: Iterable[Apply]) -> None:
    """Raise GraphError for a body that draws random numbers, of which each step would have the same."""
    for node in nodes:
        if node.op.family is Family.RANDOM:
            reason = "each step would have the same draws; draw all of them before, and loop over them"
            raise GraphError(describe(name, [node.op], reason, node.where))


def never_raises(node: Apply) -> bool:
    """Whether a node computes something whatever the values of its operands are."""
    is_plain = node.op.family in (Family.ELEMENTWISE, Family.CONTRACTION) or isinstance(node.op, DimShuffle)
    if not all(isinstance(one.type, TensorType) for one in (*node.inputs, *node.outputs)):
        return False
    is_part = isinstance(node.op, Subtensor) and len(node.inputs) == 1
    return is_plain or (is_part and None not in node.inputs[0].tensor_type.shape)
