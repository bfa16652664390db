"""Between sparse matrices, their stored values and dense matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ShapeError, describe
from esat.graph.op import Shapes, Work, as_variable
from esat.graph.sparse_type import Format, SparseType, array_class, canonical
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.reduction import sum_to
from esat.ops.sparse.record import Kind, SparseOp, dense_type, match, places, sparse_type, with_values
from esat.ops.sparse.sampling import values_at

Cotangents = list[Variable | None]


@record(frozen=True, eq=False, repr=False)
class StoredValues(SparseOp):
    """The stored values of a sparse matrix, as a vector in the order of storage."""

    name, constructor = "stored_values", "StoredValues"
    typing = "stored"
    kinds: tuple[Kind, ...] = field(default=("sparse",), init=False)
    view_map = MappingProxyType({0: (0,)})

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (sparse_type(self.name, inputs[0]).values,)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        values = inputs[0].data
        return (values if values.flags.aligned else values.copy(),)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return Work(flops=0.0, bytes=0.0, calls=1)  # they are there already

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        return [cotangents[0]]


@record(frozen=True, eq=False, repr=False)
class WithValues(SparseOp):
    """The structure of the first operand with the values of the second, a vector in the order of storage."""

    name, constructor = "with_values", "WithValues"
    typing = "structure"
    kinds: tuple[Kind, ...] = field(default=("sparse", 1), init=False)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        values = dense_type(self.name, inputs[1], 1)
        return (sparse_type(self.name, inputs[0]).with_dtype(values.dtype),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        pattern, values = inputs
        if values.size != pattern.nnz:
            reason = f"{values.size} values do not fit {pattern.nnz} stored places"
            raise ShapeError(describe(self.name, [f"shape {pattern.shape}"], reason))
        return (with_values(pattern, values),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        return [None, cotangents[0]]


@record(frozen=True, eq=False, repr=False)
class DenseFromSparse(SparseOp):
    """A sparse matrix as a dense one."""

    name, constructor = "dense_from_sparse", "DenseFromSparse"
    typing = "same"
    kinds: tuple[Kind, ...] = field(default=("sparse",), init=False)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (sparse_type(self.name, inputs[0]).dense,)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return (inputs[0].toarray(order="C"),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        return [None if cotangent is None else DENSE_AT(node.inputs[0], cotangent)]


@record(frozen=True, eq=False, repr=False)
class SparseFromDense(SparseOp):
    """The elements of a dense matrix that are not 0, as a sparse one.

    The derivative is along changes of those elements: to the others no cotangent flows.

    Attributes
    ----------
    format
        Of the result.
    """

    format: Format = "csr"
    name, constructor = "sparse_from_dense", "SparseFromDense"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = dense_type(self.name, inputs[0], 2)
        return (SparseType(self.format, source.dtype, (source.shape[0], source.shape[1])),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        import scipy.sparse

        return (canonical(scipy.sparse.coo_array(inputs[0]), self.format, inputs[0].dtype),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        return [None if cotangent is None else DENSE_FROM_SPARSE(WITH_VALUES(node.outputs[0], cotangent))]

    def __str__(self) -> str:
        return f"{self.name}{{{self.format}}}"


@record(frozen=True, eq=False, repr=False)
class DenseAt(SparseOp):
    """The elements of a dense matrix at the stored places of a sparse one: ``(pattern, dense)``, a vector.

    Axes of the dense matrix that are known to have size 1 are stretched.
    """

    name, constructor = "dense_at", "DenseAt"
    typing = "stored"
    kinds: tuple[Kind, ...] = field(default=("sparse", 2), init=False)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        pattern = sparse_type(self.name, inputs[0])
        source = dense_type(self.name, inputs[1], 2)
        pairs = zip(pattern.shape, source.shape, strict=True)
        match(self.name, [pattern, source], *(pair for pair in pairs if pair[1] != 1))
        return (TensorType(source.dtype, shape=(None,)),)

    def check_operands(self, node: Apply, operands: Sequence[Any]) -> None:
        flags = node.inputs[1].tensor_type.broadcastable
        sizes = zip(operands[0].shape, operands[1].shape, flags, strict=True)
        if any(wanted != given and not flag for wanted, given, flag in sizes):
            shown = [f"shape {operand.shape}" for operand in operands]
            raise ShapeError(describe(self.name, shown, "sizes do not match", node.where))

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        pattern, dense = inputs
        rows, columns = places(pattern)
        return (np.broadcast_to(dense, pattern.shape)[rows, columns],)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        pattern, dense = node.inputs
        spread = DENSE_FROM_SPARSE(WITH_VALUES(pattern, cotangent))
        return [None, sum_to(spread, dense.tensor_type.broadcastable)]


@record(frozen=True, eq=False, repr=False)
class ValuesAt(SparseOp):
    """The elements of a sparse matrix at the stored places of another: ``(pattern, source)``, a vector.

    Places that the source does not store have 0.
    """

    name, constructor = "values_at", "ValuesAt"
    typing = "stored"
    kinds: tuple[Kind, ...] = field(default=("sparse", "sparse"), init=False)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        pattern, source = (sparse_type(self.name, variable) for variable in inputs)
        match(self.name, [pattern, source], *zip(pattern.shape, source.shape, strict=True))
        return (source.values,)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        pattern, source = inputs
        if pattern.shape != source.shape:
            shown = [f"shape {matrix.shape}" for matrix in inputs]
            raise ShapeError(describe(self.name, shown, "shapes differ"))
        return (values_at(pattern, source),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        pattern, source = node.inputs
        return [None, VALUES_AT(source, WITH_VALUES(pattern, cotangent))]


@record(frozen=True, eq=False, repr=False)
class Compressed(SparseOp):
    """A sparse matrix from ``(values, indices, indptr, shape)`` in SciPy's sense.

    Indices, int64, ascend in each row (for CSC, column) and do not repeat; the shape is an int64 vector.

    Attributes
    ----------
    format
        Of the result.
    shape
        The sizes known when the graph is built.
    """

    format: Format = "csr"
    shape: tuple[int | None, int | None] = (None, None)
    name, constructor = "csm", "Compressed"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        values, *integers = inputs
        return (as_variable(values), *(cast(part, "int64") for part in integers))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        values, *_ = (dense_type(self.name, variable, 1) for variable in inputs)
        return (SparseType(self.format, values.dtype, self.shape),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        values, indices, indptr, (rows, columns) = inputs
        kind = array_class(self.format)
        try:
            result: Any = kind((values, indices, indptr), shape=(int(rows), int(columns)), copy=True)
            result.check_format(full_check=True)
        except ValueError as error:
            raise ShapeError(describe(str(self), [f"{values.size} values"], str(error))) from error
        if not result.has_canonical_format:
            reason = "indices must ascend without repetition"
            raise ShapeError(describe(str(self), [f"{values.size} values"], reason))
        return (result,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        return [cotangents[0], None, None, None]

    def __str__(self) -> str:
        return f"{self.name}{{{self.format}}}"


@record(frozen=True, eq=False, repr=False)
class Structure(SparseOp):
    """Indices, index pointers and shape of a sparse matrix, as int64 vectors."""

    name, constructor = "structure", "Structure"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = sparse_type(self.name, inputs[0])
        outer = source.shape[0 if source.format == "csr" else 1]
        pointers = TensorType("int64", shape=(None if outer is None else outer + 1,))
        return (TensorType("int64", shape=(None,)), pointers, TensorType("int64", shape=(2,)))

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        (matrix,) = inputs
        return (
            matrix.indices.astype(np.int64),
            matrix.indptr.astype(np.int64),
            np.array(matrix.shape, np.int64),
        )

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        return [None]


@record(frozen=True, eq=False, repr=False)
class ConvertFormat(SparseOp):
    """A sparse matrix in the other format.

    Attributes
    ----------
    format
        Of the result.
    """

    format: Format = "csr"
    name, constructor = "sparse_format", "SparseFormat"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = sparse_type(self.name, inputs[0])
        return (SparseType(self.format, source.dtype, source.shape),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return (canonical(inputs[0], self.format, inputs[0].dtype).copy(),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        return [VALUES_AT(node.inputs[0], WITH_VALUES(node.outputs[0], cotangent))]

    def __str__(self) -> str:
        return f"{self.name}{{{self.format}}}"


@record(frozen=True, eq=False, repr=False)
class SparseTranspose(SparseOp):
    """The transpose, which stores the same values in the same order: CSR becomes CSC and CSC CSR."""

    name, constructor = "sparse_transpose", "SparseTranspose"
    typing = "transpose"
    kinds: tuple[Kind, ...] = field(default=("sparse",), init=False)
    view_map = MappingProxyType({0: (0,)})

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = sparse_type(self.name, inputs[0])
        other: Format = "csc" if source.format == "csr" else "csr"
        return (SparseType(other, source.dtype, (source.shape[1], source.shape[0])),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        return (inputs[0].T,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        return [cotangents[0]]


STORED_VALUES = StoredValues()
WITH_VALUES = WithValues()
DENSE_FROM_SPARSE = DenseFromSparse()
DENSE_AT = DenseAt()
VALUES_AT = ValuesAt()
STRUCTURE = Structure()
SPARSE_TRANSPOSE = SparseTranspose()
