"""Orthonormal columns and a triangle of matrices whose columns are put in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.graph.op import Array
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.sorting import argsort
from esat.ops.index.along import take_along_axis
from esat.ops.linalg.factor import QR
from esat.ops.linalg.general import HOST_ONLY
from esat.ops.linalg.record import batch_types

_SCIPYS = {"reduced": "economic", "complete": "full", "r": "r"}


@record(frozen=True, eq=False, repr=False)
class PivotedQR(QR):
    """``a[:, order] = q @ r``, as :class:`esat.ops.linalg.factor.QR`, with an order by which absolute values
    on the diagonal of ``r`` do not increase (LAPACK geqp3). It is the last result, int32 for each column."""

    name, constructor = "pivoted_qr", "PivotedQR"
    host_only = HOST_ONLY

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        factors = QR.infer_types(self, inputs)
        return (*factors, batch_types(source, source.shape[-1:]).with_dtype("int32"))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (matrices,) = inputs
        *batch, rows, columns = matrices.shape
        middle = rows if self.mode == "complete" else min(rows, columns)
        shapes = [(middle, columns)] if self.mode == "r" else [(rows, middle), (middle, columns)]
        results: list[Array] = [np.zeros((*batch, *shape), matrices.dtype) for shape in shapes]
        order: Array = np.zeros((*batch, columns), "int32")
        if not matrices.size:
            order[...] = np.arange(columns)
            if self.mode == "complete":
                results[0][...] = np.eye(rows)
            return (*results, order)
        import scipy.linalg

        def factors(matrix: Array) -> Any:
            decomposed: Any = scipy.linalg.qr
            return decomposed(matrix, mode=_SCIPYS[self.mode], pivoting=True, check_finite=False)

        for place in np.ndindex(*batch):
            *found, order[place] = self.call(factors, matrices[place])
            for result, one in zip(results, found, strict=True):
                result[place] = one[:middle] if self.mode == "r" else one
        return (*results, order)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """As that of :class:`QR`, of columns in order: a small change leaves it."""
        if all(cotangent is None for cotangent in cotangents[:-1]):
            return [None]
        matrix, order = node.inputs[0], node.outputs[-1]
        rank = matrix.tensor_type.ndim
        axes = (*range(rank - 2), "x", rank - 2)
        ordered = take_along_axis(matrix, dimshuffle(order, axes), -1)
        by_ordered = self.by_matrix(node, ordered, node.outputs[:-1], cotangents[:-1])
        return [take_along_axis(by_ordered, dimshuffle(argsort(order), axes), -1)]
