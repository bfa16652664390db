"""What ops on sparse matrices share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Family, Op, Shapes, Work
from esat.graph.sparse_type import Format, SparseType, array_class, canonical, is_sparse_matrix
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable

EXPECTED_DENSITY = 0.01
"""Stored values for each element of a sparse matrix, where costs must be told before it is there."""

Kind: TypeAlias = int | Literal["sparse"]
"""What an operand is: a sparse matrix, or a dense array of so many axes."""

WITH_DENSE = 0.25
"""Share of the rate of kernels that products of a sparse matrix with a dense one reach."""
INDEX_BYTES = 4
"""Of the row or column that SciPy stores with each value."""


@record(frozen=True, eq=False, repr=False)
class SparseOp(Op):
    """An op with a sparse operand or result.

    Where costs are told, the shape of a sparse matrix has three numbers: rows, columns, stored values.

    Attributes
    ----------
    kinds
        What the operands are, for an op that rules speak of; empty for others.
    """

    kinds: tuple[Kind, ...] = field(default=(), init=False)

    family = Family.SPARSE
    host_only = "sparse matrices are SciPy's"

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        shapes = (*inputs, *outputs)
        moved = sum(bytes_of(shape, size) for shape, size in zip(shapes, itemsizes, strict=True))
        return Work(flops=float(sum(count(shape) for shape in outputs)), bytes=moved, calls=1)


def count(shape: Sequence[int]) -> float:
    """Numbers that are held: the stored values of a sparse matrix, all of a dense array."""
    return float(shape[2]) if len(shape) == 3 else float(np.prod(shape, dtype=np.float64))


def bytes_of(shape: Sequence[int], itemsize: int) -> float:
    """Bytes of an operand or result, indices included."""
    return count(shape) * (itemsize + INDEX_BYTES if len(shape) == 3 else itemsize)


def as_sparse(value: Any) -> Variable:
    """A sparse Variable itself, or a Constant that holds a sparse matrix of SciPy's.

    Raises
    ------
    DtypeError
        For anything else.
    """
    if isinstance(value, Variable):
        sparse_type("sparse", value)
        return value
    if not is_sparse_matrix(value):
        raise DtypeError(describe("sparse", [type(value).__name__], "takes sparse matrices"))
    return sparse_constant(value)


def sparse_constant(value: Any, name: str | None = None) -> Constant:
    """A Constant that holds a copy of a sparse matrix, in CSC if it is that and else in CSR."""
    format: Format = "csc" if value.format == "csc" else "csr"
    data = canonical(value, format, value.dtype).copy()
    for array in (data.data, data.indices, data.indptr):
        array.setflags(write=False)
    return Constant(SparseType(format, data.dtype, data.shape), data, name)


def sparse_type(name: str, variable: Variable) -> SparseType:
    """The type of a sparse Variable. Raises DtypeError for any other."""
    if not isinstance(variable.type, SparseType):
        raise DtypeError(describe(name, [variable.type], "takes a sparse matrix here"))
    return variable.type


def dense_type(name: str, variable: Variable, ndim: int | None = None) -> TensorType:
    """The type of a dense Variable of ``ndim`` axes. Raises DtypeError or ShapeError for any other."""
    if not isinstance(variable.type, TensorType):
        raise DtypeError(describe(name, [variable.type], "takes a dense array here"))
    if ndim is not None and variable.type.ndim != ndim:
        raise ShapeError(describe(name, [variable.type], f"takes an array of {ndim} axes here"))
    return variable.type


def match(name: str, types: Sequence[Any], *pairs: tuple[int | None, int | None]) -> None:
    """Raise ShapeError when sizes that must be equal are known to differ."""
    for left, right in pairs:
        if None not in (left, right) and left != right:
            raise ShapeError(describe(name, types, f"sizes {left} and {right} do not match"))


def with_values(pattern: Any, values: Any) -> Any:
    """A sparse matrix of SciPy's with the structure of ``pattern``; shares no memory with either."""
    kind = array_class(pattern.format)
    parts = (np.array(values), pattern.indices.copy(), pattern.indptr.copy())
    result: Any = kind(parts, shape=pattern.shape)
    result.has_canonical_format = True
    return result


def places(matrix: Any) -> tuple[Any, Any]:
    """Row and column of each stored value, in the order of storage."""
    outer = np.repeat(np.arange(matrix.indptr.size - 1), np.diff(matrix.indptr))
    return (outer, matrix.indices) if matrix.format == "csr" else (matrix.indices, outer)
