"""Block-diagonal matrices: what is computed of them is computed of their blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from esat.classic.local import Transformed, local_optimizer
from esat.classic.rewriting.parts import fitting
from esat.graph import Apply, Op, Variable
from esat.graph.registry import op_named
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.diagonal import Diagonal
from esat.ops.index.basic import subtensor
from esat.ops.join import join
from esat.ops.linalg.functions import BLOCK_DIAGONAL, BlockDiagonal
from esat.ops.linalg.inverse import DETERMINANT, INVERSE, Determinant, Inverse
from esat.ops.linalg.solve import SOLVE, Solve
from esat.ops.shape import size_of


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


@local_optimizer([Determinant, Inverse, Solve, Diagonal])
def local_linalg_of_block_diag(node: Apply) -> Transformed:
    """det, inv, solve and the diagonal of a matrix of square blocks, from those of the blocks.

    Blocks must be square by type: others can make up a square matrix, too.
    """
    blocks = _blocks(node.inputs[0])
    if not blocks or not all(_is_square(block) for block in blocks):
        return False
    if node.op == DETERMINANT:
        return fitting(node, reduce(op_named("mul"), (_apply(DETERMINANT, block) for block in blocks)))
    if node.op == INVERSE:
        return fitting(node, _apply(BLOCK_DIAGONAL, *(_apply(INVERSE, block) for block in blocks)))
    if node.op == Diagonal(0):
        return fitting(node, join([_apply(node.op, block) for block in blocks]))
    if node.op == SOLVE and node.inputs[1].tensor_type.ndim == 2:
        sides = _parts(node.inputs[1], [size_of(block, 0) for block in blocks], axis=0)
        return fitting(node, join([_apply(SOLVE, *pair) for pair in zip(blocks, sides, strict=True)], 0))
    return False


def _blocks(matrix: Variable) -> Sequence[Variable]:
    node = matrix.owner
    return node.inputs if node is not None and node.op == BLOCK_DIAGONAL else ()


def _is_square(block: Variable) -> bool:
    rows, columns = block.tensor_type.shape
    return rows is not None and rows == columns


def _parts(matrix: Variable, sizes: Sequence[Variable], axis: int) -> Iterator[Variable]:
    """Neighbouring slices of a matrix along an axis, of the given sizes."""
    start: Any = 0
    for size in sizes:
        stop = op_named("add")(start, size)
        yield subtensor(matrix, (*[slice(None)] * axis, slice(start, stop)))
        start = stop


def _apply(op: Op, *operands: Variable) -> Variable:
    return op.make_node(*operands).outputs[0]
