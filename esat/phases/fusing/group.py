"""Groups: the nodes of a graph, parted into the steps that a program runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from esat.base.records import record
from esat.graph import Apply, Variable
from esat.phases.transfer import Side

GroupKind: TypeAlias = Literal["kernel", "library", "view", "transfer"]


@record(frozen=True, eq=False, slots=True)
class Condition:
    """A bool scalar, and the value it must have. The same scalar and value make equal conditions."""

    scalar: Variable
    value: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self.scalar is other.scalar and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.scalar, self.value))


Path: TypeAlias = tuple[Condition, ...]
"""Conditions that must all hold; each scalar has a value where those before it have theirs."""

Guard: TypeAlias = tuple[Path, ...]
"""Alternatives, of which one must hold for something to be needed; without any it is needed always."""


def conditions_of(guard: Guard) -> tuple[Variable, ...]:
    """The bool scalars that a guard reads, each once."""
    return tuple(dict.fromkeys(condition.scalar for path in guard for condition in path))


@record(frozen=True, eq=False, slots=True)
class Group:
    """Nodes that run as one step.

    Attributes
    ----------
    kind
        ``kernel``: compiled together into one generated kernel. ``library``: one node, run by its
        op's ``perform`` or a library routine. ``view``: one node whose result shares the memory of
        its operand. ``transfer``: one node that copies an array from the other side to this one.
    nodes
        The nodes, each after those that feed it.
    inputs
        Variables the nodes read that no node of the group computes, Constants and shared variables
        included, in order of first use.
    outputs
        Variables computed here that are read outside the group, or are outputs of the graph, in
        order of computation; of a library step all its results.
    guard
        The conditions under which the group runs. Where none of them holds, nothing reads its outputs.
    side
        Where it runs, and where its outputs live. So do its inputs, but for that of a transfer and those
        that live on both sides (see ``esat/phases/placement.py``). Conditions are always on the host.
    """

    kind: GroupKind
    nodes: tuple[Apply, ...]
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    guard: Guard = ()
    side: Side = "host"

    @property
    def reads(self) -> tuple[Variable, ...]:
        """The inputs, then conditions of the guard that are none."""
        if not self.guard:
            return self.inputs
        return tuple(dict.fromkeys((*self.inputs, *conditions_of(self.guard))))

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(str(node.op) for node in self.nodes)})"


@record(frozen=True, eq=False, slots=True)
class FusionPlan:
    """The steps of a graph.

    Attributes
    ----------
    groups
        In an order in which they can run: each after those whose outputs it reads.
    idle
        Nodes that no step runs: sizes and arithmetic on sizes, which the shapes of the inputs decide,
        and nodes that nothing reads but for their shape.
    """

    groups: tuple[Group, ...]
    idle: frozenset[Apply] = frozenset()
