"""What is computed of Kronecker products, which need not be formed: ``kron(A, B) vec(X) = vec(A X B')``."""

from __future__ import annotations

from typing import Literal

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, is_oblong, is_square
from esat.classic.rules.matrix_facts import has_structure, is_known_square
from esat.graph import Apply, Constant, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.shape import ShapeI, size_of
from esat.ops.arrays.view import Reshape, reshape
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL, MatMul, swap_last_axes
from esat.ops.index.basic import subtensor
from esat.ops.inference.vectors import MakeVector
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant
from esat.ops.linalg.solve import Solve

_SPREAD: tuple[tuple[int | Literal["x"], ...], ...] = ((0, "x", 1, "x"), ("x", 0, "x", 1))
"""Orders of axes that put the rows and columns of the factors side by side."""


@local_optimizer([MatMul])
def local_kron_dot(node: Apply) -> Transformed:
    """kron(a, b) @ x and x @ kron(a, b) by products with a and with b; kron(a, b) @ kron(c, d) as
    kron(a @ c, b @ d)."""
    left, right = node.inputs
    factors, others = _factors(left), _factors(right)
    if factors is not None and others is not None and all(map(_fit, factors, others)):
        return fitting(node, _kron(*map(MATMUL, factors, others)))
    if factors is not None:
        return fitting(node, _applied(*factors, right))
    if others is not None:
        first, second = map(swap_last_axes, others)
        return fitting(node, swap_last_axes(_applied(first, second, swap_last_axes(left))))
    return False


@local_optimizer([Inverse, Solve, Cholesky])
def local_solve_kron(node: Apply) -> Transformed:
    """inv, solve and cholesky of kron(a, b) from those of a and b.

    Where factors are not square, the product is singular.
    """
    factors = _factors(node.inputs[0])
    if factors is None or any(map(is_oblong, factors)):
        return False
    first, second = factors
    if isinstance(node.op, Solve):
        return fitting(node, _solved(node.op, first, second, node.inputs[1]))
    if isinstance(node.op, Inverse):
        return fitting(node, _kron(node.op(first), node.op(second)))
    if first.tensor_type.kind != "f":
        return False
    # The product of two negative definite matrices is positive definite.
    sign = op_named("sign")(subtensor(first, (0, 0)))
    return fitting(node, _kron(*(node.op(op_named("mul")(sign, factor)) for factor in factors)))


@local_optimizer([Determinant, SignLogDeterminant, Diagonal])
def local_linalg_of_kron(node: Apply) -> Transformed:
    """det, slogdet and the diagonal of kron(a, b) from those of a and b, which are square.

    Factors must be square by type: others can make up a square matrix, too.
    """
    factors = _factors(node.inputs[0])
    if factors is None or not all(map(is_square, factors)):
        return False
    first, second = factors
    if isinstance(node.op, Diagonal):
        if node.op.offset:
            return False
        return fitting(node, _kron_of_vectors(node.op(first), node.op(second)))
    sizes = [cast(size_of(factor, 0), node.outputs[-1].tensor_type.dtype) for factor in factors]
    results = [node.op.make_node(factor).outputs for factor in factors]
    # The determinant of a times as many as b has rows: its power.
    found = [
        op_named("mul")(op_named("pow")(one, sizes[1]), op_named("pow")(other, sizes[0]))
        for one, other in zip(*results, strict=True)
    ]
    if isinstance(node.op, SignLogDeterminant):
        (_, one), (_, other) = results
        found[1] = op_named("add")(op_named("mul")(one, sizes[1]), op_named("mul")(other, sizes[0]))
    return found


@local_optimizer([Reshape])
def local_kron_of_diagonal(node: Apply) -> Transformed:
    """The Kronecker product of diagonal matrices -> the diagonal matrix of products of their diagonals."""
    factors = _factors(node.outputs[0])
    if factors is None or not all(has_structure(one, "diagonal") and is_known_square(one) for one in factors):
        return False
    return fitting(node, DiagonalOf()(_kron_of_vectors(*map(Diagonal(), factors))))


def _kron_of_vectors(first: Variable, second: Variable) -> Variable:
    return reshape(op_named("mul")(dimshuffle(first, (0, "x")), dimshuffle(second, ("x", 0))), [-1])


def _kron(first: Variable, second: Variable) -> Variable:
    spread = [dimshuffle(factor, order) for factor, order in zip((first, second), _SPREAD, strict=True)]
    sizes = [op_named("mul")(size_of(first, axis), size_of(second, axis)) for axis in (0, 1)]
    return reshape(op_named("mul")(*spread), sizes)


def _fit(left: Variable, right: Variable) -> bool:
    """Whether matrices are known to have a product."""
    inner = left.tensor_type.shape[1]
    return inner is not None and inner == right.tensor_type.shape[0]


def _solved(op: Solve, first: Variable, second: Variable, sides: Variable) -> Variable | None:
    """``x`` with ``kron(first, second) @ x = sides``: columns are matrices, divided from both sides."""
    if sides.tensor_type.ndim != 2:
        return None
    rows, inner, columns = size_of(first, 0), size_of(second, 0), size_of(sides, 1)
    wide = op(first, reshape(sides, [rows, op_named("mul")(inner, columns)]))
    turned = dimshuffle(reshape(wide, [rows, inner, columns]), (1, 0, 2))
    tall = op(second, reshape(turned, [inner, op_named("mul")(rows, columns)]))
    back = dimshuffle(reshape(tall, [inner, rows, columns]), (1, 0, 2))
    return reshape(back, [op_named("mul")(rows, inner), columns])


def _applied(first: Variable, second: Variable, operand: Variable) -> Variable:
    """``kron(first, second) @ operand``: every column is a matrix, multiplied from both sides."""
    sizes = [size_of(first, 1), size_of(second, 1)]
    rows = op_named("mul")(size_of(first, 0), size_of(second, 0))
    if operand.tensor_type.broadcastable[1]:
        matrix = reshape(operand, sizes)
        product = MATMUL(MATMUL(first, matrix), swap_last_axes(second))
        return reshape(product, [rows, 1])
    columns = size_of(operand, 1)
    wide = MATMUL(first, reshape(operand, [sizes[0], op_named("mul")(sizes[1], columns)]))
    batch = reshape(wide, [size_of(first, 0), sizes[1], columns])
    return reshape(MATMUL(dimshuffle(second, ("x", 0, 1)), batch), [rows, columns])


def _factors(matrix: Variable) -> tuple[Variable, Variable] | None:
    """The factors of a matrix that is a Kronecker product, or the transpose of one."""
    node = matrix.owner
    if node is None:
        return None
    if isinstance(node.op, DimShuffle) and node.op.is_transpose:
        factors = _factors(node.inputs[0])
        return None if factors is None else (swap_last_axes(factors[0]), swap_last_axes(factors[1]))
    inner = node.inputs[0].owner if isinstance(node.op, Reshape) else None
    if inner is None or inner.op.name != "mul" or matrix.tensor_type.ndim != 2:
        return None
    spread = {
        part.owner.op.order: part.owner.inputs[0]
        for part in inner.inputs
        if part.owner is not None and isinstance(part.owner.op, DimShuffle)
    }
    if set(spread) != set(_SPREAD):
        return None
    first, second = (spread[order] for order in _SPREAD)
    return (first, second) if _joins_axes(node, first, second) else None


def _joins_axes(node: Apply, first: Variable, second: Variable) -> bool:
    """Whether a reshape makes one axis of the rows of both, and one of the columns."""
    shape, vector = node.inputs[1], node.inputs[1].owner
    assert isinstance(node.op, Reshape)
    for axis, known in enumerate(shape.data.tolist() if isinstance(shape, Constant) else node.op.shape):
        sizes = [variable.tensor_type.shape[axis] for variable in (first, second)]
        if known is not None and None not in sizes:
            if known != (sizes[0] or 0) * (sizes[1] or 0):
                return False
        elif not _is_product(vector, axis, first, second):
            return False
    return True


def _is_product(vector: Apply | None, axis: int, first: Variable, second: Variable) -> bool:
    """Whether an element of a vector of sizes is written as the product of the sizes of both."""
    owner = vector.inputs[axis].owner if vector is not None and isinstance(vector.op, MakeVector) else None
    if owner is None or owner.op.name != "mul":
        return False
    left, right = owner.inputs
    return _is_size(left, axis, first) and _is_size(right, axis, second)


def _is_size(size: Variable, axis: int, of: Variable) -> bool:
    known = of.tensor_type.shape[axis]
    if isinstance(size, Constant):
        return known is not None and int(size.data) == known
    owner = size.owner
    return owner is not None and owner.op == ShapeI(axis) and owner.inputs[0] is of
