"""The one explicit table of all ops that come with esat."""

from __future__ import annotations

from esat.graph.op import Op
from esat.graph.registry import register_op
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

OPS: tuple[Op, ...] = ELEMENTWISE
"""Every op that is found by name: those without attributes."""


def register_all() -> None:
    """Enter all ops into the registry of names. Repeating it changes nothing."""
    for op in OPS:
        register_op(op)
