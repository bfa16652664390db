"""Functions of SciPy's with SciPy's parameters, of Variables: all of them composed of esat's own.

A function here has those of SciPy's parameters that it knows, by SciPy's names. Their defaults are SciPy's;
``esat/frontend/library_calls.py`` passes them, and refuses other values of the parameters that are not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.frontend.scipy_functions import distances, filters, linalg

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **linalg.FUNCTIONS,
    **filters.FUNCTIONS,
    **distances.FUNCTIONS,
}
"""SciPy's public names -> functions."""
