"""``a' f(a x)``: two products in one pass over a matrix, with an elementwise function between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe, sizes_differ
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.function_graph import FunctionGraph
from esat.graph.identity import is_among
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable, check_count
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable

DTYPES = ("float32", "float64")


@record(frozen=True, eq=False, repr=False)
class RowsProduct(Op):
    """``a.T @ f(a @ x, *others)`` for a matrix ``a`` (m, n) and a column ``x`` (n, 1).

    The elementwise function ``f`` says from the product of each row with the column, a number, which
    multiple of that row belongs to the result. Values that it makes on the way, or the products themselves,
    can be further results, vectors of m elements.

    A phase puts it in the place of the two products, which read the matrix twice
    (``esat/phases/row_products.py``); it has no gradient.

    Attributes
    ----------
    middle
        The function: its inputs are the products, a vector, and a vector or a scalar for each of the others;
        its outputs are the multiples, and what else is wanted. None for the products themselves.
    """

    middle: FunctionGraph | None = None
    name, constructor, family = "rows_matmul", "RowsMatMul", Family.CONTRACTION
    host_only = "an order of work for the caches of a processor"

    @property
    def others(self) -> tuple[Variable, ...]:
        """The inputs of the function besides the products."""
        return () if self.middle is None else tuple(self.middle.inputs[1:])

    @property
    def kept(self) -> tuple[Variable, ...]:
        """What the function computes that is a result of its own."""
        return () if self.middle is None else tuple(self.middle.outputs[1:])

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 2 + len(self.others))
        return tuple(map(as_variable, inputs))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        matrix, operand, *others = types
        if matrix.dtype not in DTYPES or operand.dtype != matrix.dtype:
            reason = f"the matrix and the column have one dtype of {', '.join(DTYPES)}"
            raise DtypeError(describe(self.name, types, reason))
        if matrix.ndim != 2 or operand.ndim != 2:
            raise ShapeError(describe(self.name, types, "the first two operands are matrices"))
        (rows, columns), (inner, across) = matrix.shape, operand.shape
        if None not in (columns, inner) and columns != inner:
            raise ShapeError(describe(self.name, types, f"inner sizes {columns} and {inner} do not match"))
        for type, variable in zip(others, self.others, strict=True):
            wanted = variable.tensor_type
            if type.dtype != wanted.dtype or type.ndim != wanted.ndim:
                raise DtypeError(describe(self.name, types, f"the function takes {wanted}, not {type}"))
            if type.ndim and None not in (rows, type.shape[0]) and type.shape[0] != rows:
                reason = f"{rows} rows and {type.shape[0]} elements do not match"
                raise ShapeError(describe(self.name, types, reason))
        result = TensorType(matrix.dtype, shape=(inner if columns is None else columns, across))
        kept = (variable.tensor_type.with_shape((rows,)) for variable in self.kept)
        return (result, *kept)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        matrix, operand, *others = inputs
        with np.errstate(all="ignore"):
            products = np.matmul(matrix, operand)
            if self.middle is None:
                return (np.matmul(matrix.T, products),)
            given = dict(zip(self.middle.inputs, (products[:, 0], *others), strict=True))
            multiples, *kept = evaluate(self.middle.outputs, given)
            return (np.matmul(matrix.T, multiples[:, None]), *(array.copy() for array in kept))

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        matrix, operand, *others = operands
        if matrix.shape[1] != operand.shape[0]:
            shown = [f"shape {array.shape}" for array in (matrix, operand)]
            raise ShapeError(describe("matmul", shown, "inner sizes must be equal", node.where))
        for array, variable in zip(others, self.others, strict=True):
            if array.ndim and len(array) != len(matrix):
                reader = self._reader(variable)
                shown = [f"shape {array.shape}", f"shape {matrix.shape[:1]}"]
                reason = sizes_differ((len(array), len(matrix)), 0)
                raise ShapeError(describe(reader.op.name, shown, reason, reader.where or node.where))

    def _reader(self, variable: Variable) -> Apply:
        """The first node of the function that reads an input."""
        assert self.middle is not None
        return next(node for node in self.middle.toposort() if is_among(variable, node.inputs))

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        (rows, columns), across = inputs[0], outputs[0][1]
        return Work(flops=4.0 * rows * columns * across, bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        if self.middle is None:
            return self.name
        ops = [node.op for node in self.middle.toposort() if node.op.family is not Family.VIEW]
        return f"{self.name}{{{', '.join(map(str, ops))}}}"
