"""Loops in native functions: the native steps of the body, once for each step, at places that move on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from esat.codegen.native_functions.native_plan import LoopControl, Place, RepeatedSteps, RoutineStep, Step
from esat.codegen.small_loops.scalar_loops import LoopOperand, PrintedLoop, printed_loop
from esat.graph import Apply, Constant, Variable
from esat.ops.loops.record import LoopOp, Scan, While
from esat.runtime.loop_routine import LoopRoutine
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_views import NativeView, Shape, contiguous

LINES_A_STEP = 32
"""Lines that take as long as one of the body's own steps, 8 ns: to enter it, and to write its results."""
UNLIMITED = 1 << 62
"""Steps of a loop that nothing limits."""


def loop(memory: NativeMemory, node: Apply) -> list[Step]:
    """A loop: carries are in two places each in turn, or in the rows of the trace of what they are; those of
    which a step changes a part stay where they are."""
    return _NativeLoop(memory, node).steps()


class _NativeLoop:
    def __init__(self, memory: NativeMemory, node: Apply) -> None:
        assert isinstance(node.op, LoopOp)
        self.memory, self.node, self.op = memory, node, node.op
        routine = memory.program.routines[node]
        assert isinstance(routine, LoopRoutine)
        self.routine = routine
        self.before: list[Step] = []
        self.cursors: list[tuple[int, Place, tuple[int, ...]]] = []
        self.handed: list[tuple[int, Place, int]] = []
        self.limit, self.count = self._steps()

    def _steps(self) -> tuple[int, Place | None]:
        """The most steps there are, and where the number is that is known by then only."""
        if isinstance(self.op, While):
            return UNLIMITED if self.op.max_steps is None else self.op.max_steps, None
        control = self.node.inputs[0]
        known = control.data if isinstance(control, Constant) else self.memory.values.get(control)
        if known is not None:
            return max(int(known.item()), 0), None
        return UNLIMITED, self.memory.view(control).place

    def steps(self) -> list[Step]:
        """What runs, in order."""
        printed = self._printed()
        if printed is not None:
            return printed
        memory, op = self.memory, self.op
        carries, sequences, invariants = op.split(self.node.inputs[1:])
        first = [self._in_order(one) for one in carries]
        rows = [memory.target(one) for one in self.node.outputs[len(self.node.outputs) - len(op.kept) :]]
        kept = [self._cursor(one) for one in rows]
        places = [self._carry(number, view, kept) for number, view in enumerate(first)]
        inputs = [read for read, _ in places]
        elements = [self._elements(one) for one in sequences]
        rest = [self._in_order(one) for one in invariants]
        inputs += [*(place for place, _ in elements), *(view.place for view in rest)]
        outputs = [written for _, written in places]
        shapes = [
            *(view.shape for view in first), *(shape for _, shape in elements), *(view.shape for view in rest)
        ]  # fmt: skip
        condition = memory.written(np.zeros(1, np.bool_)) if isinstance(op, While) else None
        if condition is not None:
            outputs.append(condition)
            flag = NativeView(condition, (), (), 1)
            self.before += memory.move(flag, memory.view(self.node.inputs[0]), np.dtype(np.bool_))
            for view, one in zip(rows, self.node.outputs[len(self.node.outputs) - len(rows) :], strict=True):
                self.before += _zeros(memory, one, view)
        inner = self.routine.native_steps(memory, shapes, inputs, [*outputs, *kept])
        count = None
        if isinstance(op, While):
            count = memory.target(self.node.outputs[op.carries]).place
        reverse = isinstance(op, Scan) and op.reverse
        control = LoopControl(tuple(self.handed), self.count, condition, count, reverse)
        body = RepeatedSteps((self.limit,), tuple(self.cursors), tuple(inner), control)
        return [*self.before, body, *self._last(first, places, condition)]

    def _printed(self) -> list[Step] | None:
        """One function with all steps; None where there is none, or native steps of the body are faster."""
        memory, op, node = self.memory, self.op, self.node
        views = [memory.view(one) for one in node.inputs[1:]]
        operands = [
            LoopOperand(view.shape, view.byte_strides, one.data if isinstance(one, Constant) else None)
            for view, one in zip(views, node.inputs[1:], strict=True)
        ]
        for sequence in op.split(node.inputs[1:])[1]:
            self._check_length(memory.view(sequence))
        known = None if self.count is not None or self.limit == UNLIMITED else self.limit
        between = len(node.outputs) - len(op.kept)
        rows = [memory.shape(one) for one in node.outputs[between:]]
        printed = printed_loop(op, operands, rows, known)
        if printed is None or printed.cost > LINES_A_STEP * _own_steps(self.routine):
            return None
        return [*self._filled(printed, views), self._call(printed, views)]

    def _filled(self, printed: PrintedLoop, views: Sequence[NativeView]) -> Iterator[Step]:
        """Have what is written to, before steps are."""
        memory, node = self.memory, self.node
        for number in printed.tables:
            one, view = node.outputs[number], memory.handed.get(node.inputs[1 + number])
            if view is None or not memory.hand_on(one, view):
                if self._is_for_a_loop(one):
                    memory.hand_on(one)
                yield from memory.move(memory.target(one), views[number], one.tensor_type.numpy_dtype)
        if isinstance(self.op, While):
            for one in node.outputs[self.op.carries + 2 :]:
                yield from _zeros(memory, one, memory.target(one))

    def _is_for_a_loop(self, variable: Variable) -> bool:
        """Whether a loop takes a result as a carry, and nothing else reads it."""
        clients = self.memory.program.graph.clients[variable]
        node, place = clients[0] if clients else ("output", 0)
        if len(clients) != 1 or node == "output" or not isinstance(node.op, LoopOp):
            return False
        return 1 <= place <= node.op.carries

    def _call(self, printed: PrintedLoop, views: Sequence[NativeView]) -> Step:
        memory, op, node = self.memory, self.op, self.node
        results = [memory.target(one) for one in node.outputs]
        ends = op.carries, op.carries + op.sequences
        control = memory.view(node.inputs[0])
        taken = [views[number] for number in printed.taken]
        places = [view.place for view in (*taken, *results)]
        places += map(memory.fixed, printed.constants)
        places += [memory.scratch(shape, np.dtype(dtype)).place for shape, dtype in printed.scratch]
        moving = [views[number] for number in printed.taken if ends[0] <= number < ends[1]]
        moving += results[len(results) - len(op.kept) :]
        integers = [view.byte_strides[0] for view in moving]
        if printed.reads_control:
            places.insert(0, control.place)
        else:
            integers.insert(0, self.limit)
        memory.refuses()
        address = printed.function.address()
        return RoutineStep(address, tuple(places), integers=tuple(integers), returns_status=True)

    def _check_length(self, sequence: NativeView) -> None:
        if self.count is None and sequence.shape[0] < self.limit:
            raise NoNativeFormError

    def _rows(self, sequence: Variable) -> NativeView:
        """The elements of a sequence, each in one piece."""
        view = self.memory.view(sequence)
        self._check_length(view)
        inner = NativeView(view.place, view.shape[1:], view.strides[1:], view.itemsize)
        return view if inner.is_contiguous else self._in_order(sequence)

    def _last(
        self, first: Sequence[NativeView], places: Sequence[tuple[Place, Place]], condition: Place | None
    ) -> list[Step]:
        """Have the last carries, and whether there is a further step, where they are results."""
        memory, found = self.memory, list[Step]()
        for output, view, (read, _) in zip(self.node.outputs, first, places, strict=False):
            found += _copied(memory, output, NativeView(read, view.shape, view.strides, view.itemsize))
        if condition is not None:
            goes_on = self.node.outputs[self.op.carries + 1]
            found += _copied(memory, goes_on, NativeView(condition, (), (), 1))
        return found

    def _in_order(self, variable: Variable) -> NativeView:
        view, steps = self.memory.in_order(variable)
        self.before += steps
        return view.reshaped(view.shape)

    def _cursor(self, view: NativeView) -> Place:
        """A place that moves along the first axis."""
        number = self.memory.choice()
        self.cursors.append((number, view.place, (view.byte_strides[0],)))
        return Place("chosen", number)

    def _carry(self, number: int, first: NativeView, kept: Sequence[Place]) -> tuple[Place, Place]:
        """Where a carry is read, and where the next one is written."""
        memory, outputs = self.memory, self.op.body.outputs
        read = memory.choice()
        traced = [place for place, one in enumerate(self.op.kept) if one is outputs[number]]
        if traced:
            written = kept[traced[0]]
            self.handed.append((read, first.place, written.number))
            return Place("chosen", read), written
        dtype = self.node.outputs[number].tensor_type.numpy_dtype
        if self.routine.stays(number):
            own = memory.scratch(first.shape, dtype)
            self.before += memory.move(own, first, dtype)
            return own.place, own.place
        other = memory.choice()
        pair = [memory.scratch(first.shape, dtype) for _ in range(2)]
        self.before += memory.move(pair[0], first, dtype)
        self.handed.append((read, pair[0].place, other))
        self.handed.append((other, pair[1].place, read))
        return Place("chosen", read), Place("chosen", other)

    def _elements(self, variable: Variable) -> tuple[Place, Shape]:
        rows = self._rows(variable)
        return self._cursor(rows), rows.shape[1:]


def _own_steps(routine: LoopRoutine) -> int:
    """The steps of a body, and of loops within: what takes time of its own, as finding an element does."""
    program, found = routine.body._calls.program, 0
    for group in routine.body.steps:
        inner = program.routines.get(group.nodes[0])
        found += group.kind != "view" or len(group.nodes[0].inputs) > 1
        found += _own_steps(inner) if isinstance(inner, LoopRoutine) else 0
    return found


def _copied(memory: NativeMemory, output: Variable, source: NativeView) -> list[Step]:
    target = memory.target(output)
    count = max(1, source.size)
    flat = [NativeView(one.place, (count,), contiguous((count,)), one.itemsize) for one in (target, source)]
    if not source.size:
        return []
    return memory.move(NativeView(flat[0].place, (count,), (1,), source.itemsize, alone=True), flat[1],
                       output.tensor_type.numpy_dtype)  # fmt: skip


def _zeros(memory: NativeMemory, variable: Variable, view: NativeView) -> list[Step]:
    dtype = variable.tensor_type.numpy_dtype
    zero = NativeView(memory.fixed(np.zeros(1, dtype)), (1,) * len(view.shape), (), dtype.itemsize)
    return memory.move(view, zero.reshaped(zero.shape).stretched(view.shape), dtype)
