"""Placement: which steps of a program run on a device, and what is copied when.

Steps are placed after fusion, by a minimum cut of predicted time (``esat/phases/cut.py``). Then transfers
enter the graph, as steps, so that every result lives on one side and each array is copied at most once. For
``f(x) = sum(exp(x))`` with an argument on the host and a kernel on the device::

    kernel(exp, sum): x -> s                  transfer(to device): x -> x'
                                              kernel(exp, sum): x' -> s'      on the device
                                              transfer(to host): s' -> s

Some values need no copies in a call, and live on both sides: constants, shared variables that the program
does not update (a new value is copied when it is first read), and what the shapes of the inputs decide.
Conditions are read by the host, and so are operands that a form for the device wants there, such as sizes.
What is no array stays on the host: states of random generators, sparse matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import inf

from esat.base.records import record
from esat.errors import CompileError
from esat.graph import Apply, Constant, FunctionGraph, SharedVariable, TensorType, Variable
from esat.ops.control import IfElse
from esat.phases.cut import DEVICE, HOST, Flow, Weight, cheapest_sides, seconds_of_sides
from esat.phases.fusing.group import FusionPlan, Group, conditions_of
from esat.phases.fusing.laziness import find_guards
from esat.phases.memory.effects import Permissions
from esat.phases.shape_values import ShapeFacts
from esat.phases.transfer import Side, Transfer
from esat.phases.verify_stages import verify_fusion

HostOperands = Callable[[Apply], Collection[int]]
"""Positions of the operands that a node reads on the host, wherever it runs."""


def conditions_alone(node: Apply) -> Collection[int]:
    """The condition of a choice; see :data:`HostOperands`."""
    return (0,) if isinstance(node.op, IfElse) else ()


@record(frozen=True, eq=False, slots=True)
class Prices:
    """What a placement weighs.

    Attributes
    ----------
    host, device
        Predicted seconds of a step on either side; infinite where it has no form there.
    copy
        Predicted seconds of copying a variable from one side to the other.
    on_host
        What steps on the device read on the host.
    eager
        Whether steps with a form on the device run there whatever they take. Views go with what they show.
    """

    host: Callable[[Group], float]
    device: Callable[[Group], float]
    copy: Callable[[Variable], float]
    on_host: HostOperands = conditions_alone
    eager: bool = False


@record(frozen=True, slots=True)
class Ends:
    """Where arguments are when a call begins, and results when it ends.

    Attributes
    ----------
    on_device
        Positions of the inputs whose arrays are on the device; all others are on the host.
    results
        Where the caller gets the outputs. New values of shared variables are where these live.
    """

    on_device: frozenset[int] = frozenset()
    results: Side = "host"


ON_HOST = Ends()
"""All arguments and results are on the host."""


@record(frozen=True, slots=True)
class PlanSides:
    """The sides of a plan's steps, before there are transfers. With equal ones, equal plans are one program.

    Attributes
    ----------
    steps
        The side of each step, in their order.
    homes
        Where the shared variables that the program updates live, in their order.
    ends
        What they were chosen for.
    seconds, host_seconds
        Predicted seconds of a call, and of one that runs everything on the host.
    """

    steps: tuple[Side, ...]
    homes: tuple[Side, ...] = ()
    ends: Ends = ON_HOST
    seconds: float = field(default=0.0, compare=False)
    host_seconds: float = field(default=0.0, compare=False)

    @property
    def uses_device(self) -> bool:
        """Whether anything runs or stays on the device."""
        return "device" in self.steps or "device" in self.homes


@record(frozen=True, eq=False, slots=True)
class Placement:
    """A placed program.

    Attributes
    ----------
    plan
        The steps, each with its side; those of kind ``transfer`` copy from the other side to theirs.
    sides
        Where variables live: inputs, updated shared variables, and results of steps. What is not in it lives
        on both sides.
    choice
        The sides it was made from.
    """

    plan: FusionPlan
    sides: Mapping[Variable, Side]
    choice: PlanSides


# ---- the choice


def choose_sides(
    plan: FusionPlan,
    graph: FunctionGraph,
    prices: Prices,
    ends: Ends = ON_HOST,
    permissions: Permissions | None = None,
) -> PlanSides:
    """The sides of steps for which a call should take the least time.

    Parameters
    ----------
    plan, graph
        The steps, and the graph they compute.
    prices
        Seconds of steps and copies.
    ends
        Where arguments are and results go.
    permissions
        Which shared variables are updated: the last outputs of the graph are their new values.
    """
    updated = permissions.updated if permissions is not None else ()
    lives = _Homes(plan, graph, updated, prices.on_host)
    weights = [Weight(prices.host(group), _device_seconds(group, prices)) for group in plan.groups]
    # An updated shared variable stays where the call left it: it costs nothing on either side but copies.
    weights += [Weight(0.0, 0.0 if _is_array(variable) else inf) for variable in updated]
    flows = [
        Flow(lives.maker(variable, ends), tuple(readers), prices.copy(variable))
        for variable, readers in lives.readers(ends).items()
        if _is_array(variable)
    ]
    asked = _eager(weights, flows, plan.groups) if prices.eager else weights
    sides = cheapest_sides(asked, flows)
    home: Side = "host"
    count = len(plan.groups)
    return PlanSides(
        sides[:count],
        sides[count:],
        ends,
        seconds_of_sides(sides, weights, flows),
        seconds_of_sides([home] * len(weights), weights, flows),
    )


def _eager(weights: Sequence[Weight], flows: Sequence[Flow], groups: Sequence[Group]) -> list[Weight]:
    """Weights for which steps that can run on the device are better nowhere else."""
    # More than all that could be saved by it; and no more, as seconds are told apart to a share of the sum.
    all_seconds = sum(flow.seconds for flow in flows)
    all_seconds += sum(one for weight in weights for one in (weight.host, weight.device) if one < inf)
    asked = list(weights)
    for number, (weight, group) in enumerate(zip(weights, groups, strict=False)):
        goes_along = group.kind == "view" or isinstance(group.nodes[0].op, IfElse)
        if weight.device < inf and not goes_along:
            asked[number] = Weight(weight.host + all_seconds, weight.device)
    return asked


def _device_seconds(group: Group, prices: Prices) -> float:
    return prices.device(group) if all(map(_is_array, (*group.inputs, *group.outputs))) else inf


def _is_array(variable: Variable) -> bool:
    return isinstance(variable.type, TensorType)


class _Homes:
    """What makes each variable, and what reads it: numbers of steps, then of updated shared variables."""

    def __init__(
        self,
        plan: FusionPlan,
        graph: FunctionGraph,
        updated: Sequence[SharedVariable],
        on_host: HostOperands,
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.updated = updated
        self.on_host = on_host
        self.decided = ShapeFacts(graph).decided
        count = len(plan.groups)
        self.numbers = {
            output: number for number, group in enumerate(plan.groups) for output in group.outputs
        }
        self.numbers.update({variable: count + place for place, variable in enumerate(updated)})
        self.positions = {variable: place for place, variable in enumerate(graph.inputs)}

    def is_on_both(self, variable: Variable) -> bool:
        """Whether it needs no copies in a call."""
        if isinstance(variable, SharedVariable):
            return variable not in self.numbers
        return isinstance(variable, Constant) or variable in self.decided

    def maker(self, variable: Variable, ends: Ends) -> int:
        """Number of what makes a variable."""
        if variable in self.positions:
            return DEVICE if self.positions[variable] in ends.on_device else HOST
        return self.numbers[variable]

    def readers(self, ends: Ends) -> dict[Variable, list[int]]:
        """Variable -> the numbers of what reads it; those that need no copies are left out."""
        found: dict[Variable, list[int]] = {}

        def add(variable: Variable, reader: int) -> None:
            if not self.is_on_both(variable):
                found.setdefault(variable, []).append(reader)

        for number, group in enumerate(self.plan.groups):
            for variable in conditions_of(group.guard):
                add(variable, HOST)
            for variable, there in _operands(group, self.on_host):
                add(variable, HOST if there else number)
        outputs = self.graph.outputs
        count = len(outputs) - len(self.updated)
        for output in outputs[:count]:
            add(output, HOST if ends.results == "host" else DEVICE)
        for variable, output in zip(self.updated, outputs[count:], strict=True):
            add(output, self.numbers[variable])
        return found


def _operands(group: Group, on_host: HostOperands) -> Iterable[tuple[Variable, bool]]:
    """What a step reads, and whether on the host, wherever it runs itself."""
    made = {output for node in group.nodes for output in node.outputs}
    for node in group.nodes:
        there = on_host(node)
        yield from ((v, place in there) for place, v in enumerate(node.inputs) if v not in made)


# ---- transfers


def with_transfers(
    plan: FusionPlan,
    graph: FunctionGraph,
    choice: PlanSides,
    permissions: Permissions | None = None,
    on_host: HostOperands = conditions_alone,
) -> Placement:
    """The steps on their sides, and what is copied between them; parameters as of :func:`choose_sides`.

    Raises
    ------
    CompileError
        When a step would read what is on the other side.
    """
    updated = permissions.updated if permissions is not None else ()
    placing = _Placing(plan, graph, choice, updated, on_host)
    placement = placing.run()
    verify_fusion(placement.plan, graph)
    verify_placement(placement, graph, updated, on_host)
    return placement


class _Placing:
    """The state of one call of :func:`with_transfers`."""

    def __init__(
        self,
        plan: FusionPlan,
        graph: FunctionGraph,
        choice: PlanSides,
        updated: Sequence[SharedVariable],
        on_host: HostOperands,
    ) -> None:
        self.plan, self.graph, self.choice = plan, graph, choice
        self.homes = _Homes(plan, graph, updated, on_host)
        self.sides: dict[Variable, Side] = {
            variable: "device" if place in choice.ends.on_device else "host"
            for place, variable in enumerate(graph.inputs)
        }
        self.sides.update(zip(updated, choice.homes, strict=True))
        self.copies: dict[tuple[Variable, Side], Variable] = {}
        self.steps: list[Group] = []

    def run(self) -> Placement:
        for group, side in zip(self.plan.groups, self.choice.steps, strict=True):
            for condition in conditions_of(group.guard):
                self._on(condition, "host")
            self._add(group, side)
        self._place_outputs()
        plan = FusionPlan(tuple(self._guarded()), self.plan.idle)
        return Placement(plan, self.sides, self.choice)

    def _add(self, group: Group, side: Side) -> None:
        """Put a step on its side, with what it reads."""
        made = {output for node in group.nodes for output in node.outputs}
        inputs: dict[Variable, None] = {}
        for node in group.nodes:
            there = self.homes.on_host(node)
            for place, variable in enumerate(list(node.inputs)):
                if variable in made:
                    continue
                operand = self._on(variable, "host" if place in there else side)
                self.graph.change_input((node, place), operand, "placement")
                inputs[operand] = None
        self.steps.append(replace(group, inputs=tuple(inputs), side=side))
        self.sides.update(dict.fromkeys(group.outputs, side))

    def _on(self, variable: Variable, side: Side) -> Variable:
        """The variable as it is on a side: itself, or its copy, which is made where it is first needed."""
        if self.homes.is_on_both(variable) or self.sides[variable] == side:
            return variable
        copy = self.copies.get((variable, side))
        if copy is None:
            node = Transfer(side).make_node(variable)
            node.where = None if variable.owner is None else variable.owner.where
            (copy,) = node.outputs
            copy.name = variable.name
            self.copies[variable, side] = copy
            self.sides[copy] = side
            self.steps.append(Group("transfer", (node,), (variable,), (copy,), side=side))
        return copy

    def _place_outputs(self) -> None:
        count = len(self.graph.outputs) - len(self.choice.homes)
        wanted = (*([self.choice.ends.results] * count), *self.choice.homes)
        for place, (output, side) in enumerate(zip(list(self.graph.outputs), wanted, strict=True)):
            self.graph.change_input(("output", place), self._on(output, side), "placement")

    def _guarded(self) -> list[Group]:
        """The steps with the conditions under which they run: those of what reads their results."""
        nodes = [node for group in self.steps for node in group.nodes]
        guards = find_guards(nodes, self.graph.outputs)
        return [replace(group, guard=guards.get(group.nodes[0], ())) for group in self.steps]


# ---- the verifier


def verify_placement(
    placement: Placement,
    graph: FunctionGraph,
    updated: Sequence[SharedVariable],
    on_host: HostOperands = conditions_alone,
) -> None:
    """Raise CompileError unless every operand of a step lives on its side.

    What the host reads lives there, results are where they are wanted, no array is copied twice to one side.
    """
    sides, choice = placement.sides, placement.choice
    copied: set[Variable] = set()
    for group in placement.plan.groups:
        if group.kind == "transfer":
            (variable,) = group.inputs
            if sides.get(variable, group.side) == group.side or variable in copied:
                raise CompileError(f"placement: {group} copies what is there already: {variable}")
            copied.add(variable)
            continue
        for variable, there in _operands(group, on_host):
            wanted = "host" if there else group.side
            if sides.get(variable, wanted) != wanted:
                raise CompileError(f"placement: {group} on the {group.side} reads {variable}, which is not")
        for variable in conditions_of(group.guard):
            if sides.get(variable, "host") != "host":
                raise CompileError(f"placement: the condition {variable} of {group} is not on the host")
    count = len(graph.outputs) - len(updated)
    for place, output in enumerate(graph.outputs):
        wanted = choice.ends.results if place < count else choice.homes[place - count]
        if sides.get(output, wanted) != wanted:
            raise CompileError(f"placement: the output {output} is not on the {wanted}")
