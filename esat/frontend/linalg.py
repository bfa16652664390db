"""Linear algebra under the names of ``numpy.linalg``."""

from __future__ import annotations

from esat.frontend.linear import matmul, outer, tensordot, vecdot
from esat.frontend.methods import trace
from esat.frontend.reductions import norm
from esat.frontend.shaping import matrix_transpose
from esat.ops.diagonal import diagonal

__all__ = ["diagonal", "matmul", "matrix_transpose", "norm", "outer", "tensordot", "trace", "vecdot"]
