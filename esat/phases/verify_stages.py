"""Checks of what the next stage relies on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from esat.errors import CompileError
from esat.graph import Constant, Family, FunctionGraph, SharedVariable, Variable
from esat.phases.fusing.group import FusionPlan, Group, GroupKind
from esat.phases.memory.effects import Effect, Permissions
from esat.phases.shape_values import ShapeFacts


def verify_fusion(plan: FusionPlan, graph: FunctionGraph) -> None:
    """Raise CompileError unless the plan computes the graph.

    Every node is in exactly one group, or idle; every group's inputs are the graph's, Constants, shared
    variables, or outputs of earlier groups; what is read outside a group is among its outputs; no
    view is an output of a kernel; and the outputs of the graph are covered.
    """
    available: set[Variable] = {*graph.inputs, *ShapeFacts(graph).decided}
    placed = {id(node) for node in plan.idle}
    for group in plan.groups:
        _verify_group(group, available)
        for node in group.nodes:
            if id(node) in placed:
                raise CompileError(f"fusion: {node} is in more than one group")
            placed.add(id(node))
        available.update(group.outputs)
    missing = [node for node in graph.toposort() if id(node) not in placed]
    if missing or len(placed) != len(graph.toposort()):
        raise CompileError(f"fusion: {len(placed)} nodes are in groups; not in any: {missing[:3]}")
    for output in graph.outputs:
        if output not in available and not isinstance(output, (Constant, SharedVariable)):
            raise CompileError(f"fusion: no group computes the graph's output {output}")


def _verify_group(group: Group, available: set[Variable]) -> None:
    if group.kind not in get_args(GroupKind) or not group.nodes:
        raise CompileError(f"fusion: malformed group {group}")
    if group.kind != "kernel" and len(group.nodes) != 1:
        raise CompileError(f"fusion: {group} has {len(group.nodes)} nodes; only kernels have several")
    known = set(group.inputs)
    for variable in group.reads:
        if variable not in available and not isinstance(variable, (Constant, SharedVariable)):
            raise CompileError(f"fusion: {group} reads {variable} before it is computed")
    for node in group.nodes:
        for variable in node.inputs:
            if variable not in known:
                raise CompileError(f"fusion: {group} computes {node} before its operand {variable}")
        known.update(node.outputs)
    computed = {output for node in group.nodes for output in node.outputs}
    for output in group.outputs:
        if output not in computed:
            raise CompileError(f"fusion: {group} does not compute its output {output}")
        if group.kind == "kernel" and output.owner is not None and output.owner.op.family is Family.VIEW:
            raise CompileError(f"fusion: {group} would have to write its view {output} to memory")


def verify_destroyers(
    effects: Sequence[Effect],
    inputs: Iterable[Variable],
    outputs: Iterable[Variable],
    permissions: Permissions,
) -> None:
    """Raise CompileError unless steps, in the order given, never read what was overwritten before.

    The steps run on an abstract memory: a number for each place, which counts how often it was
    overwritten. That shares nothing with the way in which orders are found.

    Parameters
    ----------
    effects
        The steps in order.
    inputs, outputs
        Of the graph; outputs are read after the last step.
    permissions
        Whose memory may be overwritten.
    """
    positions = {variable: position for position, variable in enumerate(inputs)}
    _AbstractMemory(positions, permissions).run(effects, outputs)


class _AbstractMemory:
    def __init__(self, inputs: Mapping[Variable, int], permissions: Permissions) -> None:
        self.inputs = inputs
        self.permissions = permissions
        self.overwritten: dict[Variable, int] = {}
        self.seen: dict[Variable, dict[Variable, int]] = {}

    def run(self, effects: Sequence[Effect], outputs: Iterable[Variable]) -> None:
        for effect in effects:
            for variable in effect.inputs:
                self._read(variable, str(effect))
            destroyed = {place for position in effect.destroyed for place in self._places(effect, position)}
            for place in destroyed:
                self._overwrite(place, effect)
            for output, *positions in zip(effect.outputs, effect.views, effect.written_over, strict=True):
                shared = (position for places in positions for position in places)
                shown = {place for position in shared for place in self._places(effect, position)} or {output}
                self.seen[output] = {place: self.overwritten.setdefault(place, 0) for place in shown}
        for output in outputs:
            self._read(output, "the caller")

    def _places(self, effect: Effect, position: int) -> Iterable[Variable]:
        return self._shown(effect.inputs[position])

    def _shown(self, variable: Variable) -> dict[Variable, int]:
        """The places that a variable shows, each with its number when the variable came to show it."""
        known = self.seen.get(variable)
        if known is None:
            known = self.seen[variable] = {variable: self.overwritten.setdefault(variable, 0)}
        return known

    def _read(self, variable: Variable, reader: str) -> None:
        for place, number in self._shown(variable).items():
            if self.overwritten[place] != number:
                raise CompileError(f"order of steps: {reader} reads {variable} after {place} was overwritten")

    def _overwrite(self, place: Variable, effect: Effect) -> None:
        refusal = self.permissions.refusal(place, self.inputs)
        if refusal is not None:
            raise CompileError(f"order of steps: {effect} overwrites {place}, but {refusal}")
        for position, variable in enumerate(effect.inputs):
            is_read = position not in effect.destroyed and place in self._shown(variable)
            if is_read and not effect.reads_first(position):
                raise CompileError(f"order of steps: {effect} reads {variable} and overwrites it as {place}")
        self.overwritten[place] += 1
