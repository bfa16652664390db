"""What ops on sparse matrices share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Family, Op, Work
from esat.graph.sparse_type import Format, SparseType, array_class, canonical, is_sparse_matrix
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable

EXPECTED_DENSITY = 0.01
"""Stored values for each element of a sparse matrix, where costs must be told before it is there."""


@dataclass(frozen=True, eq=False, repr=False)
class SparseOp(Op):
    """An op with a sparse operand or result."""

    family: Family = field(default=Family.SPARSE, init=False)

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        return Work(flops=general.flops, bytes=general.bytes * EXPECTED_DENSITY, calls=1)


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
