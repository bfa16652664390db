"""Batches and derivatives of functions: by esat, by JAX, and element by element in a Python loop.

``python -m benchmarks.transformations [--only WORD ...] [--rounds N]``

``vmap`` of ten and more functions of an element, ``value_and_grad`` and ``hessian`` of the models of
:mod:`benchmarks.models`. Each library has a process of its own, on one processor; calls are interleaved, each
round times every way once, and what counts is the median over the rounds. Results are compared first. A ratio
is the other way's time by ours.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.model_cases import MODELS
from benchmarks.peers.record import geometric_mean
from benchmarks.peers.transformed import BATCHES

CASES = [
    *(f"vmap: {name}" for name in BATCHES),
    *(f"value_and_grad: {model.name}" for model in MODELS),
    *(f"hessian: {model.name}" for model in MODELS),
]
TURN = 0.01
"""Seconds that a turn should take."""
TOLERANCE = 1e-8
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS")


class Process:
    """A library's process."""

    def __init__(self, library: str) -> None:
        interpreter = interpreter_of(library, {})
        assert interpreter is not None, f"no environment has {library} (make bench-peers)"
        self._process = subprocess.Popen(
            [str(interpreter), "-m", "benchmarks.peers.transformed", library],
            cwd=ROOT,
            env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        os.sched_setaffinity(self._process.pid, [max(os.sched_getaffinity(0))])

    def ask(self, case: str, way: str, count: int) -> dict[str, Any]:
        """Time some calls."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"case": case, "way": way, "count": count}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def played(case: str, ways: Sequence[tuple[Process, str]], rounds: int) -> list[float | str]:
    """The median time of each way, or why there is none."""
    found: list[float | str] = []
    counts, sums = [], []
    for process, way in ways:
        first = process.ask(case, way, 1)
        sums.append(first.get("sum", math.nan))
        counts.append(max(1, min(10_000, int(TURN / first.get("seconds", 1.0)))))
        found.append(first.get("failed", 0.0))
    for place, total in enumerate(sums):
        if isinstance(found[place], float) and abs(total - sums[0]) > TOLERANCE * max(1.0, abs(sums[0])):
            found[place] = f"another result: {total!r}, {sums[0]!r}"
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for place, (process, way) in enumerate(ways):
            if isinstance(found[place], float):
                taken[place].append(process.ask(case, way, counts[place])["seconds"])
    return [median(times) if times else why for times, why in zip(taken, found, strict=True)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the number of cases at which esat failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transformations", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="WORD", help="cases that have a word in them"
    )
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    ours, jax = Process("esat"), Process("jax")
    failed = 0
    ratios: dict[str, list[float]] = {}
    print(f"{'':38}{'esat, us':>12}{'JAX / esat':>12}{'loop / esat':>12}")
    for case in CASES:
        if not any(word in case for word in options.only):
            continue
        kind = case.partition(":")[0]
        ways = [(ours, ""), (jax, ""), *([(ours, "loop")] if kind == "vmap" else [])]
        own, *others = played(case, ways, options.rounds)
        if not isinstance(own, float):
            failed += 1
            print(f"{case:38} {own}")
            continue
        cells = []
        for label, other in zip(("JAX", "loop"), others, strict=False):
            if isinstance(other, float):
                ratios.setdefault(f"{kind}, {label}", []).append(other / own)
            cells.append(f"{other / own:12.2f}" if isinstance(other, float) else f"  {other}")
        print(f"{case:38}{own * 1e6:12.2f}{''.join(cells)}", flush=True)
    for label, found in ratios.items():
        print(f"geometric mean of {label} / esat: {geometric_mean(found):.2f} of {len(found)}")
    for process in (ours, jax):
        process.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
