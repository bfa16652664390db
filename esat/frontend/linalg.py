"""Linear algebra under the names of ``numpy.linalg`` and ``scipy.linalg``."""

from __future__ import annotations

from esat.frontend import linalg_functions as _functions
from esat.frontend import matrices as _matrices
from esat.frontend import norms as _norms
from esat.frontend.linalg_functions import *  # noqa: F403
from esat.frontend.linear import kron, matmul
from esat.frontend.matrices import *  # noqa: F403
from esat.frontend.norms import *  # noqa: F403
from esat.frontend.shaping import matrix_transpose

__all__ = ["kron", "matmul", "matrix_transpose"]
__all__ += _functions.__all__ + _matrices.__all__ + _norms.__all__
