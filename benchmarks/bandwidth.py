"""Programs that wait for memory, against a copy of one array to another.

``python -m benchmarks.bandwidth [--size N] [--dtypes ...] [--rounds R] [--least 0.9]``. A share is the bytes
a second of a compiled program, of all that it reads and returns, by those of NumPy's copy of 80 MB. Memory is
shared with other machines: what it gives changes by a third within minutes. So each call stands beside a
copy, and what counts are the medians over the rounds. For one thread, set ``NUMBA_NUM_THREADS=1``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.esat_contender import executable
from benchmarks.peers.machine import COPIED

BOUND_BY_MEMORY = ("a*x+b", "layernorm", "mean+var", "sum((x-y)**2)", "(M+r)*c", "outer sum", "polynomial")
"""Programs of :data:`~benchmarks.peers.cases.CASES` that compute little with each element."""
DTYPES = ("float64", "float32")
SIZE = 10**7
ROUNDS = 41


def share(case: Case, size: int, dtype: str, rounds: int = ROUNDS) -> float:
    """Bytes a second of a compiled program by those of a copy."""
    function, arrays = executable(case, dtype), case.arrays(size, dtype)
    found = function(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    moved = sum(array.nbytes for array in (*arrays, *results))
    del found, results
    source, target = np.ones(COPIED), np.empty(COPIED)
    ours, copy = _medians((lambda: function(*arrays), lambda: np.copyto(target, source)), rounds)
    return moved / ours / (2 * source.nbytes / copy)


def _medians(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Seconds of each call, which take turns."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [median(taken) for taken in seconds]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one share a line; 1 if one is below the least."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bandwidth", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--least", type=float, default=0.9, help="the least share that is no failure")
    options = parser.parse_args(arguments)
    shares: list[float] = []
    for case in CASES:
        if case.name in BOUND_BY_MEMORY:
            for dtype in options.dtypes:
                shares.append(share(case, options.size, dtype, options.rounds))
                print(f"{shares[-1]:6.2f}  {case.name:14} {dtype}", flush=True)
    low = sum(one < options.least for one in shares)
    print(f"{low} of {len(shares)} below {options.least:g}")
    return int(low > 0)


if __name__ == "__main__":
    sys.exit(main())
