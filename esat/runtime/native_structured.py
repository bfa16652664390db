"""Products with structured matrices as steps of native functions."""

from __future__ import annotations

import numpy as np

from esat.codegen.matmul.small_products import RoutineNumbers, order_of
from esat.codegen.matmul.structured import SHARED_FROM, SHARED_FROM_VECTOR, WOKEN_FROM
from esat.codegen.matmul.structured_kernels import (
    compiled,
    diagonal_matmul,
    matmul_diagonal,
    matmul_tridiagonal,
    mirror,
    tridiagonal_matmul,
)
from esat.codegen.matmul.structured_routine import StructuredRoutine, structure_pays
from esat.codegen.native_plan import ArraySpecification, KernelStep, Place, RoutineStep, Step
from esat.graph import Apply
from esat.ops.linalg.structured import StructuredProduct
from esat.runtime.native_memory import NativeMemory, NoNativeFormError, has_one_thread
from esat.runtime.native_products import product
from esat.runtime.native_triangles import triangles_read
from esat.runtime.native_views import NativeView


def structured_product(memory: NativeMemory, node: Apply) -> list[Step]:
    """By the routines that the driver calls, and as a plain product where it calls none."""
    op = node.op
    assert isinstance(op, StructuredProduct)
    left, right, output = map(memory.view, (*node.inputs, node.outputs[0]))
    matrix, other = (right, left) if op.side == "right" else (left, right)
    is_plain = op.structure != "gram" and matrix.shape[0] != matrix.shape[1]
    if is_plain or 0 in (*left.shape, *right.shape) or not output.is_contiguous:
        return product(memory, node)
    if not structure_pays(op, *left.shape, right.shape[1]):
        return product(memory, node)
    _keep_alone(memory, op, left, output)
    if op.structure == "gram":
        return _gram(memory, node, left, output)
    if op.structure in ("diagonal", "tridiagonal"):
        return _by_diagonals(memory, node, matrix, other, output)
    if op.structure == "symmetric":
        return _symmetric(memory, matrix, other, output)
    return _triangular(memory, op, matrix, other, output)


def _keep_alone(memory: NativeMemory, op: StructuredProduct, left: NativeView, output: NativeView) -> None:
    if op.structure in ("diagonal", "tridiagonal"):
        return
    work = left.size * output.shape[1]
    if work >= (SHARED_FROM_VECTOR if 1 in output.shape else SHARED_FROM) and not has_one_thread(
        memory.program
    ):
        raise NoNativeFormError  # it has the library's threads
    if work >= WOKEN_FROM:
        memory.keep_alone("scipy")


class _Numbers:
    """Arguments of functions of SciPy's BLAS, which all are pointers."""

    def __init__(self, memory: NativeMemory, view: NativeView) -> None:
        self.numbers = RoutineNumbers(f"float{8 * view.itemsize}", "scipy")
        memory.kept.append(self.numbers)

    def step(self, name: str, letters: str, *arguments: Place | int | float) -> RoutineStep:
        address = self.numbers.address(name)
        if address is None:
            raise NoNativeFormError
        places = [Place("fixed", self.numbers.letter(letter)) for letter in letters]
        for one in arguments:
            if isinstance(one, Place):
                places.append(one)
            else:
                number = self.numbers.integer if isinstance(one, int) else self.numbers.scalar
                places.append(Place("fixed", number(one)))  # type: ignore[arg-type]
        return RoutineStep(address, tuple(places))


def _dtype(view: NativeView) -> np.dtype[np.generic]:
    return np.dtype(f"float{8 * view.itemsize}")


def _stored(memory: NativeMemory, matrix: NativeView) -> tuple[NativeView, bool, int, list[Step]]:
    """A matrix whose rows or columns lie in one piece each, whether rows do, and their distance."""
    order, steps = order_of(matrix.shape, matrix.strides), list[Step]()
    if order is None:
        copy = memory.scratch(matrix.shape, _dtype(matrix))
        steps = memory.move(copy, matrix, _dtype(matrix))
        matrix, order = copy, ("C", matrix.shape[1])
    return matrix, order[0] == "C", order[1], steps


def _gram(memory: NativeMemory, node: Apply, left: NativeView, output: NativeView) -> list[Step]:
    """One triangle, and its mirror image unless all who read the product read that triangle alone.

    A matrix by rows is the transpose of one by columns, which is how BLAS sees both.
    """
    left, by_rows, distance, steps = _stored(memory, left)
    rows, inner = left.shape
    read = triangles_read(memory.program, node.outputs[0])
    above = read == {"upper"}
    form = ("L" if above else "U") + ("T" if by_rows else "N")
    arguments = (rows, inner, 1.0, left.place, distance, 0.0, output.place, rows)
    steps.append(_Numbers(memory, output).step("syrk", form, *arguments))
    if len(read) < 2:
        return steps
    code = compiled(mirror, _dtype(output).name, _routine(memory, node).target, 2)
    memory.kept.append(code)
    specification = ArraySpecification(_dtype(output), output.shape)
    return [*steps, KernelStep(code.address, ((output.place, specification),))]


def _triangular(
    memory: NativeMemory, op: StructuredProduct, matrix: NativeView, other: NativeView, output: NativeView
) -> list[Step]:
    """In place, in a copy of the other operand; see the driver's routine for sides and triangles."""
    steps: list[Step] = memory.move(output, other, _dtype(output))
    matrix, by_rows, distance, copies = _stored(memory, matrix)
    right, size = op.side == "right", matrix.shape[0]
    triangle = "L" if (op.structure == "lower") != by_rows else "U"
    numbers = _Numbers(memory, output)
    if 1 in output.shape:
        form = triangle + ("T" if by_rows != right else "N") + "N"
        step = numbers.step("trmv", form, size, matrix.place, distance, output.place, 1)
    else:
        form = ("L" if right else "R") + triangle + ("N" if by_rows else "T") + "N"
        sizes = output.shape[::-1]
        step = numbers.step("trmm", form, *sizes, 1.0, matrix.place, distance, output.place, sizes[0])
    return [*copies, *steps, step]


def _symmetric(memory: NativeMemory, matrix: NativeView, other: NativeView, output: NativeView) -> list[Step]:
    """A matrix times a column, or a row times it: one triangle is read."""
    matrix, _, distance, steps = _stored(memory, matrix)
    vector = other if other.is_contiguous else memory.scratch(other.shape, _dtype(other))
    if vector is not other:
        steps += memory.move(vector, other, _dtype(other))
    arguments = (matrix.shape[0], 1.0, matrix.place, distance, vector.place, 1, 0.0, output.place, 1)
    return [*steps, _Numbers(memory, output).step("symv", "U", *arguments)]


def _by_diagonals(
    memory: NativeMemory, node: Apply, matrix: NativeView, other: NativeView, output: NativeView
) -> list[Step]:
    op = node.op
    assert isinstance(op, StructuredProduct)
    right, dtype = op.side == "right", _dtype(output)
    if op.structure == "diagonal":
        function, offsets = matmul_diagonal if right else diagonal_matmul, (0,)
    else:
        function, offsets = matmul_tridiagonal if right else tridiagonal_matmul, (-1, 0, 1)
    steps, operands = list[Step](), list[NativeView]()
    for view in (*(matrix.diagonal(offset) for offset in offsets), other):
        operands.append(view if view.is_contiguous else memory.scratch(view.shape, dtype))
        if not view.is_contiguous:
            steps += memory.move(operands[-1], view, dtype)
    ranks = (*(1 for _ in offsets), 2, 2)
    code = compiled(function, dtype.name, _routine(memory, node).target, *ranks)
    memory.kept.append(code)
    arrays = tuple((view.place, ArraySpecification(dtype, view.shape)) for view in (*operands, output))
    return [*steps, KernelStep(code.address, arrays)]


def _routine(memory: NativeMemory, node: Apply) -> StructuredRoutine:
    routine = memory.program.routines[node]
    assert isinstance(routine, StructuredRoutine)
    return routine
