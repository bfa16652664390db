"""Values added to, or set in, the elements of a device's array that index arrays name, in the index's order.

Additions by atomic operations come in any order, and sums of floats would be others from call to call. Here
the places are sorted first, stably (so that values for one place stay in the order of the index), and one
thread takes all values of one place, one after another: the results are those of ``numpy.add.at`` to the last
bit, and of several values that are set for one place the last one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from esat.gpu.device import Device, DeviceArray
from esat.gpu.kernel_text.kernels import executor_of
from esat.gpu.kernel_text.launches import DTYPES, STORED_AS, Argument, Launch, Launches

SCATTERED = frozenset([*DTYPES, "bool"])
"""Dtypes of arrays whose elements are set; all of them but bool are added to."""

_BLOCK = 256
_MOST_BLOCKS = 65_536

_TEXT = """
def kernel(o0, x0, x1, x2, n0, n1):
    number = int64(cuda.blockIdx.x) * {block} + cuda.threadIdx.x
    while number < n0 * n1:
        first = number // n1
        lane = number - first * n1
        place = x0[first]
        if first == 0 or x0[first - 1] != place:
            total = o0[place * n1 + lane]
            k = first
            while k + 4 <= n0 and x0[k + 3] == place:
                v0 = x2[x1[k] * n1 + lane]
                v1 = x2[x1[k + 1] * n1 + lane]
                v2 = x2[x1[k + 2] * n1 + lane]
                v3 = x2[x1[k + 3] * n1 + lane]
{four}
                k += 4
            while k < n0 and x0[k] == place:
                v0 = x2[x1[k] * n1 + lane]
{one}
                k += 1
            o0[place * n1 + lane] = total
        number += int64(cuda.gridDim.x) * {block}
"""
"""Sorted places, the order of values and the values; four loads at a time do not wait for each other."""


def _launch(dtype: str, adds: bool) -> Launch:
    def steps(depth: int, count: int) -> str:
        taken = [f"total = {f'total + v{k}' if adds else f'v{k}'}" for k in range(count)]
        return "\n".join("    " * depth + line for line in (taken if adds else taken[-1:]))

    stored = STORED_AS.get(dtype, dtype)
    arguments = (
        Argument("o0", stored),
        Argument("x0", "int64"),
        Argument("x1", "int64"),
        Argument("x2", stored),
        Argument("n0"),
        Argument("n1"),
    )
    text = _TEXT.format(block=_BLOCK, four=steps(4, 4), one=steps(4, 1))
    grid = f"min(-(-n0 * n1 // {_BLOCK}), {_MOST_BLOCKS})"
    return Launch("scatter_add" if adds else "scatter_set", text, arguments, _BLOCK, grid)


class DeviceScatter:
    """Writes to the elements of arrays of one dtype.

    Parameters
    ----------
    device
        Whose arrays they are.
    dtype
        Of the arrays, one of :data:`SCATTERED`.
    adds
        Whether values are added to elements; otherwise they take their places.
    """

    def __init__(self, device: Device, dtype: str, adds: bool) -> None:
        self._device = device
        self._executor = executor_of(device)
        self._launches = Launches((_launch(dtype, adds),))

    def write(
        self, target: DeviceArray, index: Sequence[Any], value: DeviceArray, whole_axes: int = 0
    ) -> None:
        """``target[index] += value`` or ``target[index] = value``, for one value after another.

        Parameters
        ----------
        target
            A contiguous array, which is written to.
        index
            As NumPy takes it, within bounds, without the last ``whole_axes`` of the target.
        value
            Broadcasts to ``target[index]``; of the dtype of ``target``.
        whole_axes
            How many of the last axes ``index`` takes whole.
        """
        arrays = self._device.arrays
        split = target.ndim - whole_axes
        outer, lanes = tuple(target.shape[:split]), prod(target.shape[split:])
        places = arrays.arange(prod(outer)).reshape(outer)[tuple(index)]
        values = arrays.broadcast_to(value, (*places.shape, *target.shape[split:]))
        count = places.size
        if not count * lanes:
            return
        places = places.reshape(-1)
        order = arrays.argsort(places, kind="stable")
        given = (target, places[order], order, arrays.ascontiguousarray(values).reshape(-1))
        start = self._executor.prepared(self._launches, ("o0", "x0", "x1", "x2"), {"n0": count, "n1": lanes})
        start(given)
