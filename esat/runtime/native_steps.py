"""The steps of a program as a native function runs them: for known shapes all is an address, or a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from esat.codegen.ground.blas_library import WOKEN_FROM, Package, thread_functions, wakes_threads
from esat.codegen.matmul.shared_products import SHARED_FROM
from esat.codegen.matmul.small_products import product_pointers
from esat.codegen.matmul.vector_products import package_of
from esat.codegen.native_call import (
    ArraySpecification,
    KernelStep,
    NativeRecipe,
    Place,
    RoutineStep,
    Step,
)
from esat.codegen.rowwise.gemv_pair import (
    RowsRoutine,
    block_of,
    compile_rows,
    parts_of,
    rows_at_once,
    stays_in_cache,
)
from esat.codegen.rowwise.layers import RowBlocksRoutine, new_scratch
from esat.codegen.threads import configured_threads, pool_address
from esat.graph import Apply, Constant, Variable
from esat.ops.accumulate import AccumulateProduct
from esat.ops.dimshuffle import DimShuffle
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.phases.group import Group
from esat.records import record
from esat.runtime.program import Program, is_fixed_part, is_plain_view
from esat.runtime.threads import CallsOfShapes

Shape = tuple[int, ...]


def returned(program: Program) -> tuple[Variable, ...]:
    """The outputs that a call returns: without the new values of shared variables."""
    outputs = program.graph.outputs
    return tuple(outputs[: len(outputs) - len(program.updated)])


def has_one_thread(program: Program) -> bool:
    """Whether no call of a program may use several threads."""
    return program.threads == 1 or (program.threads is None and configured_threads() == 1)


def is_view(group: Group) -> bool:
    """Whether a step shows elements of its operand that are known beforehand."""
    return is_plain_view(group) or (group.kind == "view" and is_fixed_part(group))


def made_in(program: Program, output: Variable) -> Variable:
    """The result in whose buffer an output stands, with other axes of size 1 perhaps."""
    node = output.owner
    if node is not None and isinstance(node.op, DimShuffle) and output not in program.memory.taken:
        kept = [axis for axis in node.op.order if axis != "x"]
        if kept == sorted(kept):
            return made_in(program, node.inputs[0])
    return base_of(program, output)


def base_of(program: Program, variable: Variable) -> Variable:
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


@record(frozen=True)
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


class NativeSteps:
    """The steps of a program for one combination of shapes.

    Parameters
    ----------
    shapes, values
        The shapes of all variables, and the values of those that shapes decide.
    frame
        Scratch arrays, which are the function's from now on.
    kept
        For each result the bases in which it may be made, see :func:`native_call`; None where it is new.
    unlocked
        Whether other Python threads run while steps do.
    large
        First result of a kernel -> its calls, where several threads could share its work.
    threads
        How many of them do.
    """

    def __init__(
        self,
        program: Program,
        shapes: Mapping[Variable, Shape],
        values: Mapping[Variable, Any],
        frame: Sequence[np.ndarray[Any, Any]],
        kept: Sequence[np.ndarray[Any, Any] | None],
        unlocked: bool = False,
        large: Mapping[Variable, CallsOfShapes] | None = None,
        threads: int = 1,
    ) -> None:
        self.large, self.threads = large or {}, threads
        self.program = program
        self.shapes = shapes
        self.values = {variable: np.ascontiguousarray(value) for variable, value in values.items()}
        self.unlocked = unlocked
        self.kept: list[object] = [tuple(self.values.values())]
        self.scratch: list[np.ndarray[Any, Any]] = list(frame)
        self.places: dict[Variable, Place] = {}
        self.views: dict[Variable, _View] = {}
        self.libraries: dict[tuple[int, int], None] = {}
        self.leaves = (*program.graph.inputs, *program.shared)
        self.bases = tuple(kept)
        for number, variable in enumerate(self.leaves):
            self.places[variable] = Place("input", number)
        for number, output in enumerate(returned(program)):
            self.places[made_in(program, output)] = Place("output", number)
        for variable, array in (*self.values.items(), *zip(program.memory.scratch, frame, strict=True)):
            self.places[variable] = Place("fixed", int(array.ctypes.data))

    def recipe(self) -> NativeRecipe | None:
        """What the native function does; None where a step needs more than its kernel or routine.

        It takes the inputs, and the values of shared variables.
        """
        steps: list[Step] = []
        for group in self.program.steps:
            if is_view(group):
                view = self._shown(group.nodes[0])
                if view is None:
                    return None
                self.views[group.nodes[0].outputs[0]] = view
                continue
            step = self._step(group)
            if step is None:
                return None
            steps.append(step)
        inputs = [self._specification(variable) for variable in self.leaves]
        outputs = [
            replace(self._specification(variable), bases=bases)
            for variable, bases in zip(returned(self.program), self.bases, strict=True)
        ]
        return NativeRecipe(
            tuple(inputs),
            tuple(outputs),
            tuple(steps),
            tuple(self.kept),
            tuple(self.libraries),
            self.unlocked,
            tuple(self.scratch),
        )

    def _step(self, group: Group) -> Step | None:
        if group.kind == "kernel":
            return self._kernel(group)
        (node,) = group.nodes
        if isinstance(node.op, RowBlocks):
            return self._row_blocks(node, node.op)
        return self._rows_product(node) if isinstance(node.op, RowsProduct) else self._product(node)

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
        base = base_of(self.program, variable)
        if isinstance(base, Constant) and base not in self.places:
            self.places[base] = self._fixed(np.ascontiguousarray(base.data))
        return self.places[base]

    def _fixed(self, array: np.ndarray[Any, Any]) -> Place:
        """The place of numbers that are known."""
        self.kept.append(array)
        return Place("fixed", int(array.ctypes.data))

    def _written(self, array: np.ndarray[Any, Any]) -> Place:
        """The place of what each call writes before it reads it."""
        self.scratch.append(array)
        return Place("fixed", int(array.ctypes.data))

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
        large = self.large.get(group.outputs[0])
        if large is None or (self.threads == 1 and not large.is_alone_shared):
            self.kept.append(call.code)
            return KernelStep(call.code.address, tuple(arrays))
        for size, dtype in large.shared.partial_results([array.shape for _, array in arrays]):
            partial = ArraySpecification(dtype, (size,))
            arrays.append((self._written(np.empty(size, dtype)), partial))
        self.kept.append(large.shared.code)
        in_threads = (pool_address(self.threads), self.threads)
        return KernelStep(large.shared.code.address, tuple(arrays), in_threads)

    def _product(self, node: Apply) -> RoutineStep | None:
        """A product of matrices, through the library that the program's routine takes for it."""
        output, scales = self._view(node.outputs[0]), (1.0, 0.0)
        operands = node.inputs
        if isinstance(node.op, AccumulateProduct):
            _, alpha, *operands, beta = node.inputs
            assert isinstance(alpha, Constant)
            assert isinstance(beta, Constant)
            scales = float(alpha.data), float(beta.data)
        dtype = node.outputs[0].tensor_type.dtype
        left, right = map(self._view, operands)
        (rows, inner), columns = left.shape, right.shape[1]
        package: Package = "scipy"
        if 1 in (rows, columns):
            package = package_of(dtype, rows * inner * columns)
            if package == "numpy" and scales != (1.0, 0.0):  # it adds what it has multiplied afterwards
                return None
        elif self.unlocked and rows * inner * columns >= SHARED_FROM:  # it is computed in parts
            return None
        if wakes_threads(rows, inner, columns) and not self._keeps_alone(package):
            return None
        found = product_pointers(dtype, left.shape, left.strides, right.shape, right.strides, scales, package)
        if found is None or 0 in (*left.shape, *right.shape):
            return None
        address, arguments, kept = found
        self.kept.append(kept)
        places = {"left": left.place, "right": right.place, "output": output.place}
        pointers = tuple(places[one] if isinstance(one, str) else Place("fixed", one) for one in arguments)
        return RoutineStep(address, pointers)

    def _keeps_alone(self, package: Package) -> bool:
        """See to it that a library has one thread; whether a product that could use more may be a step.

        A function that gives up the lock cannot tell the library, which others use meanwhile: where there are
        several threads, the product is the driver's, which shares it among them.
        """
        functions = thread_functions(package)
        if functions is not None:
            self.libraries[functions] = None
        return not self.unlocked or (has_one_thread(self.program) and functions is not None)

    def _rows_product(self, node: Apply) -> KernelStep | None:
        matrix, operand, *others = map(self._view, node.inputs)
        (rows, columns), result = matrix.shape, self._view(node.outputs[0])
        in_order = all(view.is_contiguous for view in (matrix, operand, *others))
        if not in_order or operand.shape != (columns, 1) or not stays_in_cache(columns, matrix.itemsize):
            return None
        parts = parts_of(rows, columns)
        if parts > 1 and not has_one_thread(self.program):
            return None
        routine = self.program.routines[node]
        assert isinstance(routine, RowsRoutine)
        target = routine.target
        code = compile_rows(routine.kernel, rows_at_once(columns, matrix.itemsize, target), target)
        self.kept.append(code)
        dtype = node.outputs[0].tensor_type.numpy_dtype
        vector, partial = ArraySpecification(dtype, (columns,)), ArraySpecification(dtype, (parts, columns))
        sums = self._written(np.empty(partial.shape, dtype)) if parts > 1 else result.place
        arrays = [(matrix.place, ArraySpecification(dtype, matrix.shape)), (operand.place, vector)]
        arrays.append((sums, partial))
        arrays += [
            (self._view(variable).place, self._specification(variable))
            for variable in (*node.inputs[2:], *node.outputs[1:])
        ]
        arrays.append((result.place, vector))
        return KernelStep(
            code.address, tuple(arrays), integers=(block_of(columns, dtype.itemsize, target), 0, 1)
        )

    def _row_blocks(self, node: Apply, op: RowBlocks) -> KernelStep | None:
        inputs, outputs = list(map(self._view, node.inputs)), list(map(self._view, node.outputs))
        routine = self.program.routines[node]
        assert isinstance(routine, RowBlocksRoutine)
        sizes = routine.sizes([view.shape for view in inputs])
        if not sizes.fits or not all(view.is_contiguous for view in (*inputs, *outputs)):
            return None
        if sizes.parts > 1 and not has_one_thread(self.program):
            return None
        if sizes.largest_product >= WOKEN_FROM and not self._keeps_alone("scipy"):
            return None
        dtype = node.outputs[0].tensor_type.numpy_dtype
        arrays = [(view.place, ArraySpecification(dtype, view.shape)) for view in inputs]
        sums = [view for view, is_sum in zip(outputs, routine.is_sum, strict=True) if is_sum]
        arrays += [
            (view.place, ArraySpecification(dtype, view.shape)) for view in outputs if view not in sums
        ]
        for view, size in zip(sums, sizes.sums, strict=True):
            place = view.place
            if sizes.parts > 1:
                place = self._written(np.empty((sizes.parts, size), dtype))
            arrays.append((place, ArraySpecification(dtype, (sizes.parts, size))))
        arrays += [
            (view.place, ArraySpecification(dtype, (size,)))
            for view, size in zip(sums, sizes.sums, strict=True)
        ]
        scratch = new_scratch(sizes, dtype)
        for place, array in ((self._written(scratch), scratch), (self._fixed(sizes.places), sizes.places)):
            arrays.append((place, ArraySpecification(array.dtype, array.shape)))
        self.kept.append(routine.compiled)
        return KernelStep(routine.compiled.address, tuple(arrays), (*routine.numbers(sizes), 0, 1))
