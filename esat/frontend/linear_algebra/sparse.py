"""Sparse matrices: constructors, products, and elementwise functions of what is stored.

Values are SciPy's ``csr_array`` and ``csc_array``, and Python's operators mean what they mean for these:
``x @ y``, ``x * y``, ``x + y``, ``2 * x``, ``x.T``. The gradient by a sparse matrix is the vector of the
derivatives by its stored values, in the order of storage; see :func:`with_values` to make a matrix of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.sparse_type import Format, SparseType, holds_sparse, is_sparse_matrix
from esat.graph.variables import Constant, SharedVariable, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.contraction import swap_last_axes
from esat.ops.inference.vectors import make_vector
from esat.ops.reduction import SUM, reduce
from esat.ops.sparse.passes import USMM
from esat.ops.sparse.products import (
    SAMPLED_VALUES,
    SPARSE_ADD,
    SPARSE_PRODUCT,
    STRUCTURED_DOT,
    SparseSum,
)
from esat.ops.sparse.record import as_sparse, sparse_constant, sparse_type
from esat.ops.sparse.structure import (
    DENSE_AT,
    DENSE_FROM_SPARSE,
    SPARSE_TRANSPOSE,
    STORED_VALUES,
    STRUCTURE,
    VALUES_AT,
    WITH_VALUES,
    Compressed,
    ConvertFormat,
    SparseFromDense,
)

__all__ = [
    "SparseType",
    "add",
    "as_sparse",
    "columns_scaled",
    "constant",
    "csc_from_dense",
    "csc_matrix",
    "csm",
    "csm_properties",
    "csr_from_dense",
    "csr_matrix",
    "dense_from_sparse",
    "div",
    "dot",
    "is_sparse",
    "mul",
    "neg",
    "rows_scaled",
    "sampled_dot",
    "shared",
    "stored_values",
    "structured",
    "sub",
    "sum",
    "to_format",
    "transpose",
    "usmm",
    "with_values",
]

Sizes = tuple[int | None, int | None]


# ---- variables


def csr_matrix(name: str | None = None, dtype: Any = "float64", shape: Sizes = (None, None)) -> Variable:
    """A Variable that holds a sparse matrix stored by rows."""
    return SparseType("csr", dtype, shape).make_variable(name)


def csc_matrix(name: str | None = None, dtype: Any = "float64", shape: Sizes = (None, None)) -> Variable:
    """A Variable that holds a sparse matrix stored by columns."""
    return SparseType("csc", dtype, shape).make_variable(name)


def constant(value: Any, name: str | None = None) -> Constant:
    """A Constant that holds a copy of a sparse matrix of SciPy's: CSC if it is that, else CSR.

    Raises
    ------
    DtypeError
        When it is not sparse, or of a dtype esat does not know.
    """
    if not is_sparse_matrix(value):
        raise DtypeError(describe("constant", [type(value).__name__], "takes sparse matrices"))
    return sparse_constant(value, name)


def shared(value: Any, name: str | None = None, shape: Sizes = (None, None)) -> SharedVariable:
    """A shared variable that holds a sparse matrix, at first a copy of ``value``.

    ``shape`` gives the sizes that shall not change.
    """
    first = constant(value)
    type = sparse_type("shared", first)
    return SharedVariable(SparseType(type.format, type.dtype, shape), first.data, name)


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse Variable or a sparse matrix of SciPy's."""
    return holds_sparse(value)


# ---- structure and values


def csm(data: Any, indices: Any, indptr: Any, shape: Any, format: Format = "csr") -> Variable:
    """A sparse matrix from its parts, as ``scipy.sparse.csr_array((data, indices, indptr), shape)``.

    Parameters
    ----------
    data
        The stored values; the result can be differentiated by them.
    indices, indptr
        Integer vectors; indices ascend in each row (for CSC, column) and do not repeat.
    shape
        Two integers or integer scalars, or an integer vector.
    format
        "csr" or "csc".

    Raises
    ------
    ShapeError
        At run time, when the parts do not fit each other.
    """
    known: Sizes = (None, None)
    if isinstance(shape, (tuple, list)):
        rows, columns = (int(size) if isinstance(size, (int, np.integer)) else None for size in shape)
        known, shape = (rows, columns), make_vector(list(shape), "int64")
    result: Variable = Compressed(format, known)(data, indices, indptr, shape)
    return result


def csm_properties(matrix: Any) -> tuple[Variable, Variable, Variable, Variable]:
    """Stored values, indices, index pointers and shape; all but the first int64 vectors."""
    variable = as_sparse(matrix)
    indices, pointers, shape = STRUCTURE(variable)
    return STORED_VALUES(variable), indices, pointers, shape


def stored_values(matrix: Any) -> Variable:
    """The stored values as a vector, in the order of storage."""
    result: Variable = STORED_VALUES(as_sparse(matrix))
    return result


def with_values(pattern: Any, values: Any) -> Variable:
    """The structure of ``pattern`` with other stored values, a vector in the order of storage.

    Raises
    ------
    ShapeError
        At run time, when there are not as many values as stored places.
    """
    result: Variable = WITH_VALUES(as_sparse(pattern), as_variable(values))
    return result


def dense_from_sparse(matrix: Any) -> Variable:
    """A sparse matrix as a dense one."""
    result: Variable = DENSE_FROM_SPARSE(as_sparse(matrix))
    return result


def csr_from_dense(matrix: Any) -> Variable:
    """The elements of a dense matrix that are not 0, stored by rows."""
    result: Variable = SparseFromDense("csr")(as_variable(matrix))
    return result


def csc_from_dense(matrix: Any) -> Variable:
    """The elements of a dense matrix that are not 0, stored by columns."""
    result: Variable = SparseFromDense("csc")(as_variable(matrix))
    return result


def to_format(matrix: Any, format: Format) -> Variable:
    """A sparse matrix in the given format; itself when it has that."""
    variable = as_sparse(matrix)
    if sparse_type("to_format", variable).format == format:
        return variable
    result: Variable = ConvertFormat(format)(variable)
    return result


def transpose(matrix: Any) -> Variable:
    """The transpose; CSR becomes CSC, and CSC CSR."""
    result: Variable = SPARSE_TRANSPOSE(as_sparse(matrix))
    return result


# ---- products


def dot(left: Any, right: Any) -> Variable:
    """Product of matrices of which at least one is sparse; sparse if both are.

    A dense operand may be a vector, as for :func:`esat.matmul`.

    Raises
    ------
    ShapeError
        For sizes that do not match.
    DtypeError
        When neither is sparse, or for float16.
    """
    if is_sparse(left) and is_sparse(right):
        product: Variable = SPARSE_PRODUCT(as_sparse(left), as_sparse(right))
        return product
    if is_sparse(left):
        dense = as_variable(right)
        if dense.tensor_type.ndim == 1:
            return dimshuffle(STRUCTURED_DOT(as_sparse(left), dimshuffle(dense, (0, "x"))), (0,))
        result: Variable = STRUCTURED_DOT(as_sparse(left), dense)
        return result
    dense = as_variable(left)
    flipped = dense if dense.tensor_type.ndim == 1 else swap_last_axes(dense)
    found = dot(transpose(right), flipped)
    return found if dense.tensor_type.ndim == 1 else swap_last_axes(found)


def sampled_dot(left: Any, right: Any, pattern: Any) -> Variable:
    """``pattern * (left @ right)`` for dense factors: the product is computed where the pattern stores."""
    variable = as_sparse(pattern)
    sampled = SAMPLED_VALUES(variable, as_variable(left), as_variable(right))
    return with_values(variable, STORED_VALUES(variable) * sampled)


def usmm(alpha: Any, x: Any, y: Any, z: Any) -> Variable:
    """``alpha * (x @ y) + z`` for a scalar ``alpha``, a sparse ``x`` and dense matrices ``y`` and ``z``."""
    result: Variable = USMM(as_variable(alpha), as_sparse(x), as_variable(y), as_variable(z))
    return result


# ---- elementwise


def structured(function: Callable[[Variable], Any], matrix: Any) -> Variable:
    """``function`` applied to the stored values only; what is not stored stays 0.

    For functions with ``function(0) == 0`` that is the function of the whole matrix.
    """
    variable = as_sparse(matrix)
    return with_values(variable, function(STORED_VALUES(variable)))


def neg(matrix: Any) -> Variable:
    """The matrix with the sign of each value changed."""
    return structured(op_named("neg"), matrix)


def add(left: Any, right: Any) -> Variable:
    """Sum of two matrices of one shape: sparse if both are, else dense.

    Raises
    ------
    ShapeError
        For shapes that differ.
    """
    if is_sparse(left) and is_sparse(right):
        total: Variable = SPARSE_ADD(as_sparse(left), as_sparse(right))
        return total
    result: Variable = op_named("add")(_dense(left), _dense(right))
    return result


def _dense(value: Any) -> Variable:
    return dense_from_sparse(value) if is_sparse(value) else as_variable(value)


def sub(left: Any, right: Any) -> Variable:
    """Difference of two matrices of one shape: sparse if both are, else dense."""
    if is_sparse(left) and is_sparse(right):
        return add(left, neg(right))
    result: Variable = op_named("sub")(_dense(left), _dense(right))
    return result


def mul(left: Any, right: Any) -> Variable:
    """Product element by element, with the structure of the sparse operand, of the first if both are.

    A dense operand is a scalar, a vector (of a factor for each column), or a matrix, of which axes of
    size 1 are stretched.

    Raises
    ------
    ShapeError
        For shapes that do not match.
    DtypeError
        When neither is sparse.
    """
    if not is_sparse(left):
        left, right = right, left
    matrix = as_sparse(left)
    factors = VALUES_AT(matrix, as_sparse(right)) if is_sparse(right) else _at_places(matrix, right)
    return with_values(matrix, STORED_VALUES(matrix) * factors)


def div(matrix: Any, divisor: Any) -> Variable:
    """A sparse matrix divided element by element by what is dense; what is not stored stays 0.

    The divisor is a scalar, a vector (a divisor for each column), or a matrix, of which axes of size 1 are
    stretched.

    Raises
    ------
    ShapeError
        For shapes that do not match.
    DtypeError
        When the first operand is not sparse.
    """
    variable = as_sparse(matrix)
    return with_values(variable, STORED_VALUES(variable) / _at_places(variable, divisor))


def _at_places(matrix: Variable, dense: Any) -> Any:
    """The elements of what is dense where the matrix stores; a scalar as it is."""
    if not isinstance(dense, Variable) and np.ndim(dense) == 0:
        return dense
    variable = as_variable(dense)
    rank = variable.tensor_type.ndim
    if rank == 0:
        return variable
    return DENSE_AT(matrix, dimshuffle(variable, ("x", 0)) if rank == 1 else variable)


def columns_scaled(matrix: Any, factors: Any) -> Variable:
    """Each column multiplied by one element of a vector."""
    return mul(as_sparse(matrix), dimshuffle(as_variable(factors), ("x", 0)))


def rows_scaled(matrix: Any, factors: Any) -> Variable:
    """Each row multiplied by one element of a vector."""
    return mul(as_sparse(matrix), dimshuffle(as_variable(factors), (0, "x")))


def sum(matrix: Any, axis: int | None = None) -> Variable:
    """The dense sum of all elements, of each column (``axis=0``) or of each row (``axis=1``)."""
    variable = as_sparse(matrix)
    if axis is None:
        return reduce(SUM, STORED_VALUES(variable))
    result: Variable = SparseSum(axis % 2 if -2 <= axis < 2 else axis)(variable)
    return result
