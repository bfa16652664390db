"""Seconds of calls on a device.

Calls are given to the device one after the other, and waited for once at the end: for short calls that is
the time that a caller's thread takes to give them, for long ones that of the device. Events in the stream
tell the device's own time from the beginning of the first call to the end of the last.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.device.contenders import Contender
from esat.gpu.device import Device

MOST_CALLS = 1000
TOGETHER = 5
"""Calls between two events: of a single one, the time until the first launch would count."""
TILE = 256
"""Order of the random matrix that products are measured with repeat: that of zeros would be quicker."""


@dataclass(frozen=True)
class Taken:
    """Seconds of a call, on average over several.

    Attributes
    ----------
    seconds
        By the host's clock.
    device
        By the device's events; the same as ``seconds`` for libraries that use a stream of their own.
    """

    seconds: float
    device: float


def timed(device: Device, contender: Contender, function: Callable[[], Any], count: int) -> Taken:
    """What ``count`` calls take."""
    cuda = device.arrays.cuda
    begun, ended = cuda.Event(), cuda.Event()
    results = None
    device.wait()
    begun.record()
    start = time.perf_counter()
    for _ in range(count):
        results = function()
    ended.record()
    contender.wait(results)
    seconds = (time.perf_counter() - start) / count
    if not contender.by_events:
        return Taken(seconds, seconds)
    ended.synchronize()
    return Taken(seconds, cuda.get_elapsed_time(begun, ended) / 1e3 / count)


def calls_in(device: Device, contender: Contender, function: Callable[[], Any], seconds: float) -> int:
    """How many calls take so many seconds, at least 1; some calls are made to find out."""
    count, taken = 1, timed(device, contender, function, 1).seconds
    while count < MOST_CALLS and count * taken < seconds / 4:
        count = min(4 * count, MOST_CALLS)
        taken = timed(device, contender, function, count).seconds
    return max(1, min(MOST_CALLS, int(seconds / max(taken, 1e-9))))


def copy_bandwidth(device: Device, size: int = 10**8) -> float:
    """Bytes read and written a second when ``size`` float32 numbers are copied on the device."""
    first, second = device.arrays.full((size,), np.float32(1.5)), device.empty((size,), "float32")
    return 2 * first.nbytes / seconds_by_events(device, lambda: device.arrays.copyto(second, first))


def product_rate(device: Device, dtype: str, order: int = 8192) -> float:
    """Floating-point operations a second of cupy's product of two square matrices, in full precision."""
    part = device.upload(np.random.default_rng(0).standard_normal((TILE, TILE)).astype(dtype))
    left = device.arrays.tile(part, (order // TILE, order // TILE))
    right, output = left + left, device.empty(left.shape, dtype)
    return 2 * order**3 / seconds_by_events(device, lambda: device.arrays.matmul(left, right, out=output), 5)


def seconds_by_events(device: Device, function: Callable[[], Any], repeat: int = 15) -> float:
    """Seconds of a call by events, in the mean of some in a row, after others that are not counted."""
    cuda = device.arrays.cuda
    found = []
    for _ in range(repeat + 3):
        begun, ended = cuda.Event(), cuda.Event()
        begun.record()
        for _ in range(TOGETHER):
            function()
        ended.record()
        ended.synchronize()
        found.append(cuda.get_elapsed_time(begun, ended) / 1e3 / TOGETHER)
    return statistics.median(found[3:])
