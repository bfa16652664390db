"""Which routine of a library, or kernel of its own, computes an op that is no fused kernel."""

from __future__ import annotations

import functools

from esat.codegen.ground.blas_library import LETTERS, blas_function
from esat.codegen.ground.target import Target
from esat.codegen.matmul.blas import accumulating_routine, product_routine, times_column
from esat.codegen.matmul.structured import Routine
from esat.codegen.matmul.structured_routine import routine_of_structured
from esat.codegen.rowwise.gemv_pair import RowsRoutine
from esat.codegen.rowwise.layers import Link, RowBlocksRoutine
from esat.codegen.sparse.sparse_pass import sparse_routine
from esat.graph import Apply
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.sparse.passes import SparsePass
from esat.ops.sparse.products import StructuredDot


def routine_for(
    node: Apply, target: Target, threads: int | None = None, link: Link | None = None
) -> Routine | None:
    """The routine that computes a node into a given buffer; None for what is no matrix product.

    The types decide which: a matrix times a matrix, a column or a row;
    batches of them; a batch times one matrix, which is one product of the stacked rows. Products along one
    long axis, with sparse matrices, and several with the same rows, are shared among as many threads, or as
    :func:`default_threads` says. Layers over rows, where these are too long for blocks of them, run as what
    ``link`` makes of their graph.
    """
    if isinstance(node.op, AccumulateProduct):
        letter = LETTERS[node.outputs[0].tensor_type.dtype]
        return accumulating_routine(node.op, letter, threads)
    if isinstance(node.op, StructuredProduct):
        return routine_of_structured(node, target, threads)
    if isinstance(node.op, RowsProduct):
        gemv = blas_function(f"{LETTERS[node.inputs[0].tensor_type.dtype]}gemv")
        multiply = functools.partial(times_column, gemv, threads)
        return RowsRoutine(node.op, node.inputs[0], target, threads, multiply)
    if isinstance(node.op, RowBlocks):
        return RowBlocksRoutine(node.op, node.inputs[0].tensor_type.dtype, target, threads, link)
    if isinstance(node.op, StructuredDot | SparsePass):
        return sparse_routine(node.op, node.outputs[0].tensor_type.dtype, target, threads)
    return product_routine(node, threads, target) if isinstance(node.op, MatMul) else None
