"""What kernels overwrite: shared variables that get a new value, donated inputs, and results that die.

The first two need an order of steps in which everybody who reads them comes first; it is found before
steps are ordered. Results that die are found in the final order (``reuse``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from esat.base.records import record
from esat.graph import FunctionGraph, SharedVariable, Variable
from esat.graph.identity import place_of
from esat.phases.fusing.group import Group
from esat.phases.memory.destroy import DestroyPlan
from esat.phases.memory.effects import Effect, Permissions, effects_of_groups
from esat.phases.shape_values import ShapeFacts

Overwritable: TypeAlias = Callable[[Group], Sequence[tuple[Variable, Variable]]]
"""Pairs of an output and an input of a kernel whose memory it may take."""


def nothing_overwritable(group: Group) -> Sequence[tuple[Variable, Variable]]:
    """The rule that no kernel overwrites anything."""
    return ()


@record(frozen=True, eq=False, slots=True)
class Overwrites:
    """Groups in an order that is safe for what they overwrite.

    Attributes
    ----------
    groups
        The groups.
    after
        Group -> groups that must run before it, beside those that feed it.
    taken
        Output of a kernel -> input whose memory it takes.
    ahead
        Library steps whose checks run before the first shared variable is overwritten, each with the
        shared variable that has the shape of what it overwrites.
    """

    groups: tuple[Group, ...]
    after: Mapping[Group, Sequence[Group]] = field(default_factory=dict)
    taken: Mapping[Variable, Variable] = field(default_factory=dict)
    ahead: Mapping[Group, SharedVariable] = field(default_factory=dict)


def plan_overwrites(
    groups: Sequence[Group],
    graph: FunctionGraph,
    facts: ShapeFacts,
    permissions: Permissions,
    overwritable: Overwritable,
) -> Overwrites:
    """Let kernels overwrite shared variables and donated inputs where some order of groups allows it.

    Raises
    ------
    DestroyError
        When library steps overwrite what they must not.
    """
    effects = effects_of_groups(groups, facts)
    offers = _offers(groups, graph, permissions, overwritable)
    if not offers and not any(effect.destroyed for effect in effects):
        return Overwrites(tuple(groups))
    candidates = {number for number, _, _ in offers}
    plan = DestroyPlan(effects, graph.inputs, graph.outputs, permissions, candidates)
    taken: dict[Variable, Variable] = {}
    for number, output, variable in offers:
        if output in taken:
            continue
        place = place_of(variable, effects[number].inputs)
        assert place is not None
        if plan.destroy(number, place) is None:
            taken[output] = variable
    after: dict[Group, list[Group]] = {}
    for first, second in plan.constraints():
        after.setdefault(groups[second], []).append(groups[first])
    ahead = {groups[number]: variable for number, variable in plan.ahead.items()}
    return Overwrites(tuple(groups[number] for number in plan.order.order()), after, taken, ahead)


def _offers(
    groups: Sequence[Group], graph: FunctionGraph, permissions: Permissions, overwritable: Overwritable
) -> list[tuple[int, Variable, Variable]]:
    """Kernels that could overwrite what lasts: their numbers, outputs and inputs; the best first."""
    count = len(graph.outputs) - len(permissions.updated)
    values: dict[Variable, Variable] = dict(zip(permissions.updated, graph.outputs[count:], strict=True))
    donated = {graph.inputs[position] for position in permissions.donated}
    results = set(graph.outputs[:count])
    found: list[tuple[bool, int, Variable, Variable]] = []
    for number, group in enumerate(groups):
        if group.kind != "kernel" or not any(v in values or v in donated for v in group.inputs):
            continue
        for output, variable in overwritable(group):
            if values.get(variable) is output or variable in donated:
                found.append((output not in results and variable in donated, number, output, variable))
    return [offer[1:] for offer in sorted(found, key=lambda offer: offer[:2])]


def with_taken(effects: Iterable[Effect], taken: Mapping[Variable, Variable]) -> list[Effect]:
    """Effects that say of kernels what they overwrite."""
    result = []
    for effect in effects:
        places = {variable: place for place, variable in enumerate(effect.inputs)}
        over = tuple(
            (places[taken[output]],) if output in taken else given
            for output, given in zip(effect.outputs, effect.written_over, strict=True)
        )
        result.append(replace(effect, written_over=over))
    return result
