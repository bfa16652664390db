"""The one explicit table of all ops that come with esat."""

from __future__ import annotations

from esat.graph.op import Op
from esat.graph.registry import register_op
from esat.ops.creation import ALLOC
from esat.ops.elementwise import (
    arithmetic,
    comparison,
    complex,
    exponential,
    hyperbolic,
    logical,
    power,
    rounding,
    selection,
    special,
    trigonometric,
)
from esat.ops.elementwise.record import Elementwise
from esat.ops.linalg.factor import CHOLESKY
from esat.ops.linalg.functions import EXPONENTIAL
from esat.ops.linalg.inverse import COFACTORS, DETERMINANT, INVERSE, SLOGDET
from esat.ops.linalg.solve import SOLVE
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.normalization import LOG_SOFTMAX, SOFTMAX
from esat.ops.reduction import REDUCERS, Reduction

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
    *complex.OPS,
)
"""Every elementwise op but Cast, which is one op a dtype."""

OVER_AXES: tuple[Op, ...] = (*(Reduction(reducer, ()) for reducer in REDUCERS), SOFTMAX, LOG_SOFTMAX)
"""One representative, over no axes, of each op that takes axes."""

LINEAR_ALGEBRA: tuple[Op, ...] = (SOLVE, CHOLESKY, INVERSE, DETERMINANT, COFACTORS, SLOGDET, EXPONENTIAL)
"""Those functions of matrices that have no attributes; of Cholesky factors, the lower one."""

OPS: tuple[Op, ...] = (*ELEMENTWISE, *OVER_AXES, *PRODUCTS.values(), ALLOC, *LINEAR_ALGEBRA)
"""Every op that is found by name: those without attributes, and representatives of those over axes."""


def register_all() -> None:
    """Enter all ops into the registry of names. Repeating it changes nothing."""
    for op in OPS:
        register_op(op)
