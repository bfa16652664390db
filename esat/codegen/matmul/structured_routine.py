"""When the routines for structured matrices are taken, and when plain products are as fast."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.codegen.ground.target import Target
from esat.codegen.matmul.blas import ProductRoutine, product_routine
from esat.codegen.matmul.shared_products import SMALL_PRODUCT
from esat.codegen.matmul.structured import Routine, structured_routine
from esat.graph import Apply
from esat.graph.op import Array
from esat.ops.linalg.structured import StructuredProduct


@record(frozen=True, eq=False)
class StructuredRoutine:
    """The routine ``(left, right, output)`` of a product with a structured matrix.

    Attributes
    ----------
    multiply
        What reads or computes a part of a matrix only.
    plain
        The product of any two matrices.
    target
        What loops are compiled for.
    """

    op: StructuredProduct
    multiply: Routine
    plain: ProductRoutine
    target: Target

    def __call__(self, left: Array, right: Array, output: Array) -> None:
        pays = structure_pays(self.op, left.shape, right.shape)
        (self.multiply if pays else self.plain)(left, right, output)


def structure_pays(op: StructuredProduct, left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether half a product takes less than a whole one, for matrices of these shapes.

    OpenBLAS has kernels for whole products of few multiplications that copy no operands.
    """
    (rows, inner), columns = left, right[1]
    in_half = op.structure in ("gram", "lower", "upper") and 1 not in (rows, columns)
    return not in_half or rows * inner * columns > SMALL_PRODUCT


def routine_of_structured(node: Apply, target: Target, threads: int | None) -> StructuredRoutine:
    """The routine of a node with a structured product."""
    op, plain = node.op, product_routine(node, threads, target)
    assert isinstance(op, StructuredProduct)
    assert isinstance(plain, ProductRoutine)
    dtype = node.inputs[0].tensor_type.dtype
    return StructuredRoutine(op, structured_routine(op, dtype, target, threads), plain, target)
