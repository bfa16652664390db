"""Programs with a device, from optimized graphs: candidates, and the choice between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, cached_property

from esat.base.records import record
from esat.gpu.device import Device
from esat.gpu.execution.link import has_form, link_placed
from esat.gpu.kernel_text.kernels import CudaKernels
from esat.gpu.kernel_text.vector_products import vector_products_as_sums
from esat.gpu.library import device_form
from esat.gpu.placing import (
    Candidate,
    Costs,
    Deciding,
    Decision,
    PlacementReport,
    Placing,
    Shape,
    placement_report,
)
from esat.graph import Apply, FunctionGraph
from esat.phases.fusing.fusion import KernelRules, fuse
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import ELEMWISE, work_in_place
from esat.phases.placement import HostOperands, conditions_alone, with_transfers
from esat.runtime.entry.calls import Calls
from esat.runtime.executable import Executable
from esat.runtime.function_profile import Profile
from esat.runtime.printed.kernel_calls import KernelSource
from esat.runtime.program import Routine


@record(frozen=True, eq=False)
class Linking:
    """What programs with a device are linked with.

    Attributes
    ----------
    device
        The device.
    rules
        What may become kernels there; None for nothing.
    rows
        Rows of work in place that take part; see :data:`esat.phases.memory.inplace.ROWS`.
    kernels
        Kernels of steps on the host.
    routine_for
        The library routine of a node on the host.
    permissions
        What programs may overwrite, and which shared variables they update.
    threads
        The most that steps on the host may use.
    contract
        Whether kernels on the device may round a product and a sum once.
    """

    device: Device
    rules: KernelRules | None
    rows: Collection[str]
    kernels: KernelSource
    routine_for: Callable[[Apply], Routine | None]
    permissions: Permissions
    threads: int | None = None
    contract: bool = True

    def candidate(self, graph: FunctionGraph) -> Candidate:
        """A copy of an optimized graph, fused for kernels of the device."""
        if self.rules is not None:
            graph = vector_products_as_sums(graph)
        final = work_in_place(graph, self.permissions, self.rows)
        if final is graph:
            final = graph.clone()
        return Candidate(final, fuse(final, self.rules, permissions=self.permissions))

    @cached_property
    def has_form(self) -> Callable[[Group], bool]:
        """Whether a step can run on the device."""
        kernels = CudaKernels(self.device)
        return cache(lambda group: has_form(group, kernels, self.device))

    @cached_property
    def on_host(self) -> HostOperands:
        """Positions of the operands that a node reads on the host, wherever it runs."""

        def positions(node: Apply) -> Collection[int]:
            form = device_form(node, self.device)
            return conditions_alone(node) if form is None else form.on_host

        return cache(positions)

    def program(
        self,
        candidate: Candidate,
        decision: Decision,
        profile: Profile,
        kind: Callable[[Calls, Profile], Executable] = Executable,
    ) -> Executable:
        """The program of a decision; the candidate's graph becomes the program's."""
        placement = with_transfers(
            candidate.plan, candidate.graph, decision.choice, self.permissions, self.on_host
        )
        calls = link_placed(
            placement,
            candidate.graph,
            self.device,
            self.kernels,
            self.routine_for,
            self.permissions,
            in_place=ELEMWISE in self.rows,
            threads=self.threads,
            contract=self.contract,
        )
        return kind(calls, profile)


@record(frozen=True, eq=False)
class Placeable:
    """A function that can be placed.

    Attributes
    ----------
    graphs
        Its optimized graphs: for the host, and for the device where that is another one.
    host
        The program on the host alone, as it is priced; None where it shall not run.
    link_host
        Links that program.
    expected
        The shapes of inputs that are told.
    """

    graphs: tuple[FunctionGraph, ...]
    host: Candidate | None
    link_host: Callable[[], Executable]
    expected: Sequence[Shape | None] = ()


def place_function(
    function: Placeable,
    linking: Linking,
    costs: Costs,
    profile: Profile,
    kind: Callable[[Calls, Profile], Executable] = Executable,
) -> tuple[Executable, PlacementReport]:
    """A function whose calls run where they are predicted to be fastest, and what its first program is.

    Parameters
    ----------
    function
        What to compute.
    linking
        What programs with a device are linked with.
    costs
        What steps and copies cost.
    profile
        Where compilation times stand.
    kind
        The class of the first program.
    """
    candidates = tuple(map(linking.candidate, function.graphs))
    deciding = Deciding(candidates, costs, linking.permissions, function.host)
    first = deciding.expected(function.expected)

    def build(
        decision: Decision, profile: Profile, kind: Callable[[Calls, Profile], Executable]
    ) -> Executable:
        if decision.candidate is None:
            return function.link_host()
        fresh = linking.candidate(function.graphs[decision.candidate])
        return linking.program(fresh, decision, profile, kind)

    executable = build(first, profile, kind)
    device = linking.device
    placing = Placing(
        deciding,
        lambda decision: build(decision, Profile(), Executable),
        device.admit,
        first,
        device.arrays.ndarray,
    )
    executable.choose_by(placing)
    return executable, placement_report(first, executable)
