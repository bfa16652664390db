"""Factorizations: Cholesky, QR and LU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.errors import DtypeError, GradientError, ParameterError, describe
from esat.graph.op import Array, Shapes, Work, check_count
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.join import join
from esat.ops.index.basic import subtensor, zeros_like
from esat.ops.inference.broadcasting import equalize_ranks
from esat.ops.linalg.algebra import (
    adjoint,
    apply,
    conjugated,
    diagonal_part,
    fold_batch,
    hermitian_part,
    onto_triangle,
    product,
    scaled_diagonal,
    transposed,
    triangle,
)
from esat.ops.linalg.record import (
    MatrixOp,
    batch_types,
    check_matrices,
    check_square,
    each_matrix,
    inexact_operands,
    system_shape,
)
from esat.ops.linalg.solve import SolveTriangular
from esat.ops.linalg.substitution import refuse_singular, substituted

LARGEST_BLOCK = 48
"""Rows up to which cotangents of Cholesky factors are pulled back at once. Of matrices of 400 rows, blocks of
32 and 64 took 16 and 7 % longer."""


@record(frozen=True, eq=False, repr=False)
class CholeskyFactor(MatrixOp):
    """What :class:`Cholesky` and :class:`CholeskyOrNan` have in common.

    Attributes
    ----------
    upper
        Which factor.
    """

    upper: bool = False
    matrix_share = 0.7
    cubic_operations = 1.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        return (batch_types(inputs[0].tensor_type, (size, size)),)

    def factors(self, inputs: Sequence[Array], instead: Callable[[Array], Array]) -> tuple[Array, ...]:
        """Factors, or of a matrix that has none what ``instead`` makes of an array of their shape."""
        (batch,) = inputs
        potrf = lapack("potrf", batch, np.float64)  # as in NumPy

        def factored(matrix: Array) -> Array:
            if matrix.shape[0] != matrix.shape[1]:
                raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
            # By columns, as LAPACK has it, a matrix by rows is its transpose, and the other triangle.
            factor, info = potrf(matrix.T, lower=self.upper, clean=1)
            result: Array = instead(factor.T) if info else factor.T
            return result

        return (self.call(lambda array: each_matrix(factored, array), batch),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        factor = adjoint(node.outputs[0]) if self.upper else node.outputs[0]
        by_factor = adjoint(cotangent) if self.upper else cotangent
        if factor.tensor_type.kind == "c":
            pulled = cholesky_pullback(factor, by_factor)
        else:
            pulled = apply(CHOLESKY_PULLBACK, factor, by_factor)
        return [onto_triangle(pulled, not self.upper)]

    def __str__(self) -> str:
        return f"{self.name}{{{'upper' if self.upper else 'lower'}}}"


@record(frozen=True, eq=False, repr=False)
class Cholesky(CholeskyFactor):
    """The triangular factor of Hermitian positive definite matrices.

    Lower: ``a = c @ c^H``; upper: ``a = c^H @ c``. As in NumPy, only that triangle of ``a`` is read, and only
    there has the gradient elements other than zero.
    """

    name, constructor = "cholesky", "Cholesky"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.factors(inputs, _refused)


@record(frozen=True, eq=False, repr=False)
class CholeskyOrNan(CholeskyFactor):
    """:class:`Cholesky`, with NaN in all elements of the factor of a matrix that has none.

    Such a factor is not triangular, nor is its product with itself the matrix: rules, which know that of
    factors, know nothing of it.
    """

    name, constructor = "cholesky_or_nan", "CholeskyOrNan"
    host_only = "a device's library refuses a batch as a whole"

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return self.factors(inputs, lambda factor: np.full_like(factor, np.nan))


def _refused(_: Array) -> Array:
    raise np.linalg.LinAlgError("Matrix is not positive definite")


@record(frozen=True, eq=False, repr=False)
class CholeskyPullback(MatrixOp):
    """What a change of a real matrix along symmetric ones costs, by the cotangent of its lower factor.

    Factors and cotangents ``(..., n, n)``; of both only the lower triangle matters. The result is symmetric.
    Of small matrices, optimizers write it out as :func:`cholesky_pullback` does, or they find for the whole a
    form that takes less: of the density of a Gaussian, the inverse and an outer product.
    """

    name, constructor = "cholesky_pullback", "CholeskyPullback"
    matrix_share = 0.35  # of 128 and 150 rows, the calls aside

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = inexact_operands(self.name, inputs)
        check_count(self.name, operands, 2)
        check_matrices(self.name, operands)
        if operands[0].tensor_type.kind == "c":
            raise DtypeError(describe(self.name, [one.type for one in operands], "operands are real"))
        return equalize_ranks(operands)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[1].tensor_type.with_shape(system_shape(self.name, inputs)),)

    def linear_in(self, count: int) -> range:
        return range(1, 2)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(lambda *arrays: each_matrix(_pulled_back, *arrays), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """With ``phi`` the lower triangle with half of the diagonal, the result is ``p``, the symmetric part
        of ``inv(c)' phi(c' x) inv(c)``. With the symmetric part ``s`` of its cotangent and ``w = phi(inv(c)
        s inv(c)')``, the cotangent of ``x`` is ``c w``, and that of ``c`` the lower triangle of
        ``x w' - 2 p s inv(c)'``.
        """
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        factor, by_factor = node.inputs
        solve = SolveTriangular(lower=True)
        symmetric = hermitian_part(cotangent)
        half = apply(solve, factor, symmetric)  # inv(c) s
        middle = _lower_half(apply(solve, factor, transposed(half)))
        along = product(by_factor, transposed(middle)) - 2.0 * product(node.outputs[0], transposed(half))
        by_cotangent = triangle(product(triangle(factor), middle))
        return [fold_batch(triangle(along), factor), fold_batch(by_cotangent, by_factor)]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        """Half of the products of matrices are with blocks below the diagonal, half with those left of it."""
        size = int(inputs[0][-1])
        blocks = list(blocks_from_the_end(size))
        flops = 0.0
        for begin, end in blocks:
            width, below = end - begin, size - end
            flops += 4.0 * begin * below * width + width**2 * (3 * below + 2 * begin + 3 * width)
        whole = self.cubic(flops / max(size, 1) ** 3, inputs, outputs, itemsizes)
        return replace(whole, calls=7 * len(blocks))


def blocks_from_the_end(size: int) -> Iterator[tuple[int, int]]:
    """Begin and end of the blocks of rows in which the factor's cotangent is pulled back."""
    count = max(-(-size // LARGEST_BLOCK), 1)
    bounds = [size * number // count for number in range(count + 1)]
    return reversed(list(pairwise(bounds)))


def _pulled_back(factor: Array, cotangent: Array) -> Array:
    """The backward pass of the factorization in blocks; Murray (2016), section 3.2.

    The blocks of half of the cotangent become those of the result's lower triangle, from the last columns to
    the first.
    """
    if factor.shape != cotangent.shape:
        raise ValueError("a factor and its cotangent have one shape")
    refuse_singular(factor)
    rest, result = 0.5 * np.tril(cotangent), np.empty_like(cotangent)
    for begin, end in blocks_from_the_end(len(factor)):
        own, after = slice(begin, end), slice(end, None)
        diagonal, left, below = factor[own, own], factor[own, :begin], factor[after, own]
        done = rest[after, own] = _from_the_right(diagonal, rest[after, own])
        rest[after, :begin] -= done @ left
        middle = np.tril(np.tril(diagonal).T @ np.tril(rest[own, own] - done.T @ below))
        middle[np.diag_indices(len(middle))] *= 0.5
        half = substituted(diagonal, middle, lower=True, transpose=True)
        full = _from_the_right(diagonal, half)
        result[own, own] = found = full + full.T
        result[after, own], result[own, after] = done, done.T
        rest[own, :begin] -= done.T @ factor[after, :begin] + found @ left
    return result


def _from_the_right(factor: Array, matrix: Array) -> Array:
    """``matrix @ inv(factor)`` for a lower triangular factor."""
    return substituted(factor, matrix.T, lower=True, transpose=True).T


def cholesky_pullback(factor: Variable, by_factor: Variable) -> Variable:
    """Murray (2016), "Differentiation of the Cholesky decomposition", equation 10, for a lower factor."""
    middle = _lower_half(product(transposed(factor), by_factor))
    solve = SolveTriangular(lower=True, transpose=True)
    half = apply(solve, factor, middle)
    full = transposed(apply(solve, conjugated(factor), transposed(half)))
    return hermitian_part(full)


def _lower_half(matrix: Variable) -> Variable:
    """The lower triangle with half of the diagonal."""
    return scaled_diagonal(triangle(matrix), 0.5)


QRMode = Literal["reduced", "complete", "r"]


@record(frozen=True, eq=False, repr=False)
class QR(MatrixOp):
    """``a = q @ r`` with orthonormal columns in ``q`` and an upper triangular ``r``.

    ``(..., m, n)`` gives, with ``k = min(m, n)``: reduced ``(..., m, k)`` and ``(..., k, n)``; complete
    ``(..., m, m)`` and ``(..., m, n)``; ``"r"`` only the reduced ``r``.

    Attributes
    ----------
    mode
        One of NumPy's modes.
    """

    mode: QRMode = "reduced"
    name, constructor = "qr", "QR"

    def __post_init__(self) -> None:
        if self.mode not in ("reduced", "complete", "r"):
            raise ParameterError(
                describe(self.name, [f"mode={self.mode!r}"], "mode is reduced, complete or r")
            )

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_matrices(self.name, inputs)
        source = inputs[0].tensor_type
        rows, columns = source.shape[-2:]
        middle = rows if self.mode == "complete" else smaller(rows, columns)
        triangular = batch_types(source, (middle, columns))
        if self.mode == "r":
            return (triangular,)
        return (batch_types(source, (rows, middle)), triangular)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        result = self.call(lambda a: np.linalg.qr(a, self.mode), *inputs)
        return (result,) if self.mode == "r" else (result[0], result[1])

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """For full rank: Walter and Lehmann (2018), "Algorithmic Differentiation of Linear Algebra
        Functions"; further columns of a wide matrix are ``q @`` those of ``r``."""
        if all(cotangent is None for cotangent in cotangents):
            return [None]
        return [self.by_matrix(node, node.inputs[0], node.outputs, cotangents)]

    def by_matrix(
        self,
        node: Apply,
        matrix: Variable,
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable | None],
    ) -> Variable:
        """The cotangent of a matrix, of its factors and of theirs; see :meth:`vjp`."""
        if self.mode == "r":
            q, r = QR("reduced")(matrix)
            by_q, by_r = None, cotangents[0]
        else:
            (q, r), (by_q, by_r) = outputs, cotangents
        rows, columns = matrix.tensor_type.shape[-2:]
        if None in (rows, columns):
            raise self._undefined(node, "its gradient takes a matrix whose sizes are known")
        assert rows is not None
        assert columns is not None
        if self.mode == "complete" and rows > columns:
            raise self._undefined(node, 'only mode="reduced" has a gradient for more rows than columns')
        by_q = zeros_like(q) if by_q is None else by_q
        by_r = zeros_like(r) if by_r is None else by_r
        if rows >= columns:
            return _qr_gradient(q, r, by_q, by_r)
        batch = (Ellipsis, slice(None))
        left, right = (*batch, slice(None, rows)), (*batch, slice(rows, None))
        by_q = by_q + conjugated(product(subtensor(matrix, right), transposed(subtensor(by_r, right))))
        by_left = _qr_gradient(q, subtensor(r, left), by_q, subtensor(by_r, left))
        by_right = product(conjugated(q), subtensor(by_r, right))
        return join([by_left, by_right], matrix.tensor_type.ndim - 1)

    def _undefined(self, node: Apply, reason: str) -> GradientError:
        return GradientError(describe(str(self), [node.inputs[0].type], reason, node.where))

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        return self.cubic(2.0 if self.mode == "r" else 4.0, inputs, outputs, itemsizes)

    def __str__(self) -> str:
        return f"{self.name}{{{self.mode}}}"


def _qr_gradient(q: Variable, r: Variable, by_q: Variable, by_r: Variable) -> Variable:
    """The cotangent of a tall or square matrix, written for conjugated cotangents."""
    q_bar, r_bar = conjugated(by_q), conjugated(by_r)
    middle = triangle(product(r, adjoint(r_bar)) - product(adjoint(q_bar), q))
    doubled = middle + adjoint(middle)
    symmetric = doubled - 0.5 * diagonal_part(doubled)
    sides = q_bar + product(q, symmetric)
    solved = adjoint(apply(SolveTriangular(lower=False), r, adjoint(sides)))
    return conjugated(solved)


@record(frozen=True, eq=False, repr=False)
class LU(MatrixOp):
    """``a = p @ l @ u``: a permutation matrix, a unit lower and an upper triangular matrix.

    ``(..., m, n)`` gives, with ``k = min(m, n)``, ``(..., m, m)`` of real dtype, ``(..., m, k)`` and
    ``(..., k, n)``, as ``scipy.linalg.lu``.
    """

    name, constructor = "lu", "LU"
    matrix_share = 0.5
    host_only = "cuSOLVER's factors are packed with pivots"
    cubic_operations = 2.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_matrices(self.name, inputs)
        source = inputs[0].tensor_type
        rows, columns = source.shape[-2:]
        middle = smaller(rows, columns)
        permutation = batch_types(source, (rows, rows))
        permutation = permutation.with_dtype(np.empty(0, source.dtype).real.dtype.name)
        return (permutation, batch_types(source, (rows, middle)), batch_types(source, (middle, columns)))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (matrix,) = inputs
        *batch, rows, columns = matrix.shape
        middle = min(rows, columns)
        permutation: Array = np.empty((*batch, rows, rows), matrix.real.dtype)
        lower: Array = np.empty((*batch, rows, middle), matrix.dtype)
        upper: Array = np.empty((*batch, middle, columns), matrix.dtype)
        if middle == 0:
            permutation[...] = np.eye(rows)
            return permutation, lower, upper
        import scipy.linalg

        for place in np.ndindex(*batch):
            factors = self.call(lambda one: scipy.linalg.lu(one, check_finite=False), matrix[place])
            permutation[place], lower[place], upper[place] = factors
        return permutation, lower, upper

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Through ``inv(l) p^T da inv(u)``, whose strict lower part moves ``l`` and whose rest moves ``u``
        (Walter and Lehmann 2018); rows or columns beyond the square part are solved for first."""
        _, by_lower, by_upper = cotangents
        if by_lower is None and by_upper is None:
            return [None]
        (matrix,) = node.inputs
        permutation, lower, upper = node.outputs
        rows, columns = matrix.tensor_type.shape[-2:]
        if rows is None or columns is None:
            reason = "its gradient takes a matrix whose sizes are known"
            raise GradientError(describe(self.name, [matrix.type], reason, node.where))
        by_lower = zeros_like(lower) if by_lower is None else by_lower
        by_upper = zeros_like(upper) if by_upper is None else by_upper
        size, every = min(rows, columns), (Ellipsis, slice(None))
        top, bottom = (Ellipsis, slice(None, size), slice(None)), (Ellipsis, slice(size, None), slice(None))
        left, right = (*every, slice(None, size)), (*every, slice(size, None))
        parts: list[Variable] = []
        if columns > size:
            further = apply(UNIT_LOWER_TRANSPOSED, lower, subtensor(by_upper, right))
            by_lower = by_lower - product(further, transposed(subtensor(upper, right)))
            upper, by_upper = subtensor(upper, left), subtensor(by_upper, left)
            parts = [further]
        if rows > size:
            further = _right_divided(upper, subtensor(by_lower, bottom))
            by_upper = by_upper - product(transposed(subtensor(lower, bottom)), further)
            lower, by_lower = subtensor(lower, top), subtensor(by_lower, top)
            parts = [further]
        below = triangle(product(transposed(lower), by_lower), strict=True)
        above = triangle(product(by_upper, transposed(upper)), lower=False)
        square = _right_divided(upper, apply(UNIT_LOWER_TRANSPOSED, lower, below + above))
        axis = matrix.tensor_type.ndim - (1 if columns > size else 2)
        whole = join([square, *parts], axis) if parts else square
        return [product(permutation, whole)]


UNIT_LOWER_TRANSPOSED = SolveTriangular(lower=True, transpose=True, unit_diagonal=True)


def _right_divided(upper: Variable, sides: Variable) -> Variable:
    """``sides @ inv(upper)^T``."""
    return transposed(apply(SolveTriangular(lower=False), upper, transposed(sides)))


def smaller(rows: int | None, columns: int | None) -> int | None:
    """The smaller of two sizes, where it can be known."""
    if rows is not None and columns is not None:
        return min(rows, columns)
    return 0 if 0 in (rows, columns) else None


CHOLESKY = Cholesky()
CHOLESKY_PULLBACK = CholeskyPullback()
