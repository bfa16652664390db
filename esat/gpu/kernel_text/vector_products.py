"""Products with vectors as sums of products, which kernels compute: with what stands before and after them.

Who multiplies a matrix by a vector waits for the matrix to be read: a kernel reads as fast as cuBLAS, short
rows faster, and functions of the product and of what is multiplied are part of it.
"""

from __future__ import annotations

from esat.graph import Apply, Constant, FunctionGraph, Variable
from esat.graph.registry import op_named
from esat.ops.accumulate import AccumulateProduct
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.contraction import MatMul, swap_last_axes
from esat.ops.reduction import SUM, reduce

DTYPES = ("float32", "float64")


def vector_products_as_sums(graph: FunctionGraph) -> FunctionGraph:
    """The graph with sums of products in the place of products with a row or a column.

    Parameters
    ----------
    graph
        The graph; it is not changed.

    >>> import esat
    >>> from esat.graph import FunctionGraph
    >>> x, w = esat.matrix("x"), esat.tensor("w", shape=(None, 1))
    >>> summed = vector_products_as_sums(FunctionGraph([x, w], [x @ w]))
    >>> [node.op.name for node in summed.toposort()]
    ['dimshuffle', 'mul', 'sum']
    """
    if not any(_summed(node) is not None for node in graph.apply_nodes):
        return graph
    made = graph.clone()
    for node in made.toposort():
        result = _summed(node)
        if result is not None:
            made.replace(node.outputs[0], result, "vector products as sums")
    return made


def _summed(node: Apply) -> Variable | None:
    """What stands for a node, if that is a product with a row or a column."""
    op = node.op
    if type(op) is MatMul:
        return _product(*node.inputs)
    if not isinstance(op, AccumulateProduct) or op.inplace:
        return None
    target, alpha, left, right, beta = node.inputs
    product = _product(left, right)
    if product is None:
        return None
    if op.dropped is not None:
        product = dimshuffle(product, (1 - op.dropped,))
    result: Variable = op_named("add")(_scaled(beta, target), _scaled(alpha, product))
    return result


def _product(left: Variable, right: Variable) -> Variable | None:
    first, second = left.tensor_type, right.tensor_type
    # Sums of products stretch an axis of size 1, products of matrices do not.
    if first.dtype not in DTYPES or first.broadcastable[-1] != second.broadcastable[-2]:
        return None
    if first.broadcastable[-2]:
        left, right = swap_last_axes(right), swap_last_axes(left)
        return swap_last_axes(_column(left, right))
    return _column(left, right) if second.broadcastable[-1] else None


def _column(matrix: Variable, column: Variable) -> Variable:
    """The product of matrices with columns, each matrix read as it lies in memory."""
    multiply, node = op_named("mul"), matrix.owner
    if node is not None and isinstance(node.op, DimShuffle) and node.op.is_transpose:
        return swap_last_axes(reduce(SUM, multiply(node.inputs[0], column), -2, keepdims=True))
    return reduce(SUM, multiply(matrix, swap_last_axes(column)), -1, keepdims=True)


def _scaled(factor: Variable, array: Variable) -> Variable:
    if isinstance(factor, Constant) and factor.data == 1:
        return array
    result: Variable = op_named("mul")(factor, array)
    return result
