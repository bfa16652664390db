"""Eigenvalues of general square matrices, which are complex numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.base.records import record
from esat.graph.op import Array
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.linalg.algebra import (
    apply,
    conjugated,
    diagonal_matrix,
    diagonal_part,
    product,
    transposed,
)
from esat.ops.linalg.record import MatrixOp, batch_types, check_square
from esat.ops.linalg.solve import SOLVE
from esat.ops.linalg.spectral import reciprocal_gaps

HOST_ONLY = "LAPACK's: what libraries of devices have of it differs"


def complex_dtype(dtype: str) -> str:
    """The dtype of eigenvalues of matrices of a dtype."""
    return {"float32": "complex64", "float64": "complex128"}.get(dtype, dtype)


@record(frozen=True, eq=False, repr=False)
class GeneralEigenvalues(MatrixOp):
    """Eigenvalues in LAPACK's order: ``(..., n, n)`` gives ``(..., n)``, of a complex dtype always."""

    name, constructor = "eigvals", "Eigvals"
    host_only = HOST_ONLY
    cubic_operations = 10.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        source = inputs[0].tensor_type
        return (batch_types(source, (size,)).with_dtype(complex_dtype(source.dtype)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        values = self.call(np.linalg.eigvals, *inputs)
        return (values.astype(complex_dtype(inputs[0].dtype.name)),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        _, vectors = EIG(node.inputs[0])
        return [_of_matrix(node, vectors, diagonal_matrix(cotangent))]


@record(frozen=True, eq=False, repr=False)
class GeneralEigenvectors(MatrixOp):
    """Eigenvalues in LAPACK's order, and eigenvectors of length 1 in the columns of a matrix.

    ``(..., n, n)`` gives ``(..., n)`` and ``(..., n, n)``, of a complex dtype always.
    """

    name, constructor = "eig", "Eig"
    host_only = HOST_ONLY
    cubic_operations = 25.0

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        size = check_square(self.name, inputs[0], inputs)
        source = inputs[0].tensor_type
        dtype = complex_dtype(source.dtype)
        values = batch_types(source, (size,)).with_dtype(dtype)
        return (values, batch_types(source, (size, size)).with_dtype(dtype))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        values, vectors = self.call(np.linalg.eig, *inputs)
        dtype = complex_dtype(inputs[0].dtype.name)
        return values.astype(dtype), vectors.astype(dtype)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """Boeddeker et al. (2017), "On the computation of complex-valued gradients with application to
        statistically optimum beamforming", section 4.

        The cost must not depend on the phases of the vectors, and takes distinct eigenvalues.
        """
        by_values, by_vectors = cotangents
        values, vectors = node.outputs
        middle = None if by_values is None else diagonal_matrix(by_values)
        if by_vectors is not None:
            turned = product(transposed(vectors), by_vectors)
            # Vectors keep their lengths: what changes these has no part in the cost.
            lengths = cast(apply(op_named("real"), diagonal_part(turned)), turned.tensor_type.dtype)
            inner = turned - product(transposed(vectors), conjugated(vectors), lengths)
            mixed = reciprocal_gaps(values) * inner
            middle = mixed if middle is None else middle + mixed
        return [None if middle is None else _of_matrix(node, vectors, middle)]


EIGVALS = GeneralEigenvalues()
EIG = GeneralEigenvectors()


def _of_matrix(node: Apply, vectors: Variable, middle: Variable) -> Variable:
    """The cotangent of a matrix, of that of ``inverse(vectors) @ matrix @ vectors``."""
    turned = apply(SOLVE, transposed(vectors), product(middle, transposed(vectors)))
    matrix = node.inputs[0].tensor_type
    return turned if matrix.kind == "c" else apply(op_named("real"), turned)
