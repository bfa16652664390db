"""Products with structured matrices as steps of native functions."""

from __future__ import annotations

from collections.abc import Callable

from esat.codegen.matmul.structured import (
    SHARED_FROM,
    SHARED_FROM_VECTOR,
    WOKEN_FROM,
    compiled,
    diagonal_matmul,
    matmul_diagonal,
    matmul_tridiagonal,
    mirror,
    tridiagonal_matmul,
)
from esat.codegen.matmul.structured_routine import StructuredRoutine, structure_pays
from esat.codegen.native_functions.native_plan import ArraySpecification, KernelStep, Step
from esat.graph import Apply
from esat.ops.linalg.structured import StructuredProduct
from esat.runtime.native.native_blas import BlasNumbers, dtype_of, gram_triangle, stored
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError, has_one_thread
from esat.runtime.native.native_products import product
from esat.runtime.native.native_triangles import triangles_read
from esat.runtime.native.native_views import NativeView


def structured_product(memory: NativeMemory, node: Apply) -> list[Step]:
    """By the routines that the driver calls, and as a plain product where it calls none."""
    op = node.op
    assert isinstance(op, StructuredProduct)
    left, right, output = map(memory.view, (*node.inputs, node.outputs[0]))
    matrix, other = (right, left) if op.side == "right" else (left, right)
    is_plain = op.structure != "gram" and matrix.shape[0] != matrix.shape[1]
    if is_plain or 0 in (*left.shape, *right.shape) or not output.is_contiguous:
        return product(memory, node)
    if not structure_pays(op, left.shape, right.shape):
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


def _gram(memory: NativeMemory, node: Apply, left: NativeView, output: NativeView) -> list[Step]:
    """One triangle, and its mirror image unless all who read the product read that triangle alone."""
    read = triangles_read(memory.program, node.outputs[0])
    steps = gram_triangle(memory, left, output, "upper" if read == {"upper"} else "lower")
    if len(read) < 2:
        return steps
    code = compiled(mirror, dtype_of(output).name, _routine(memory, node).target, 2)
    memory.kept.append(code)
    specification = ArraySpecification(dtype_of(output), output.shape)
    return [*steps, KernelStep(code.address, ((output.place, specification),))]


def _triangular(
    memory: NativeMemory, op: StructuredProduct, matrix: NativeView, other: NativeView, output: NativeView
) -> list[Step]:
    """In place, in a copy of the other operand; see the driver's routine for sides and triangles."""
    steps: list[Step] = memory.move(output, other, dtype_of(output))
    matrix, by_rows, distance, copies = stored(memory, matrix)
    right, size = op.side == "right", matrix.shape[0]
    triangle = "L" if (op.structure == "lower") != by_rows else "U"
    numbers = BlasNumbers(memory, output)
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
    matrix, _, distance, steps = stored(memory, matrix)
    vector = other if other.is_contiguous else memory.scratch(other.shape, dtype_of(other))
    if vector is not other:
        steps += memory.move(vector, other, dtype_of(other))
    arguments = (matrix.shape[0], 1.0, matrix.place, distance, vector.place, 1, 0.0, output.place, 1)
    return [*steps, BlasNumbers(memory, output).step("symv", "U", *arguments)]


def _by_diagonals(
    memory: NativeMemory, node: Apply, matrix: NativeView, other: NativeView, output: NativeView
) -> list[Step]:
    op = node.op
    assert isinstance(op, StructuredProduct)
    right, dtype = op.side == "right", dtype_of(output)
    function: Callable[..., None] = matmul_diagonal if right else diagonal_matmul
    offsets: tuple[int, ...] = (0,)
    if op.structure == "tridiagonal":
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
