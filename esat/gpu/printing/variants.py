"""Which variant of a kernel's text fits given arrays, and the numbers it is called with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Compute, Kernel, Load, Loop, Store, walk
from esat.gpu.kernel_text.launches import VECTOR_BYTES, WARP, LaunchVariant
from esat.gpu.kernel_text.templates import DIRECT
from esat.gpu.printing.body import is_along, lanes_along
from esat.gpu.printing.columns import ENOUGH_BLOCKS, SHARED_ROWS
from esat.gpu.printing.flat import BLOCK
from esat.gpu.printing.nests import Nest, nests_of
from esat.gpu.printing.rows import ROW_CLASSES
from esat.gpu.printing.rows_split import FEW_ROWS

Shape = Sequence[int]
LONG_FUNCTIONS = frozenset(DIRECT) - {"sqrt", "copysign", "fused_multiply_add", "multiply_add"} | {
    *("cbrt", "erfcx", "exp2", "log1mexp", "logaddexp", "sigmoid", "softplus")
}
"""Functions in templates that are tens of instructions in float64."""
MOST_LONG_FUNCTIONS = 3
_NAME = re.compile(r"[a-z]\w*(?=\()")
MOST_ROWS = 16384
"""Rows that the lines of one block add up, at most: rounding errors grow with their number."""


def variant_for(
    kernel: Kernel,
    shapes: Sequence[Shape],
    strides: Sequence[Shape] | None = None,
    addresses: Sequence[int] = (),
) -> LaunchVariant:
    """The variant for given arrays.

    Parameters
    ----------
    kernel
        As lowered.
    shapes
        Of all arrays, outputs first.
    strides
        Of all arrays, in bytes; None where all are C-contiguous. Outputs always are.
    addresses
        Of all arrays; none where all are aligned to 16 bytes, as a device's pool has them.
    """
    strided = strides is not None and not _are_contiguous(kernel, shapes, strides)
    seen = kernel if strided else collapse(kernel)
    sizes = sizes_in(kernel, shapes, strides if strided else None)
    nests = nests_of(seen)
    vector = (
        not strided
        and all(address % VECTOR_BYTES == 0 for address in addresses)
        and all(_divides(seen, nest, sizes) for nest in nests)
        and not is_too_long(seen)
    )
    loops = [one for nest in nests if nest.family == "rows" for one in nest.body if isinstance(one, Loop)]
    rows = [prod(sizes[f"n{axis}"] for axis in one.axes) for one in loops]
    longest = next((limit for limit in ROW_CLASSES if max(rows, default=0) <= limit), 0) if rows else 0
    across = _threads_across(seen, nests, sizes, vector)
    split = (bool(rows) and not longest and _are_few(nests, sizes)) or any(
        _are_few_columns(nest, sizes, across * (lanes_along(seen, nest.inner) if vector else 1))
        for nest in nests
        if nest.family == "columns"
    )
    return LaunchVariant(vector, longest, strided, across, split)


def is_too_long(kernel: Kernel) -> bool:
    """Whether the code for an element is too long for compilers to repeat it for each lane of a vector.

    They loop over the lanes then, whose numbers are in memory; and such kernels do not wait for memory.
    """
    called = sum(
        one.operand_dtype == "float64" and not LONG_FUNCTIONS.isdisjoint(_NAME.findall(one.template))
        for one in walk(kernel.body)
        if isinstance(one, Compute)
    )
    return called > MOST_LONG_FUNCTIONS


def _threads_across(kernel: Kernel, nests: Sequence[Nest], sizes: dict[str, int], vector: bool) -> int:
    """Neighbouring threads that take neighbours of a row: a power of two, for columns a warp at most."""
    most, across = [], 1
    for nest in nests:
        axis = nest.inner
        if nest.family == "rows" and len(nest.axes) > 1:
            axis, lanes = nest.axes[-1], 1
        elif nest.family == "columns" or (nest.family == "flat" and len(nest.axes) > 1):
            lanes = lanes_along(kernel, axis) if vector else 1
        else:
            continue
        most.append(WARP if nest.family == "columns" else BLOCK)
        across = max(across, 1 << max(-(-sizes[f"n{axis}"] // lanes) - 1, 0).bit_length())
    return min(across, *most) if most else WARP


def _are_few_columns(nest: Nest, sizes: dict[str, int], width: int) -> bool:
    """Whether blocks of ``width`` columns leave much of a device idle, or have very many rows."""
    blocks = prod(sizes[f"n{axis}"] for axis in nest.axes) * -(-sizes[f"n{nest.inner}"] // width)
    loops = [one for one in nest.body if isinstance(one, Loop)]
    rows = max(prod(sizes[f"n{axis}"] for axis in one.axes) for one in loops)
    return (rows >= SHARED_ROWS and blocks < ENOUGH_BLOCKS) or rows > MOST_ROWS


def _are_few(nests: Sequence[Nest], sizes: dict[str, int]) -> bool:
    """Whether a block for each row leaves most of a device idle."""
    rows = [prod(sizes[f"n{axis}"] for axis in nest.axes) for nest in nests if nest.family == "rows"]
    return max(rows) < FEW_ROWS


def sizes_in(
    kernel: Kernel, shapes: Sequence[Shape], strides: Sequence[Shape] | None = None
) -> dict[str, int]:
    """Numbers that the texts of a kernel name: sizes of axes and, where strides are given, strides.

    Parameters
    ----------
    kernel
        As lowered.
    shapes
        Of all arrays, outputs first.
    strides
        Of all arrays, in bytes; for a strided variant alone.
    """
    seen = kernel if strides is not None else collapse(kernel)
    sizes = {
        f"n{number}": prod(shapes[array][place] for array, place in axis.factors)
        for number, axis in enumerate(seen.axes)
    }
    outputs = len(kernel.outputs)
    for number, steps in enumerate(strides[outputs:] if strides is not None else ()):
        size = np.dtype(kernel.inputs[number].dtype).itemsize
        sizes |= {f"s{number}_{axis}": step // size for axis, step in enumerate(steps)}
    return sizes


def _are_contiguous(kernel: Kernel, shapes: Sequence[Shape], strides: Sequence[Shape]) -> bool:
    return all(
        _is_contiguous(shape, steps, np.dtype(array.dtype).itemsize)
        for array, shape, steps in zip(kernel.arrays, shapes, strides, strict=True)
    )


def _is_contiguous(shape: Shape, strides: Shape, size: int) -> bool:
    expected = size
    for length, step in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and step != expected:
            return 0 in shape
        expected *= length
    return True


def _divides(kernel: Kernel, nest: Nest, sizes: dict[str, int]) -> bool:
    """Whether rows begin where vectors do."""
    if nest.inner is None:
        return True
    lanes = lanes_along(kernel, nest.inner)
    along = [
        one for one in walk(nest.body) if isinstance(one, Load | Store) and is_along(kernel, one, nest.inner)
    ]
    ragged = nest.family in ("flat", "full") and nest.axes == (nest.inner,)
    return ragged or not along or sizes[f"n{nest.inner}"] % lanes == 0
