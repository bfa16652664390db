"""What steps do to memory, and whose memory a program may overwrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from esat.base.records import record
from esat.errors import UserLine
from esat.graph import Apply, Constant, Family, FunctionGraph, SharedVariable, TensorType, Variable
from esat.graph.op import Op
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.view import Reshape
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.phases.fusing.group import Group, Guard, conditions_of
from esat.phases.fusing.laziness import conditions_first, find_guards
from esat.phases.shape_values import ShapeFacts

_CHECKED_AHEAD = (Family.ELEMENTWISE, Family.REDUCTION, Family.CONTRACTION, Family.CREATION)
"""Families whose run-time errors are about shapes only."""


@record(frozen=True, eq=False, slots=True)
class Effect:
    """What one step does to memory.

    Attributes
    ----------
    label, where
        What messages call it, and the user's line.
    inputs, outputs
        What it reads and what it makes.
    views
        For each output the positions of the inputs whose memory it may show.
    written_over
        For each output the positions of the inputs that it is written over.
    raises
        Whether it can fail while it runs, on values or on sizes known only then.
    checkable
        Whether its op's ``check_operands`` finds all that before it writes anything, given the values of
        all operands but the one it overwrites, and the shape of that.
    """

    label: str
    where: UserLine | None
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    views: tuple[tuple[int, ...], ...]
    written_over: tuple[tuple[int, ...], ...]
    raises: bool = False
    checkable: bool = False

    @property
    def destroyed(self) -> tuple[int, ...]:
        """Positions of the inputs that it overwrites."""
        return tuple(sorted({place for places in self.written_over for place in places}))

    def reads_first(self, position: int) -> bool:
        """Whether an input is read before anything is written: a place in an array, or the one number that is
        written there."""
        return self.checkable and getattr(self.inputs[position].type, "ndim", None) == 0

    def __str__(self) -> str:
        place = "" if self.where is None else f" ({self.where[0]}:{self.where[1]})"
        return f"{self.label}{place}"


def effect_of_node(node: Apply, facts: ShapeFacts | None = None, guard: Guard = ()) -> Effect:
    """What a node does to memory, by its op's view and destroy maps.

    Parameters
    ----------
    node
        The node.
    facts
        What shapes decide; without them nothing is known about when it fails.
    guard
        The conditions under which it runs, which are read as well.
    """
    places = range(len(node.outputs))
    return Effect(
        str(node.op),
        node.where,
        (*node.inputs, *conditions_of(guard)),
        tuple(node.outputs),
        tuple(shown_positions(node, place) for place in places),
        tuple(tuple(node.op.destroy_map.get(place, ())) for place in places),
        facts is not None and may_raise(node, facts),
        is_checkable(node.op) and not guard,
    )


def effect_of_group(group: Group, facts: ShapeFacts) -> Effect:
    """What a group does to memory. A kernel shows and overwrites nothing by itself."""
    if group.kind != "kernel":
        return effect_of_node(group.nodes[0], facts, group.guard)
    nothing: tuple[tuple[int, ...], ...] = ((),) * len(group.outputs)
    raises = any(may_raise(node, facts) for node in group.nodes)
    return Effect(str(group), group.nodes[-1].where, group.reads, group.outputs, nothing, nothing, raises)


def shown_positions(node: Apply, place: int) -> tuple[int, ...]:
    """Positions of the inputs whose memory an output may show without being written over it.

    A value that is no array may keep arrays it was made from. States of random generators keep none.
    """
    op = node.op
    declared = tuple(op.view_map.get(place, ()))
    opaque = not isinstance(node.outputs[place].type, TensorType) and op.family is not Family.RANDOM
    return tuple(range(len(node.inputs))) if opaque and not (declared or op.destroy_map) else declared


def destroyed_positions(op: Op) -> tuple[int, ...]:
    """Positions of the inputs that an op overwrites."""
    return tuple(sorted({place for places in op.destroy_map.values() for place in places}))


def is_checkable(op: Op) -> bool:
    """Whether an op that writes to a part of its first operand checks everything before it writes."""
    checks = type(op).check_operands is not Op.check_operands
    return op.family is Family.INDEX and hasattr(op, "inplace") and checks


def may_raise(node: Apply, facts: ShapeFacts) -> bool:
    """Whether a node can fail once the shapes of the inputs have been found to fit."""
    if any(variable not in facts.early and not isinstance(variable, Constant) for variable in node.inputs):
        return True
    op = node.op
    if isinstance(op, Subtensor):
        return not all(isinstance(entry, Slice) and entry.is_static for entry in op.entries)
    if isinstance(op, Reshape):
        return node.outputs[0] not in facts.early
    return op.family not in _CHECKED_AHEAD and not isinstance(op, DimShuffle)


@record(frozen=True, eq=False)
class Permissions:
    """Whose memory a program may overwrite: what it makes itself, and what is named here.

    Attributes
    ----------
    donated
        Positions of inputs whose memory the caller gives away.
    updated
        Shared variables that get a new value, so that nobody needs the old one afterwards. The last
        outputs of the graph are their new values.
    """

    donated: frozenset[int] = frozenset()
    updated: tuple[SharedVariable, ...] = ()

    @cached_property
    def _updated(self) -> frozenset[SharedVariable]:
        return frozenset(self.updated)

    def refusal(self, root: Variable, inputs: Mapping[Variable, int]) -> str | None:
        """Why the memory of a variable must stay as it is; None where it need not.

        Parameters
        ----------
        root
            A Variable that is no view.
        inputs
            The inputs of its graph, with their positions.
        """
        if isinstance(root, Constant):
            return f"{root} is a constant"
        if isinstance(root, SharedVariable):
            return None if root in self._updated else f"the shared variable {root} is not updated"
        position = inputs.get(root)
        return None if position is None or position in self.donated else f"the input {root} is not donated"

    def is_lasting(self, root: Variable) -> bool:
        """Whether a call that fails must leave the memory of a variable as it was.

        States of random generators may have advanced: the numbers that follow are as random.
        """
        return isinstance(root, SharedVariable) and isinstance(root.type, TensorType)


def running_nodes(graph: FunctionGraph, facts: ShapeFacts) -> list[Apply]:
    """The nodes of a graph that run, in topological order, those that decide choices first."""
    idle = facts.idle
    return [node for node in conditions_first(graph.toposort()) if node not in idle]


def effects_of_graph(graph: FunctionGraph, facts: ShapeFacts) -> tuple[list[Apply], list[Effect]]:
    """The nodes of a graph that run, in topological order, and what they do to memory."""
    nodes = running_nodes(graph, facts)
    guards = find_guards(nodes, graph.outputs)
    return nodes, [effect_of_node(node, facts, guards.get(node, ())) for node in nodes]


def effects_of_groups(groups: Sequence[Group], facts: ShapeFacts) -> list[Effect]:
    """What groups do to memory."""
    return [effect_of_group(group, facts) for group in groups]
