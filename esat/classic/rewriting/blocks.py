"""Block-diagonal matrices: what is computed of them is computed of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, is_oblong, is_square
from esat.classic.rewriting.indices.writes import is_zero
from esat.classic.simplify import axes_agree
from esat.graph import Apply, Op, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.diagonal import Diagonal
from esat.ops.arrays.join import Join, join
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.index.basic import subtensor
from esat.ops.linalg.factor import Cholesky
from esat.ops.linalg.functions import BLOCK_DIAGONAL, BlockDiagonal
from esat.ops.linalg.inverse import Determinant, Inverse, SignLogDeterminant
from esat.ops.linalg.solve import Solve


@local_optimizer([BlockDiagonal])
def local_fuse_block_diag(node: Apply) -> Transformed:
    """block_diag(block_diag(a, b), c) -> block_diag(a, b, c)."""
    inner = [_blocks(operand) for operand in node.inputs]
    if not any(inner):
        return False
    flat = [block for own, blocks in zip(node.inputs, inner, strict=True) for block in blocks or [own]]
    return fitting(node, _apply(BLOCK_DIAGONAL, *flat))


@local_optimizer([MatMul])
def local_block_diag_dot(node: Apply) -> Transformed:
    """block_diag(a, b) @ x -> join(a @ x[:n], b @ x[n:]), and x @ block_diag(a, b) likewise."""
    if node.op != MATMUL:
        return False
    left, right = node.inputs
    if blocks := _blocks(left):
        parts = _parts(right, [size_of(block, 1) for block in blocks], axis=0)
        return fitting(node, join([_apply(MATMUL, *pair) for pair in zip(blocks, parts, strict=True)], 0))
    if blocks := _blocks(right):
        parts = _parts(left, [size_of(block, 0) for block in blocks], axis=1)
        return fitting(node, join([_apply(MATMUL, *pair) for pair in zip(parts, blocks, strict=True)], 1))
    return False


@local_optimizer([Inverse, Solve, Cholesky])
def local_solve_block_diag(node: Apply) -> Transformed:
    """inv, solve and cholesky of a matrix of blocks, from those of the blocks.

    Where blocks are not square, the matrix is singular.
    """
    blocks = _blocks(node.inputs[0])
    if not blocks or any(map(is_oblong, blocks)):
        return False
    if not isinstance(node.op, Solve):
        return fitting(node, _apply(BLOCK_DIAGONAL, *(_apply(node.op, block) for block in blocks)))
    if node.inputs[1].tensor_type.ndim != 2:
        return False
    sides = _parts(node.inputs[1], [size_of(block, 0) for block in blocks], axis=0)
    return fitting(node, join([_apply(node.op, *pair) for pair in zip(blocks, sides, strict=True)], 0))


@local_optimizer([Determinant, SignLogDeterminant, Diagonal])
def local_linalg_of_block_diag(node: Apply) -> Transformed:
    """det, slogdet and the diagonal of a matrix of square blocks, from those of the blocks.

    Blocks must be square by type: others can make up a square matrix, too.
    """
    blocks = _blocks(node.inputs[0])
    if not blocks or not all(is_square(block) for block in blocks):
        return False
    if node.op == Diagonal(0):
        return fitting(node, join([_apply(node.op, block) for block in blocks]))
    if isinstance(node.op, Diagonal):
        return False
    signs, *logarithms = zip(*(node.op.make_node(block).outputs for block in blocks), strict=True)
    product = reduce(op_named("mul"), signs)
    return [product, *(reduce(op_named("add"), one) for one in logarithms)]


def _blocks(matrix: Variable) -> Sequence[Variable]:
    """The blocks of a block-diagonal matrix: of ``block_diag``, or of joined rows of zeros and blocks."""
    node = matrix.owner
    if node is None or matrix.tensor_type.ndim != 2:
        return ()
    return node.inputs if node.op == BLOCK_DIAGONAL else _joined_blocks(node)


def _joined_blocks(node: Apply) -> Sequence[Variable]:
    """Of ``join(join(a, 0), join(0, b))`` a and b, where the columns of zeros are those of the blocks."""
    rows = [_parts_of_row(operand) for operand in node.inputs] if node.op == Join(0) else []
    if len(rows) < 2 or any(len(row) != len(rows) for row in rows):
        return ()
    blocks = [row[place] for place, row in enumerate(rows)]
    others = (
        (part, block)
        for number, row in enumerate(rows)
        for place, (part, block) in enumerate(zip(row, blocks, strict=True))
        if place != number
    )
    return blocks if all(is_zero(part) and axes_agree(part, 1, block, 1) for part, block in others) else ()


def _parts_of_row(matrix: Variable) -> Sequence[Variable]:
    node = matrix.owner
    return node.inputs if node is not None and node.op == Join(1) else (matrix,)


def _parts(matrix: Variable, sizes: Sequence[Variable], axis: int) -> Iterator[Variable]:
    """Neighbouring slices of a matrix along an axis, of the given sizes."""
    start: Any = 0
    for size in sizes:
        stop = op_named("add")(start, size)
        yield subtensor(matrix, (*[slice(None)] * axis, slice(start, stop)))
        start = stop


def _apply(op: Op, *operands: Variable) -> Variable:
    return op.make_node(*operands).outputs[0]
