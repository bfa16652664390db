"""Systems of banded matrices, which are given by their diagonals.

As ``scipy.linalg.solve_banded`` has them: of ``(..., lower + upper + 1, n)`` each row is a diagonal, the
uppermost first, and each column one of the matrix, so that ``bands[upper + i - j, j]`` is ``a[i, j]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.errors import GradientError, ShapeError, describe
from esat.graph.op import Array, Op, Shapes, Work, check_count
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.join import join
from esat.ops.index.basic import subtensor, zeros_like
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks
from esat.ops.linalg.algebra import as_row, fold_batch
from esat.ops.linalg.general import HOST_ONLY
from esat.ops.linalg.record import MatrixOp, batch_types, check_matrices, each_matrix
from esat.ops.reduction import SUM, reduce


@record(frozen=True, eq=False, repr=False)
class _OfBands(MatrixOp):
    """Diagonals, or what has been made of them, and right sides in the columns of a matrix."""

    host_only = HOST_ONLY

    @property
    def rows(self) -> int:
        """Of the first operand."""
        raise NotImplementedError

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = MatrixOp.prepare(self, inputs)
        check_count(self.name, operands, 2)
        check_matrices(self.name, operands)
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        bands, sides = (one.tensor_type for one in inputs)
        _check_rows(self.name, inputs, self.rows)
        size, rows = bands.shape[-1], sides.shape[-2]
        if None not in (size, rows) and size != rows:
            reason = f"{size} equations do not fit right sides of {rows} rows"
            raise ShapeError(describe(self.name, [bands, sides], reason))
        batch = broadcast_types(self.name, [one.with_shape(one.shape[:-2]) for one in (bands, sides)])
        return (sides.with_shape((*batch, size if rows is None else rows, sides.shape[-1])),)

    def linear_in(self, count: int) -> range:
        return range(1, 2)

    def solved(self, bands: Array, sides: Array) -> Array:
        """The solution of one system."""
        raise NotImplementedError

    def systems(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The solutions of a batch of systems."""

        def solve(bands: Array, sides: Array) -> Array:
            if bands.shape != (self.rows, len(sides)):
                raise ValueError(f"diagonals of shape {bands.shape} do not fit {len(sides)} equations")
            return self.solved(bands, sides)

        return (self.call(lambda *arrays: each_matrix(solve, *arrays), *inputs),)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        flops = 2.0 * self.rows * float(np.prod(outputs[0])) + 2.0 * self.rows * float(np.prod(inputs[0]))
        return Work(flops=flops, bytes=general.bytes, calls=1)


@record(frozen=True, eq=False, repr=False)
class BandedSolve(_OfBands):
    """``x`` with ``a @ x = b``, of the diagonals of ``a`` and ``b`` (LAPACK gbtrf and gbtrs, of tridiagonal
    matrices gttrf and gttrs).

    Operands ``(..., lower + upper + 1, n)`` and ``(..., n, k)`` of one dtype; batches broadcast. Elements of
    diagonals that stand beyond the matrix are not read.

    Attributes
    ----------
    lower, upper
        How many diagonals there are below and above the main one.
    transpose
        Whether to solve with the transpose of ``a`` instead.
    """

    lower: int = 1
    upper: int = 1
    transpose: bool = False
    name, constructor = "solve_banded", "BandedSolve"

    @property
    def rows(self) -> int:
        return self.lower + self.upper + 1

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.systems(inputs)

    def solved(self, bands: Array, sides: Array) -> Array:
        if self.lower == self.upper == 1:
            *factors, info = _factored(bands)
            solution = _substituted(factors, sides, self.transpose)
        else:
            room = np.zeros((self.lower + self.rows, len(sides)), bands.dtype)
            room[self.lower :] = bands
            factors, pivots, info = lapack("gbtrf", bands)(room, self.lower, self.upper)
            solution = lapack("gbtrs", bands)(
                factors, self.lower, self.upper, sides, pivots, trans=int(self.transpose)
            )[0]
        if info:
            raise np.linalg.LinAlgError("Singular matrix")
        return np.asarray(solution)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """``-back @ x^T``, of which the diagonals are taken alone."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        bands, sides = node.inputs
        back: Variable = BandedSolve(self.lower, self.upper, not self.transpose)(bands, cotangent)
        rows, columns = (node.outputs[0], back) if self.transpose else (back, node.outputs[0])
        rank = back.tensor_type.ndim
        diagonals = [
            as_row(-reduce(SUM, _moved(rows, place) * columns, (rank - 1,)))
            for place in range(-self.upper, self.lower + 1)
        ]
        return [fold_batch(join(diagonals, rank - 2), bands), fold_batch(back, sides)]

    def __str__(self) -> str:
        return f"{self.name}{{{self.lower}, {self.upper}{', transpose' * self.transpose}}}"


def _moved(matrix: Variable, places: int) -> Variable:
    """Rows moved up by so many places, or down by ``-places``, with zeros for those that there are not."""
    if not places:
        return matrix
    axis = matrix.tensor_type.ndim - 2
    inside, outside = (
        (slice(places, None), slice(0, places)) if places > 0 else (slice(places), slice(places, None))
    )
    every = (Ellipsis, slice(None))
    kept = subtensor(matrix, (*every[:1], inside, *every[1:]))
    zeros = zeros_like(subtensor(matrix, (*every[:1], outside, *every[1:])))
    return join([kept, zeros] if places > 0 else [zeros, kept], axis)


@record(frozen=True, eq=False, repr=False)
class TridiagonalFactors(MatrixOp):
    """LU factors of tridiagonal matrices (LAPACK gttrf): ``(..., 3, n)`` gives ``(..., 5, n)``.

    The rows are multipliers of rows, the diagonals of the upper factor, and with which row, counted from 1,
    each was exchanged. What they have fewer than ``n`` elements is 0 at the end. A singular matrix has a 0 on
    the diagonal.
    """

    name, constructor = "tridiagonal_factors", "TridiagonalFactors"
    host_only = HOST_ONLY

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_matrices(self.name, inputs)
        _check_rows(self.name, inputs, 3)
        source = inputs[0].tensor_type
        return (batch_types(source, (5, source.shape[-1])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (bands,) = inputs
        *batch, rows, size = bands.shape
        if rows != 3:
            raise ShapeError(describe(self.name, [f"shape {bands.shape}"], "there are three diagonals"))
        result: Array = np.zeros((*batch, 5, size), bands.dtype)
        for place in np.ndindex(*batch):
            for row, found in enumerate(_factored(bands[place])[:-1]):
                count = max(size - MISSING_OF_FACTORS[row], 0)
                result[place][row, :count] = found[:count]
        return (result,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        raise GradientError(
            describe(
                self.name,
                [node.inputs[0].type],
                "factors have no gradient here: solve_banded has",
                node.where,
            )
        )


@record(frozen=True, eq=False, repr=False)
class TridiagonalFactorsSolve(_OfBands):
    """``x`` with ``a @ x = b`` from what :class:`TridiagonalFactors` gives of ``a`` (LAPACK gttrs).

    Attributes
    ----------
    transpose
        Whether to solve with the transpose of ``a`` instead.
    """

    transpose: bool = False
    name, constructor = "tridiagonal_factors_solve", "TridiagonalFactorsSolve"

    @property
    def rows(self) -> int:
        return 5

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.systems(inputs)

    def solved(self, bands: Array, sides: Array) -> Array:
        size = max(len(sides), 3)
        rows = np.zeros((5, size), bands.dtype)
        rows[1], rows[4] = 1, np.arange(1, size + 1)
        rows[:, : len(sides)] = bands
        pivots, own = np.rint(rows[4].real).astype(np.int32), np.arange(1, size + 1)
        if not np.all((pivots == own) | (pivots == own + 1)) or pivots[-1] != size:
            # LAPACK believes them.
            raise ValueError("rows are exchanged with others than the next")
        factors = [row[: size - missing] for row, missing in zip(rows, MISSING_OF_FACTORS, strict=True)]
        return _substituted([*factors[:4], pivots], sides, self.transpose)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """By right sides; :class:`TridiagonalFactors` has no gradient."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        factors, sides = node.inputs
        back: Variable = TridiagonalFactorsSolve(not self.transpose)(factors, cotangent)
        return [None, fold_batch(back, sides)]

    def require_slopes(self, node: Apply, wanted: Sequence[bool]) -> None:
        if wanted[0]:
            reason = "it has no gradient by factors: solve_banded has one by diagonals"
            raise GradientError(describe(self.name, [one.type for one in node.inputs], reason, node.where))

    def __str__(self) -> str:
        return f"{self.name}{{transpose}}" if self.transpose else self.name


MISSING_OF_FACTORS = (1, 0, 1, 2, 0)
"""How many fewer elements than equations LAPACK's vectors of factors have."""


def _factored(bands: Array) -> tuple[Any, ...]:
    """What gttrf gives. SciPy's takes three equations or more: unknowns of their own fill up."""
    size = bands.shape[1]
    if size < 3:
        extra = np.zeros((3, 3 - size), bands.dtype)
        extra[1] = 1
        bands = np.concatenate([bands, extra], axis=1)
        if size:
            bands[2, size - 1] = bands[0, size] = 0
    found: tuple[Any, ...] = lapack("gttrf", bands)(bands[2, :-1], bands[1], bands[0, 1:])
    return found


def _substituted(factors: Sequence[Array], sides: Array, transpose: bool) -> Array:
    """What gttrs gives of factors for three equations or more, and of right sides for as many or fewer."""
    missing = len(factors[1]) - len(sides)
    whole = np.concatenate([sides, np.zeros((missing, sides.shape[1]), sides.dtype)]) if missing else sides
    solution = lapack("gttrs", factors[1])(*factors, whole, trans="T" if transpose else "N")[0]
    return np.asarray(solution[: len(sides)])


def _check_rows(name: str, inputs: Sequence[Variable], rows: int) -> None:
    found = inputs[0].tensor_type.shape[-2]
    if found not in (None, rows):
        types = [one.type for one in inputs]
        raise ShapeError(describe(name, types, f"the first operand has {rows} rows, not {found}"))


TRIDIAGONAL_FACTORS = TridiagonalFactors()
