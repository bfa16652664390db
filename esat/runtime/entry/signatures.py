"""What a program knows once it has seen the shapes of its inputs, remembered for the next call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from esat.base.forks import GATE
from esat.base.records import record
from esat.errors import CompileError, EsatError
from esat.graph import Apply, TensorType, Variable
from esat.phases.fusing.group import Group
from esat.phases.memory.memory_plan import MemoryPlan, plan_buffers
from esat.runtime.buffers import ScratchFrames, allocator
from esat.runtime.entry.checks import InputCheck
from esat.runtime.entry.dispatch import Way
from esat.runtime.entry.shape_rules import Shape, ShapeRules, ShapeWalk
from esat.runtime.threads import ThreadedKernel

NO_KERNELS: Mapping[Variable, ThreadedKernel] = MappingProxyType({})
MAXIMUM_SIGNATURES = 128
KEPT_SCRATCH_BYTES = 1 << 28
"""Bytes of idle scratch buffers beyond which those of other signatures are given back."""

Fact: TypeAlias = tuple[Literal["new", "shape", "value", "large", "kernel", "error"], Variable]
"""One entry of a record: an allocator of, the shape of, or the value of a variable; of the kernel whose first
result it is, a variant for the shapes, or what runs them if there is enough to do for several threads; of the
step that runs under conditions and whose first result it is, what it raises if it runs, or None."""
Fitting: TypeAlias = Callable[[Mapping[Variable, Shape]], Callable[..., Any] | None]
"""Called with the shapes of all variables: the variant of a kernel for them, or None."""


@record(frozen=True, eq=False, slots=True)
class Leaf:
    """A variable whose shape is part of the key: an input, with its check, or a shared variable."""

    variable: Variable
    check: InputCheck | None


class SignatureTable:
    """Records by the shapes of inputs and shared variables.

    A record is a tuple: the facts asked for, in order, the way of such calls, and last the scratch frames.

    Attributes
    ----------
    records
        Key -> record. The key is the tuple of the leaves' shapes.
    peak_bytes
        Bytes of scratch and output buffers of the largest signature so far.
    begin
        Told of the way of shapes seen for the first time; may set what runs for them.
    written
        Told of shapes seen for the first time; raises where they do not fit the graph as it was written.

    Parameters
    ----------
    threaded
        Kernels that can run in several threads, each by its first result.
    fitted
        Kernels with variants for certain shapes, each by its first result.
    lazy
        Nodes that run under conditions only.
    """

    def __init__(
        self,
        leaves: Sequence[Leaf],
        memory: MemoryPlan,
        nodes: Sequence[Apply],
        value_nodes: frozenset[Apply],
        facts: Sequence[Fact],
        threaded: Mapping[Variable, ThreadedKernel] = NO_KERNELS,
        fitted: Mapping[Variable, Fitting] = MappingProxyType({}),
        lazy: Collection[Apply] = frozenset(),
    ) -> None:
        self.records: dict[tuple[Shape, ...], tuple[Any, ...]] = {}
        self.peak_bytes = 0
        self.begin: Callable[[Way], None] | None = None
        self.written: Callable[[Mapping[Variable, Shape]], None] | None = None
        self._leaves = tuple(leaves)
        self._memory = memory
        self._rules = ShapeRules(nodes, value_nodes, lazy)
        self._guarded = {group.outputs[0]: group.nodes for group in memory.steps if group.guard}
        self._facts = tuple(facts)
        self._threaded = threaded
        self._fitted = fitted
        self._frames: list[ScratchFrames] = []
        self._lock = threading.Lock()

    def add(self, key: tuple[Shape, ...]) -> tuple[Any, ...]:
        """The record for shapes seen for the first time.

        Raises
        ------
        InputError
            When an input's rank or static size differs.
        ShapeError
            When sizes do not fit each other.
        """
        with GATE.busy():
            return self._add(key)

    def _add(self, key: tuple[Shape, ...]) -> tuple[Any, ...]:
        for leaf, shape in zip(self._leaves, key, strict=True):
            if leaf.check is not None and not leaf.variable.tensor_type.admits_shape(shape):
                raise leaf.check.shape_error(shape)
        given = {leaf.variable: shape for leaf, shape in zip(self._leaves, key, strict=True)}
        walk = self._rules.apply(given)
        if self.written is not None:
            self.written(given)
        frames = self._make_frames(walk)
        way = Way(key)
        record = (*(self._fact(fact, walk) for fact in self._facts), way, frames)
        if self.begin is not None:
            self.begin(way)
        with self._lock:
            self._remember(key, record, frames, walk)
        return record

    def shapes(self, key: tuple[Shape, ...]) -> Mapping[Variable, Shape]:
        """The shapes of everything for a key that has a record."""
        given = {leaf.variable: shape for leaf, shape in zip(self._leaves, key, strict=True)}
        return self._rules.apply(given).shapes

    def forget(self, condition: Callable[[Way], bool]) -> None:
        """Drop the records whose way fits a condition: their shapes count as not seen."""
        with self._lock:
            for key, record in list(self.records.items()):
                if condition(record[-2]):
                    del self.records[key]
                    self._frames.remove(record[-1])

    def _fact(self, fact: Fact, walk: ShapeWalk) -> Any:
        kind, variable = fact
        if walk.errors:
            error = self._error(variable, walk)
            if kind == "error" or error is not None:
                return error if kind in ("error", "value") else None
        if kind == "error":
            return None
        variant = self._fitted[variable](walk.shapes) if variable in self._fitted else None
        if kind == "kernel":
            return variant
        return (kind != "large" or variant is None) and _fact(fact, walk, self._threaded)

    def _error(self, variable: Variable, walk: ShapeWalk) -> EsatError | None:
        """What computing a variable raises, or the step whose first result it is."""
        nodes = self._guarded.get(variable, ())
        for result in (variable, *(output for node in nodes for output in node.outputs)):
            if result in walk.errors:
                return walk.errors[result]
        return None

    def _make_frames(self, walk: ShapeWalk) -> ScratchFrames:
        scratch = self._memory.scratch
        sizes = [_bytes(variable, walk.shapes) for variable in scratch]
        arrays = [
            (walk.shapes.get(variable, (0,) * variable.tensor_type.ndim), variable.tensor_type.numpy_dtype)
            for variable in scratch
        ]
        return ScratchFrames(plan_buffers(self._memory, sizes), arrays)

    def _remember(
        self,
        key: tuple[Shape, ...],
        record: tuple[Any, ...],
        frames: ScratchFrames,
        walk: ShapeWalk,
    ) -> None:
        if sum(other.idle_bytes for other in self._frames) > KEPT_SCRATCH_BYTES:
            for other in self._frames:
                other.idle.clear()
        while len(self.records) >= MAXIMUM_SIGNATURES:
            forgotten = self.records.pop(next(iter(self.records)))
            self._frames.remove(forgotten[-1])
        self.records[key] = record
        self._frames.append(frames)
        outputs = sum(_bytes(variable, walk.shapes) for variable in self._memory.fresh)
        self.peak_bytes = max(self.peak_bytes, frames.plan.peak_bytes + outputs)


class LateTable:
    """Records for one group that reads a result whose shape no input's shape tells.

    Attributes
    ----------
    records
        Shapes of the group's inputs -> allocators of those of its outputs that have no scratch buffer, and
        what runs its kernel if there is enough to do for several threads.
    """

    def __init__(
        self,
        group: Group,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        threaded: ThreadedKernel | None = None,
    ) -> None:
        self.records: dict[tuple[Shape, ...], tuple[Any, ...]] = {}
        self._rules = ShapeRules(group.nodes)
        self._inputs = tuple(inputs)
        self._outputs = tuple(outputs)
        self._threaded = threaded

    def add(self, key: tuple[Shape, ...]) -> tuple[Any, ...]:
        """The record for shapes seen for the first time. Raises ShapeError when they do not fit."""
        walk = self._rules.apply(dict(zip(self._inputs, key, strict=True)))
        large = None if self._threaded is None else self._threaded.for_shapes(walk.shapes)
        record = (*(_fact(("new", variable), walk) for variable in self._outputs), large)
        while len(self.records) >= MAXIMUM_SIGNATURES:
            self.records.pop(next(iter(self.records)), None)
        self.records[key] = record
        return record


def _fact(fact: Fact, walk: ShapeWalk, threaded: Mapping[Variable, ThreadedKernel] = NO_KERNELS) -> Any:
    kind, variable = fact
    if kind == "large":
        return threaded[variable].for_shapes(walk.shapes)
    if kind == "value":
        return walk.values[variable]
    shape = walk.shapes.get(variable)
    if shape is None:
        raise CompileError(f"runtime: the shapes of the inputs do not tell that of {variable}")
    return shape if kind == "shape" else allocator(shape, variable.tensor_type.numpy_dtype)


def _bytes(variable: Variable, shapes: Mapping[Variable, Shape]) -> int:
    shape = shapes.get(variable)
    if shape is None or not isinstance(variable.type, TensorType):
        return 0
    return prod(shape) * variable.type.numpy_dtype.itemsize
