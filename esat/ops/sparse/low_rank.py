"""Products with a sparse matrix together with what has low rank: each row of both in one pass.

The gradient and the loss of a sparse matrix's factorization are of this kind: ``x @ v`` beside
``u @ (v.T @ v)``, where ``u`` is as long as the sparse matrix and the square factor as small as the rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.op import Work
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.contraction import MATMUL, swap_last_axes
from esat.ops.reduction import SUM, reduce
from esat.ops.sparse.products import STRUCTURED_DOT, USMM, ProductOp
from esat.ops.sparse.record import WITH_DENSE, Kind, bytes_of, count, dense_type, match
from esat.ops.sparse.structure import Cotangents
from esat.ops.sparse.sums import DTYPES, SPARSE_BILINEAR, SQUARES_AND_BILINEAR
from esat.records import record

_HIDDEN = 0.2
"""Of the operations of the small product: most are done while the next row's values are on their way."""


@record(frozen=True, eq=False, repr=False)
class UsmmProduct(ProductOp):
    """``alpha * (sparse @ dense) + left @ square + beta * left``.

    Operands ``(alpha, sparse, dense, left, square, beta)`` of shapes ``()``, ``(m, k)``, ``(k, n)``,
    ``(m, n)``, ``(n, n)`` and ``()``, of float32 or float64. Where ``beta`` is 0 its product is left out.
    """

    name: str = field(default="usmm_product", init=False)
    constructor: str = field(default="UsmmProduct", init=False)
    typing: str = field(default="usmm", init=False)
    kinds: ClassVar[tuple[Kind, ...]] = (0, "sparse", 2, 2, 2, 0)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        alpha, sparse, dense, left, square, beta = inputs
        dense_type(self.name, beta, 0)
        (result,) = USMM.infer_types([alpha, sparse, dense, left])
        assert isinstance(result, TensorType)
        _match_square(self.name, inputs, result, square)
        return (result,)

    def fit(self, inputs: Sequence[Any]) -> bool:
        """Whether the sizes of ``(sparse, dense, left, square)`` do."""
        return SPARSE_BILINEAR.fit(inputs[:3]) and inputs[3].shape == (inputs[2].shape[1],) * 2

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        alpha, sparse, dense, left, square, beta = inputs
        self.refuse(inputs[1:5], self.fit(inputs[1:5]))
        with np.errstate(all="ignore"):
            product = np.asarray(sparse @ dense)
            product *= alpha
            product += left @ square
            if beta != 0:
                product += beta * left
        return (product,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * 6
        alpha, sparse, dense, left, square, beta = node.inputs
        by_scale, by_values, by_dense, _ = USMM.vjp(USMM(alpha, sparse, dense, left).owner, [cotangent])
        return [
            by_scale,
            by_values,
            by_dense,
            MATMUL(cotangent, swap_last_axes(square)) + beta * cotangent,
            MATMUL(swap_last_axes(left), cotangent),
            reduce(SUM, cotangent * left),
        ]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        return _work(inputs[1:5], (*inputs, *outputs), itemsizes)


@record(frozen=True, eq=False, repr=False)
class SquaresAndQuadratic(ProductOp):
    """``sum(sparse**2) + alpha * sum(other * (sparse @ dense)) + sum(other * (other @ square))``.

    Operands ``(alpha, sparse, dense, other, square)``, as those of :class:`UsmmProduct`. With ``alpha`` -2
    and ``square`` the product ``dense.T @ dense`` it is the squared distance of the sparse matrix from
    ``other @ dense.T``.
    """

    name: str = field(default="squares_and_quadratic", init=False)
    constructor: str = field(default="SquaresAndQuadratic", init=False)
    typing: str = field(default="number", init=False)
    kinds: ClassVar[tuple[Kind, ...]] = (0, "sparse", 2, 2, 2)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        alpha, sparse, dense, other, square = inputs
        (product,) = STRUCTURED_DOT.infer_types([sparse, dense])
        assert isinstance(product, TensorType)
        _match_square(self.name, inputs, product, square)
        return SQUARES_AND_BILINEAR.infer_types([alpha, sparse, dense, other])

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        other, square = inputs[3:]
        self.refuse(inputs[1:], USMM_PRODUCT.fit(inputs[1:]))
        with np.errstate(all="ignore"):
            (first,) = SQUARES_AND_BILINEAR.perform(inputs[:4])
            return (np.asarray(first + np.sum((other.T @ other) * square)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * 5
        *operands, other, square = node.inputs
        first = SQUARES_AND_BILINEAR(*operands, other)
        *others, by_other = SQUARES_AND_BILINEAR.vjp(first.owner, [cotangent])
        assert by_other is not None
        both = square + swap_last_axes(square)
        by_square = cotangent * MATMUL(swap_last_axes(other), other)
        return [*others, by_other + cotangent * MATMUL(other, both), by_square]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        return _work(inputs[1:], inputs, itemsizes)


def _match_square(name: str, inputs: Sequence[Variable], product: TensorType, square: Variable) -> None:
    """Refuse a factor that is not square or does not fit the rows of a product, as far as sizes are known."""
    types = [variable.type for variable in inputs]
    if product.dtype not in DTYPES:
        raise DtypeError(describe(name, types, f"operands have a dtype of {', '.join(DTYPES)}"))
    rows, columns = dense_type(name, square, 2).shape
    match(name, types, (rows, columns), (product.shape[1], rows), (product.shape[1], columns))


def _work(
    operands: Sequence[tuple[int, ...]], moved: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
) -> Work:
    sparse, dense, left, _ = operands
    flops = 2.0 * dense[1] * (count(sparse) + _HIDDEN * left[0] * left[1])
    return Work(
        flops=flops,
        bytes=sum(bytes_of(shape, size) for shape, size in zip(moved, itemsizes, strict=False)),
        calls=1,
        share=WITH_DENSE,
    )


USMM_PRODUCT = UsmmProduct()
SQUARES_AND_QUADRATIC = SquaresAndQuadratic()
