"""Right sides of a system, whitened: half of what is solved, and all of it between the same sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import lapack
from esat.graph.op import Array
from esat.graph.variables import Apply, Variable
from esat.ops.linalg.algebra import apply
from esat.ops.linalg.factor import CHOLESKY
from esat.ops.linalg.record import each_matrix
from esat.ops.linalg.solve import SemidefiniteSolve, SolveTriangular
from esat.ops.linalg.substitution import BY_ROWS_FROM, substituted


@record(frozen=True, eq=False, repr=False)
class Whiten(SemidefiniteSolve):
    """``h`` with ``h.T @ h = b.T @ inv(a) @ b`` for a real, symmetric ``a`` without negative eigenvalues.

    It is ``inv(l) @ b`` for Cholesky's factor ``l`` of ``a``; where rounding leaves none, the components of
    ``b`` along eigenvectors of ``a``, each by the root of its eigenvalue. Rules put it in the place of solved
    systems where only such products are asked for (``linear_algebra.egg``). float32 is computed in float64,
    as systems are.
    """

    name, constructor = "whiten", "Whiten"

    @property
    def substitutions(self) -> float:
        return 1.0

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        def whitened(matrix: Array, sides: Array) -> Array:
            factor, info = lapack("potrf", np.float64)(matrix.T, lower=1, clean=0)
            if info:
                return np.asarray(by_eigenvectors(np, matrix, sides))
            if sides.shape[1] >= BY_ROWS_FROM:
                return substituted(factor, sides, lower=True)
            return np.asarray(lapack("trtrs", np.float64)(factor, sides, lower=1)[0])

        return (self.call(lambda *arrays: each_matrix(whitened, *arrays), *inputs),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        matrix, sides = node.inputs
        factor = apply(CHOLESKY, matrix)
        half = apply(SolveTriangular(lower=True), factor, sides)
        assert factor.owner is not None
        assert half.owner is not None
        by_factor, by_sides = half.owner.op.vjp(half.owner, [cotangent])
        return [*CHOLESKY.vjp(factor.owner, [by_factor]), by_sides]


def by_eigenvectors(arrays: Any, matrix: Any, sides: Any) -> Any:
    """What a matrix without a Cholesky factor makes of right sides, with NumPy or cupy. NaN is passed on."""
    if not arrays.isfinite(matrix).all():
        return arrays.full_like(sides, np.nan)
    values, vectors = arrays.linalg.eigh(matrix.astype(np.float64))
    if not values.all():
        raise np.linalg.LinAlgError("Singular matrix")
    return vectors.T @ sides / arrays.sqrt(arrays.abs(values))[:, None]


WHITEN = Whiten()
