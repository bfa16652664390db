"""``a' (a x)``, the operator of the normal equations, as one op: two products in one pass over a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Op, Work
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.linalg.algebra import product, transposed
from esat.ops.linalg.record import MatrixOp

DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False, repr=False)
class NormalProduct(MatrixOp):
    """``a.T @ (a @ x)`` for matrices ``a`` (m, n) and ``x`` (n, k) of one dtype, float32 or float64.

    Rules put it in the place of two products with a column (``structured_products.egg``), which read the
    matrix twice.
    """

    name: str = field(default="normal_matmul", init=False)
    constructor: str = field(default="NormalMatMul", init=False)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        if len(inputs) != 2:
            raise DtypeError(describe(self.name, inputs, f"takes two operands, not {len(inputs)}"))
        return super().prepare(inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if types[0].dtype not in DTYPES:
            raise DtypeError(describe(self.name, types, f"operands have a dtype of {', '.join(DTYPES)}"))
        if [type.ndim for type in types] != [2, 2]:
            raise ShapeError(describe(self.name, types, "operands are matrices"))
        columns, rows = types[0].shape[1], types[1].shape[0]
        if None not in (columns, rows) and columns != rows:
            raise ShapeError(describe(self.name, types, f"inner sizes {columns} and {rows} do not match"))
        return (types[1].with_shape((columns if rows is None else rows, types[1].shape[1])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        matrix, operand = inputs
        return (self.call(lambda: np.matmul(matrix.T, np.matmul(matrix, operand))),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        matrix, operand = node.inputs
        by_matrix = product(matrix, operand, transposed(cotangent))
        by_matrix = by_matrix + product(matrix, cotangent, transposed(operand))
        return [by_matrix, product(transposed(matrix), product(matrix, cotangent))]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        (rows, columns), across = inputs[0], outputs[0][1]
        return Work(flops=4.0 * rows * columns * across, bytes=general.bytes, calls=1)


NORMAL_PRODUCT = NormalProduct()
