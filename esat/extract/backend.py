"""Where the kernels run: as Python on lists, or compiled by numba on arrays.

Loading numba and compiled kernels costs more than extracting a small graph, so small e-graphs are
done in Python. The results do not depend on the backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.extract import kernels, moves
from esat.extract.kernels import Floats, Integers

COMPILE_FROM = 20_000
"""E-nodes from which compiled kernels pay for loading numba and them, about 0.4 s from the on-disk cache."""
REUSE_FROM = 500
"""E-nodes from which compiled kernels pay once they are loaded."""


@dataclass(frozen=True)
class Backend:
    """The kernels in one form, and the kind of vector they take."""

    name: str
    settle: Callable[..., int]
    flow_pass: Callable[..., None]
    rank_classes: Callable[..., int]
    count_references: Callable[..., int]
    exact_pass: Callable[..., int]
    share_pass: Callable[..., int]

    def vector(self, values: NDArray[Any]) -> Any:
        """The values as this backend wants them; int64 or float64."""
        return values.tolist() if self.name == "python" else np.ascontiguousarray(values)

    def integers(self, count: int, value: int) -> Integers:
        """A new integer vector with one value."""
        return [value] * count if self.name == "python" else np.full(count, value, np.int64)

    def copy(self, vector: Integers) -> Integers:
        """A copy of a vector."""
        return vector.copy()

    def floats(self, count: int, value: float) -> Floats:
        """A new float vector with one value."""
        return [value] * count if self.name == "python" else np.full(count, value, np.float64)


PYTHON = Backend(
    "python",
    kernels.settle,
    kernels.flow_pass,
    moves.rank_classes,
    moves.count_references,
    moves.exact_pass,
    moves.share_pass,
)


@cache
def compiled_backend() -> Backend:
    """The kernels compiled by numba, kept in its on-disk cache."""
    import numba
    from numba.extending import register_jitable

    for helper in (
        moves.acquire,
        moves.undo,
        moves.release,
        moves.lift,
        moves.unmark,
        moves.fits,
        moves.set_choice,
        moves.switch,
        moves.spread,
        moves.share,
        moves.take,
        moves.revert,
    ):
        register_jitable(helper)
    compiled = numba.njit(cache=True)
    return Backend(
        "numba",
        compiled(kernels.settle),
        compiled(kernels.flow_pass),
        compiled(moves.rank_classes),
        compiled(moves.count_references),
        compiled(moves.exact_pass),
        compiled(moves.share_pass),
    )


def backend_for(node_count: int) -> Backend:
    """The backend that is faster for an e-graph of this size in the present process."""
    loaded = compiled_backend.cache_info().currsize > 0
    return compiled_backend() if node_count >= (REUSE_FROM if loaded else COMPILE_FROM) else PYTHON
