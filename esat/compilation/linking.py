"""Linking: from an optimized graph to an Executable, on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from esat import codegen
from esat.base.forks import GATE
from esat.base.interrupts import handlers_reach_the_caller
from esat.base.records import record
from esat.classic.stencils import fuse_stencils
from esat.codegen.ground.host import host_target
from esat.codegen.ground.target import Target
from esat.codegen.routines import routine_for
from esat.codegen.threads import granted_threads
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.extract.resize import Resizing
from esat.graph import Apply, FunctionGraph
from esat.mode import Mode
from esat.ops.loops.record import LoopOp
from esat.phases.fusing.fusion import KernelRules, fuse
from esat.phases.fusing.sums_alone import SumsAlone
from esat.phases.layer_blocks import join_row_blocks
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import BLAS, ELEMWISE, GEMM, ROWS, work_in_place
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.memory.overwrite import nothing_overwritable
from esat.phases.row_products import join_row_products
from esat.phases.shape_values import ShapeFacts
from esat.runtime import Executable
from esat.runtime.entry.calls import Calls, drive
from esat.runtime.entry.variants import Variants
from esat.runtime.function_profile import Profile
from esat.runtime.invariants import keep_invariants
from esat.runtime.loop_routine import LoopRoutine, rewritten
from esat.runtime.printed.kernel_calls import Kernels, compile_kernels
from esat.runtime.program import Program, Routine, library_routines, performing_routines
from esat.runtime.program_in_blocks import InBlocks

Make = Callable[[Calls, Profile], Executable]
"""What makes a function of the calls of a program."""

_NOTHING = Permissions(frozenset(), ())
"""For programs that change neither arguments nor shared variables."""


@record(frozen=True)
class Compilation:
    """What the stages of one compilation are told.

    Attributes
    ----------
    mode
        How the program is compiled.
    permissions
        What it may write over.
    profile
        Where stages enter their times.
    in_blocks
        Whether it may get a second program, which takes layers over rows in blocks.
    """

    mode: Mode
    permissions: Permissions
    profile: Profile
    in_blocks: bool = True

    def part(self, *, invariants: bool = False, in_blocks: bool = True) -> Compilation:
        """The compilation of a program that runs within this one; it writes over nothing of the caller's."""
        mode = self.mode if invariants else Mode(self.mode, invariants=False)
        return Compilation(mode, _NOTHING, Profile(), in_blocks)

    # ---- what the mode says

    @property
    def machine(self) -> MachineProfile:
        """The machine as kernels find it."""
        return machine_of(self.mode)

    @property
    def target(self) -> Target:
        """What kernels are compiled for."""
        return host_target() if self.mode.target is None else self.mode.target

    @property
    def is_exact(self) -> bool:
        """Whether results are those of the graph as written, to the last bit."""
        return self.mode.soundness == "exact"

    @property
    def kernels(self) -> Kernels:
        """What compiles kernels."""
        return Kernels(self.mode.machine, self.mode.threads, self.is_exact, self.target)

    @property
    def rows_in_place(self) -> frozenset[str]:
        """What may work in place. BLAS adds in another order than kernels: it is no part of exact modes."""
        rows = {name for name in ROWS if self.mode.has(name)}
        return frozenset(rows - {BLAS, GEMM} if self.is_exact else rows)

    def kernel_rules(self, rules: KernelRules = codegen) -> KernelRules | None:
        """What may become kernels, of what the rules can lower."""
        if not self.mode.has("elemwise_fusion"):
            return None
        return SumsAlone(rules) if self.is_exact else rules

    # ---- stages

    def link(
        self, optimized: FunctionGraph, kind: Make = Executable, variants: Variants | None = None
    ) -> Executable:
        """The program of an optimized graph."""
        stage, permissions, rows, rules = (
            self.profile.stage,
            self.permissions,
            self.rows_in_place,
            self.kernel_rules(),
        )
        running, second = optimized, None
        if self.mode.invariants and not self.mode.debug:
            with stage("invariants"):
                link = self.part().link
                running = keep_invariants(optimized, permissions.updated, self.mode.machine, link)
        if rules is not None and not self.is_exact:  # BLAS adds up in another order
            with stage("row products"):
                running = join_row_products(running, rules)
                second = self._taken_in_blocks(running, rules)
        if rules is not None:
            with stage("stencils"):
                running = fuse_stencils(running, rules, CostModel(self.machine), permissions)
        with stage("inplace"):
            final = work_in_place(running, permissions, rows, rules)
        with stage("fusion"):
            plan = fuse(final, rules, permissions=permissions)
        source, facts = self.kernels, ShapeFacts(final)
        with stage("routines"):
            found = library_routines(plan, self.routines(len(final) == 1))
            performers = performing_routines(found, facts)
            routines = {node: routine for node, routine in found.items() if node not in performers}
        with stage("memory plan"):
            overwritable = source.overwritable if ELEMWISE in rows else nothing_overwritable
            memory = plan_memory(
                plan, final, facts, routines.__contains__, permissions=permissions, overwritable=overwritable
            )
        with stage("kernels"):
            kernels = compile_kernels(memory, source)
        with stage("driver"):
            program = Program(final, memory, facts, kernels, routines, self.mode.threads, performers)
            calls = drive(program, variants, second)
        executable = kind(calls, self.profile)
        executable.optimized = optimized
        executable.again = _link_again, (optimized, self.mode, permissions, self.in_blocks)
        return executable

    def routines(self, is_alone: bool = False) -> Callable[[Apply], Routine | None]:
        """What knows the library routine of a node, which may be alone; some run programs of their own."""
        link = self.part(invariants=True, in_blocks=False).link
        of_body = self.part(in_blocks=False)

        def routine(node: Apply) -> Routine | None:
            if isinstance(node.op, LoopOp):
                body = replace(of_body, permissions=Permissions(rewritten(node.op)))
                return LoopRoutine(node.op, body.link, None if is_alone else node)
            return routine_for(node, self.target, self.mode.threads, link)

        return routine

    def _taken_in_blocks(self, graph: FunctionGraph, rules: KernelRules) -> InBlocks | None:
        """What makes a program that takes layers over rows in blocks; None where there are none."""
        if not self.in_blocks or self.mode.variants <= 0 or self.mode.debug:
            return None
        joined = join_row_blocks(graph, rules)
        if joined is graph:
            return None
        alone = replace(self.part(in_blocks=False), permissions=self.permissions)
        return InBlocks(joined, alone.link, self.target)

    def variants(self, resizing: Resizing | None) -> Variants | None:
        """What makes further programs for sizes that arrive, where there is anything to choose."""
        if resizing is None or self.mode.variants <= 0 or not resizing.is_open:
            return None
        return Variants(resizing, self._link_variant, self.mode.variants)

    def _link_variant(self, graph: FunctionGraph) -> Executable:
        with self.profile.stage("variants"):
            return replace(self, profile=Profile()).link(graph)


def machine_of(mode: Mode) -> MachineProfile:
    """The machine as kernels of a mode find it."""
    return mode.machine.in_threads(granted_threads(mode.threads))


def _link_again(
    optimized: FunctionGraph, mode: Mode, permissions: Permissions, in_blocks: bool
) -> Executable:
    """Make a copy of a program that is part of a function; see :attr:`Executable.again`."""
    with handlers_reach_the_caller(), GATE.busy():
        return Compilation(mode, permissions, Profile(), in_blocks).link(optimized)
