"""Executables of graphs that tests have fused themselves: the last stages of the pipeline alone."""

from collections.abc import Callable

from esat.codegen.ground.host import host_target
from esat.codegen.routines import routine_for
from esat.graph import Apply, FunctionGraph
from esat.phases.fusing.group import FusionPlan
from esat.phases.memory.effects import Permissions
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.memory.overwrite import nothing_overwritable
from esat.phases.shape_values import ShapeFacts
from esat.runtime import Executable
from esat.runtime.entry.calls import drive
from esat.runtime.printed.kernel_calls import Kernels, KernelSource, compile_kernels
from esat.runtime.program import Program, Routine, library_routines


def routine_here(node: Apply) -> Routine | None:
    """A library's routine on this machine."""
    return routine_for(node, host_target())


def assembled(
    graph: FunctionGraph,
    plan: FusionPlan,
    permissions: Permissions | None = None,
    source: KernelSource | None = None,
    routine: Callable[[Apply], Routine | None] = routine_here,
    in_place: bool = True,
) -> Executable:
    """The Executable of a plan, with kernels from a source."""
    source = source or Kernels()
    facts = ShapeFacts(graph)
    routines = library_routines(plan, routine)
    overwritable = source.overwritable if in_place else nothing_overwritable
    memory = plan_memory(
        plan, graph, facts, routines.__contains__, permissions=permissions, overwritable=overwritable
    )
    return Executable(drive(Program(graph, memory, facts, compile_kernels(memory, source), routines)))
