"""The one explicit table of all ops that come with esat."""

from __future__ import annotations

from esat.graph.op import Op
from esat.graph.registry import register_op
from esat.ops.arrays.creation import ALLOC
from esat.ops.elementwise import (
    arithmetic,
    bessel,
    comparison,
    complex,
    exponential,
    hyperbolic,
    incomplete,
    logical,
    power,
    rounding,
    selection,
    special,
    trigonometric,
)
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.linalg.factor import CHOLESKY, CHOLESKY_PULLBACK
from esat.ops.linalg.functions import EXPONENTIAL
from esat.ops.linalg.inverse import COFACTORS, DETERMINANT, INVERSE, SLOGDET
from esat.ops.linalg.normal import NORMAL_PRODUCT
from esat.ops.linalg.packed_factors import PACKED_LU
from esat.ops.linalg.solve import SOLVE
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.normalization import LOG_SOFTMAX, SOFTMAX
from esat.ops.reduction import REDUCERS, Reduction
from esat.ops.sparse.passes import PASSES
from esat.ops.sparse.products import SAMPLED_VALUES, STRUCTURED_DOT, SparseSum
from esat.ops.sparse.record import SparseOp
from esat.ops.sparse.structure import (
    DENSE_AT,
    DENSE_FROM_SPARSE,
    SPARSE_TRANSPOSE,
    STORED_VALUES,
    VALUES_AT,
    WITH_VALUES,
)

ELEMENTWISE: tuple[Elementwise, ...] = (
    *arithmetic.OPS,
    *comparison.OPS,
    *logical.OPS,
    *rounding.OPS,
    *selection.OPS,
    *exponential.OPS,
    *power.OPS,
    *trigonometric.OPS,
    *hyperbolic.OPS,
    *special.OPS,
    *bessel.OPS,
    *incomplete.OPS,
    *complex.OPS,
)
"""Every elementwise op but Cast, which is one op a dtype."""

OVER_AXES: tuple[Op, ...] = (*(Reduction(reducer, ()) for reducer in REDUCERS), SOFTMAX, LOG_SOFTMAX)
"""One representative, over no axes, of each op that takes axes."""

LINEAR_ALGEBRA: tuple[Op, ...] = (
    SOLVE,
    CHOLESKY,
    CHOLESKY_PULLBACK,
    INVERSE,
    DETERMINANT,
    COFACTORS,
    SLOGDET,
    EXPONENTIAL,
    NORMAL_PRODUCT,
    PACKED_LU,
)
"""Those functions of matrices that have no attributes; of Cholesky factors, the lower one."""

SPARSE: tuple[SparseOp, ...] = (
    STORED_VALUES,
    WITH_VALUES,
    DENSE_FROM_SPARSE,
    DENSE_AT,
    VALUES_AT,
    SPARSE_TRANSPOSE,
    STRUCTURED_DOT,
    SAMPLED_VALUES,
    *PASSES,
    SparseSum(),
)
"""Ops on sparse matrices that rules speak of; of sums along an axis, the first."""

OPS: tuple[Op, ...] = (*ELEMENTWISE, *OVER_AXES, *PRODUCTS.values(), ALLOC, *LINEAR_ALGEBRA, *SPARSE)
"""Every op that is found by name: those without attributes, and representatives of those over axes."""


def register_all() -> None:
    """Enter all ops into the registry of names. Repeating it changes nothing."""
    for op in OPS:
        register_op(op)
