"""From placed steps to calls of a program with a device: memory, kernels of both sides, forms, driver."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from esat.base.records import record
from esat.gpu.device import Device
from esat.gpu.execution.driver import DeviceDriver
from esat.gpu.execution.steps import PlacedProgram
from esat.gpu.kernel_text.kernels import CudaKernels
from esat.gpu.library import device_form
from esat.graph import Apply, FunctionGraph, TensorType, Variable
from esat.ops.control import IfElse
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import Permissions
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.memory.overwrite import nothing_overwritable
from esat.phases.placement import Placement
from esat.phases.shape_values import ShapeFacts
from esat.phases.transfer import Side
from esat.runtime.entry.calls import Calls, signature_table
from esat.runtime.entry.checks import InputCheck
from esat.runtime.entry.dispatch import Dispatch
from esat.runtime.entry.signatures import SignatureTable
from esat.runtime.function_profile import StepProfile
from esat.runtime.printed.driver import Driver, StepWatch, title
from esat.runtime.printed.kernel_calls import KernelSource, compile_kernels
from esat.runtime.program import KernelCall, Program, Routine, library_routines, performing_routines


@record(frozen=True, eq=False)
class DeviceCalls(Calls):
    """A program with a device that is ready to be called.

    Attributes
    ----------
    placed
        The program, and where its steps run.
    """

    placed: PlacedProgram

    def timed(self, steps: Sequence[StepProfile]) -> Driver:
        """A driver that adds the time of each step to its record, and waits for the device after each."""
        return _driver(self.placed, self.checks, self.table, steps)

    def watched(self, watch: StepWatch) -> Driver:
        return _driver(self.placed, self.checks, self.table, watch=watch)


def calls_of(placed: PlacedProgram) -> DeviceCalls:
    """Calls of a placed program."""
    program = placed.program
    checks = tuple(InputCheck(place, variable) for place, variable in enumerate(program.graph.inputs))
    table = signature_table(program, checks)
    driver = _driver(placed, checks, table)
    return DeviceCalls(program, checks, table, driver, Dispatch(), None, None, None, placed)


_numbers = itertools.count(1)


def _driver(
    placed: PlacedProgram,
    checks: Sequence[InputCheck],
    table: SignatureTable,
    profile: Sequence[StepProfile] | None = None,
    watch: StepWatch | None = None,
) -> Driver:
    call = DeviceDriver(placed, checks, table, profile, watch)
    return Driver(call, source_of(placed), f"<esat device driver {next(_numbers)}>", ())


def source_of(placed: PlacedProgram) -> str:
    """The steps as text: a line each, with its side."""
    lines = [
        f"{number}: on the {group.side}: {title(group)}" for number, group in enumerate(placed.program.steps)
    ]
    return "\n".join(["# steps", *lines]) + "\n"


class SidedKernels:
    """Kernels of both sides; a :class:`KernelSource`."""

    def __init__(self, host: KernelSource, device: KernelSource) -> None:
        self._sources: Mapping[Side, KernelSource] = {"host": host, "device": device}

    def overwritable(self, group: Group) -> Sequence[tuple[Variable, Variable]]:
        """Pairs of an output and an input whose memory it may take."""
        return self._sources[group.side].overwritable(group)

    def compile(self, group: Group, taken: Mapping[Variable, Variable]) -> KernelCall:
        """The kernel of a group, for its side."""
        return self._sources[group.side].compile(group, taken)


def has_form(group: Group, kernels: CudaKernels, device: Device) -> bool:
    """Whether a step can run on the device: a kernel that can be printed, a call of a library, a view."""
    if group.kind == "kernel":
        return kernels.reason_on_host(group) is None
    node = group.nodes[0]
    if isinstance(node.op, IfElse):  # the host chooses between values that are anywhere
        return all(isinstance(output.type, TensorType) for output in node.outputs)
    return device_form(node, device) is not None


def link_placed(
    placement: Placement,
    graph: FunctionGraph,
    device: Device,
    host: KernelSource,
    routine_for: Callable[[Apply], Routine | None],
    permissions: Permissions,
    in_place: bool = True,
    threads: int | None = None,
    contract: bool = True,
) -> DeviceCalls:
    """Calls of a placed program.

    Parameters
    ----------
    placement, graph
        The steps, and the graph with its transfers.
    device
        Where steps on the device run.
    host, routine_for
        Kernels and library routines of steps on the host.
    permissions
        Whose memory may be overwritten.
    in_place
        Whether kernels may overwrite what nobody needs any more.
    threads
        The most that steps on the host may use.
    contract
        Whether kernels on the device may round a product and a sum once.
    """
    plan = placement.plan
    facts = ShapeFacts(graph)
    there = {group.nodes[0] for group in plan.groups if group.side == "device" and group.kind != "transfer"}
    # Library calls on the device make their own results: cupy's pool gives memory by a look-up.
    found = library_routines(plan, lambda node: None if node in there else routine_for(node))
    performers = performing_routines(found, facts)
    routines = {node: routine for node, routine in found.items() if node not in performers}
    forms = {node: device_form(node, device) for node in there}
    source = SidedKernels(host, CudaKernels(device, contract))
    memory = plan_memory(
        plan,
        graph,
        facts,
        routines.__contains__,
        permissions=permissions,
        overwritable=source.overwritable if in_place else nothing_overwritable,
    )
    program = Program(graph, memory, facts, compile_kernels(memory, source), routines, threads, performers)
    known = {node: form for node, form in forms.items() if form is not None}
    return calls_of(PlacedProgram(program, device, known, placement.choice.ends.results))
