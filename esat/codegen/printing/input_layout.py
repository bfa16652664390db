"""How the inputs of a kernel lie in memory."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np

Layout: TypeAlias = Literal["C", "R", "A"]
"""Memory layout of all inputs: contiguous in C order, contiguous along the last axis as far as innermost
loops read them, or any.

Outputs are always contiguous. See :func:`layout_of`.
"""


def layout_of(inputs: Iterable[np.ndarray[Any, Any]], by_elements: Container[int]) -> Layout:
    """The layout class of a kernel's inputs.

    Parameters
    ----------
    inputs
        The arrays.
    by_elements
        Positions of those that innermost loops read: see :func:`read_by_elements`.
    """
    layout: Layout = "C"
    for place, array in enumerate(inputs):
        if not array.flags.c_contiguous:
            layout = "R"
            if array.strides[-1] != array.itemsize and array.shape[-1] != 1 and place in by_elements:
                return "A"
    return layout
