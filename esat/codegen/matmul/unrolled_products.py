"""Products of matrices of a few rows and columns as machine code of their own.

A function of BLAS looks at its arguments, and chooses and packs, which takes longer than so few
multiplications. Here sizes and strides are known: what remains is a loop over rows, each of which is a sum
of rows of the second matrix, or of products with its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.array_call import array_call
from esat.codegen.ground.builtin_function import is_available
from esat.codegen.ground.machine_text import HostFunction

_LANES = {"float32": 16, "float64": 8}
"""Elements of the largest vector; what the processor has not is made of several."""
_ORDER = (0, 1, 2, None, None, None)
_KINDS = {"float32": "float", "float64": "double"}


@record(frozen=True)
class UnrolledProduct(HostFunction):
    """A product ``(rows, inner) @ (inner, columns)`` of matrices with strides in elements.

    The function takes pointers to the first elements of the two matrices and of the result, which lies in C
    order and shares memory with neither; a number of such products, which is not 0; and the bytes from one
    matrix to the next, of each of the two. Results follow one another.

    Attributes
    ----------
    swapped
        Whether the function takes the second matrix first.
    """

    dtype: str
    sizes: tuple[int, int, int]
    left: tuple[int, int]
    right: tuple[int, int]
    swapped: bool = False

    def text(self) -> str:
        return _text(self)


def product_code(
    largest: int, dtype: np.dtype[Any], left: Sequence[int], right: Sequence[int]
) -> UnrolledProduct | None:
    """The code by which :func:`unrolled_plan` multiplies arrays of these shapes in C order, if any."""
    strides = [
        tuple(dtype.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape)))
        for shape in (left, right)
    ]
    plan = unrolled_plan(largest, dtype, tuple(left), strides[0], tuple(right), strides[1])
    return None if plan is None else plan[0]


def unrolled_plan(
    largest: int,
    dtype: np.dtype[Any],
    left_shape: tuple[int, ...],
    left_strides: tuple[int, ...],
    right_shape: tuple[int, ...],
    right_strides: tuple[int, ...],
) -> tuple[UnrolledProduct, Callable[..., bool]] | None:
    """The code that multiplies batches of small matrices, if any, and what calls it with arrays.

    Parameters
    ----------
    largest
        Multiplications of a matrix up to which there is code.
    left_strides, right_strides
        In bytes. The result is C-contiguous, and shares memory with neither operand.
    """
    itemsize = dtype.itemsize
    if 0 in (*left_shape, *right_shape) or not is_available():
        return None
    if any(stride % itemsize for stride in (*left_strides, *right_strides)):
        return None
    strides = [[stride // itemsize for stride in one[-2:]] for one in (left_strides, right_strides)]
    product = unrolled_product(dtype.name, left_shape[-2:], strides[0], right_shape[-2:], strides[1], largest)
    if product is None:
        return None
    batch = np.broadcast_shapes(left_shape[:-2], right_shape[:-2])
    results = left_shape[-2] * right_shape[-1] * itemsize
    steps = [
        _steps(left_shape[:-2], left_strides[:-2], batch),
        _steps(right_shape[:-2], right_strides[:-2], batch),
        [results * prod(batch[axis + 1 :]) for axis in range(len(batch))],
    ]
    starts = [
        [sum(index * step for index, step in zip(place, one, strict=False)) for one in steps]
        for place in np.ndindex(*batch[:-1])
    ]
    repeated = (batch[-1], steps[0][-1], steps[1][-1]) if batch else (1, 0, 0)
    return product, array_call(product.address(), _ORDER, repeated, starts, repeated[0])


def _steps(shape: Sequence[int], strides: Sequence[int], batch: Sequence[int]) -> list[int]:
    """Bytes along the axes of a batch that others are broadcast to."""
    steps = [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
    return [0] * (len(batch) - len(shape)) + steps


def unrolled_product(
    dtype: str,
    left_shape: Sequence[int],
    left_strides: Sequence[int],
    right_shape: Sequence[int],
    right_strides: Sequence[int],
    largest: int,
) -> UnrolledProduct | None:
    """The product of two matrices, of no more than ``largest`` multiplications; None of others.

    Strides are in elements. None, too, where the elements that are read at once do not follow each other.
    """
    (rows, inner), columns = left_shape, right_shape[1]
    sizes = (rows, inner, columns)
    if dtype not in _KINDS or not 1 <= prod(sizes) <= largest:
        return None
    left = (left_strides[0] if rows > 1 else inner, left_strides[1] if inner > 1 else 1)
    right = (right_strides[0] if inner > 1 else columns, right_strides[1] if columns > 1 else 1)
    if columns == 1 and left[1] != 1 and left[0] == 1:  # the transpose, which is a row
        return UnrolledProduct(dtype, (1, inner, rows), (inner, right[0]), (left[1], 1), swapped=True)
    product = UnrolledProduct(dtype, sizes, left, right)
    return product if _sums_rows(product) or (right[0] == left[1] == 1) else None


def _sums_rows(product: UnrolledProduct) -> bool:
    """Whether a row of the result is a sum of rows, not a row of sums."""
    _, inner, columns = product.sizes
    by_columns = product.right[0] == product.left[1] == 1 or inner == 1
    return product.right[1] == 1 and not (columns == 1 and inner > 1 and by_columns)


def _text(product: UnrolledProduct) -> str:
    rows, _, columns = product.sizes
    kind, width = _KINDS[product.dtype], _LANES[product.dtype]
    first, second = ("right", "left") if product.swapped else ("left", "right")
    lines = [
        f"define void @run(ptr noalias %{first}_first, ptr noalias %{second}_first,"
        f" ptr noalias %output_first, i64 %count, i64 %{first}_step, i64 %{second}_step) {{",
        "entry:",
        "  br label %matrix",
        "matrix:",
        "  %number = phi i64 [ 0, %entry ], [ %next_number, %after ]",
        "  %left = phi ptr [ %left_first, %entry ], [ %next_left, %after ]",
        "  %right = phi ptr [ %right_first, %entry ], [ %next_right, %after ]",
        "  %output = phi ptr [ %output_first, %entry ], [ %next_output, %after ]",
        "  br label %row",
        "row:",
        "  %i = phi i64 [ 0, %matrix ], [ %next, %row ]",
        f"  %i_left = mul i64 %i, {product.left[0]}",
        f"  %l = getelementptr {kind}, ptr %left, i64 %i_left",
        f"  %i_output = mul i64 %i, {columns}",
        f"  %o = getelementptr {kind}, ptr %output, i64 %i_output",
        *(_sum_of_rows if _sums_rows(product) else _row_of_sums)(product, kind, width),
        "  %next = add nuw i64 %i, 1",
        f"  %ends = icmp eq i64 %next, {rows}",
        "  br i1 %ends, label %after, label %row",
        "after:",
        "  %next_left = getelementptr i8, ptr %left, i64 %left_step",
        "  %next_right = getelementptr i8, ptr %right, i64 %right_step",
        f"  %next_output = getelementptr {kind}, ptr %output, i64 {rows * columns}",
        "  %next_number = add nuw i64 %number, 1",
        "  %all = icmp eq i64 %next_number, %count",
        "  br i1 %all, label %done, label %matrix",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join([*lines, *_declarations("\n".join(lines), kind)])


def _chunks(size: int, width: int) -> Iterator[tuple[int, int]]:
    """Starts and lengths of vectors."""
    for start in range(0, size, width):
        yield start, min(width, size - start)


def _sum_of_rows(product: UnrolledProduct, kind: str, width: int) -> Iterator[str]:
    _, inner, columns = product.sizes
    down, align = product.right[0], _align(kind)
    for k in range(inner):
        yield f"  %p{k} = getelementptr {kind}, ptr %l, i64 {k * product.left[1]}"
        yield f"  %x{k} = load {kind}, ptr %p{k}, align {align}"
    for start, length in _chunks(columns, width):
        vector, name = f"<{length} x {kind}>", f"c{start}"
        for k in range(inner):
            one = f"{name}_{k}"
            yield f"  %{one}_e = insertelement {vector} poison, {kind} %x{k}, i64 0"
            yield (
                f"  %{one}_s = shufflevector {vector} %{one}_e, {vector} poison,"
                f" <{length} x i32> zeroinitializer"
            )
            yield f"  %{one}_p = getelementptr {kind}, ptr %right, i64 {k * down + start}"
            yield f"  %{one}_r = load {vector}, ptr %{one}_p, align {align}"
            yield _accumulated(one, f"{name}_{k - 1}" if k else "", vector, f"%{one}_s", f"%{one}_r")
        yield f"  %{name}_o = getelementptr {kind}, ptr %o, i64 {start}"
        yield f"  store {vector} %{name}_{inner - 1}, ptr %{name}_o, align {align}"


def _row_of_sums(product: UnrolledProduct, kind: str, width: int) -> Iterator[str]:
    _, inner, columns = product.sizes
    align, chunks = _align(kind), list(_chunks(inner, width))
    for start, length in chunks:
        yield f"  %p{start} = getelementptr {kind}, ptr %l, i64 {start}"
        yield f"  %x{start} = load <{length} x {kind}>, ptr %p{start}, align {align}"
    for j in range(columns):
        parts: list[tuple[str, str, int]] = []
        for start, length in chunks:
            vector, one = f"<{length} x {kind}>", f"c{j}_{start}"
            yield f"  %{one}_p = getelementptr {kind}, ptr %right, i64 {j * product.right[1] + start}"
            yield f"  %{one}_r = load {vector}, ptr %{one}_p, align {align}"
            # Chunks of full length go on from the one before, the last one has a sum of its own.
            before = f"c{j}_{start - width}" if start and length == width else ""
            yield _accumulated(one, before, vector, f"%x{start}", f"%{one}_r")
            if before:
                parts.pop()
            parts.append((one, vector, length))
        total = ""
        for one, vector, length in parts:
            mangled = f"v{length}f{8 * align}"
            yield (
                f"  %{one}_t = call reassoc {kind} @llvm.vector.reduce.fadd.{mangled}"
                f"({kind} -0.0, {vector} %{one})"
            )
            if total:
                yield f"  %{one}_u = fadd {kind} {total}, %{one}_t"
            total = f"%{one}_u" if total else f"%{one}_t"
        yield f"  %c{j}_o = getelementptr {kind}, ptr %o, i64 {j}"
        yield f"  store {kind} {total}, ptr %c{j}_o, align {align}"


def _accumulated(one: str, before: str, vector: str, left: str, right: str) -> str:
    if not before:
        return f"  %{one} = fmul {vector} {left}, {right}"
    length, kind = vector[1:-1].split(" x ")
    mangled = f"v{length}f{8 * _align(kind)}"
    operands = f"{vector} {left}, {vector} {right}, {vector} %{before}"
    return f"  %{one} = call {vector} @llvm.fmuladd.{mangled}({operands})"


def _align(kind: str) -> int:
    return 4 if kind == "float" else 8


def _declarations(text: str, kind: str) -> Iterator[str]:
    """Of the functions that a text calls."""
    bits = 8 * _align(kind)
    for length in range(1, _LANES["float32"] + 1):
        vector, mangled = f"<{length} x {kind}>", f"v{length}f{bits}"
        if f"@llvm.fmuladd.{mangled}(" in text:
            yield f"declare {vector} @llvm.fmuladd.{mangled}({vector}, {vector}, {vector})"
        if f"@llvm.vector.reduce.fadd.{mangled}(" in text:
            yield f"declare {kind} @llvm.vector.reduce.fadd.{mangled}({kind}, {vector})"
