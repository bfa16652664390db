"""Functions of SciPy, imported at their first call: the import takes longer than all of esat's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import special

_FAR_BELOW = -64.0
"""Where SciPy's polygamma, which adds up terms from there to zero, is not called."""


@contextmanager
def quiet() -> Iterator[None]:
    """Neither NumPy nor SciPy warns of values, or raises errors, whatever the user has them do."""
    with np.errstate(all="ignore"):
        special = sys.modules.get("scipy.special")  # what is not imported is as it comes, and quiet
        if special is None:
            yield
        else:
            with special.errstate(all="ignore"):
                yield


@record(frozen=True, slots=True)
class Special:
    """A function of ``scipy.special`` by name."""

    name: str

    def __call__(self, *operands: Any) -> Any:
        return special(self.name)(*operands)


@record(frozen=True, slots=True)
class Polygamma(Special):
    """``scipy.special.polygamma``, far below zero as well, where SciPy takes time that grows with ``-x``.

    It is ``(-1)**(n+1) n! zeta(n+1, x)``, and for ``x < 0`` the sum over all ``1 / (x+k)**s`` is that from
    the first positive ``f = x+k`` on and, mirrored, that of the terms before: ``zeta(s, x) = zeta(s, f) +
    (-1)**s (zeta(s, 1-f) - zeta(s, 1-x))``.
    """

    name: str = "polygamma"

    def __call__(self, order: Any, x: Any) -> Any:
        special = importlib.import_module("scipy.special")
        floor = np.floor(x)
        far = (x < _FAR_BELOW) & (floor != x) & (order >= 1) & (np.floor(order) == order)
        if not np.any(far):
            return special.polygamma(order, x)
        result = np.asarray(special.polygamma(order, np.where(far, np.asarray(x).dtype.type(1), x)))
        n, x, floor = (one[far].astype(np.float64) for one in np.broadcast_arrays(order, x, floor))
        sign = np.where(n % 2 == 0, -1.0, 1.0)  # of (-1)**s, for s = n + 1
        before = special.zeta(n + 1, floor + 1 - x) - special.zeta(n + 1, 1 - x)
        result[far] = special.gamma(n + 1) * (sign * special.zeta(n + 1, x - floor) + before)
        return result[()]
