"""Linear algebra under the names of ``numpy.linalg`` and ``scipy.linalg``."""

from __future__ import annotations

from esat.frontend.arrays.shaping import matrix_transpose
from esat.frontend.linear_algebra import eigenvalues as _eigenvalues
from esat.frontend.linear_algebra import linalg_functions as _functions
from esat.frontend.linear_algebra import matrices as _matrices
from esat.frontend.linear_algebra import norms as _norms
from esat.frontend.linear_algebra import tensor_equations as _tensor_equations
from esat.frontend.linear_algebra.eigenvalues import *  # noqa: F403
from esat.frontend.linear_algebra.linalg_functions import *  # noqa: F403
from esat.frontend.linear_algebra.linear import kron, matmul
from esat.frontend.linear_algebra.matrices import *  # noqa: F403
from esat.frontend.linear_algebra.norms import *  # noqa: F403
from esat.frontend.linear_algebra.tensor_equations import *  # noqa: F403

__all__ = ["kron", "matmul", "matrix_transpose"]
__all__ += _eigenvalues.__all__ + _functions.__all__ + _matrices.__all__ + _norms.__all__
__all__ += _tensor_equations.__all__
