"""Linear algebra under the names of ``numpy.linalg`` and ``scipy.linalg``."""

from __future__ import annotations

from esat.frontend import linalg_functions as _functions
from esat.frontend.linalg_functions import *  # noqa: F403
from esat.frontend.linear import kron, matmul, outer, tensordot, vecdot
from esat.frontend.methods import trace
from esat.frontend.shaping import matrix_transpose
from esat.ops.diagonal import diagonal

__all__ = ["diagonal", "kron", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot"]
__all__ += _functions.__all__
