"""Linear algebra under the names of ``numpy.linalg`` and ``scipy.linalg``."""

from __future__ import annotations

from esat.frontend.linear_algebra import linalg as _functions
from esat.frontend.linear_algebra.linalg import *  # noqa: F403

__all__ = _functions.__all__
