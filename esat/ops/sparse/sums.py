"""Sums over products of a sparse matrix with a dense one, in one pass over its rows: no product is formed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, ClassVar

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.op import Work
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.contraction import swap_last_axes
from esat.ops.sparse.products import (
    SAMPLED_VALUES,
    STRUCTURED_DOT,
    ProductOp,
)
from esat.ops.sparse.record import WITH_DENSE, Kind, bytes_of, count, dense_type, match
from esat.ops.sparse.sampling import sampled
from esat.ops.sparse.structure import SPARSE_TRANSPOSE, STORED_VALUES, Cotangents
from esat.records import record

DTYPES = ("float32", "float64")
"""Of sums: there are kernels for these, and integers that overflow stay apart."""


@record(frozen=True, eq=False, repr=False)
class SparseBilinear(ProductOp):
    """``sum(other * (sparse @ dense))``, a number: operands ``(sparse, dense, other)``.

    For shapes ``(m, k)``, ``(k, n)`` and ``(m, n)``, of float32 or float64: the sum of the stored values
    times the elements of ``other @ dense.T`` at their places. What is not stored counts as 0, whatever stands
    there in the other matrices. No matrix is formed.
    """

    name: str = field(default="sparse_bilinear", init=False)
    constructor: str = field(default="SparseBilinear", init=False)
    typing: str = field(default="number", init=False)
    kinds: ClassVar[tuple[Kind, ...]] = ("sparse", 2, 2)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        sparse, dense, other = inputs
        (product,) = STRUCTURED_DOT.infer_types([sparse, dense])
        assert isinstance(product, TensorType)
        types = [variable.type for variable in inputs]
        if product.dtype not in DTYPES:
            raise DtypeError(describe(self.name, types, f"operands have a dtype of {', '.join(DTYPES)}"))
        match(self.name, types, *zip(product.shape, dense_type(self.name, other, 2).shape, strict=True))
        return (TensorType(product.dtype, shape=()),)

    def fit(self, inputs: Sequence[Any]) -> bool:
        """Whether the sizes of run-time operands do."""
        sparse, dense, other = inputs
        return bool(sparse.shape[1] == dense.shape[0]) and other.shape == (sparse.shape[0], dense.shape[1])

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        sparse, dense, other = inputs
        self.refuse(inputs, self.fit(inputs))
        with np.errstate(all="ignore"):
            total = np.sum(other * np.asarray(sparse @ dense))
            if not np.isfinite(total):  # perhaps because of what stands where nothing is stored
                total = np.sum(sparse.data * sampled(sparse, other, dense.T))
            return (np.asarray(total),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * 3
        sparse, dense, other = node.inputs
        return [
            cotangent * SAMPLED_VALUES(sparse, other, swap_last_axes(dense)),
            cotangent * STRUCTURED_DOT(SPARSE_TRANSPOSE(sparse), other),
            cotangent * STRUCTURED_DOT(sparse, dense),
        ]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        moved = sum(bytes_of(shape, size) for shape, size in zip(inputs, itemsizes, strict=False))
        # What follows a row's product takes no time of its own: the next row's values are on their way.
        flops = 2.0 * count(inputs[0]) * inputs[1][1]
        return Work(flops, moved, calls=1, share=WITH_DENSE)


@record(frozen=True, eq=False, repr=False)
class SquaresAndBilinear(ProductOp):
    """``sum(sparse**2) + alpha * sum(other * (sparse @ dense))``: operands ``(alpha, sparse, dense, other)``.

    What a squared distance of a sparse matrix from a product of dense ones needs of its stored values.
    """

    name: str = field(default="squares_and_bilinear", init=False)
    constructor: str = field(default="SquaresAndBilinear", init=False)
    typing: str = field(default="number", init=False)
    kinds: ClassVar[tuple[Kind, ...]] = (0, "sparse", 2, 2)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        dense_type(self.name, inputs[0], 0)
        return SPARSE_BILINEAR.infer_types(inputs[1:])

    def perform(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        alpha, sparse, dense, other = inputs
        self.refuse(inputs, SPARSE_BILINEAR.fit(inputs[1:]))
        with np.errstate(all="ignore"):
            (product,) = SPARSE_BILINEAR.perform([sparse, dense, other])
            return (np.asarray(np.sum(np.square(sparse.data)) + alpha * product),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> Cotangents:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * 4
        alpha, sparse, dense, other = node.inputs
        product = SPARSE_BILINEAR(sparse, dense, other)
        by_values, by_dense, by_other = SPARSE_BILINEAR.vjp(product.owner, [cotangent * alpha])
        assert by_values is not None
        return [
            cotangent * product,
            by_values + 2.0 * cotangent * STORED_VALUES(sparse),
            by_dense,
            by_other,
        ]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        return SPARSE_BILINEAR.work(inputs[1:], outputs, itemsizes[1:])


SPARSE_BILINEAR = SparseBilinear()
SQUARES_AND_BILINEAR = SquaresAndBilinear()
