"""Inverses and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.graph.constants import constant
from esat.graph.op import Array
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.linalg.algebra import (
    adjoint,
    apply,
    as_factor,
    conjugated,
    identity_like,
    product,
    transposed,
)
from esat.ops.linalg.record import (
    MatrixOp,
    batch_types,
    check_matrices,
    check_square,
    each_matrix,
    real_dtype,
)


@record(frozen=True, eq=False, repr=False)
class Inverse(MatrixOp):
    """The inverse of square, nonsingular matrices."""

    name, constructor = "inv", "Inv"
    matrix_share = 0.5
    cubic_operations = 8.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        return (batch_types(inputs[0].tensor_type, (size, size)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (self.call(np.linalg.inv, *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        back = transposed(node.outputs[0])
        return [-product(back, cotangent, back)]


@record(frozen=True, eq=False, repr=False)
class TriangularInverse(Inverse):
    """The inverse of triangular matrices (LAPACK trtri), a triangle too. The other triangle is not read.

    Attributes
    ----------
    lower
        Which triangle.
    """

    lower: bool = True
    name, constructor = "inv_triangular", "InvTriangular"
    matrix_share = 0.35
    cubic_operations = 1.0 / 3.0

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (batch,) = inputs
        trtri = lapack("trtri", batch)
        kept = np.tril if self.lower else np.triu

        def inverted(matrix: Array) -> Array:
            result, info = trtri(kept(matrix).T, lower=not self.lower, overwrite_c=1)
            if info:
                raise np.linalg.LinAlgError("Singular matrix")
            return np.asarray(result.T)

        return (self.call(lambda array: each_matrix(inverted, array), batch),)

    def __str__(self) -> str:
        return f"{self.name}{{{'lower' if self.lower else 'upper'}}}"


@record(frozen=True, eq=False, repr=False)
class PseudoInverse(MatrixOp):
    """The Moore-Penrose inverse by singular values; ``(..., m, n)`` gives ``(..., n, m)``.

    Attributes
    ----------
    rcond
        Singular values up to this fraction of the largest are taken for zero; None for NumPy's choice.
    hermitian
        Whether the matrix may be taken for Hermitian, of which only the lower triangle is read.
    by_size
        Whether NumPy's choice is that of ``numpy.linalg.lstsq``: rounding error times the larger size.
    """

    rcond: float | None = None
    hermitian: bool = False
    by_size: bool = False
    name, constructor = "pinv", "Pinv"
    host_only = "cuSOLVER has none, and cupy's takes other bounds"
    cubic_operations = 24.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        if self.hermitian:
            check_square(self.name, inputs[0], inputs)
        check_matrices(self.name, inputs)
        source = inputs[0].tensor_type
        return (batch_types(source, (source.shape[-1], source.shape[-2])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        choice: dict[str, Any] = {"rtol": None} if self.by_size else {"rcond": self.rcond}
        return (self.call(lambda a: np.linalg.pinv(a, hermitian=self.hermitian, **choice), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """The transpose of Golub and Pereyra's derivative (1973, SIAM J. Numer. Anal. 10), equation 4.12,
        which holds where the rank does not change."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        (matrix,), (inverse,) = node.inputs, node.outputs
        flipped = adjoint(cotangent)
        left = conjugated(identity_of(matrix, inverse))
        right = conjugated(identity_of(inverse, matrix))
        main = -product(transposed(inverse), cotangent, transposed(inverse))
        outside_range = product(left, flipped, conjugated(product(inverse, adjoint(inverse))))
        outside_rows = product(conjugated(product(adjoint(inverse), inverse)), flipped, right)
        return [main + outside_range + outside_rows]


def identity_of(left: Variable, right: Variable) -> Variable:
    """``1 - left @ right``: the projector away from the range of ``left``, for an inverse ``right``."""
    projector = product(left, right)
    return identity_like(projector) - projector


@record(frozen=True, eq=False, repr=False)
class Determinant(MatrixOp):
    """The determinant of square matrices: ``(..., n, n)`` gives ``(...)``."""

    name, constructor = "det", "Det"
    matrix_share = 0.5
    cubic_operations = 2.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_square(self.name, inputs[0], inputs)
        return (batch_types(inputs[0].tensor_type, ()),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.asarray(self.call(np.linalg.det, *inputs)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Jacobi's formula, with cofactors, which singular matrices have too."""
        (cotangent,) = cotangents
        return [None if cotangent is None else as_factor(cotangent) * apply(COFACTORS, node.inputs[0])]


@record(frozen=True, eq=False, repr=False)
class Cofactors(MatrixOp):
    """The matrix of cofactors: the derivative of the determinant by each element.

    From the singular value decomposition ``a = u s vh``: ``det(u) det(vh) conj(u) diag(p) conj(vh)``,
    where ``p[i]`` is the product of all singular values but ``s[i]``; so singular matrices have them too.
    """

    name, constructor = "cofactors", "Cofactors"
    host_only = "a rare function of small matrices"
    cubic_operations = 24.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        return (batch_types(inputs[0].tensor_type, (size, size)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        left, values, right = self.call(np.linalg.svd, *inputs)
        others = np.where(np.eye(values.shape[-1], dtype=bool), 1, values[..., None, :])
        with np.errstate(all="ignore"):
            factors = np.prod(others, axis=-1)
            signs = (np.linalg.det(left) * np.linalg.det(right))[..., None, None]
            return (np.asarray(signs * (left.conj() * factors[..., None, :]) @ right.conj()),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Through ``det(a) inv(a).T``, which takes a nonsingular matrix."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        (matrix,), (cofactors,) = node.inputs, node.outputs
        inverse = apply(INVERSE, matrix)
        weighted = cotangent * transposed(inverse)
        axes = (weighted.tensor_type.ndim - 2, weighted.tensor_type.ndim - 1)
        total = weighted.sum(axes, None, True)
        scaled = as_factor(apply(DETERMINANT, matrix)) * transposed(cotangent)
        back = transposed(inverse)
        return [total * cofactors - product(back, scaled, back)]


@record(frozen=True, eq=False, repr=False)
class SignLogDeterminant(MatrixOp):
    """Sign (for complex matrices, phase) and natural logarithm of the absolute value of the determinant.

    The logarithm does not overflow where the determinant would. A singular matrix gives 0 and -inf.
    """

    name, constructor = "slogdet", "SlogDet"
    matrix_share = 0.5
    cubic_operations = 2.0 / 3.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        check_square(self.name, inputs[0], inputs)
        sign = batch_types(inputs[0].tensor_type, ())
        return (sign, sign.with_dtype(real_dtype(sign.dtype)))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        sign, logarithm = self.call(np.linalg.slogdet, *inputs)
        return np.asarray(sign), np.asarray(logarithm)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """The logarithm changes by the real part of ``trace(inv(a) da)``, the phase by its imaginary part."""
        by_sign, by_logarithm = cotangents
        (matrix,) = node.inputs
        dtype = matrix.tensor_type.dtype
        factor = None if by_logarithm is None else cast(by_logarithm, dtype)
        if by_sign is not None and matrix.tensor_type.kind == "c":
            turned = apply(op_named("imag"), by_sign * node.outputs[0])
            phase = cast(turned, dtype) * constant(1j, dtype)
            factor = phase if factor is None else factor + phase
        return [None if factor is None else as_factor(factor) * transposed(apply(INVERSE, matrix))]


INVERSE = Inverse()
DETERMINANT = Determinant()
COFACTORS = Cofactors()
SLOGDET = SignLogDeterminant()
