"""All rules in one table."""

from __future__ import annotations

from esat.frontend.pytensor import (
    arrays,
    blockwise,
    control,
    draws,
    indexing,
    loops,
    matrices,
    reductions,
    scalars,
    sparse,
)
from esat.frontend.pytensor.steps import Rule

RULES: dict[str, Rule] = {
    **scalars.RULES,
    **arrays.RULES,
    **indexing.RULES,
    **reductions.RULES,
    **matrices.RULES,
    **blockwise.RULES,
    **sparse.RULES,
    **draws.RULES,
    **control.RULES,
    **loops.RULES,
}
"""Name of a class of PyTensor's ops, or of a random variable -> what builds its results. A rule of one's own
may be added."""
