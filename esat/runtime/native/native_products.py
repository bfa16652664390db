"""Products of matrices as steps of native functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from esat.codegen.ground.blas_library import (
    WOKEN_FROM,
    WOKEN_FROM_VECTOR,
    Package,
    wakes_threads,
)
from esat.codegen.matmul.blas import HANDED_TO_NUMPY, ProductRoutine
from esat.codegen.matmul.shared_products import SHARED_FROM, SMALL_PRODUCT
from esat.codegen.matmul.small_products import order_of, product_pointers
from esat.codegen.matmul.structured_routine import StructuredRoutine
from esat.codegen.matmul.unrolled_products import UnrolledProduct, unrolled_product
from esat.codegen.native_functions.native_plan import (
    ArraySpecification,
    KernelStep,
    Place,
    RepeatedSteps,
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
from esat.graph import Apply, Constant
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.runtime.native.native_blas import gram_triangle
from esat.runtime.native.native_lapack import element, matrices, transposed
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError, has_one_thread
from esat.runtime.native.native_triangles import Triangle, is_read_by_columns, triangles_read
from esat.runtime.native.native_views import NativeView

_AT_ONCE = 4
"""Rows or columns of a matrix that OpenBLAS reads at once for a product with a vector."""


def product(memory: NativeMemory, node: Apply) -> list[Step]:
    """A product of matrices, through the library that the program's routine takes for it."""
    if isinstance(node.op, AccumulateProduct):
        return _added_product(memory, node)
    left, right, output = map(memory.view, (*node.inputs, node.outputs[0]))
    routine, dtype = memory.program.routines[node], node.outputs[0].tensor_type.dtype
    small = None
    if isinstance(routine, StructuredRoutine):
        routine = routine.plain
    if isinstance(routine, ProductRoutine):
        small = _unrolled(element(left, 2), element(right, 2), routine.largest_unrolled)
    if small is not None and 0 not in output.shape:
        address = small.address()
        return matrices(memory, node, lambda *views: [_unrolled_step(address, *views)])
    if len(output.shape) == 2:
        if _is_made_by_columns(memory, node, left, output):
            by_columns = replace(output, strides=(1, output.shape[0]))
            memory.define(node.outputs[0], by_columns)
            left, right, output = transposed(right), transposed(left), transposed(by_columns)
        return _one_product(memory, dtype, left, right, output)
    if right.size == int(np.prod(right.shape[-2:])) and left.is_contiguous and right.size:
        # One matrix for all: their rows are those of one matrix.
        rows = left.reshaped((left.size // left.shape[-1], left.shape[-1]))
        flat = output.reshaped((rows.shape[0], right.shape[-1]))
        return _one_product(memory, dtype, rows, element(right, 2), flat)

    def one(left: NativeView, right: NativeView, output: NativeView) -> list[Step]:
        return _one_product(memory, dtype, left, right, output, package="numpy")

    return matrices(memory, node, one)


def _added_product(memory: NativeMemory, node: Apply) -> list[Step]:
    """A product that is added to what stands in the memory of its result, or is copied there before."""
    held, alpha, *operands, beta = node.inputs
    if not isinstance(alpha, Constant) or not isinstance(beta, Constant):
        raise NoNativeFormError
    scales = float(alpha.data), float(beta.data)
    if 0.0 in scales:  # BLAS takes them for nothing, where they meet what is not finite
        raise NoNativeFormError
    copied: list[Step] = []
    if isinstance(node.op, AccumulateProduct) and node.op.inplace:
        memory.define(node.outputs[0], memory.view(held))
    else:
        target, source = memory.target(node.outputs[0]), memory.view(held)
        copied = memory.move(target, source, held.tensor_type.numpy_dtype)
    left, right, output = map(memory.view, (*operands, node.outputs[0]))
    is_turned = len(output.shape) == 2 and not output.is_contiguous
    if is_turned:  # it may be the view of a transposed matrix
        left, right, output = transposed(right), transposed(left), transposed(output)
    if not output.is_contiguous:
        raise NoNativeFormError
    output = output.reshaped((left.shape[0], right.shape[1]))  # it may lack an axis of size 1
    half = None if is_turned else _half(memory, node, left, right)
    if half is not None:
        return [*copied, *gram_triangle(memory, left, output, half, scales)]
    dtype = node.outputs[0].tensor_type.dtype
    return [*copied, *_one_product(memory, dtype, left, right, output, scales)]


def _half(memory: NativeMemory, node: Apply, left: NativeView, right: NativeView) -> Triangle | None:
    """The only triangle that is read of a sum with ``left @ left.T``, where it takes less than the whole."""
    (rows, inner), read = left.shape, triangles_read(memory.program, node.outputs[0])
    if left != transposed(right) or len(read) != 1 or rows * inner * rows <= SMALL_PRODUCT:
        return None
    if wakes_threads(rows, inner, rows):
        memory.keep_alone("scipy")
    return next(iter(read))


def _is_made_by_columns(memory: NativeMemory, node: Apply, left: NativeView, output: NativeView) -> bool:
    """Whether a product with more rows than columns is made as its transpose, which takes less time."""
    (rows, columns), inner = output.shape, left.shape[1]
    return (
        isinstance(node.op, MatMul)
        and rows > columns > 1
        and rows * inner * columns > SMALL_PRODUCT
        and is_read_by_columns(memory.program, node.outputs[0])
    )


def _unrolled(left: NativeView, right: NativeView, largest: int) -> UnrolledProduct | None:
    """The product of two matrices as code of its own."""
    dtype = f"float{8 * left.itemsize}"
    return unrolled_product(dtype, left.shape, left.strides, right.shape, right.strides, largest)


def _unrolled_step(address: int, *views: NativeView) -> RoutineStep:
    return RoutineStep(address, tuple(view.place for view in views), integers=(1, 0, 0))


def _one_product(
    memory: NativeMemory,
    dtype: str,
    left: NativeView,
    right: NativeView,
    output: NativeView,
    scales: tuple[float, float] = (1.0, 0.0),
    package: Package = "scipy",
) -> list[Step]:
    if not output.is_contiguous:
        raise NoNativeFormError
    steps = list[Step]()
    (rows, inner), columns = left.shape, right.shape[1]
    if 1 in (rows, columns) and package == "scipy":
        if rows * inner * columns >= HANDED_TO_NUMPY:
            package = "numpy"
            if scales != (1.0, 0.0):  # it adds what it has multiplied afterwards
                raise NoNativeFormError
    elif rows == columns == 1 and package == "numpy":
        raise NoNativeFormError  # NumPy's sum of products is another function
    elif memory.unlocked and rows * inner * columns >= SHARED_FROM and not has_one_thread(memory.program):
        raise NoNativeFormError  # several threads share its parts
    wakes = wakes_threads(rows, inner, columns)
    in_pieces = wakes and rows * inner * columns < SHARED_FROM and not memory.may_keep_alone(package)
    if wakes and not in_pieces:
        memory.keep_alone(package)
    operands = []
    for operand in (left, right):
        copy = operand
        if order_of(operand.shape, operand.strides) is None:
            copy = memory.scratch(operand.shape, np.dtype(dtype))
            steps += memory.move(copy, operand, np.dtype(dtype))
        operands.append(copy)
    left, right = operands
    if in_pieces:
        return [*steps, *_in_pieces(memory, dtype, left, right, output, scales, package)]
    return [*steps, _by_library(memory, dtype, left, right, output, scales, package)]


def _by_library(
    memory: NativeMemory,
    dtype: str,
    left: NativeView,
    right: NativeView,
    output: NativeView,
    scales: tuple[float, float],
    package: Package,
) -> RoutineStep:
    found = product_pointers(dtype, left.shape, left.strides, right.shape, right.strides, scales, package)
    if found is None or 0 in (*left.shape, *right.shape):
        raise NoNativeFormError
    address, arguments, kept = found
    memory.kept.append(kept)
    places = {"left": left.place, "right": right.place, "output": output.place}
    pointers = tuple(places[one] if isinstance(one, str) else Place("fixed", one) for one in arguments)
    return RoutineStep(address, pointers)


def _in_pieces(
    memory: NativeMemory,
    dtype: str,
    left: NativeView,
    right: NativeView,
    output: NativeView,
    scales: tuple[float, float],
    package: Package,
) -> list[Step]:
    """A product in pieces that are too small for the library to wake its threads, which a function that gives
    up the lock cannot keep it from otherwise. Pieces are of rows of the left matrix, or of its columns, whose
    products are added up in the output."""
    if left.shape[0] == 1 < right.shape[1]:
        left, right, output = transposed(right), transposed(left), transposed(output)
    axis, length = _piece(left, right.shape[1])
    whole, rest = divmod(left.shape[axis], length)
    if right.shape[1] > 1 and 1 in (length, rest):
        raise NoNativeFormError  # a product with a vector, which wakes threads sooner
    alpha, beta = scales
    cut: tuple[int | None, ...] = (0, None, 0)
    runs = [(0, length, whole, beta), (whole * length, rest, 1, beta)]
    if axis == 1:
        cut = (1, 0, None)
        runs = [(0, length, 1, beta), (length, length, whole - 1, 1.0), (whole * length, rest, 1, 1.0)]
    steps: list[Step] = []
    for start, size, times, kept in runs:
        if not size or not times:
            continue
        cursors, pieces = [], []
        for view, along in zip((left, right, output), cut, strict=True):
            piece = view
            if along is not None:
                piece = view.section(along, start, size)
                cursors.append((memory.choice(), piece.place, (size * view.byte_strides[along],)))
                piece = replace(piece, place=Place("chosen", cursors[-1][0]))
            pieces.append(piece)
        first, second, target = pieces
        step = _by_library(memory, dtype, first, second, target, (alpha, kept), package)
        steps.append(RepeatedSteps((times,), tuple(cursors), (step,)))
    return steps


def _piece(left: NativeView, columns: int) -> tuple[int, int]:
    """Which axis of the left matrix is cut, and into which lengths.

    Of a product with a vector that is the axis along which neighbours lie apart, unless that leaves fewer of
    these than the library reads at once.
    """
    if columns > 1:
        rows, most = left.shape[0], (WOKEN_FROM - 1) // (left.shape[1] * columns)
        return 0, -(-rows // -(-rows // most))
    order = order_of(left.shape, left.strides)
    apart = int(order is not None and order[0] == "F")
    length = (WOKEN_FROM_VECTOR - 1) // left.shape[1 - apart] // _AT_ONCE * _AT_ONCE
    return (apart, length) if length else (1 - apart, (WOKEN_FROM_VECTOR - 1) // left.shape[apart])


def rows_product(memory: NativeMemory, node: Apply) -> list[Step]:
    """A product with a matrix and with its transpose in one go."""
    matrix, operand, *others = map(memory.view, node.inputs)
    (rows, columns), result = matrix.shape, memory.view(node.outputs[0])
    in_order = all(view.is_contiguous for view in (matrix, operand, *others))
    if not in_order or operand.shape != (columns, 1) or not stays_in_cache(columns, matrix.itemsize):
        raise NoNativeFormError
    parts = parts_of(rows, columns)
    if parts > 1 and not has_one_thread(memory.program):
        raise NoNativeFormError
    routine = memory.program.routines[node]
    assert isinstance(routine, RowsRoutine)
    target = routine.target
    code = compile_rows(routine.kernel, rows_at_once(columns, matrix.itemsize, target), target)
    memory.kept.append(code)
    dtype = node.outputs[0].tensor_type.numpy_dtype
    vector, partial = ArraySpecification(dtype, (columns,)), ArraySpecification(dtype, (parts, columns))
    sums = memory.written(np.empty(partial.shape, dtype)) if parts > 1 else result.place
    arrays = [(matrix.place, ArraySpecification(dtype, matrix.shape)), (operand.place, vector)]
    arrays.append((sums, partial))
    arrays += [
        (memory.view(variable).place, memory.specification(variable))
        for variable in (*node.inputs[2:], *node.outputs[1:])
    ]
    arrays.append((result.place, vector))
    integers = (block_of(columns, dtype.itemsize, target), 0, 1)
    return [KernelStep(code.address, tuple(arrays), integers=integers)]


def row_blocks(memory: NativeMemory, node: Apply) -> list[Step]:
    """Layers over rows, block by block."""
    inputs, outputs = list(map(memory.view, node.inputs)), list(map(memory.view, node.outputs))
    routine = memory.program.routines[node]
    assert isinstance(routine, RowBlocksRoutine)
    sizes = routine.sizes([view.shape for view in inputs])
    if not sizes.fits or not all(view.is_contiguous for view in (*inputs, *outputs)):
        raise NoNativeFormError
    if sizes.parts > 1 and not has_one_thread(memory.program):
        raise NoNativeFormError
    if sizes.largest_product >= WOKEN_FROM:
        memory.keep_alone("scipy")
    dtype = node.outputs[0].tensor_type.numpy_dtype
    arrays = [(view.place, ArraySpecification(dtype, view.shape)) for view in inputs]
    sums = [view for view, is_sum in zip(outputs, routine.is_sum, strict=True) if is_sum]
    arrays += [(view.place, ArraySpecification(dtype, view.shape)) for view in outputs if view not in sums]
    for view, size in zip(sums, sizes.sums, strict=True):
        place = view.place
        if sizes.parts > 1:
            place = memory.written(np.empty((sizes.parts, size), dtype))
        arrays.append((place, ArraySpecification(dtype, (sizes.parts, size))))
    arrays += [
        (view.place, ArraySpecification(dtype, (size,))) for view, size in zip(sums, sizes.sums, strict=True)
    ]
    scratch = new_scratch(sizes, dtype)
    for place, array in ((memory.written(scratch), scratch), (memory.fixed(sizes.places), sizes.places)):
        arrays.append((place, ArraySpecification(array.dtype, array.shape)))
    memory.kept.append(routine.compiled)
    return [KernelStep(routine.compiled.address, tuple(arrays), (*routine.numbers(sizes), 0, 1))]
