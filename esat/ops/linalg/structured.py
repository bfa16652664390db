"""Products of matrices of which one is known to be triangular, diagonal, tridiagonal or symmetric.

Each is a matrix product as :class:`MatMul` defines it; what it is called says what its operands promise. A
kernel may then read the part of an operand that the structure leaves and take the rest as said: zero, or
the mirror image. Rules put these ops in the place of products (``structured_products.egg``); gradients
are taken before that, of the product as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.contraction import MATMUL, MatMul

Structure = Literal["lower", "upper", "diagonal", "tridiagonal", "symmetric", "gram"]
Side = Literal["left", "right"]

DTYPES = ("float32", "float64")


@record(frozen=True, eq=False, repr=False)
class StructuredProduct(MatMul):
    """``left @ right`` of two matrices of one dtype, float32 or float64, one of them structured.

    Attributes
    ----------
    structure
        Of the operand on ``side``. ``gram``: ``right`` is ``left`` transposed, which is no promise about
        either alone; the result is symmetric.
    side
        Which operand it is. A symmetric one has a column on its right, or a row on its left: elsewhere
        there is nothing to gain.
    """

    structure: Structure = "lower"
    side: Side = "left"
    name, constructor = "", ""

    def __post_init__(self) -> None:
        words = ("matmul", self.structure) if self.side == "right" else (self.structure, "matmul")
        object.__setattr__(self, "name", "_".join(words))
        object.__setattr__(self, "constructor", constructor_of(self.structure, self.side))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if types[0].dtype not in DTYPES:
            raise DtypeError(describe(self.name, types, f"operands have a dtype of {', '.join(DTYPES)}"))
        if types[0].ndim != 2:
            raise ShapeError(describe(self.name, types, "operands are matrices"))
        if self.structure == "symmetric" and not self._has_vector(types):
            shown = "a column on its right" if self.side == "left" else "a row on its left"
            raise ShapeError(describe(self.name, types, f"a symmetric matrix has {shown}, of size 1 by type"))
        return super().infer_types(inputs)

    def _has_vector(self, types: Sequence[TensorType]) -> bool:
        return types[1].shape[1] == 1 if self.side == "left" else types[0].shape[0] == 1

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The product of the part of the operand that the structure leaves, so that a wrong promise shows."""
        left, right = inputs
        if self.structure == "gram":
            return super().perform([left, left.T])
        if self.side == "left":
            return super().perform([_part(left, self.structure), right])
        return super().perform([left, _part(right, self.structure)])

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return MATMUL.vjp(node, cotangents)


def _part(matrix: Array, structure: Structure) -> Array:
    """What a matrix is by its structure, from the part that is read."""
    match structure:
        case "lower":
            return np.tril(matrix)
        case "upper":
            return np.triu(matrix)
        case "diagonal":
            return np.triu(np.tril(matrix))
        case "tridiagonal":
            return np.triu(np.tril(matrix, 1), -1)
    return np.tril(matrix) + np.tril(matrix, -1).T


def constructor_of(structure: Structure, side: Side) -> str:
    """The name in rules: ``LowerMatMul``, ``MatMulLower``, ``GramMatMul`` and so on."""
    word = structure.capitalize()
    return f"MatMul{word}" if side == "right" else f"{word}MatMul"


_ONE_SIDED: tuple[Structure, ...] = ("lower", "upper", "diagonal", "tridiagonal", "symmetric")
_SIDES: tuple[Side, ...] = ("left", "right")

STRUCTURED_PRODUCTS: tuple[StructuredProduct, ...] = (
    *(StructuredProduct(structure, side) for structure in _ONE_SIDED for side in _SIDES),
    StructuredProduct("gram"),
)
"""Every such op."""

PRODUCTS: dict[str, MatMul] = {op.constructor: op for op in (MATMUL, *STRUCTURED_PRODUCTS)}
"""Constructor -> op, of all matrix products."""
