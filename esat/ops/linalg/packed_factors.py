"""A system of linear equations in two steps: the factors of its matrix, and the solution by these.

Rules (``linear_algebra.egg``) write a :class:`~esat.ops.linalg.solve.Solve` so; it is chosen where factors
serve several systems. A call of LAPACK's gesv is one of getrf and one of getrs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.errors import DtypeError, describe
from esat.graph.op import Array, Op, Shapes, Work, check_count
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.linalg.algebra import fold_batch
from esat.ops.linalg.record import (
    MatrixOp,
    batch_types,
    check_matrices,
    check_square,
    each_matrix,
    inexact_operands,
)
from esat.ops.linalg.solve import SOLVE


@record(frozen=True, eq=False, repr=False)
class PackedLU(MatrixOp):
    """What :class:`PackedSolve` takes of float64 matrices ``(..., n, n)``: ``(..., n + 1, n)``.

    The first rows are the columns of both triangular factors, as LAPACK has them. The last one has LAPACK's
    pivots: with which row, counted from 1, each was exchanged.
    """

    name, constructor = "packed_lu", "PackedLU"
    matrix_share = 0.5
    host_only = "cuSOLVER's factors are packed in another way"
    cubic_operations = 2.0 / 3.0

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return _in_double(self.name, inputs, 1)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        rows = None if size is None else size + 1
        return (batch_types(inputs[0].tensor_type, (rows, size)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (batch,) = inputs
        *axes, size, columns = batch.shape
        result: Array = np.empty((*axes, size + 1, size))

        def factored(place: tuple[int, ...]) -> None:
            if size != columns:
                raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
            factors, pivots, info = lapack("getrf", np.float64)(batch[place])
            if info:
                raise np.linalg.LinAlgError("Singular matrix")
            result[place][:size] = factors.T
            result[place][size] = pivots + 1

        for place in np.ndindex(*axes) if size else ():
            SOLVE.call(lambda _, place=place: factored(place), batch)  # by the name that users know
        return (result,)


@record(frozen=True, eq=False, repr=False)
class PackedSolve(MatrixOp):
    """``x`` with ``a @ x = b`` from what :class:`PackedLU` gives of ``a``, and ``b`` (LAPACK getrs).

    Attributes
    ----------
    transpose
        Whether to solve with the transpose of ``a`` instead.
    """

    transpose: bool = False
    name, constructor = "packed_solve", "PackedSolve"
    matrix_share = 0.5  # as that of Solve: one system alone is no reason for two calls
    wakes = True
    host_only = "cuSOLVER's factors are packed in another way"

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return equalize_ranks(_in_double(self.name, inputs, 2))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        factors, sides = (one.tensor_type for one in inputs)
        size = factors.shape[-1] if sides.shape[-2] is None else sides.shape[-2]
        batches = [one.with_shape(one.shape[:-2]) for one in (factors, sides)]
        return (sides.with_shape((*broadcast_types(self.name, batches), size, sides.shape[-1])),)

    def linear_in(self, count: int) -> range:
        return range(1, 2)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        def solve(factors: Array, sides: Array) -> Array:
            size = factors.shape[1]
            if len(factors) != size + 1 or len(sides) != size:
                raise ValueError(f"factors of shape {factors.shape} do not fit {len(sides)} rows")
            pivots = np.rint(factors[size]).astype(np.int32) - 1
            if not np.all((pivots >= 0) & (pivots < size)):  # LAPACK believes them
                raise ValueError("rows are exchanged with others than the matrix has")
            found: Array = lapack("getrs", np.float64)(
                factors[:size].T, pivots, sides, trans=int(self.transpose)
            )[0]
            return found

        return (self.call(lambda *arrays: each_matrix(solve, *arrays), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """By right sides alone: factors come from rules, which see graphs that are differentiated already."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        factors, sides = node.inputs
        back: Variable = PackedSolve(not self.transpose)(factors, cotangent)
        return [None, fold_batch(back, sides)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        batch = float(np.prod(outputs[0][:-2]))
        flops = 2.0 * float(inputs[0][-1]) ** 2 * outputs[0][-1]
        return Work(flops=batch * flops, bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{transpose}}" if self.transpose else self.name


def _in_double(name: str, values: Sequence[Any], count: int) -> tuple[Variable, ...]:
    operands = inexact_operands(name, values)
    check_count(name, operands, count)
    check_matrices(name, operands)
    if any(one.tensor_type.dtype != "float64" for one in operands):
        raise DtypeError(describe(name, [one.type for one in operands], "operands are float64"))
    return operands


PACKED_LU = PackedLU()
