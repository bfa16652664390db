"""Which program runs for the arguments of a call: one on the host alone, or one with a device.

Where steps run best depends on sizes, and on where the arguments are. So the placement is chosen for each
combination of shapes and sides that calls come with: by a minimum cut, in a few milliseconds, and remembered
for calls that follow. Programs are compiled when they are first chosen; equal choices share one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from esat.base.forks import GATE
from esat.base.records import record
from esat.errors import EsatError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.value import UNKNOWN_SIZE
from esat.gpu.execution.resident import shape_of
from esat.gpu.profile import DeviceProfile, Link
from esat.graph import FunctionGraph, TensorType, Variable
from esat.phases.fusing.group import FusionPlan, Group
from esat.phases.fusing.laziness import conditions_first, find_guards
from esat.phases.fusing.price import NO_SHAPES, Shapes, expected_bytes, group_seconds, plan_seconds
from esat.phases.memory.effects import Permissions
from esat.phases.placement import (
    ON_HOST,
    Ends,
    HostOperands,
    PlanSides,
    Prices,
    choose_sides,
    conditions_alone,
)
from esat.phases.shape_values import ShapeFacts
from esat.runtime.entry.shape_rules import ShapeRules
from esat.runtime.executable import Executable

MOST_PROGRAMS = 16
"""Programs that one function keeps; of further choices the oldest are compiled again when they return."""
KNOWN_SIGNATURES = 256
VIEW_SECONDS = 1.0e-6
"""Seconds of making a view of an array on the device."""

_SHAPE = attrgetter("shape")
Shape = tuple[int, ...]
Key = tuple[tuple[Shape | None, bool], ...]
"""For each argument its shape, and whether it is on the device."""


@record(frozen=True, eq=False)
class Candidate:
    """A program that can be placed.

    Attributes
    ----------
    graph
        What it computes.
    plan
        Its steps.
    """

    graph: FunctionGraph
    plan: FusionPlan

    @cached_property
    def rules(self) -> ShapeRules:
        """How shapes follow from those of the leaves."""
        nodes = self.graph.toposort()
        lazy = find_guards(conditions_first(nodes), self.graph.outputs)
        return ShapeRules(nodes, frozenset(ShapeFacts(self.graph).values), frozenset(lazy))

    def shapes(self, inputs: Sequence[Shape | None]) -> Shapes:
        """The shapes of all variables, by those of the inputs; none where these do not fit."""
        given = {
            variable: shape
            for variable, shape in zip(self.graph.inputs, inputs, strict=True)
            if shape is not None and isinstance(variable.type, TensorType)
        }
        shared = [one for one in self.graph.shared_variables if isinstance(one.type, TensorType)]
        try:
            return self.rules.apply({**given, **{one: shape_of(one) for one in shared}}).shapes
        except EsatError:
            return NO_SHAPES


@record(frozen=True, eq=False)
class Costs:
    """What steps and copies cost.

    Attributes
    ----------
    host, device
        The cost model of either side.
    link
        The way between them.
    seconds_of_call
        Of a call with a device, besides its steps.
    has_form
        Whether a step can run on the device.
    on_host
        Which operands such steps read on the host.
    eager
        Whether everything that can runs on the device.
    """

    host: CostModel
    device: CostModel
    link: Link
    seconds_of_call: float
    has_form: Callable[[Group], bool]
    on_host: HostOperands = conditions_alone
    eager: bool = False

    def prices(self, shapes: Shapes) -> Prices:
        """Prices for shapes of variables."""

        def device(group: Group) -> float:
            if not self.has_form(group):
                return inf
            return VIEW_SECONDS if group.kind == "view" else group_seconds(group, self.device, shapes)

        return Prices(
            lambda group: group_seconds(group, self.host, shapes),
            device,
            lambda variable: self.link.seconds(expected_bytes(variable, shapes)),
            self.on_host,
            self.eager,
        )


def costs_of(
    host: CostModel,
    profile: DeviceProfile,
    has_form: Callable[[Group], bool],
    on_host: HostOperands = conditions_alone,
    eager: bool = False,
) -> Costs:
    """Costs on a machine and a device of the profile given; parameters as of :class:`Costs`."""
    device = CostModel(profile.machine(), host.opaque)
    return Costs(host, device, profile.link, profile.call, has_form, on_host, eager)


@record(frozen=True)
class Decision:
    """What runs for some arguments.

    Attributes
    ----------
    candidate
        Number of the candidate; None for the program on the host alone.
    choice
        The sides of its steps.
    seconds, host_seconds
        Predicted seconds of a call, and of the program on the host.
    """

    candidate: int | None
    choice: PlanSides = PlanSides(())
    seconds: float = field(default=0.0, compare=False)
    host_seconds: float = field(default=0.0, compare=False)


@record(frozen=True, eq=False)
class Deciding:
    """All that a decision is made from.

    Attributes
    ----------
    candidates
        Programs that can be placed.
    costs
        What steps and copies cost.
    permissions
        What they may overwrite, and which shared variables they update.
    host
        The steps of the program on the host alone, and its graph; None where it is not to be chosen.
    """

    candidates: tuple[Candidate, ...]
    costs: Costs
    permissions: Permissions
    host: Candidate | None = None

    def decide(self, ends: Ends, inputs: Sequence[Shape | None]) -> Decision:
        """The program that is predicted to take the least time.

        Parameters
        ----------
        ends
            Where arguments are and results go.
        inputs
            The shapes of the inputs, None where they are not known.
        """
        host_seconds = inf
        if self.host is not None:
            host_seconds = plan_seconds(self.host.plan.groups, self.costs.host, self.host.shapes(inputs))
        found: list[Decision] = []
        if self.host is not None and ends == ON_HOST:
            found.append(Decision(None, seconds=host_seconds, host_seconds=host_seconds))
        for number, candidate in enumerate(self.candidates):
            prices = self.costs.prices(candidate.shapes(inputs))
            choice = choose_sides(candidate.plan, candidate.graph, prices, ends, self.permissions)
            if choice.uses_device or ends != ON_HOST or self.host is None:
                seconds = choice.seconds + self.costs.seconds_of_call
                found.append(Decision(number, choice, seconds, min(host_seconds, choice.host_seconds)))
        return min(found, key=lambda decision: decision.seconds)

    def expected(self, shapes: Sequence[Shape | None]) -> Decision:
        """The program for the sizes that types and the caller tell; others count :data:`UNKNOWN_SIZE`."""
        inputs = self.candidates[0].graph.inputs
        told = [*shapes, *[None] * (len(inputs) - len(shapes))]
        return self.decide(ON_HOST, [_filled(*pair) for pair in zip(inputs, told, strict=True)])


def _filled(variable: Variable, shape: Shape | None) -> Shape | None:
    if shape is not None or not isinstance(variable.type, TensorType):
        return shape
    return tuple(int(UNKNOWN_SIZE) if size is None else size for size in variable.type.shape)


class Placing:
    """Stands in front of a function's programs, and runs the one that is best for the arguments.

    Parameters
    ----------
    deciding
        Decides.
    build
        Compiles the program of a decision.
    admit
        Gives an array of the device for what holds memory of it, None for anything else.
    first
        What the first program was compiled for.
    array
        The class of the device's own arrays.
    """

    def __init__(
        self,
        deciding: Deciding,
        build: Callable[[Decision], Executable],
        admit: Callable[[Any], Any],
        first: Decision,
        array: type | None = None,
    ) -> None:
        self._array = array
        self._deciding = deciding
        self._build = build
        self._admit = admit
        self._first = first
        self._programs: dict[Decision, Executable | None] = {first: None}
        self._known: dict[Key, Executable | None] = {}
        self._quick: dict[tuple[Any, ...], Callable[..., Any]] = {}
        self._lock = threading.RLock()

    @property
    def programs(self) -> Mapping[Decision, Executable | None]:
        """The programs compiled so far; None for the first one, in front of which this stands."""
        return dict(self._programs)

    def in_front_of(self, first: Callable[..., Any]) -> Callable[..., Any]:
        """What runs the program for the arguments; ``first`` runs the first one."""
        quick = self._quick = {}
        arrays = {np.ndarray, self._array}

        def entry(*arguments: Any, out: Any = None) -> Any:
            try:
                run = quick[(*map(_SHAPE, arguments), *map(type, arguments))]
            except (KeyError, AttributeError, TypeError):  # what is no array, or has a shape of another kind
                program = self._look(tuple(map(self._kind, arguments)))
                run = first if program is None else program.run
                if arrays.issuperset(map(type, arguments)):
                    if len(quick) >= KNOWN_SIGNATURES:
                        quick.clear()
                    quick[(*map(_SHAPE, arguments), *map(type, arguments))] = run
            return run(*arguments) if out is None else run(*arguments, out=out)

        return entry

    def _kind(self, argument: Any) -> tuple[Shape | None, bool]:
        """The shape of an argument that may be anything, and whether it is on the device."""
        try:
            shape: Shape | None = tuple(np.shape(argument))
        except (TypeError, ValueError):  # the program's own check of it says what is wrong
            shape = None
        return shape, not isinstance(argument, np.ndarray) and self._admit(argument) is not None

    def _look(self, key: Key) -> Executable | None:
        """The program for arguments of shapes and sides seen for the first time."""
        with GATE.busy(), self._lock:
            if key in self._known:
                return self._known[key]
            there = frozenset(place for place, (_, is_there) in enumerate(key) if is_there)
            program = None  # the first one, which says what is wrong with arguments that do not fit
            if self._fits(key):
                ends = Ends(there, "device") if there else ON_HOST
                program = self._program(self._decide(ends, [shape for shape, _ in key]))
            while len(self._known) >= KNOWN_SIGNATURES:
                del self._known[next(iter(self._known))]
            self._known[key] = program
            return program

    def _decide(self, ends: Ends, shapes: Sequence[Shape | None]) -> Decision:
        if not self._deciding.costs.eager:
            return self._deciding.decide(ends, shapes)
        # Where a step runs that can run on the device does not depend on sizes.
        known = next((one for one in self._programs if one.choice.ends == ends), None)
        return self._deciding.decide(ends, shapes) if known is None else known

    def _fits(self, key: Key) -> bool:
        inputs = self._deciding.candidates[0].graph.inputs
        return len(key) == len(inputs) and all(
            shape is None or not isinstance(variable.type, TensorType) or variable.type.admits_shape(shape)
            for variable, (shape, _) in zip(inputs, key, strict=True)
        )

    def _program(self, decision: Decision) -> Executable | None:
        if decision in self._programs:
            return self._programs[decision]
        if len(self._programs) > MOST_PROGRAMS:
            oldest = next(one for one in self._programs if one != self._first)
            dropped = self._programs.pop(oldest)
            for key in [key for key, program in self._known.items() if program is dropped]:
                del self._known[key]
            self._quick.clear()
        program = self._programs[decision] = self._build(decision)
        return program


@record(frozen=True)
class PlacementReport:
    """Where the steps of a program run and what is copied, for its user to read.

    Attributes
    ----------
    on_host, on_device
        Numbers of steps.
    to_device, to_host
        What a call copies: variables with their types.
    seconds, host_seconds
        Predicted seconds of a call, and of one that uses the host alone; infinite where that is not known.
    """

    on_host: int
    on_device: int
    to_device: tuple[str, ...]
    to_host: tuple[str, ...]
    seconds: float
    host_seconds: float

    def __str__(self) -> str:
        alone = f", {self.host_seconds * 1e6:.1f} us on the host alone" if self.host_seconds < inf else ""
        lines = [
            f"placement: {self.on_device} steps on the device, {self.on_host} on the host;"
            f" predicted {self.seconds * 1e6:.1f} us a call{alone}"
        ]
        for side, names in (("device", self.to_device), ("host", self.to_host)):
            if names:
                lines.append(f"  copied to the {side}: {', '.join(names)}")
        return "\n".join(lines)


def placement_report(decision: Decision, executable: Executable) -> PlacementReport:
    """What to tell of a program and the decision it was made from."""
    copies: dict[str, list[str]] = {"device": [], "host": []}
    count = {"device": 0, "host": 0}
    for group in executable.steps:
        if group.kind == "transfer":
            (variable,) = group.inputs
            copies[group.side].append(f"{variable} {variable.type}")
        else:
            count[group.side] += 1
    return PlacementReport(
        count["host"],
        count["device"],
        tuple(copies["device"]),
        tuple(copies["host"]),
        decision.seconds,
        decision.host_seconds,
    )
