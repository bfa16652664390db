"""``a' (a x)``, the operator of the normal equations, as one op: two products in one pass over a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from esat.base.records import record
from esat.graph.function_graph import FunctionGraph
from esat.graph.op import check_count
from esat.graph.variables import Apply, Variable
from esat.ops.linalg.algebra import product, transposed
from esat.ops.linalg.record import inexact_operands
from esat.ops.linalg.rows_product import RowsProduct


@record(frozen=True, eq=False, repr=False)
class NormalProduct(RowsProduct):
    """``a.T @ (a @ x)`` for matrices ``a`` (m, n) and ``x`` (n, k) of one dtype, float32 or float64.

    Rules put it in the place of two products with a column (``structured_products.egg``), which read the
    matrix twice.
    """

    middle: FunctionGraph | None = field(default=None, init=False)
    name, constructor = "normal_matmul", "NormalMatMul"
    host_only = ""  # unlike its base: any library has these products

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        check_count(self.name, inputs, 2)
        return inexact_operands(self.name, inputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        matrix, operand = node.inputs
        by_matrix = product(matrix, operand, transposed(cotangent))
        by_matrix = by_matrix + product(matrix, cotangent, transposed(operand))
        return [by_matrix, product(transposed(matrix), product(matrix, cotangent))]


NORMAL_PRODUCT = NormalProduct()
