"""How the inputs of a kernel lie in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

Layout: TypeAlias = Literal["C", "R", "A"]
"""Memory layout of all inputs: contiguous in C order, contiguous along the last axis, or any.

Outputs are always contiguous. See :func:`layout_of`.
"""


def layout_of(arrays: Iterable[np.ndarray[Any, Any]]) -> Layout:
    """The layout class of a kernel's inputs."""
    layout: Layout = "C"
    for array in arrays:
        if not array.flags.c_contiguous:
            layout = "R"
            if array.strides[-1] != array.itemsize and array.shape[-1] != 1:
                return "A"
    return layout
