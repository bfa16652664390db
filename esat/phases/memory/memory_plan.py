"""The memory plan: which results need buffers, how long each lives, and which share one.

Before: groups in order, ``a = f(x)``, ``b = g(a)``, ``c = h(b)``, ``d = p(c)``, with ``d`` an output. After:
the same with places: ``a`` and ``b`` in scratch memory, ``c`` where ``a`` was, ``d`` in an array of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field

from esat.base.records import record
from esat.errors import CompileError
from esat.graph import Apply, Constant, FunctionGraph, SharedVariable, Variable
from esat.phases.fusing.fusion import predicted_bytes
from esat.phases.fusing.group import FusionPlan, Group
from esat.phases.memory.effects import Permissions, effects_of_groups
from esat.phases.memory.overwrite import Overwritable, nothing_overwritable, plan_overwrites, with_taken
from esat.phases.memory.step_order import Roots, find_roots, order_steps
from esat.phases.shape_values import ShapeFacts
from esat.phases.verify_stages import verify_destroyers

ALIGNMENT = 64
"""Bytes: buffers start at cache lines, which full vector loads want."""


@record(frozen=True, eq=False, slots=True)
class MemoryPlan:
    """Steps in order, and where their results live.

    Attributes
    ----------
    steps
        The groups, in the order in which they run.
    scratch
        Results that live in buffers of the program, reused within a call and between calls.
    fresh
        Results in buffers of their own, because the caller gets them or a view of them.
    last_use
        For each computed variable the number of the step that reads its memory last; the number of
        steps for what the caller gets.
    roots
        Whose memory each variable may share.
    taken
        Output of a kernel -> input whose memory it takes.
    ahead
        Library steps whose checks run before the first shared variable is overwritten, each with the
        shared variable that has the shape of what it overwrites.
    permissions
        Whose memory may be overwritten.
    """

    steps: tuple[Group, ...]
    scratch: tuple[Variable, ...]
    fresh: tuple[Variable, ...]
    last_use: Mapping[Variable, int]
    roots: Roots
    taken: Mapping[Variable, Variable] = field(default_factory=dict)
    ahead: Mapping[Group, SharedVariable] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)


@record(frozen=True, slots=True)
class BufferPlan:
    """The scratch buffers for one combination of sizes.

    Attributes
    ----------
    sizes
        Bytes of each buffer.
    places
        For each scratch variable of the memory plan the number of its buffer.
    peak_bytes
        Bytes of all buffers together.
    """

    sizes: tuple[int, ...]
    places: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """Bytes of all scratch buffers."""
        return sum(self.sizes)


def plan_memory(
    plan: FusionPlan,
    graph: FunctionGraph,
    facts: ShapeFacts,
    writes_into: Callable[[Apply], bool] = lambda node: False,
    permissions: Permissions | None = None,
    overwritable: Overwritable = nothing_overwritable,
) -> MemoryPlan:
    """Order the steps, decide what overwrites what, and which results need buffers.

    Parameters
    ----------
    plan, graph
        The groups, and the graph they compute.
    facts
        What shapes decide: results whose shape is known before the first step get planned buffers.
    writes_into
        Whether the routine of a library step writes its result into a given buffer.
    permissions
        Whose memory may be overwritten; by default only that of results.
    overwritable
        What kernels can overwrite.

    Raises
    ------
    DestroyError
        When library steps overwrite what they must not.
    """
    allowed = permissions or Permissions()
    found = plan_overwrites(plan.groups, graph, facts, allowed, overwritable)
    steps = order_steps(found.groups, graph.outputs, predicted_bytes, found.after, found.taken)
    roots = find_roots(steps, found.taken)
    last_use = _last_uses(steps, roots, graph.outputs)
    writing = [group for group in steps if group.kind == "kernel" or writes_into(group.nodes[0])]
    given = [v for group in writing for v in group.outputs if roots[v] == frozenset((v,))]
    reused = _reuse(steps, set(given), roots, last_use, facts, found.taken, overwritable)
    if reused:
        roots = find_roots(steps, {**found.taken, **reused})
        last_use = _last_uses(steps, roots, graph.outputs)
    ends = len(steps)
    own = [variable for variable in given if variable not in reused]
    kept = {variable for variable in own if variable not in facts.early or last_use[variable] == ends}
    memory = MemoryPlan(
        steps,
        tuple(variable for variable in own if variable not in kept),
        tuple(variable for variable in own if variable in kept),
        last_use,
        roots,
        {**found.taken, **reused},
        found.ahead,
        allowed,
    )
    verify_memory(memory, graph, facts)
    return memory


def _reuse(
    steps: Sequence[Group],
    given: AbstractSet[Variable],
    roots: Roots,
    last_use: Mapping[Variable, int],
    facts: ShapeFacts,
    taken: Mapping[Variable, Variable],
    overwritable: Overwritable,
) -> dict[Variable, Variable]:
    """Outputs of kernels -> results that die there, whose memory they can take.

    Parameters
    ----------
    given
        Results that are written into given buffers and overwrite nothing yet.
    """
    reused: dict[Variable, Variable] = {}
    buffer = {variable: variable for variable in given}
    ends = {variable: last_use[variable] for variable in given}
    for number, group in enumerate(steps):
        dying = {v for v in group.inputs if v in buffer and ends[buffer[v]] == number}
        if group.kind != "kernel" or not dying:
            continue
        busy = {taken[output] for output in group.outputs if output in taken}
        for output, variable in overwritable(group):
            if variable not in dying or variable in busy or output not in given or output in reused:
                continue
            whole = frozenset((variable,))
            others = (v for v in group.inputs if v is not variable)
            if any(not roots[v].isdisjoint(roots[variable]) for v in others) or roots[variable] != whole:
                continue
            if (output in facts.early) == (variable in facts.early):
                reused[output] = variable
                busy.add(variable)
                buffer[output] = buffer[variable]
                ends[buffer[output]] = last_use[output]
    return reused


def _last_uses(steps: Sequence[Group], roots: Roots, outputs: Sequence[Variable]) -> dict[Variable, int]:
    last: dict[Variable, int] = {}
    for number, group in enumerate(steps):
        for variable in (*group.reads, *group.outputs):
            last[variable] = number
            for root in roots[variable]:
                last[root] = number
    for output in outputs:
        last[output] = len(steps)
        for root in roots.get(output, ()):
            last[root] = len(steps)
    return last


def plan_buffers(memory: MemoryPlan, sizes: Sequence[int]) -> BufferPlan:
    """Let scratch results whose lives do not overlap share buffers.

    Each result takes, of the buffers that are free when it is made, the one whose size fits best;
    a smaller one grows.

    Parameters
    ----------
    memory
        The memory plan.
    sizes
        Bytes of each scratch variable.
    """
    number = {variable: position for position, variable in enumerate(memory.scratch)}
    buffers: list[int] = []
    free: list[int] = []
    places = [0] * len(sizes)
    ending: dict[int, list[int]] = {}
    for step, group in enumerate(memory.steps):
        for output in group.outputs:
            position = number.get(output)
            if position is None:
                continue  # it takes the place of another result, or is the caller's
            wanted = _rounded(sizes[position])
            place = _best_fit(free, buffers, wanted)
            if place is None:
                place = len(buffers)
                buffers.append(wanted)
            else:
                free.remove(place)
                buffers[place] = max(buffers[place], wanted)
            places[position] = place
            ending.setdefault(memory.last_use[output], []).append(place)
        free.extend(ending.pop(step, ()))
    return BufferPlan(tuple(buffers), tuple(places))


def _best_fit(free: Sequence[int], buffers: Sequence[int], wanted: int) -> int | None:
    """The smallest free buffer that is large enough, else the largest, which grows least."""
    large = [place for place in free if buffers[place] >= wanted]
    if large:
        return min(large, key=lambda place: (buffers[place], place))
    return max(free, key=lambda place: (buffers[place], -place), default=None)


def _rounded(size: int) -> int:
    return max(-(-size // ALIGNMENT), 1) * ALIGNMENT


def verify_memory(memory: MemoryPlan, graph: FunctionGraph, facts: ShapeFacts) -> None:
    """Raise CompileError unless steps run after what they read and no result escapes its buffer."""
    available = {*graph.inputs, *facts.decided}
    for group in memory.steps:
        for variable in group.reads:
            if variable not in available and not isinstance(variable, (Constant, SharedVariable)):
                raise CompileError(f"memory plan: {group} reads {variable} before it is computed")
        available.update(group.outputs)
    scratch = set(memory.scratch)
    for output in graph.outputs:
        escaping = scratch.intersection(memory.roots.get(output, ()))
        if escaping:
            raise CompileError(f"memory plan: the output {output} shows reused memory of {escaping}")
    effects = with_taken(effects_of_groups(memory.steps, facts), memory.taken)
    verify_destroyers(effects, graph.inputs, graph.outputs, memory.permissions)
