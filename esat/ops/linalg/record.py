"""What the ops of linear algebra share: dtypes, shapes, errors of the libraries, cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, LinearAlgebraError, MatrixShapeError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.inference.batching import aligned
from esat.ops.inference.broadcasting import broadcast_types

Shape = tuple[int | None, ...]


@record(frozen=True, eq=False, repr=False)
class MatrixOp(Op):
    """An op on matrices that calls LAPACK through NumPy or SciPy.

    Attributes
    ----------
    cubic_operations
        Of each matrix it takes so many operations times ``rows * columns * min(rows, columns)``; 0 where
        :meth:`work` says otherwise.
    matrix_share
        The share of the rate of matrix products that the routine reaches for large matrices, whatever the
        number of right sides; 0 where that was not measured.
    wakes
        Whether OpenBLAS wakes its threads however small matrices are, as getrs does for two right sides: of 5
        equations they took 2 ms on busy processors, instead of 1 us.
    """

    family = Family.LIBRARY

    cubic_operations: ClassVar[float] = 0.0
    matrix_share: ClassVar[float] = 0.0
    wakes: ClassVar[bool] = False

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return inexact_operands(self.name, inputs)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*aligned(inputs, batched)).outputs)

    def call(self, function: Callable[..., Any], *arrays: Array) -> Any:
        """``function(*arrays)``; what it refuses becomes an error of esat's."""
        try:
            with np.errstate(all="ignore"):
                return function(*arrays)
        except np.linalg.LinAlgError as error:
            reason = str(error)
            if reason[1:2].islower():  # not "SVD"
                reason = reason[:1].lower() + reason[1:]
            # NumPy has one class for what the values forbid and for what the sizes do.
            kind = MatrixShapeError if "square" in reason else LinearAlgebraError
            raise kind(describe(self.name, _shown(arrays), reason)) from error
        except ValueError as error:
            raise ShapeError(describe(self.name, _shown(arrays), str(error))) from error

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        if self.cubic_operations:
            return self.cubic(self.cubic_operations, inputs, outputs, itemsizes)
        return super().work(inputs, outputs, itemsizes)

    def cubic(self, factor: float, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        """The cost of ``factor * rows * columns * min(rows, columns)`` operations a matrix."""
        general = Op.work(self, inputs, outputs, itemsizes)
        *batch, rows, columns = inputs[0]
        each = float(rows) * columns * min(rows, columns)
        return Work(flops=factor * each * float(np.prod(batch)), bytes=general.bytes, calls=1)


def inexact_operands(name: str, values: Sequence[Any]) -> tuple[Variable, ...]:
    """Operands in their common dtype, integers and booleans being computed in float64.

    Raises
    ------
    DtypeError
        For float16, which LAPACK does not have.
    """
    variables = [as_variable(value) for value in values]
    dtypes = [variable.tensor_type.numpy_dtype for variable in variables]
    if any(dtype == np.float16 for dtype in dtypes):
        types = [variable.type for variable in variables]
        raise DtypeError(describe(name, types, "LAPACK has no float16; cast to float32"))
    target = np.result_type(*(dtype if dtype.kind in "fc" else np.dtype("float64") for dtype in dtypes))
    return tuple(cast(variable, target) for variable in variables)


def real_dtype(dtype: str) -> str:
    """The dtype of the absolute value."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def check_matrices(name: str, inputs: Sequence[Variable]) -> None:
    """Raise MatrixShapeError unless every operand has at least two axes."""
    types = [variable.tensor_type for variable in inputs]
    if any(type.ndim < 2 for type in types):
        raise MatrixShapeError(describe(name, types, "takes matrices, in the last two axes"))


def check_square(name: str, operand: Variable, inputs: Sequence[Variable]) -> int | None:
    """The size of a square operand, where known. Raises MatrixShapeError when it cannot be square."""
    check_matrices(name, [operand])
    rows, columns = operand.tensor_type.shape[-2:]
    if None not in (rows, columns) and rows != columns:
        types = [variable.type for variable in inputs]
        raise MatrixShapeError(
            describe(name, types, f"a matrix of {rows} rows and {columns} columns is not square")
        )
    return rows if rows is not None else columns


def system_shape(name: str, inputs: Sequence[Variable]) -> Shape:
    """The static shape of the solution of a square system, from the matrix and the right sides."""
    check_matrices(name, inputs)
    matrix, sides = (variable.tensor_type for variable in inputs)
    size = check_square(name, inputs[0], inputs)
    rows, columns = sides.shape[-2:]
    if None not in (size, rows) and size != rows:
        reason = f"{size} equations do not fit right sides of {rows} rows"
        raise ShapeError(describe(name, [matrix, sides], reason))
    batch = broadcast_types(name, [matrix.with_shape(matrix.shape[:-2]), sides.with_shape(sides.shape[:-2])])
    return (*batch, size if size is not None else rows, columns)


def each_matrix(function: Callable[..., Array], *arrays: Array) -> Array:
    """``function`` applied to the matrices of broadcast batches, for routines that take one at a time.

    The result of each call has the shape of the last operand's matrix.
    """
    last = arrays[-1]
    batch = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
    if not batch and last.size:
        return np.ascontiguousarray(function(*arrays), last.dtype)
    result: Array = np.empty((*batch, *last.shape[-2:]), last.dtype)
    if result.size:
        stretched = [np.broadcast_to(array, (*batch, *array.shape[-2:])) for array in arrays]
        for place in np.ndindex(batch):
            result[place] = function(*(array[place] for array in stretched))
    return result


def batch_types(type: TensorType, shape: Shape) -> TensorType:
    """``type`` with the given last axes in place of the matrix's."""
    return type.with_shape((*type.shape[:-2], *shape))


def _shown(arrays: Sequence[Array]) -> list[str]:
    return [f"{array.dtype.name} of shape {array.shape}" for array in arrays]
