"""Sparse matrices: constructors, products, and elementwise functions of what is stored."""

from __future__ import annotations

from esat.frontend.linear_algebra import sparse as _functions
from esat.frontend.linear_algebra.sparse import *  # noqa: F403

__all__ = _functions.__all__
