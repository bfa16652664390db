"""The destroy handler: who may overwrite what, and the order of steps that makes it safe.

A step that overwrites memory must run after every step that reads what was there, through any number of
views. So memory can be overwritten once: what comes out of that is a new value in the old place, which
may be overwritten in its turn.

A call that fails leaves shared variables as they were. So a step that overwrites one also runs after every
step that can fail, but for those whose checks can be run ahead of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property

from esat.errors import DestroyError
from esat.graph import Apply, Feature, FunctionGraph, ReplaceValidate, SharedVariable, Variable
from esat.graph.function_graph import Client
from esat.phases.memory.effects import (
    Effect,
    Permissions,
    destroyed_positions,
    effect_of_node,
    effects_of_graph,
    running_nodes,
)
from esat.phases.memory.step_order import StepOrder
from esat.phases.shape_values import ShapeFacts

MOST_GUARDS = 50
"""Constraints of steps that can fail, for each step there is, beyond which no more shared variables are
overwritten."""


class DestroyPlan:
    """Steps, who of them reads whose memory, and who overwrites it.

    Parameters
    ----------
    effects
        The steps, each after those whose results it reads. What they overwrite by themselves is taken
        into the plan.
    inputs, outputs
        Of the graph. Outputs are read after the last step.
    permissions
        Whose memory may be overwritten.
    candidates
        Steps that :meth:`destroy` will be asked about.

    Attributes
    ----------
    destroyers
        Variable whose memory is overwritten -> the step that does it.
    order
        The steps in an order that keeps all constraints.

    Raises
    ------
    DestroyError
        When steps overwrite what they must not, or no order of steps lets them.
    """

    def __init__(
        self,
        effects: Sequence[Effect],
        inputs: Iterable[Variable],
        outputs: Iterable[Variable],
        permissions: Permissions,
        candidates: Container[int] = (),
    ) -> None:
        self.effects = tuple(effects)
        self.permissions = permissions
        self.destroyers: dict[Variable, int] = {}
        self._inputs = {variable: position for position, variable in enumerate(inputs)}
        self._roots: dict[Variable, frozenset[Variable]] = {}
        self._readers: dict[Variable, list[int]] = {}
        self._maker: dict[Variable, int] = {}
        self._guarded: list[int] = []
        before: list[set[int]] = []
        for number, effect in enumerate(self.effects):
            before.append({self._maker[variable] for variable in effect.inputs if variable in self._maker})
            self._maker.update((output, number) for output in effect.outputs if output not in self._inputs)
            self._add_roots(number, effect)
        self._shown = {root: output for output in outputs for root in self.roots(output)}
        self.order = self._given(before, candidates)

    def _add_roots(self, number: int, effect: Effect) -> None:
        read: dict[Variable, None] = {}
        for variable in effect.inputs:
            read.update(dict.fromkeys(self.roots(variable)))
        for root in read:
            self._readers.setdefault(root, []).append(number)
        for output, viewed in zip(effect.outputs, effect.views, strict=True):
            if viewed and output not in self._inputs:
                shown = (self.roots(effect.inputs[position]) for position in viewed)
                self._roots[output] = frozenset().union(*shown)

    def _given(self, before: list[set[int]], candidates: Container[int]) -> StepOrder:
        """The order for what steps overwrite by themselves."""
        lasting: list[int] = []
        for number, effect in enumerate(self.effects):
            for position in effect.destroyed:
                roots = self.roots(effect.inputs[position])
                for root in roots:
                    reason = self._objection(number, position, root)
                    if reason is not None:
                        raise DestroyError(f"{effect} must not overwrite its input {position}: {reason}")
                before[number] |= self._readers_of(roots) - {number}
                self.destroyers.update(dict.fromkeys(roots, number))
                if any(map(self.permissions.is_lasting, roots)):
                    lasting.append(number)
        order = StepOrder(before, candidates)
        if order.circular:
            raise DestroyError(self._given_circle(order))
        for number in lasting:
            # What the user's own ops overwrite is overwritten, even where a later failure finds it so.
            if order.add(self._fallible, number):
                self._guarded.append(number)
        return order

    def roots(self, variable: Variable) -> frozenset[Variable]:
        """The variables whose value a variable shows: itself, unless it is a view.

        What comes out of overwriting is a value of its own.
        """
        return self._roots.get(variable) or frozenset((variable,))

    def _readers_of(self, roots: Iterable[Variable]) -> set[int]:
        return {reader for root in roots for reader in self._readers.get(root, ())}

    # ---- decisions

    def destroy(self, step: int, position: int) -> str | None:
        """Let a step overwrite one of its inputs; the reason where it must not, and nothing changes."""
        roots = self.roots(self.effects[step].inputs[position])
        for root in roots:
            reason = self._objection(step, position, root)
            if reason is not None:
                return reason
        earlier = self._readers_of(roots) - {step}
        lasting = any(map(self.permissions.is_lasting, roots))
        if lasting:
            if len(self._fallible) * (len(self._guarded) + 1) > MOST_GUARDS * len(self.effects):
                return "too many steps can fail"
            earlier |= self._fallible
        if not self.order.add(earlier, step):
            return f"not all that read {', '.join(map(str, roots))} were found to be able to run before it"
        if lasting:
            self._guarded.append(step)
        self.destroyers.update(dict.fromkeys(roots, step))
        return None

    def _objection(self, step: int, position: int, root: Variable) -> str | None:
        reason = self.permissions.refusal(root, self._inputs)
        if reason is not None:
            return reason
        if not (root in self._maker or root in self._inputs or isinstance(root, SharedVariable)):
            return f"{root} is kept for later calls"
        if root in self._shown:
            return f"the output {self._shown[root]} shows the memory of {root}"
        other = self.destroyers.get(root)
        if other is not None:
            return f"{self.effects[other]} overwrites {root} already"
        effect = self.effects[step]
        for place, variable in enumerate(effect.inputs):
            if place != position and root in self.roots(variable) and not effect.reads_first(place):
                return f"its input {place} shows the memory of {root} too"
        return None

    # ---- steps that can fail

    @cached_property
    def ahead(self) -> dict[int, SharedVariable]:
        """Steps whose checks can run before the first shared variable is overwritten.

        They write to parts of shared variables, or to what such a step made of one. Each is given with the
        variable, which has the shape of what it overwrites.
        """
        chained: dict[Variable, SharedVariable] = {
            variable: variable for variable in self.permissions.updated
        }
        found: dict[int, SharedVariable] = {}
        for number, effect in enumerate(self.effects):
            if effect.checkable and effect.inputs[0] in chained:
                found[number] = chained[effect.outputs[0]] = chained[effect.inputs[0]]
        return found

    @cached_property
    def _fallible(self) -> set[int]:
        """Steps that must have run before the first shared variable is overwritten."""
        steps = {number for number, effect in enumerate(self.effects) if effect.raises}.difference(self.ahead)
        for number in self.ahead:
            rest = self.effects[number].inputs[1:]
            steps.update(self._maker[variable] for variable in rest if variable in self._maker)
        return steps

    # ---- results

    def constraints(self) -> Iterator[tuple[int, int]]:
        """Pairs of a step and one that must run after it, beside those that read what it makes."""
        for root, destroyer in self.destroyers.items():
            for reader in self._readers.get(root, ()):
                if reader != destroyer:
                    yield reader, destroyer
        for destroyer in self._guarded:
            for step in self._fallible:
                yield step, destroyer

    # ---- messages

    def _given_circle(self, order: StepOrder) -> str:
        for root, destroyer in self.destroyers.items():
            for reader in self._readers_of([root]) - {destroyer}:
                path = order.path(destroyer, reader)
                if path:
                    chain = ", then ".join(str(self.effects[number]) for number in path)
                    return (
                        f"{self.effects[destroyer]} overwrites {root}, which {self.effects[reader]} reads and"
                        f" which can only run after it: {chain}"
                    )
        return "steps that overwrite their inputs wait for each other in a circle"


class NodeOrder:
    """The nodes of a graph in an order that is safe for what they overwrite.

    Attributes
    ----------
    nodes
        The nodes that run, in order.
    after
        Node -> nodes that must run before it, beside those that feed it.

    Raises
    ------
    DestroyError
        When there is no such order.
    """

    def __init__(self, graph: FunctionGraph, facts: ShapeFacts, permissions: Permissions) -> None:
        self.after: dict[Apply, list[Apply]] = {}
        if not any(node.op.destroy_map for node in graph.apply_nodes):
            self.nodes = running_nodes(graph, facts)
            return
        nodes, effects = effects_of_graph(graph, facts)
        plan = DestroyPlan(effects, graph.inputs, graph.outputs, permissions)
        self.nodes = [nodes[number] for number in plan.order.order()]
        for first, second in plan.constraints():
            self.after.setdefault(nodes[second], []).append(nodes[first])


class Supervisor(Feature):
    """Tells whose memory a graph may overwrite: what :class:`DestroyHandler` goes by.

    Parameters
    ----------
    permissions
        Inputs are meant by position, so they hold for copies of the graph as well.
    """

    def __init__(self, permissions: Permissions) -> None:
        self.permissions = permissions


def permissions_of(graph: FunctionGraph) -> Permissions:
    """Whose memory a graph may overwrite: without a :class:`Supervisor` only what it makes itself."""
    supervisor = graph.feature_of(Supervisor)
    return Permissions() if supervisor is None else supervisor.permissions


class DestroyHandler(Feature):
    """Refuses changes of a graph after which its nodes would overwrite what is still needed.

    Attached to a graph, it publishes ``replace_validate`` and lets it undo replacements by ops that work in
    place where that is not safe. A :class:`Supervisor` of the graph says whose memory may be overwritten.

    That a node works in place instead of on a copy is decided from the plan there is, in time that does not
    grow with the graph (rarely it refuses what some order of all nodes would allow); after other changes a
    new plan is made.

    Attributes
    ----------
    destroyers
        How many nodes of the graph overwrite one of their inputs.
    """

    def __init__(self) -> None:
        self.destroyers = 0
        self._plan: DestroyPlan | None = None
        self._steps: dict[Apply, int] = {}
        # What differs from the graph that was last found to be safe.
        self._added: set[Apply] = set()
        self._removed: set[Apply] = set()
        self._moved: dict[Client, tuple[Variable, Variable]] = {}

    def on_attach(self, graph: FunctionGraph) -> None:
        graph.attach_feature(ReplaceValidate())
        self.destroyers = sum(bool(node.op.destroy_map) for node in graph.apply_nodes)
        self._make_plan(graph)

    def on_import(self, graph: FunctionGraph, node: Apply) -> None:
        self.destroyers += bool(node.op.destroy_map)
        _toggle(node, self._removed, self._added)

    def on_prune(self, graph: FunctionGraph, node: Apply) -> None:
        self.destroyers -= bool(node.op.destroy_map)
        _toggle(node, self._added, self._removed)

    def on_change_input(
        self, graph: FunctionGraph, client: Client, old: Variable, new: Variable, reason: str
    ) -> None:
        first, _ = self._moved.pop(client, (old, old))
        if first is not new:
            self._moved[client] = (first, new)

    def validate(self, graph: FunctionGraph) -> None:
        if self._added or self._removed or self._moved:
            changed = self._changed_op()
            if changed is None:
                self._make_plan(graph)
            else:
                self._change_op(graph, *changed)
            self._added.clear()
            self._removed.clear()
            self._moved.clear()

    def _make_plan(self, graph: FunctionGraph, undecided: Apply | None = None) -> None:
        """Plan for the graph as it is; what one node overwrites may be left to be decided."""
        self._plan = None
        if self.destroyers:
            nodes = graph.toposort()
            effects = [effect_of_node(node) for node in nodes]
            self._steps = {node: number for number, node in enumerate(nodes)}
            if undecided is not None:
                number = self._steps[undecided]
                nothing = ((),) * len(undecided.outputs)
                effects[number] = dataclasses.replace(effects[number], written_over=nothing)
            self._plan = DestroyPlan(effects, graph.inputs, graph.outputs, permissions_of(graph))

    def _changed_op(self) -> tuple[Apply, Apply] | None:
        """The new and the old node, where all that changed is the op that is applied to the same inputs."""
        if len(self._added) != 1 or len(self._removed) != 1:
            return None
        (new,), (old,) = self._added, self._removed
        if list(map(id, new.inputs)) != list(map(id, old.inputs)) or len(new.outputs) != len(old.outputs):
            return None
        if old.op.destroy_map or dict(new.op.view_map) != dict(old.op.view_map):
            return None
        for before, now in self._moved.values():
            if before.owner is not old or before.index is None or now is not new.outputs[before.index]:
                return None
        return new, old

    def _change_op(self, graph: FunctionGraph, new: Apply, old: Apply) -> None:
        """Let the plan know what a node overwrites now, or raise DestroyError."""
        positions = destroyed_positions(new.op)
        if self._plan is None and positions:
            self._make_plan(graph, new)
            self._steps[old] = self._steps.pop(new)
        if self._plan is None:
            return
        step = self._steps[old]
        for count, position in enumerate(positions):
            reason = self._plan.destroy(step, position)
            if reason is not None:
                if count:
                    self._plan = None  # it has taken a part of what is refused
                place = f" ({new.where[0]}:{new.where[1]})" if new.where else ""
                raise DestroyError(f"{new.op}{place} must not overwrite its input {position}: {reason}")
        self._steps[new] = self._steps.pop(old)


def _toggle(node: Apply, undone: set[Apply], done: set[Apply]) -> None:
    """Note that something was done to a node, unless that undoes what was done to it before."""
    if node in undone:
        undone.remove(node)
    else:
        done.add(node)
