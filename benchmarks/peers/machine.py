"""What the machine can do at most, measured with NumPy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

COPIED = 10**7
"""Elements (float64) that are copied: 80 MB from 80 MB, beyond the caches of most machines."""
ORDER = 1024
"""Order of the matrices multiplied."""


def copy_bandwidth(threads: int) -> float:
    """Bytes read and written a second when large arrays are copied, by this many threads."""
    source, target = np.ones(COPIED), np.empty(COPIED)
    parts = [slice(COPIED * k // threads, COPIED * (k + 1) // threads) for k in range(threads)]

    def copy() -> None:
        # NumPy lets go of the interpreter's lock while it copies.
        others = [threading.Thread(target=np.copyto, args=(target[part], source[part])) for part in parts[1:]]
        for other in others:
            other.start()
        np.copyto(target[parts[0]], source[parts[0]])
        for other in others:
            other.join()

    return 2 * source.nbytes / _best(copy)


def product_rate(dtype: str) -> float:
    """Floating-point operations a second of NumPy's product of two square matrices."""
    generator = np.random.default_rng(0)
    left, right = (generator.random((ORDER, ORDER)).astype(dtype) for _ in range(2))
    output = np.empty_like(left)
    return 2 * ORDER**3 / _best(lambda: np.matmul(left, right, out=output))


def _best(function: Callable[[], object], repeat: int = 7) -> float:
    function()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
