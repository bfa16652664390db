"""Predicted seconds of products with structured matrices, by what their routines do besides or instead."""

from __future__ import annotations

from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.value import IMPOSSIBLE, Value
from esat.ops.linalg.structured import StructuredProduct

_CACHE_LINE = 64.0
"""Bytes that come with one element of a diagonal."""
_NARROW = {"left": 7.0, "right": 0.6}
"""Twice the columns (rows) of the other operand that a triangular product gains nothing on, by its side."""
_SMALL_PRODUCT = 1.0e6
"""Multiplications up to which OpenBLAS has kernels for plain products that do not pack their operands."""
_READING_DIAGONALS = 2.7
"""Structured calls that reading diagonals of a matrix takes."""
_ROW = 5e-9
"""Seconds that the loop over a row takes besides its elements, in products with diagonals."""


def structured_seconds(
    machine: MachineProfile, op: StructuredProduct, left: Value, right: Value, result: Value, whole: float
) -> float:
    """Seconds of a product with a structured matrix.

    Products with a triangular matrix, and those whose result is symmetric, do half the work of a plain
    product, but compute the blocks on the diagonal in full. With a vector the bytes of the matrix count, of
    which half are read. Products with diagonals are bound by the bytes of the other operand.

    Parameters
    ----------
    left, right, result
        Shapes and dtypes, with two axes, or rank-free.
    whole
        Seconds of the plain product.
    """
    matrix, other = (right, left) if op.side == "right" else (left, right)
    plain = machine.matrix_call + machine.structured_call
    narrow = min(result.shape, default=1.0) == 1.0
    match op.structure:
        case "gram":
            if narrow:
                return IMPOSSIBLE
            mirrored = 0.5 * result.size / machine.transposed_rate
            return machine.structured_call + whole * _share(machine, result.shape[0]) + mirrored
        case "lower" | "upper" if not narrow:
            copied = 2.0 * result.size * result.itemsize
            small = result.size * matrix.shape[-1] <= _SMALL_PRODUCT
            share = _share(machine, matrix.shape[-1]) + _NARROW[op.side] / max(min(result.shape), 1.0)
            work = whole * min(1.0, 1.0 if small else share)
            return machine.structured_call + work + copied / machine.bandwidth(copied)
        case "lower" | "upper" | "symmetric":
            moved = 0.5 * matrix.size * matrix.itemsize
            return plain + moved / machine.bandwidth(moved)
        case _:
            diagonals = 3.0 if op.structure == "tridiagonal" else 1.0
            size = matrix.shape[-1] if matrix.shape else 1.0
            moved = (other.size + result.size) * result.itemsize + diagonals * size * _CACHE_LINE
            calls = machine.matrix_call + _READING_DIAGONALS * machine.structured_call
            # NumPy goes over one row or column in one loop.
            rows = 1.0 if narrow else result.shape[0]
            return calls + rows * _ROW + moved / machine.bandwidth(moved)


def _share(machine: MachineProfile, size: float) -> float:
    """Of the work of the whole product, for a triangle of so many rows."""
    return min(1.0, 0.5 + 0.5 * machine.diagonal_block / max(size, 1.0))


def normal_seconds(machine: MachineProfile, matrix: Value) -> float:
    """Seconds of ``matrix.T @ (matrix @ column)`` by one pass over the matrix.

    Each row is read from where the matrix is, and again from the core's own cache. There is no such pass over
    a matrix whose rows do not lie in one piece.
    """
    if matrix.transposed:
        return IMPOSSIBLE
    moved = matrix.size * matrix.itemsize
    passes = moved / machine.bandwidth(moved) + moved / machine.bandwidths[0]
    return machine.matrix_call + machine.structured_call + passes
