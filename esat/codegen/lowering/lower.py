"""Groups to kernels: what can be lowered, and the lowering itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from esat.codegen.kernel.loop_ir import (
    Array,
    Axis,
    Definition,
    Index,
    Kernel,
    Loop,
    Statement,
    axes_of,
    places_of,
)
from esat.codegen.kernel.partition import SUM_BLOCK_BITS
from esat.codegen.lowering.axes import name_axes
from esat.codegen.lowering.complex_nodes import ComplexValues, is_complex, supports_complex
from esat.codegen.lowering.loop_order import order_axes
from esat.codegen.lowering.loop_placement import CheckSink, LoopScheduler, ScatterSink, StoreSink
from esat.codegen.lowering.powers import exponent_of
from esat.codegen.lowering.scalar_values import has_code, is_literal
from esat.codegen.lowering.unsupported import UnsupportedError
from esat.codegen.lowering.verify_kernel import verify
from esat.codegen.template import is_resolvable
from esat.errors import CompileError
from esat.graph import Apply, TensorType, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.cast import Cast
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.part import has_kernel_form, may_misfit, part_of
from esat.ops.index.write import PartWrite
from esat.ops.normalization import Normalization
from esat.ops.reduction import LOGSUMEXP, Reduction
from esat.phases.fusing.group import Group

LONGEST_TOLD = 16
"""Elements of an axis beside others up to which kernels are told its size, if types tell it."""
BOUNDS = (7, 15, 31, 1 << SUM_BLOCK_BITS)
"""Bounds of sizes that kernels are told: below the lanes of one vector or more, and one block of a sum.
A few of them only, so that equal kernels of like sizes are one."""
WRITTEN_FLOPS = 8.0
"""Work of an element that a loop which writes parts may do besides, in additions: it does not vectorise."""


def supported(node: Apply) -> bool:
    """Whether a kernel can compute the node: its op has kernel code for its dtypes."""
    variables = (*node.inputs, *node.outputs)
    if len(node.outputs) != 1 or not all(
        isinstance(variable.type, TensorType) and has_code(variable.type.dtype) for variable in variables
    ):
        return False
    op = node.op
    if is_complex(node) and not supports_complex(node):
        return False
    if isinstance(op, DimShuffle):
        shape = node.inputs[0].tensor_type.shape
        return all(shape[axis] == 1 for axis in op.dropped)
    if isinstance(op, Elementwise) and not is_complex(node):
        dtype = node.inputs[-1].tensor_type.dtype
        template = op.source(dtype)
        if template is None:
            return exponent_of(node) is not None
        return is_resolvable(template, dtype)
    if isinstance(op, Reduction):
        return _supports_reducer(op, node.inputs[0].tensor_type.dtype)
    return isinstance(op, Cast | Elementwise | Normalization) or has_kernel_form(node)


def _supports_reducer(op: Reduction, dtype: str) -> bool:
    reducer = op.reducer
    if reducer.combine is None:
        return reducer is LOGSUMEXP or reducer.constructor in ("ArgMax", "ArgMin")
    known = reducer.identity is not None or reducer.constructor in ("ReduceMax", "ReduceMin")
    # Sums and products of booleans are cast to integers first, by every way to build them.
    return known and op.typing == "reduce" and (dtype != "bool" or not _is_arithmetic(reducer.combine))


def _is_arithmetic(combine: str) -> bool:
    return "+" in combine or "*" in combine


def can_fuse(nodes: Sequence[Apply]) -> bool:
    """Whether supported nodes, in topological order, can be one kernel, whichever results it stores."""
    if any(isinstance(node.op, PartWrite) for node in nodes) and not _only_writes(nodes):
        return False
    try:
        order_axes(nodes, name_axes(nodes))
    except UnsupportedError:
        return False
    return True


def _only_writes(nodes: Sequence[Apply]) -> bool:
    """Whether nodes compute little besides writing parts, which goes element by element, in one thread."""
    others = [node for node in nodes if not isinstance(node.op, PartWrite)]
    plain = all(
        isinstance(node.op, Elementwise | Cast | DimShuffle) or part_of(node) is not None for node in others
    )
    return plain and sum(getattr(node.op, "flops", 0.0) for node in others) <= WRITTEN_FLOPS


def lower(group: Group) -> Kernel:
    """The kernel of a group.

    Raises
    ------
    CompileError
        When :func:`supported` or :func:`can_fuse` denies it, or the kernel breaks its invariants.
    """
    try:
        kernel = _Lowering(group).kernel()
    except UnsupportedError as error:
        raise CompileError(f"codegen: {group} cannot be lowered: {error}") from error
    verify(kernel)
    return kernel


class _Lowering:
    def __init__(self, group: Group) -> None:
        self.group = group
        names = name_axes(group.nodes)
        nest = order_axes(group.nodes, names)
        # From here on axes are numbered as they nest, so that kernels alike are equal.
        self.names = names.renumbered(nest.order)
        self.nest = nest.renumbered()
        self.passed = self._passed()
        outputs = len(group.outputs)
        numbers = {variable: number for number, variable in enumerate(group.outputs)}
        numbers.update((group.inputs[place], outputs + number) for number, place in enumerate(self.passed))
        self.values = ComplexValues(group.nodes, self.names, numbers)

    def _passed(self) -> list[int]:
        """Positions of the inputs that the kernel is called with."""
        return [place for place, variable in enumerate(self.group.inputs) if not is_literal(variable)]

    def kernel(self) -> Kernel:
        axes = self._axes()
        body = self._checks(axes)
        stores, scatters = self._stores(), self._scatters()
        beside = [store for store in stores if self._is_beside(store, scatters)]
        before = [store for store in stores if store not in beside]
        body += LoopScheduler(self.values, self.nest).run(before, _defined(body))
        body += LoopScheduler(self.values, self.nest).run([*beside, *scatters], _defined(body))
        return Kernel(
            outputs=tuple(_array(variable) for variable in self.group.outputs),
            inputs=tuple(_array(self.group.inputs[place]) for place in self.passed),
            axes=axes,
            body=body,
            operands=tuple(self.passed),
            comment="; ".join(f"{variable} = {variable.owner}" for variable in self.group.outputs),
        )

    def _checks(self, axes: tuple[Axis, ...]) -> tuple[Statement, ...]:
        """What finds out, before anything is written, whether the kernel can do what it is to do.

        Types tell that sizes agree, and shapes are checked before a call. Of index arrays this is not so: one
        that has one place where others have many is stretched, and values to be written must fit. All sizes
        are compared before loops run through them.
        """
        misfits = [
            self.values.differ(axes[number].factors[0], pair)
            for number in sorted(self._doubtful_axes())
            for pair in axes[number].equal
            if None in (self._known_size(axes[number].factors[0]), self._known_size(pair))
        ]
        scheduler = LoopScheduler(self.values, replace(self.nest, lane=None))
        sizes = scheduler.run([CheckSink(value) for value in dict.fromkeys(misfits)])
        return sizes + scheduler.run([CheckSink(value) for value in self.values.checks], _defined(sizes))

    def _is_beside(self, store: StoreSink, scatters: Sequence[ScatterSink]) -> bool:
        """Whether a loop that writes a part computes what is stored anyway, at the same places."""
        axes = set(axes_of(store.index))
        return all(store.array != one.array for one in scatters) and any(
            set(one.axes) == axes and store.value in self.values.needed((one.value, *places_of(one.index)))
            for one in scatters
        )

    def _scatters(self) -> list[ScatterSink]:
        numbers = {variable: number for number, variable in enumerate(self.group.outputs)}
        return [
            ScatterSink(
                numbers[one.variable], one.index, one.value, one.adds, tuple(sorted(one.axes)), one.comment
            )
            for one in self.values.scattered
        ]

    def _stores(self) -> list[StoreSink]:
        return [
            StoreSink(
                number,
                self.names.computed[variable],
                self.values.of[variable],
                variable.tensor_type.dtype,
                str(variable),
            )
            for number, variable in enumerate(self.group.outputs)
        ]

    def _sources(self) -> Iterable[tuple[int, Index]]:
        """Arrays and how their axes are named: inputs first, outputs before all."""
        for number, variable in enumerate(self.group.outputs):
            yield number, self.names.computed[variable]
        for number, variable in enumerate(self.group.outputs):
            yield from ((number, index) for index in self._written_slices(variable))
        numbers = {place: number for number, place in enumerate(self.passed)}
        places = {variable: place for place, variable in enumerate(self.group.inputs)}
        for (position, operand), index in self.names.uses.items():
            place = places[self.group.nodes[position].inputs[operand]]
            if place in numbers:
                yield len(self.group.outputs) + numbers[place], index

    def _doubtful_axes(self) -> set[int]:
        """Axes of parts along which sizes may turn out to differ."""
        found: set[int] = set()
        for position, node in enumerate(self.group.nodes):
            if may_misfit(node):
                part = self.names.parts.get(position, self.names.computed[node.outputs[0]])
                found.update(axes_of(part))
        return found

    def _known_size(self, pair: tuple[int, int]) -> int | None:
        """The size of an axis of an array of the kernel, if its type tells."""
        array, axis = pair
        arrays = (*self.group.outputs, *(self.group.inputs[place] for place in self.passed))
        return arrays[array].tensor_type.shape[axis]

    def _written_slices(self, variable: Variable) -> Iterable[Index]:
        """How loops through a part of a variable that is written run along its axes, where they do."""
        for position, axes in self.names.parts.items():
            node = self.group.nodes[position]
            if node.outputs[0] is variable:
                part = part_of(node)
                assert part is not None
                yield tuple(axes[along] if isinstance(along, int) else None for along in part.axes)

    def _axes(self) -> tuple[Axis, ...]:
        found: dict[int, list[tuple[int, int]]] = {axis: [] for axis in self.nest.order}
        for number, index in self._sources():
            for axis, name in enumerate(index):
                if name is not None and (number, axis) not in found[name]:
                    found[name].append((number, axis))
        return tuple(
            Axis((pairs[0],), tuple(pairs[1:]), self._short_size(pairs[0]), self._bound(pairs[0]))
            for pairs in found.values()
        )

    def _short_size(self, pair: tuple[int, int]) -> int | None:
        """The size of an axis beside others, if it is known and short."""
        size = self._known_size(pair) if len(self.nest.order) > 1 else None
        return size if size is not None and 1 < size <= LONGEST_TOLD else None

    def _bound(self, pair: tuple[int, int]) -> int | None:
        size = self._known_size(pair)
        return None if size is None else next((bound for bound in BOUNDS if size <= bound), None)


def _defined(statements: Sequence[Statement]) -> frozenset[int]:
    """The values that can be read behind statements."""
    found: set[int] = set()
    for statement in statements:
        if isinstance(statement, Loop):
            found.update(accumulator.value for accumulator in statement.accumulators)
        elif isinstance(statement, Definition):
            found.add(statement.value)
    return frozenset(found)


def _array(variable: Variable) -> Array:
    type = variable.tensor_type
    return Array(type.dtype, type.ndim, tuple((axis,) for axis in range(type.ndim)))
