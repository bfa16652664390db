"""Frequent calls of small programs as one native function, for the shapes that come again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from esat.codegen.blas_library import thread_functions, wakes_threads
from esat.codegen.native_call import (
    ArraySpecification,
    KernelStep,
    Place,
    RoutineStep,
    Step,
    is_available,
    native_call,
)
from esat.codegen.small_products import product_pointers
from esat.graph import Apply, Constant, TensorType, Variable
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.ops.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.phases.group import Group
from esat.runtime.buffers import POOLED_FROM
from esat.runtime.program import Program, is_fixed_part, is_plain_view
from esat.runtime.signatures import SignatureTable

CALLS = 200
"""Calls of a program after which its native function is made.

That takes two to six milliseconds, a small part of what compiling the program took, and saves half a
microsecond a step.
"""
RETRIED_AFTER = 50
"""Calls after which one looks again whether it is settled which program runs for some shapes."""
LARGEST = 1 << 20
"""Bytes that a call reads and writes up to which the interpreter's own work counts. Outputs whose memory is
kept for reuse are made by the driver."""
MAXIMUM_FUNCTIONS = 4
MAXIMUM_ATTEMPTS = 8

Shape = tuple[int, ...]


class FrequentCalls:
    """Runs a program, counts, and puts a native function in its own place when calls are many.

    That function admits one combination of shapes; others come back here and are counted as well.

    Parameters
    ----------
    program, table
        The program and its records.
    call
        Its driver.
    use
        Told what to call from now on.
    """

    def __init__(
        self,
        program: Program,
        table: SignatureTable,
        call: Callable[..., Any],
        use: Callable[[Callable[..., Any]], None],
    ) -> None:
        self._program = program
        self._table = table
        self._call = call
        self._use = use
        self._left = CALLS
        self._made: set[tuple[Shape, ...]] = set()
        self._attempts = 0

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        self._left -= 1
        results = self._call(*arguments, out=out)
        if self._left <= 0:
            self._left = CALLS
            self._replace(arguments)
        return results

    def _replace(self, arguments: Sequence[Any]) -> None:
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        arrays += [variable.look() for variable in self._program.shared]
        key = tuple(array.shape for array in arrays)
        if key in self._made:  # it sends calls here that it does not admit: with given results, say
            return
        record = self._table.records.get(key)
        if record is not None and record[-1].elsewhere is not None:
            # Another program runs for these shapes, or it is not settled yet which one does.
            self._left = RETRIED_AFTER
            return
        self._attempts += 1
        last = len(self._made) + 1 == MAXIMUM_FUNCTIONS or self._attempts >= MAXIMUM_ATTEMPTS
        made = direct_call(self._program, self._table, key, self._call if last else self)
        if made is not None:
            self._made.add(key)
            self._use(made)
        elif last:
            self._use(self._call)


def may_be_direct(program: Program) -> bool:
    """Whether calls of a program could be native: only kernels, products of matrices, and views.

    Shared variables may be read, and updated where their new values take their places.
    """
    leaves = (*program.graph.inputs, *program.shared)
    if not is_available() or not all(isinstance(variable.type, TensorType) for variable in leaves):
        return False
    if not program.overwritten <= set(program.shared) or not program.graph.outputs:
        return False
    results = [_made(program, output) for output in _returned(program)]
    values = program.graph.outputs[len(results) :]
    in_place = map(program.is_in_place, program.updated, values)
    if not all(certainty == "always" for certainty in in_place):
        return False
    simple = all(_is_simple(program, group) for group in program.steps)
    return simple and len(set(results)) == len(results) and set(results) == set(program.memory.fresh)


def _returned(program: Program) -> tuple[Variable, ...]:
    """The outputs that a call returns: without the new values of shared variables."""
    outputs = program.graph.outputs
    return tuple(outputs[: len(outputs) - len(program.updated)])


def direct_call(
    program: Program, table: SignatureTable, key: tuple[Shape, ...], otherwise: Callable[..., Any]
) -> Callable[..., Any] | None:
    """The native function of a program for the shapes of a key; None where it would not pay."""
    record = table.records.get(key)
    if record is None or record[-1].elsewhere is not None:
        return None
    facts = dict(zip(program.record_facts, record, strict=False))
    chosen = [value for (kind, _), value in facts.items() if kind in ("large", "kernel")]
    shapes = table.shapes(key)
    outputs = [_bytes(output, shapes) for output in _returned(program)]
    working = [group for group in program.steps if not _is_view(group)]
    made = {output for group in working for output in group.outputs}
    read = {variable for group in working for variable in group.reads if variable not in made}
    inputs = [_bytes(variable, shapes) for variable in read if not isinstance(variable, Constant)]
    used = sum(inputs) + sum(outputs) + record[-1].plan.peak_bytes
    if any(chosen) or used > LARGEST or max(outputs, default=0) >= POOLED_FROM:
        return None
    values = {variable: value for (kind, variable), value in facts.items() if kind == "value"}
    calls = _Calls(program, shapes, values, record[-1].make())
    if not program.shared:
        return calls.function(otherwise)
    count = len(program.graph.inputs)
    function = calls.function(lambda *arguments: otherwise(*arguments[:count]))
    return None if function is None else _with_shared(program, function, otherwise)


def _with_shared(
    program: Program, made: Callable[..., Any], otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """A native function that takes the values of shared variables after the arguments, called with them."""
    count = len(program.graph.inputs)
    lock = program.lock if program.updated else nullcontext()
    values = [
        variable.own_value if variable in program.overwritten else variable.look
        for variable in program.shared
    ]

    def call(*arguments: Any, out: Any = None) -> Any:
        if out is not None or len(arguments) != count:
            return otherwise(*arguments, out=out)
        with lock:
            return made(*arguments, *[value() for value in values])

    return call


def _is_simple(program: Program, group: Group) -> bool:
    if group.guard:
        return False
    if group.kind == "kernel" or _is_view(group):
        return True
    (node,) = group.nodes
    if isinstance(node.op, AccumulateProduct):
        return _is_simple_accumulation(program, node)
    if not isinstance(node.op, MatMul):
        return False
    type = node.inputs[0].tensor_type
    return type.dtype in ("float32", "float64") and type.ndim == 2


def _is_simple_accumulation(program: Program, node: Apply) -> bool:
    """Whether BLAS adds to what the program may overwrite, by scales that it does not take for nothing."""
    target, alpha, _, _, beta = node.inputs
    if node not in program.routines or program.needs_check(node):
        return False
    known = all(isinstance(scale, Constant) and float(scale.data) != 0.0 for scale in (alpha, beta))
    own = {*program.memory.scratch, *program.memory.fresh, *program.overwritten}
    return known and _base(program, target) in own


def _is_view(group: Group) -> bool:
    return is_plain_view(group) or (group.kind == "view" and is_fixed_part(group))


def _made(program: Program, output: Variable) -> Variable:
    """The result in whose buffer an output stands, with other axes of size 1 perhaps."""
    node = output.owner
    if node is not None and isinstance(node.op, DimShuffle) and output not in program.memory.taken:
        kept = [axis for axis in node.op.order if axis != "x"]
        if kept == sorted(kept):
            return _made(program, node.inputs[0])
    return _base(program, output)


def _base(program: Program, variable: Variable) -> Variable:
    """The result in whose buffer a result stands."""
    while variable in program.memory.taken or _is_accumulated(variable):
        if variable in program.memory.taken:
            variable = program.memory.taken[variable]
        else:
            assert variable.owner is not None
            variable = variable.owner.inputs[0]
    return variable


def _is_accumulated(variable: Variable) -> bool:
    """Whether a result stands where its first operand did, because a product was added to that."""
    op = None if variable.owner is None else variable.owner.op
    return isinstance(op, AccumulateProduct) and op.inplace


def _bytes(variable: Variable, shapes: Mapping[Variable, Shape]) -> int:
    if not isinstance(variable.type, TensorType):
        return 0
    return int(np.prod(shapes[variable], dtype=np.int64)) * variable.type.numpy_dtype.itemsize


@dataclass(frozen=True)
class _View:
    """Elements in memory.

    Attributes
    ----------
    strides
        In elements; those of axes of size 1 mean nothing.
    """

    place: Place
    shape: Shape
    strides: tuple[int, ...]
    itemsize: int

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies in memory in C order."""
        wanted = _contiguous(self.shape)
        pairs = zip(self.shape, self.strides, wanted, strict=True)
        return all(size == 1 or stride == other for size, stride, other in pairs)

    def shuffled(self, op: DimShuffle) -> _View:
        """The view with its axes in another order."""
        shape = tuple(1 if axis == "x" else self.shape[int(axis)] for axis in op.order)
        strides = tuple(0 if axis == "x" else self.strides[int(axis)] for axis in op.order)
        return replace(self, shape=shape, strides=strides)

    def part(self, op: Subtensor) -> _View | None:
        """The part that known numbers choose; None where one is out of bounds."""
        first, shape, strides = 0, [], []
        for entry, size, stride in zip(op.entries, self.shape, self.strides, strict=True):
            if isinstance(entry, Slice):
                chosen = range(*slice(*entry.parts()).indices(size))
                shape.append(len(chosen))
                strides.append(stride * chosen.step)
                first += stride * chosen.start if chosen else 0
            elif isinstance(entry, int) and -size <= entry < size:
                first += stride * (entry % size)
            else:
                return None
        place = replace(self.place, offset=self.place.offset + first * self.itemsize)
        return replace(self, place=place, shape=tuple(shape), strides=tuple(strides))


def _contiguous(shape: Shape) -> tuple[int, ...]:
    strides: list[int] = []
    count = 1
    for size in reversed(shape):
        strides.insert(0, count)
        count *= size
    return tuple(strides)


class _Calls:
    """The steps of a program for one combination of shapes."""

    def __init__(
        self,
        program: Program,
        shapes: Mapping[Variable, Shape],
        values: Mapping[Variable, Any],
        frame: Sequence[np.ndarray[Any, Any]],
    ) -> None:
        self.program = program
        self.shapes = shapes
        self.values = {variable: np.ascontiguousarray(value) for variable, value in values.items()}
        self.kept: list[object] = [frame, self.values]
        self.places: dict[Variable, Place] = {}
        self.views: dict[Variable, _View] = {}
        self.wakes_threads = False
        for number, variable in enumerate((*program.graph.inputs, *program.shared)):
            self.places[variable] = Place("input", number)
        for number, output in enumerate(_returned(program)):
            self.places[_made(program, output)] = Place("output", number)
        for variable, array in (*self.values.items(), *zip(program.memory.scratch, frame, strict=True)):
            self.places[variable] = Place("fixed", int(array.ctypes.data))

    def function(self, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """The native function; None where a step needs more than its kernel or routine."""
        steps: list[Step] = []
        for group in self.program.steps:
            if _is_view(group):
                view = self._shown(group.nodes[0])
                if view is None:
                    return None
                self.views[group.nodes[0].outputs[0]] = view
                continue
            step = self._kernel(group) if group.kind == "kernel" else self._product(group)
            if step is None:
                return None
            steps.append(step)
        leaves = (*self.program.graph.inputs, *self.program.shared)
        inputs = [self._specification(variable) for variable in leaves]
        outputs = [self._specification(variable) for variable in _returned(self.program)]
        library = thread_functions() if self.wakes_threads else None
        return native_call(inputs, outputs, steps, otherwise, self.kept, library)

    def _shown(self, node: Apply) -> _View | None:
        operand = self._view(node.inputs[0])
        if isinstance(node.op, DimShuffle):
            return operand.shuffled(node.op)
        assert isinstance(node.op, Subtensor)
        return operand.part(node.op)

    def _shape(self, variable: Variable) -> Shape:
        if isinstance(variable, Constant):
            return tuple(np.shape(variable.data))
        return self.shapes[variable]

    def _specification(self, variable: Variable) -> ArraySpecification:
        return ArraySpecification(variable.tensor_type.numpy_dtype, self._shape(variable))

    def _view(self, variable: Variable) -> _View:
        known = self.views.get(variable)
        if known is None:
            shape = self._shape(variable)
            itemsize = variable.tensor_type.numpy_dtype.itemsize
            known = self.views[variable] = _View(self._place(variable), shape, _contiguous(shape), itemsize)
        return known

    def _place(self, variable: Variable) -> Place:
        base = _base(self.program, variable)
        if isinstance(base, Constant) and base not in self.places:
            data = np.ascontiguousarray(base.data)
            self.kept.append(data)
            self.places[base] = Place("fixed", int(data.ctypes.data))
        return self.places[base]

    def _kernel(self, group: Group) -> KernelStep | None:
        call = self.program.kernels[group]
        if call.code is None:
            return None
        arrays = [(self._place(output), self._specification(output)) for output in group.outputs]
        for variable in call.inputs:
            view = self._view(variable)
            if not view.is_contiguous:
                return None
            arrays.append((view.place, self._specification(variable)))
        self.kept.append(call.code)
        return KernelStep(call.code.address, tuple(arrays))

    def _product(self, group: Group) -> RoutineStep | None:
        node = group.nodes[0]
        output, scales = self._view(node.outputs[0]), (1.0, 0.0)
        operands = node.inputs
        if isinstance(node.op, AccumulateProduct):
            _, alpha, *operands, beta = node.inputs
            assert isinstance(alpha, Constant)
            assert isinstance(beta, Constant)
            scales = float(alpha.data), float(beta.data)
        left, right = map(self._view, operands)
        (rows, inner), columns = left.shape, right.shape[1]
        self.wakes_threads = self.wakes_threads or wakes_threads(rows, inner, columns)
        found = product_pointers(
            node.outputs[0].tensor_type.dtype, left.shape, left.strides, right.shape, right.strides, scales
        )
        if found is None or 0 in (*left.shape, *right.shape):
            return None
        address, arguments, kept = found
        self.kept.append(kept)
        places = {"left": left.place, "right": right.place, "output": output.place}
        pointers = tuple(places[one] if isinstance(one, str) else Place("fixed", one) for one in arguments)
        return RoutineStep(address, pointers)
