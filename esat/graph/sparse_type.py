"""Sparse matrices as values: SciPy's CSR and CSC arrays in canonical form."""

from __future__ import annotations

import functools
import sys
from typing import Any, Literal, TypeAlias

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError
from esat.graph.calls.arguments import elements_of
from esat.graph.types import TensorType, Type, normalize_dtype

Format: TypeAlias = Literal["csr", "csc"]
SparseArray: TypeAlias = Any
"""A ``scipy.sparse.csr_array`` or ``csc_array``; indices ascend in each row (or column) and do not repeat."""


@record(frozen=True, slots=True, init=False)
class SparseType(Type):
    """Sparse matrices of one format and dtype.

    Parameters
    ----------
    format
        ``"csr"``, stored by rows, or ``"csc"``, stored by columns.
    dtype
        Of the stored values; SciPy has no float16.
    shape
        Numbers of rows and columns, None where known at run time only.

    Raises
    ------
    DtypeError
        For another format, or a dtype SciPy has no sparse matrices of.
    ShapeError
        For anything but two sizes.
    """

    format: Format
    dtype: str
    shape: tuple[int | None, int | None]

    def __init__(
        self, format: Format, dtype: Any, shape: tuple[int | None, int | None] = (None, None)
    ) -> None:
        dense = TensorType(normalize_dtype(dtype), shape=elements_of("SparseType", "shape", shape))
        if format not in ("csr", "csc"):
            raise DtypeError(f"SparseType: format {format!r} is neither csr nor csc")
        if dense.dtype == "float16":
            raise DtypeError("SparseType: SciPy has no sparse matrices of float16")
        if dense.ndim != 2:
            raise ShapeError(f"SparseType: a matrix has two sizes, not {dense.ndim}")
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "dtype", dense.dtype)
        object.__setattr__(self, "shape", dense.shape)

    @property
    def dense(self) -> TensorType:
        """Dense matrices of the same dtype and shape."""
        return TensorType(self.dtype, shape=self.shape)

    @property
    def values(self) -> TensorType:
        """Vectors of stored values."""
        return TensorType(self.dtype, shape=(None,))

    def with_dtype(self, dtype: str) -> SparseType:
        """The same format and shape in another dtype."""
        return SparseType(self.format, dtype, self.shape)

    def filter(self, value: object) -> SparseArray:
        """``value``, a sparse matrix of SciPy's in any format, as one of this type.

        Raises
        ------
        DtypeError
            When it is not sparse, or its dtype does not fit without loss.
        ShapeError
            When its shape does not fit.
        """
        given: Any = value
        usual = type(given) is array_class(self.format) and self.shape == (None, None)
        if usual and given.data.dtype == _dtype_object(self.dtype) and given.has_canonical_format:
            return given
        if not is_sparse_matrix(value):
            raise DtypeError(f"{type(value).__name__} is no sparse matrix of SciPy's, as {self} needs")
        if given.dtype != self.dtype and not np.can_cast(given.dtype, self.dtype):
            raise DtypeError(f"a sparse matrix of dtype {given.dtype} does not fit {self} without loss")
        if not self._admits_shape(given.shape):
            raise ShapeError(f"a sparse matrix of shape {given.shape} does not fit {self}")
        return canonical(given, self.format, self.dtype)

    def _admits_shape(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == 2 and all(
            size is None or size == actual for size, actual in zip(self.shape, shape, strict=True)
        )

    def admits(self, other: Type) -> bool:
        """Whether every value of ``other`` is a value of this type."""
        return (
            isinstance(other, SparseType) and other.format == self.format and self.dense.admits(other.dense)
        )

    def __str__(self) -> str:
        text = f"{self.format}({self.dtype}"
        if self.shape != (None, None):
            text += f", shape=({', '.join('?' if size is None else str(size) for size in self.shape)})"
        return text + ")"


def is_sparse_matrix(value: Any) -> bool:
    """Whether a value is a sparse matrix of SciPy's. There is none before SciPy's package is loaded."""
    package = sys.modules.get("scipy.sparse")
    return package is not None and bool(package.issparse(value))


def holds_sparse(value: Any) -> bool:
    """Whether a value is a sparse Variable or a sparse matrix of SciPy's."""
    return isinstance(getattr(value, "type", None), SparseType) or is_sparse_matrix(value)


@functools.cache
def _dtype_object(dtype: str) -> np.dtype[Any]:
    """NumPy takes 20 microseconds to compare a dtype with a name where the caches are full of other data."""
    return np.dtype(dtype)


@functools.cache
def array_class(format: Format) -> Any:
    """SciPy's class of sparse arrays of a format."""
    import scipy.sparse

    return scipy.sparse.csr_array if format == "csr" else scipy.sparse.csc_array


def canonical(matrix: Any, format: Format, dtype: Any) -> SparseArray:
    """A sparse matrix in one of the formats, its indices ascending and not repeated; copied if need be."""
    kind = array_class(format)
    result: Any = matrix if type(matrix) is kind and matrix.dtype == dtype else kind(matrix, dtype=dtype)
    if not result.has_canonical_format:
        result = result.copy()
        result.sum_duplicates()
    return result
