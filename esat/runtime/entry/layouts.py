"""Layouts of arguments: native functions admit arrays that are contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

COPIED_BYTES = 3000
"""Bytes that are copied for each step of a program: in the driver it takes 3 us longer than in a native
function, in which 3 kB of a transposed array are copied (on a shared server)."""


def contiguous_copies(arguments: Sequence[Any], steps: int) -> tuple[Any, ...] | None:
    """Arguments with contiguous copies in place of other arrays; None where all are contiguous, or where
    copying takes longer than a native function of so many steps saves."""
    others = [one for one in arguments if not _is_contiguous(one)]
    if not others or sum(one.nbytes for one in others) > COPIED_BYTES * steps:
        return None
    return tuple(one if _is_contiguous(one) else np.array(one, order="C") for one in arguments)


def _is_contiguous(argument: Any) -> bool:
    return type(argument) is not np.ndarray or (argument.flags.c_contiguous and argument.flags.aligned)
