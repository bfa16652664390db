"""Rules of sparse matrices. PyTensor runs what has none, as parts, comparisons, and gradients by values."""

from __future__ import annotations

from esat.frontend.linear_algebra import sparse
from esat.frontend.pytensor.steps import PyTensorStep, Rule
from esat.graph.sparse_type import SparseType
from esat.graph.variables import Variable
from esat.ops.cast import cast


def _product(step: PyTensorStep) -> Variable:
    """Of a sparse matrix and a dense one, or of two sparse ones."""
    found = sparse.dot(*step.operands)
    if isinstance(found.type, SparseType) and not hasattr(step.node.outputs[0].type, "format"):
        return sparse.dense_from_sparse(found)
    return found


def _from_dense(step: PyTensorStep) -> Variable:
    make = sparse.csr_from_dense if step.op.format == "csr" else sparse.csc_from_dense
    return make(step.first)


def _sum(step: PyTensorStep) -> Variable:
    return cast(sparse.sum(step.first, axis=step.op.axis), step.dtype)


RULES: dict[str, Rule] = {
    "sparse.AddSparseSparse": lambda step: sparse.add(*step.operands),
    "sparse.ColScaleCSC": lambda step: sparse.columns_scaled(*step.operands),
    "sparse.DenseFromSparse": lambda step: sparse.dense_from_sparse(step.first),
    "sparse.Dot": _product,
    "sparse.RowScaleCSC": lambda step: sparse.rows_scaled(*step.operands),
    "sparse.SpSum": _sum,
    "sparse.SparseFromDense": _from_dense,
    "sparse.StructuredDot": _product,
    "sparse.Transpose": lambda step: sparse.transpose(step.first),
}
