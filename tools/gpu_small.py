"""Small programs on a device, one a family of kernels; what ``tools/gpu_check.py`` runs under the sanitizer.

    python -m tools.gpu_small     # exit status 1 where a result is wrong

Each array has its own memory, as large as it is, so that an access beside it is seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import esat
from esat.gpu.device import cuda_device

SIZES = ((37, 52), (5, 1000), (3, 5001), (300, 77))
"""Rows of a warp, of a block and of several rounds, divisible by a vector and not; long columns."""

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "flat": lambda m: esat.tanh(m) * 2.0 + 1.0,
    "broadcast": lambda m: (m + m[0]) * m.max(axis=1, keepdims=True),
    "softmax": lambda m: esat.softmax(m, axis=1),
    "row sums": lambda m: (m * m).sum(axis=1),
    "vector products": lambda m: m.T @ (m @ m[0]),
    "row places": lambda m: m.argmax(axis=1),
    "columns": lambda m: m.sum(axis=0),
    "transpose": lambda m: m.T + 1.0,
    "all": lambda m: ((m - 1.0) ** 2).sum(),
    "mean and variance": lambda m: ((m - m.mean()) ** 2).mean(),
    "place of all": lambda m: m.argmax(),
    "take": lambda m: m[esat.constant(np.array([2, 0, 1, 2]))],
}


def main() -> int:
    """Run all; how many are wrong."""
    device = cuda_device()
    device.arrays.cuda.set_allocator(None)
    wrong = 0
    for name, program in PROGRAMS.items():
        for dtype in ("float32", "float64"):
            matrix = esat.matrix("m", dtype=dtype)
            graph = esat.Graph([matrix], [program(matrix)])
            there = esat.compile(graph, esat.Mode("fast_run", device="cuda", variants=0))
            here = esat.compile(graph, esat.Mode("fast_run", variants=0))
            for shape in SIZES:
                array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
                found, wanted = np.asarray(there(array)), np.asarray(here(array))
                tolerance = 1e-5 if dtype == "float32" else 1e-12
                if not np.allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max()):
                    wrong += 1
                    print(f"{name} of {dtype}{shape}: {np.abs(found - wanted).max()}")
    print(f"{wrong} wrong")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
