"""Products and sums of sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, DtypeError, ShapeError, describe
from esat.graph.op import Shapes, Work
from esat.graph.sparse_type import SparseType, canonical
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.contraction import swap_last_axes
from esat.ops.sparse.record import (
    WITH_DENSE,
    Kind,
    SparseOp,
    count,
    dense_type,
    match,
    places,
    sparse_type,
    with_values,
)
from esat.ops.sparse.sampling import sampled
from esat.ops.sparse.structure import (
    DENSE_AT,
    SPARSE_TRANSPOSE,
    STORED_VALUES,
    VALUES_AT,
    WITH_VALUES,
    Cotangents,
)


def to_dtype(variable: Variable, dtype: str) -> Variable:
    """A sparse or dense variable with its values cast to ``dtype``."""
    if not isinstance(variable.type, SparseType):
        return cast(variable, dtype)
    if variable.type.dtype == dtype:
        return variable
    result: Variable = WITH_VALUES(variable, cast(STORED_VALUES(variable), dtype))
    return result


def common(name: str, operands: Sequence[Variable]) -> tuple[Variable, ...]:
    """Operands in their common dtype. Raises DtypeError for one SciPy has no sparse matrices of."""
    dtypes = [v.type.dtype if isinstance(v.type, SparseType) else v.tensor_type.dtype for v in operands]
    dtype = np.result_type(*map(np.dtype, dtypes)).name
    if dtype == "float16":
        types = [variable.type for variable in operands]
        raise DtypeError(describe(name, types, "SciPy has no sparse matrices of float16"))
    return tuple(to_dtype(variable, dtype) for variable in operands)


@record(frozen=True, eq=False, repr=False)
class ProductOp(SparseOp):
    """An op whose operands share one dtype, and whose sizes SciPy checks when it runs."""

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return common(self.name, inputs)

    def refuse(self, inputs: Sequence[Any], fits: bool) -> None:
        """Raise ShapeError unless the sizes of run-time operands fit."""
        if not fits:
            shown = [f"shape {operand.shape}" for operand in inputs]
            raise ShapeError(describe(self.name, shown, "sizes do not match"))


@record(frozen=True, eq=False, repr=False)
class StructuredDot(ProductOp):
    """Product of a sparse and a dense matrix, a dense one: ``(m, k)`` and ``(k, n)`` give ``(m, n)``."""

    name, constructor = "structured_dot", "StructuredDot"
    typing = "product"
    kinds: tuple[Kind, ...] = field(default=("sparse", 2), init=False)
    operands: ClassVar[tuple[str, ...]] = ("sparse", "dense")
    formula: ClassVar[str] = "sparse @ dense"
    is_number: ClassVar[bool] = False

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        left, right = sparse_type(self.name, inputs[0]), dense_type(self.name, inputs[1], 2)
        match(self.name, [left, right], (left.shape[1], right.shape[0]))
        return (TensorType(left.dtype, shape=(left.shape[0], right.shape[1])),)

    def check_sizes(self, left: Any, right: Any) -> None:
        """Raise ShapeError unless the sizes of run-time operands fit."""
        self.refuse([left, right], left.shape[1] == right.shape[0])

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        left, right = inputs
        self.check_sizes(left, right)
        return (self.computed(inputs),)

    def computed(self, inputs: Sequence[Any]) -> Any:
        """The product of operands whose sizes fit."""
        left, right = inputs
        return np.asarray(left @ right)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        left, right = node.inputs
        return [
            SAMPLED_VALUES(left, cotangent, swap_last_axes(right)),
            self(SPARSE_TRANSPOSE(left), cotangent),
        ]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = SparseOp.work(self, inputs, outputs, itemsizes)
        return replace(general, flops=2.0 * count(inputs[0]) * inputs[1][1], share=WITH_DENSE)


@record(frozen=True, eq=False, repr=False)
class SampledValues(ProductOp):
    """Elements of a product of dense matrices at the stored places of a sparse one, as a vector.

    ``(pattern, left, right)`` of ``(m, n)``, ``(m, k)`` and ``(k, n)``. Nothing else of the product is
    computed.
    """

    name, constructor = "sampled_values", "SampledValues"
    typing = "stored"
    kinds: tuple[Kind, ...] = field(default=("sparse", 2, 2), init=False)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return (inputs[0], *common(self.name, inputs[1:]))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        pattern = sparse_type(self.name, inputs[0])
        left, right = (dense_type(self.name, variable, 2) for variable in inputs[1:])
        pairs = zip(pattern.shape, (left.shape[0], right.shape[1]), strict=True)
        match(self.name, [pattern, left, right], (left.shape[1], right.shape[0]), *pairs)
        return (TensorType(left.dtype, shape=(None,)),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        pattern, left, right = inputs
        fits = pattern.shape == (left.shape[0], right.shape[1]) and left.shape[1] == right.shape[0]
        self.refuse(inputs, fits)
        return (sampled(pattern, left, right),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None, None]
        pattern, left, right = node.inputs
        weighted = WITH_VALUES(pattern, cotangent)
        by_right = STRUCTURED_DOT(SPARSE_TRANSPOSE(weighted), left)
        return [None, STRUCTURED_DOT(weighted, swap_last_axes(right)), swap_last_axes(by_right)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = SparseOp.work(self, inputs, outputs, itemsizes)
        # Columns of the second factor are read one after the other.
        return replace(general, flops=2.0 * count(inputs[0]) * inputs[1][1], share=0.08)


@record(frozen=True, eq=False, repr=False)
class SparseProduct(ProductOp):
    """Product of two sparse matrices, in the format of the first."""

    name, constructor = "sparse_product", "SparseProduct"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        left, right = (sparse_type(self.name, variable) for variable in inputs)
        match(self.name, [left, right], (left.shape[1], right.shape[0]))
        return (SparseType(left.format, left.dtype, (left.shape[0], right.shape[1])),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        left, right = inputs
        self.refuse(inputs, left.shape[1] == right.shape[0])
        result = canonical(left @ right, left.format, left.dtype)
        # Where values cancel, versions of SciPy differ in whether the place is kept; derivatives need it.
        pattern = canonical(_ones(left) @ _ones(right), left.format, np.bool_)
        if pattern.nnz == result.nnz:
            return (result,)
        return (with_values(pattern, VALUES_AT.perform([pattern, result])[0]),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        left, right = node.inputs
        weighted = WITH_VALUES(node.outputs[0], cotangent)
        return [
            VALUES_AT(left, self(weighted, SPARSE_TRANSPOSE(right))),
            VALUES_AT(right, self(SPARSE_TRANSPOSE(left), weighted)),
        ]


def _ones(matrix: Any) -> Any:
    """The structure of a matrix, with true at each stored place."""
    return with_values(matrix, np.ones(matrix.nnz, np.bool_))


@record(frozen=True, eq=False, repr=False)
class SparseAdd(ProductOp):
    """Sum of two sparse matrices, in the format of the first; it stores the places either stores."""

    name, constructor = "sparse_add", "SparseAdd"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        left, right = (sparse_type(self.name, variable) for variable in inputs)
        match(self.name, [left, right], *zip(left.shape, right.shape, strict=True))
        rows, columns = (a if a is not None else b for a, b in zip(left.shape, right.shape, strict=True))
        return (SparseType(left.format, left.dtype, (rows, columns)),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        import scipy.sparse

        left, right = inputs
        self.refuse(inputs, left.shape == right.shape)
        parts = [(matrix.data, *places(matrix)) for matrix in inputs]
        values, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        # Not by SciPy's sum, which forgets places where values cancel: their derivatives do not.
        whole = scipy.sparse.coo_array((values, (rows, columns)), shape=left.shape)
        return (canonical(whole, left.format, left.dtype),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        weighted = WITH_VALUES(node.outputs[0], cotangent)
        return [VALUES_AT(operand, weighted) for operand in node.inputs]


@record(frozen=True, eq=False, repr=False)
class SparseSum(SparseOp):
    """Sums along one axis of a sparse matrix, as a dense vector; integers are summed in their own dtype.

    Attributes
    ----------
    axis
        0 sums each column, 1 each row.
    """

    axis: int = 0
    name, constructor = "sparse_sum", "SparseSum"
    typing = "sparse_sum"
    kinds: tuple[Kind, ...] = field(default=("sparse",), init=False)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = sparse_type(self.name, inputs[0])
        if self.axis not in (0, 1):
            raise AxisError(describe(self.name, [source], f"axis {self.axis} is neither 0 nor 1"))
        return (TensorType(source.dtype, shape=(source.shape[1 - self.axis],)),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        (matrix,) = inputs
        result = np.zeros(matrix.shape[1 - self.axis], matrix.dtype)
        np.add.at(result, places(matrix)[1 - self.axis], matrix.data)
        return (result,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        stretched = dimshuffle(cotangent, ("x", 0) if self.axis == 0 else (0, "x"))
        return [DENSE_AT(node.inputs[0], stretched)]

    def __str__(self) -> str:
        return f"{self.name}{{{self.axis}}}"


STRUCTURED_DOT = StructuredDot()
SAMPLED_VALUES = SampledValues()
SPARSE_PRODUCT = SparseProduct()
SPARSE_ADD = SparseAdd()
