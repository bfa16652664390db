"""Products: dot and its relatives, all through MatMul, products and sums."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from esat.errors import AxisError, ShapeError, describe
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import MAXIMUM_RANK
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import element_count, size_of, sizes_of
from esat.ops.arrays.view import expand_dims, flatten, moveaxis, reshape, squeeze, transpose
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL, check_inner_sizes, matmul
from esat.ops.control import specify_shape
from esat.ops.inference.axes import ordered_axes
from esat.ops.inference.broadcasting import equalize_ranks
from esat.ops.inference.promotion import common_dtype
from esat.ops.reduction import SUM, reduce

__all__ = [
    "batched_dot", "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot",
    "vecdot", "vecmat",
]  # fmt: skip


def dot(a: Any, b: Any) -> Variable:
    """``numpy.dot``: matrix product up to rank 2, product with a scalar, else the sum over the last axis of
    ``a`` and the last but one of ``b``.

    Raises
    ------
    ShapeError
        When the sizes of the contracted axes are known to differ.
    """
    first, second = as_variable(a), as_variable(b)
    ranks = first.tensor_type.ndim, second.tensor_type.ndim
    if 0 in ranks:
        product: Variable = op_named("mul")(first, second)
        return product
    check_inner_sizes("dot", first, second)
    if ranks[1] == 1 or (ranks[0] <= 2 and ranks[1] == 2):
        return matmul(first, second)
    return tensordot(first, second, ([ranks[0] - 1], [ranks[1] - 2]))


def vdot(a: Any, b: Any) -> Variable:
    """Sum of the products of all elements, the first operand's conjugated; ``numpy.vdot``."""
    first = as_variable(a)
    if first.tensor_type.kind == "c":
        first = op_named("conj")(first)
    return matmul(_as_vector(first), _as_vector(as_variable(b)))


def vecdot(x1: Any, x2: Any, axis: int = -1) -> Variable:
    """Sum of products along one axis, the first operand's conjugated; other axes broadcast.

    Raises
    ------
    ShapeError
        When the sizes of the axis differ, also where one is 1.
    """
    first, second = as_variable(x1), as_variable(x2)
    dtype = common_dtype("vecdot", [first, second])
    moved = [moveaxis(cast(operand, dtype), axis, -1) for operand in (first, second)]
    sizes = [operand.tensor_type.shape[-1] for operand in moved]
    if None not in sizes and sizes[0] != sizes[1]:
        reason = f"vectors of {sizes[0]} and {sizes[1]} elements"
        raise ShapeError(describe("vecdot", [first.type, second.type], reason))
    if sizes[0] != sizes[1]:
        # An axis known to have one element would be spread along one that turns out to have more.
        size = sizes[0] if sizes[1] is None else sizes[1]
        moved = [specify_shape(v, (*[None] * (v.tensor_type.ndim - 1), size)) for v in moved]
    if moved[0].tensor_type.kind == "c":
        moved[0] = op_named("conj")(moved[0])
    return cast(reduce(SUM, op_named("mul")(*moved), -1), dtype)


def matvec(x1: Any, x2: Any) -> Variable:
    """Products ``(..., m, n) @ (..., n)`` of matrices and vectors, axes before them broadcast."""
    matrices = as_variable(x1)
    if matrices.tensor_type.ndim < 2:
        raise ShapeError(describe("matvec", [matrices.type, as_variable(x2).type], "the first are matrices"))
    return squeeze(matmul(matrices, expand_dims(x2, -1)), -1)


def vecmat(x1: Any, x2: Any) -> Variable:
    """Products ``conj((..., n)) @ (..., n, m)`` of vectors and matrices, axes before them broadcast."""
    rows = as_variable(x1)
    if rows.tensor_type.kind == "c":
        rows = op_named("conj")(rows)
    matrices = as_variable(x2)
    if matrices.tensor_type.ndim < 2:
        raise ShapeError(describe("vecmat", [rows.type, matrices.type], "the second are matrices"))
    return squeeze(matmul(expand_dims(rows, -2), matrices), -2)


def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Variable:
    """Vector products of vectors of three elements; other axes broadcast.

    A vector of two elements has a third one of zero. Of two such vectors only the third element of the
    product is given, without an axis; NumPy warns that it will not do so for ever.

    Parameters
    ----------
    a, b
        Variables or arrays.
    axisa, axisb, axisc
        The axes of the vectors in ``a``, in ``b`` and in the result.
    axis
        In place of all three.

    Raises
    ------
    ShapeError
        When the size of the axis is neither 3 nor 2; at run time, where it was not known and is not 3.
    """
    moved = []
    axes = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    for operand, place in zip((as_variable(a), as_variable(b)), axes, strict=False):
        last = moveaxis(operand, place, -1)
        size = last.tensor_type.shape[-1]
        if size not in (None, 2, 3):
            reason = f"vectors along axis {place} have {size} elements, not 3"
            raise ShapeError(describe("cross", [operand.type], reason))
        if size is None:
            last = specify_shape(last, (*[None] * (last.tensor_type.ndim - 1), 3))
        moved.append(last)
    one, other = ([part[..., place] for place in range(part.tensor_type.shape[-1] or 3)] for part in moved)
    is_flat = len(one) == len(other) == 2
    pairs = [(0, 1)] if is_flat else [(1, 2), (2, 0), (0, 1)]
    parts = [_minor(one, other, *pair) for pair in pairs]
    if is_flat:
        return parts[0]
    return moveaxis(join([expand_dims(part, -1) for part in parts], -1), -1, axes[2])


def _minor(one: Sequence[Variable], other: Sequence[Variable], i: int, j: int) -> Variable:
    """``one[i] * other[j] - one[j] * other[i]``, in which a third element that is not there is zero."""
    mul = op_named("mul")
    first, second = (
        mul(one[p], other[q]) if p < len(one) and q < len(other) else None for p, q in ((i, j), (j, i))
    )
    if first is None or second is None:
        result: Variable = op_named("neg")(second) if first is None else first
        return result
    difference: Variable = op_named("sub")(first, second)
    return difference


def inner(a: Any, b: Any) -> Variable:
    """Sum over the last axes of both; ``numpy.inner``."""
    first, second = as_variable(a), as_variable(b)
    ranks = first.tensor_type.ndim, second.tensor_type.ndim
    if 0 in ranks:
        product: Variable = op_named("mul")(first, second)
        return product
    return tensordot(first, second, ([ranks[0] - 1], [ranks[1] - 1]))


def outer(a: Any, b: Any) -> Variable:
    """All products of an element of one and an element of the other, as a matrix."""
    first, second = _as_vector(as_variable(a)), _as_vector(as_variable(b))
    product: Variable = op_named("mul")(dimshuffle(first, (0, "x")), dimshuffle(second, ("x", 0)))
    return product


def _as_vector(variable: Variable) -> Variable:
    return flatten(variable) if variable.tensor_type.ndim else dimshuffle(variable, ("x",))


def batched_dot(left: Any, right: Any) -> Variable:
    """Product of matrices (or vectors) pairwise along the first axis: ``(b, m, k)`` and ``(b, k, n)`` give
    ``(b, m, n)``; without ``m`` or ``n`` those axes are dropped.

    Raises
    ------
    ShapeError
        For an operand whose rank is not 2 or 3.
    """
    first, second = as_variable(left), as_variable(right)
    ranks = first.tensor_type.ndim, second.tensor_type.ndim
    if any(rank not in (2, 3) for rank in ranks):
        raise ShapeError(describe("batched_dot", [first.type, second.type], "operands have rank 2 or 3"))
    if ranks[0] == 2:
        first = dimshuffle(first, (0, "x", 1))
    if ranks[1] == 2:
        second = dimshuffle(second, (0, 1, "x"))
    product: Variable = MATMUL(first, second)
    kept = [0, *([1] if ranks[0] == 3 else []), *([2] if ranks[1] == 3 else [])]
    return dimshuffle(product, kept)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Variable:
    """Sum of products over pairs of axes; the other axes of ``a`` come first, then those of ``b``.

    Parameters
    ----------
    a, b
        Variables or arrays.
    axes
        The number of last axes of ``a`` that go with the first of ``b``, or two sequences of axes
        (or two axes) that go together.

    Raises
    ------
    ShapeError
        When sizes of axes that go together are known to differ.
    AxisError
        For an axis out of range or named twice.
    """
    first, second = as_variable(a), as_variable(b)
    pairs = _axis_pairs(first, second, axes)
    for one, other in zip(*pairs, strict=True):
        sizes = first.tensor_type.shape[one], second.tensor_type.shape[other]
        if None not in sizes and sizes[0] != sizes[1]:
            reason = f"sizes {sizes[0]} and {sizes[1]} of axes {one} and {other} do not match"
            raise ShapeError(describe("tensordot", [first.type, second.type], reason))
    free_left = [axis for axis in range(first.tensor_type.ndim) if axis not in pairs[0]]
    free_right = [axis for axis in range(second.tensor_type.ndim) if axis not in pairs[1]]
    if not free_left and not free_right and len(pairs[0]) > 1:
        order = [other for _, other in sorted(zip(*pairs, strict=True))]
        return _sum_of_products(first, dimshuffle(second, order))
    product = matmul(
        as_matrix(first, free_left, pairs[0]),
        as_matrix(second, pairs[1], free_right),
    )
    return from_matrix(
        product,
        [size_of(first, axis) for axis in free_left],
        [size_of(second, axis) for axis in free_right],
    )


def _sum_of_products(left: Variable, right: Variable) -> Variable:
    """The sum of the products of all elements of two tensors of one shape, in the dtype of the products.

    Unlike vectors made of their elements, tensors can be read in any order while they are computed.
    """
    sizes = left.tensor_type.shape, right.tensor_type.shape
    # An axis known to have one element would be spread along one that turns out to have more.
    one, other = (
        specify_shape(operand, known) if 1 in known else operand
        for operand, known in zip((left, right), reversed(sizes), strict=True)
    )
    products = op_named("mul")(one, other)
    return cast(reduce(SUM, products), products.tensor_type.dtype)


def from_matrix(
    product: Variable, rows: Sequence[Any], columns: Sequence[Any], batch: Sequence[Any] = ()
) -> Variable:
    """The product of two :func:`as_matrix` with its last two axes parted into those of the given sizes."""
    if len(rows) <= 1 and len(columns) <= 1:
        lead = len(batch)
        return dimshuffle(product, (*range(lead), *([lead] * len(rows)), *([lead + 1] * len(columns))))
    return reshape(product, (*batch, *rows, *columns))


def _axis_pairs(left: Variable, right: Variable, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ranks = left.tensor_type.ndim, right.tensor_type.ndim
    if not isinstance(axes, (tuple, list)):
        count = operator.index(axes)
        if not 0 <= count <= min(ranks):
            reason = f"cannot contract {count} axes"
            raise AxisError(describe("tensordot", [left.type, right.type], reason))
        return tuple(range(ranks[0] - count, ranks[0])), tuple(range(count))
    if len(axes) != 2:
        raise ShapeError(describe("tensordot", [left.type, right.type], "axes are two sequences"))
    first, second = (axis if isinstance(axis, (tuple, list)) else (axis,) for axis in axes)
    if len(first) != len(second):
        reason = f"{len(first)} and {len(second)} axes do not go together"
        raise ShapeError(describe("tensordot", [left.type, right.type], reason))
    return ordered_axes("tensordot", first, ranks[0]), ordered_axes("tensordot", second, ranks[1])


def as_matrix(
    operand: Variable, rows: Sequence[int], columns: Sequence[int], batch: Sequence[int] = ()
) -> Variable:
    """The operand with axes ``batch``, then ``rows`` merged into one, then ``columns`` merged into one."""
    if len(rows) <= 1 and len(columns) <= 1:
        return dimshuffle(operand, (*batch, *(rows or "x"), *(columns or "x")))
    moved = transpose(operand, (*batch, *rows, *columns))
    sizes = [size_of(operand, axis) for axis in batch]
    return reshape(moved, (*sizes, element_count(operand, rows), element_count(operand, columns)))


def kron(a: Any, b: Any) -> Variable:
    """Kronecker product; ``numpy.kron``."""
    first, second = as_variable(a), as_variable(b)
    first, second = equalize_ranks([first, second])
    rank = first.tensor_type.ndim
    if 2 * rank > MAXIMUM_RANK:
        raise ShapeError(describe("kron", [first.type, second.type], f"at most {MAXIMUM_RANK // 2} axes"))
    one = dimshuffle(first, [axis for index in range(rank) for axis in (index, "x")])
    other = dimshuffle(second, [axis for index in range(rank) for axis in ("x", index)])
    sizes = zip(sizes_of(first), sizes_of(second), strict=True)
    return reshape(op_named("mul")(one, other), [op_named("mul")(one, other) for one, other in sizes])
