"""Groups to kernels: what can be lowered, and the lowering itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from esat.codegen.kernel.loop_ir import Array, Axis, Definition, Index, Kernel, Loop, Statement, axes_of
from esat.codegen.lowering.axes import name_axes
from esat.codegen.lowering.order import order_axes, reduced_axes
from esat.codegen.lowering.powers import exponent_of
from esat.codegen.lowering.schedule import CheckSink, LoopScheduler, StoreSink
from esat.codegen.lowering.unsupported import UnsupportedError
from esat.codegen.lowering.values import Values, has_code, is_literal
from esat.codegen.lowering.verify import verify
from esat.codegen.template import is_resolvable
from esat.errors import CompileError
from esat.graph import Apply, TensorType, Variable
from esat.ops.cast import Cast
from esat.ops.dimshuffle import DimShuffle
from esat.ops.elementwise.record import Elementwise
from esat.ops.index.part import can_gather, may_broadcast
from esat.ops.normalization import Normalization
from esat.ops.reduction import LOGSUMEXP, Reduction
from esat.phases.group import Group


def supported(node: Apply) -> bool:
    """Whether a kernel can compute the node: its op has kernel code for its dtypes."""
    variables = (*node.inputs, *node.outputs)
    if len(node.outputs) != 1 or not all(
        isinstance(variable.type, TensorType) and has_code(variable.type.dtype) for variable in variables
    ):
        return False
    op = node.op
    if isinstance(op, DimShuffle):
        shape = node.inputs[0].tensor_type.shape
        return all(shape[axis] == 1 for axis in op.dropped)
    if isinstance(op, Elementwise):
        dtype = node.inputs[-1].tensor_type.dtype
        template = op.source(dtype)
        if template is None:
            return exponent_of(node) is not None
        return is_resolvable(template, dtype)
    if isinstance(op, Reduction):
        return _supports_reducer(op, node.inputs[0].tensor_type.dtype)
    return isinstance(op, Cast | Normalization) or can_gather(node)


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
    try:
        order_axes(nodes, name_axes(nodes))
    except UnsupportedError:
        return False
    return True


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
        numbers = {group.inputs[place]: outputs + number for number, place in enumerate(self.passed)}
        self.values = Values(group.nodes, self.names, numbers)

    def _passed(self) -> list[int]:
        """Positions of the inputs that the kernel is called with."""
        return [place for place, variable in enumerate(self.group.inputs) if not is_literal(variable)]

    def kernel(self) -> Kernel:
        axes = self._axes()
        checks = self._checks(axes)
        return Kernel(
            outputs=tuple(_array(variable) for variable in self.group.outputs),
            inputs=tuple(_array(self.group.inputs[place]) for place in self.passed),
            axes=axes,
            body=checks + LoopScheduler(self.values, self.nest).run(self._stores(), _defined(checks)),
            operands=tuple(self.passed),
            nonempty=self._nonempty(),
            comment="; ".join(f"{variable} = {variable.owner}" for variable in self.group.outputs),
        )

    def _checks(self, axes: tuple[Axis, ...]) -> tuple[Statement, ...]:
        """What finds out, before anything is written, whether the kernel can do what it is to do.

        Types tell that sizes agree, and shapes are checked before a call. Of index arrays this is not so: one
        that has one place where others have many is stretched.
        """
        if any(map(may_broadcast, self.group.nodes)):
            for axis in axes:
                for pair in axis.equal:
                    self.values.differ(axis.factors[0], pair)
        sinks = [CheckSink(value) for value in self.values.checks]
        return LoopScheduler(self.values, replace(self.nest, lane=None)).run(sinks)

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
        numbers = {place: number for number, place in enumerate(self.passed)}
        places = {variable: place for place, variable in enumerate(self.group.inputs)}
        for (position, operand), index in self.names.uses.items():
            place = places[self.group.nodes[position].inputs[operand]]
            if place in numbers:
                yield len(self.group.outputs) + numbers[place], index

    def _axes(self) -> tuple[Axis, ...]:
        found: dict[int, list[tuple[int, int]]] = {axis: [] for axis in self.nest.order}
        for number, index in self._sources():
            for axis, name in enumerate(index):
                if name is not None and (number, axis) not in found[name]:
                    found[name].append((number, axis))
        return tuple(Axis((pairs[0],), tuple(pairs[1:])) for pairs in found.values())

    def _nonempty(self) -> tuple[int, ...]:
        axes: set[int] = set()
        for position, node in enumerate(self.group.nodes):
            if _needs_elements(node):
                index = self.names.operand(node, (position, 0))
                axes.update(axes_of(tuple(index[axis] for axis in reduced_axes(node))))
        return tuple(sorted(axes))


def _needs_elements(node: Apply) -> bool:
    """Whether the node has no value for nothing to reduce."""
    if isinstance(node.op, Reduction):
        return node.op.reducer.identity is None
    return isinstance(node.op, Normalization)


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
