"""The program: everything the driver is written from, decided before any source is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from functools import cached_property
from typing import Any, Literal

from esat.base.forks import GATE
from esat.base.records import record
from esat.codegen.cache import CompiledKernel
from esat.graph import Apply, Constant, Family, FunctionGraph, SharedVariable, TensorType, Variable
from esat.graph.op import Op
from esat.graph.sparse_type import SparseType
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.ops.loops.record import Scan
from esat.phases.fusing.group import FusionPlan, Group
from esat.phases.fusing.laziness import conditions_first, find_guards
from esat.phases.memory.effects import destroyed_positions
from esat.phases.memory.memory_plan import MemoryPlan
from esat.phases.shape_values import ShapeFacts
from esat.runtime.entry.shape_rules import checked_by_shape
from esat.runtime.entry.signatures import Fact, Fitting
from esat.runtime.threads import ThreadedKernel


@record(frozen=True, eq=False, slots=True)
class KernelCall:
    """A compiled kernel as the driver calls it: ``function(*outputs, *inputs)``.

    Outputs are C-contiguous. Those that take the memory of an input hold it, the others hold nothing yet.

    Attributes
    ----------
    inputs
        The variables passed as inputs: the group's, without those whose memory an output takes, and
        without constants that the kernel has in itself.
    contiguous
        The variant for C-contiguous inputs.
    strided
        The variant for inputs of any strides.
    source
        Prints it, for the user to read.
    threaded
        The variant for arrays that are worth several threads, of any strides; None where threads have
        nothing to share.
    fitted
        Called with the shapes of outputs and inputs: a variant for contiguous inputs of these shapes, or
        None. Which one runs must not depend on the number of threads: they differ in rounding.
    code
        Compiles ``contiguous`` if that was not done; None where that is no compiled kernel.
    instead
        Called with the same arrays where a variant raises an IndexError; None for kernels that do not.
    """

    inputs: tuple[Variable, ...]
    contiguous: Callable[..., Any]
    strided: Callable[..., Any]
    source: Callable[[], str]
    threaded: ThreadedKernel | None = None
    fitted: Callable[[Sequence[tuple[int, ...]]], Callable[..., Any] | None] | None = None
    code: Callable[[], CompiledKernel] | None = None
    instead: Callable[..., None] | None = None

    def run(self, function: Callable[..., Any], *arrays: Any) -> None:
        """Call a variant, and where it leaves because of an index, what is called instead."""
        try:
            function(*arrays)
        except IndexError:
            if self.instead is None:
                raise
            self.instead(*arrays)


Routine = Callable[..., Any]
"""A library routine called as ``routine(*inputs, *outputs)``: it fills given C-contiguous outputs. That of an
op that overwrites an operand gets that operand, of any layout, as its output, and the others as inputs."""
Performer = Callable[[Sequence[Any]], Sequence[Any]]
"""Makes the results of an op of its operands."""


def library_routines(
    plan: FusionPlan, routine_for: Callable[[Apply], Routine | None]
) -> Mapping[Apply, Routine]:
    """For library nodes that have one, the routine that writes their results into given buffers."""
    nodes = [group.nodes[0] for group in plan.groups if group.kind == "library"]
    found = ((node, routine_for(node)) for node in nodes)
    return {node: routine for node, routine in found if routine is not None}


def performing_routines(routines: Mapping[Apply, Routine], facts: ShapeFacts) -> Mapping[Apply, Performer]:
    """Of routines those that can make their results, for nodes of which nothing tells how large these are:
    loops of a number of steps that is computed, with a row for each."""
    return {
        node: routine.perform  # type: ignore[attr-defined]
        for node, routine in routines.items()
        if isinstance(node.op, Scan) and node.op.kept and not _is_decided(node.inputs[0], facts)
    }


def _is_decided(variable: Variable, facts: ShapeFacts) -> bool:
    return isinstance(variable, Constant) or variable in facts.decided


@record(frozen=True, eq=False)
class Program:
    """Steps with their code, and where results live.

    Attributes
    ----------
    graph
        The graph; its last outputs are the new values of ``updated``.
    memory
        Steps in order, and the buffers of their results.
    facts
        What the shapes of the inputs decide.
    kernels
        The compiled kernel of each kernel step.
    routines
        For library nodes that have one, the routine that writes into a given buffer.
    threads
        The most that steps may use; None for what numba's settings say at each call.
    performers
        For other library nodes that have one, what makes their results in place of their ops.
    """

    graph: FunctionGraph
    memory: MemoryPlan
    facts: ShapeFacts
    kernels: Mapping[Group, KernelCall]
    routines: Mapping[Apply, Routine]
    threads: int | None = None
    performers: Mapping[Apply, Performer] = field(default_factory=dict)

    @property
    def updated(self) -> tuple[SharedVariable, ...]:
        """Shared variables that a call changes."""
        return self.memory.permissions.updated

    @property
    def steps(self) -> tuple[Group, ...]:
        """The steps of a call, in order."""
        return self.memory.steps

    @cached_property
    def lock(self) -> AbstractContextManager[Any]:
        """What a call that changes shared variables holds, so that no other one reads or changes them."""
        return GATE.lock()

    @cached_property
    def shared(self) -> list[SharedVariable]:
        """Shared variables whose values, or shapes, are read."""
        nodes = self.graph.toposort()
        read = dict.fromkeys((*(v for node in nodes for v in node.inputs), *self.graph.outputs))
        return [variable for variable in read if isinstance(variable, SharedVariable)]

    @cached_property
    def leaves(self) -> list[Variable]:
        """Inputs and shared variables that hold tensors: their shapes decide all early ones."""
        return [
            variable
            for variable in (*self.graph.inputs, *self.shared)
            if isinstance(variable.type, TensorType)
        ]

    @cached_property
    def value_variables(self) -> list[Variable]:
        """Results that depend on shapes alone and that a step or the caller reads."""
        read = (variable for group in self.steps for variable in group.reads)
        wanted = dict.fromkeys((*read, *self.graph.outputs))
        return [variable for variable in wanted if variable in self.facts.decided]

    def is_late(self, group: Group) -> bool:
        """Whether the group reads a result whose shape is known only once it is there, or a sparse matrix.

        The shapes that are looked up before the first step are those of arrays.
        """
        return any(
            variable not in self.facts.early and not isinstance(variable, Constant)
            for variable in group.inputs
        ) or any(isinstance(variable.type, SparseType) for variable in group.inputs)

    def needs_check(self, node: Apply) -> bool:
        """Whether a library node's operands must be checked each time it runs."""
        if not isinstance(node.outputs[0].type, TensorType):
            return False
        overridden = type(node.op).check_operands is not Op.check_operands
        if checked_by_shape(node):
            late = any(variable not in self.facts.early for variable in node.inputs)
            return late and (overridden or node.op.family is Family.ELEMENTWISE)
        return overridden

    @cached_property
    def record_facts(self) -> tuple[Fact, ...]:
        """What the driver wants to know once the shapes of the inputs are known."""
        late = {output for group in self.steps if self.is_late(group) for output in group.outputs}
        facts: list[Fact] = [("value", variable) for variable in self.value_variables]
        facts += [("new", variable) for variable in self.memory.fresh if variable not in late]
        facts += [("shape", variable) for variable in self.result_places]
        facts += [("kernel", variable) for variable in self.fitted]
        facts += [("large", variable) for variable in self.threaded if variable not in late]
        facts += [("error", group.outputs[0]) for group in self.steps if group.guard]
        for group in self.steps:
            if group.kind != "kernel" and group.nodes[0] not in self.routines and not is_plain_view(group):
                facts += [("shape", output) for output in group.outputs if output in self.facts.early]
        return tuple(facts)

    @cached_property
    def lazy(self) -> frozenset[Apply]:
        """Nodes that run under conditions only: no step that always runs computes them."""
        always = {node for group in self.steps if not group.guard for node in group.nodes}
        return frozenset(find_guards(conditions_first(self.graph.toposort()), self.graph.outputs)) - always

    @cached_property
    def threaded(self) -> dict[Variable, ThreadedKernel]:
        """Variants of kernels for several threads, each by the first of its results."""
        return {
            group.outputs[0]: call.threaded
            for group, call in self.kernels.items()
            if call.threaded is not None
        }

    @cached_property
    def fitted(self) -> dict[Variable, Fitting]:
        """First result of a kernel -> what tells its variant from the shapes of all variables."""
        found: dict[Variable, Fitting] = {}
        for group, call in self.kernels.items():
            if call.fitted is not None and not self.is_late(group):
                found[group.outputs[0]] = functools.partial(_fitting, group, call)
        return found

    @cached_property
    def result_places(self) -> dict[Variable, int]:
        """Results in buffers of their own that become outputs, with the number of the output.

        The caller can give arrays in place of these buffers.
        """
        places: dict[Variable, int] = {}
        count = len(self.graph.outputs) - len(self.updated)
        early = self.facts.early.intersection(self.memory.fresh)
        for place, output in enumerate(self.graph.outputs[:count]):
            base = output
            while base in self.memory.taken:
                base = self.memory.taken[base]
            if base in early:
                places.setdefault(base, place)
        return places

    def roots(self, variable: Variable) -> frozenset[Variable]:
        """The variables whose memory a variable may show."""
        return self.memory.roots.get(variable, frozenset((variable,)))

    def is_owned(self, variable: Variable) -> bool:
        """Whether the caller may have the memory a variable shows: made anew, or donated and overwritten."""
        return all(
            (root in self._made and root not in self._scratch)
            or (root in self.overwritten and not isinstance(root, SharedVariable))
            for root in self.roots(variable)
        )

    @cached_property
    def _made(self) -> frozenset[Variable]:
        return frozenset(output for group in self.steps for output in group.outputs)

    # ---- what is overwritten

    def overwritten_by(self, group: Group) -> tuple[Variable, ...]:
        """The inputs that a step overwrites."""
        if group.kind != "kernel":
            node = group.nodes[0]
            return tuple(node.inputs[place] for place in destroyed_positions(node.op))
        return tuple(self.memory.taken[output] for output in group.outputs if output in self.memory.taken)

    @cached_property
    def overwritten(self) -> frozenset[Variable]:
        """Inputs and shared variables whose memory is overwritten."""
        return self.written_over - self._made

    @cached_property
    def written_over(self) -> frozenset[Variable]:
        """All variables whose memory a step overwrites."""
        return frozenset(
            root
            for group in self.steps
            for variable in self.overwritten_by(group)
            for root in self.roots(variable)
        )

    def overwrites_lasting(self, group: Group) -> bool:
        """Whether a step changes the value of a shared variable."""
        lasting = self.memory.permissions.is_lasting
        return any(lasting(root) for v in self.overwritten_by(group) for root in self.roots(v))

    def is_in_place(self, target: SharedVariable, value: Variable) -> Literal["always", "usually", "never"]:
        """Whether the new value of a shared variable stands in its storage already.

        ``usually`` where the op says that it overwrites it, and might return another array all the same.
        """
        usual = False
        while value is not target:
            node = value.owner
            if value in self.memory.taken:
                value = self.memory.taken[value]
            elif node is not None and value not in self._inputs and value.index is not None:
                places = node.op.destroy_map.get(value.index, ())
                if len(places) != 1 or value not in self._library:
                    return "never"
                usual = usual or node not in self.routines
                value = node.inputs[places[0]]
            else:
                return "never"
        return "usually" if usual else "always"

    @cached_property
    def _inputs(self) -> frozenset[Variable]:
        return frozenset(self.graph.inputs)

    @cached_property
    def _library(self) -> frozenset[Variable]:
        """Results of steps that are no kernels."""
        return frozenset(v for group in self.steps if group.kind != "kernel" for v in group.outputs)

    def releases(self) -> list[tuple[Variable, ...]]:
        """For each step the results without a planned buffer that nothing reads after it."""
        ended: list[tuple[Variable, ...]] = []
        alive: set[Variable] = set()
        last: dict[Variable, int] = {}
        for number, group in enumerate(self.steps):
            for variable in (*group.reads, *group.outputs):
                last[variable] = number
        kept = set(self.graph.outputs)
        for number, group in enumerate(self.steps):
            alive.update(output for output in group.outputs if output not in self._scratch)
            gone = [
                variable
                for variable in dict.fromkeys((*group.reads, *group.outputs))
                if variable in alive and last[variable] == number and variable not in kept
            ]
            alive.difference_update(gone)
            ended.append(tuple(gone))
        return ended

    @cached_property
    def _scratch(self) -> frozenset[Variable]:
        return frozenset(self.memory.scratch)


def _fitting(
    group: Group, call: KernelCall, shapes: Mapping[Variable, tuple[int, ...]]
) -> Callable[..., Any] | None:
    assert call.fitted is not None
    arrays = [
        variable.data.shape if isinstance(variable, Constant) else shapes[variable]
        for variable in (*group.outputs, *call.inputs)
    ]
    return call.fitted(arrays)


def is_plain_view(group: Group) -> bool:
    """Whether a step only permutes, inserts and drops axes."""
    return group.kind == "view" and isinstance(group.nodes[0].op, DimShuffle)


def is_fixed_part(group: Group) -> bool:
    """Whether a step takes a part of its operand by numbers that are known."""
    op = group.nodes[0].op
    return isinstance(op, Subtensor) and all(
        entry.is_static if isinstance(entry, Slice) else isinstance(entry, int) for entry in op.entries
    )
