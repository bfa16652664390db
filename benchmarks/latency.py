"""What a user waits for: a process's first result, the compilation of a kernel, the call of a small function.

Run ``python -m benchmarks.latency [--processes N] [--kernels N] [--only PART ...]``.

- ``start``: seconds from ``import esat`` to the first result, in new processes. The first one finds nothing
  on disk but bytecode, the warm ones find what the first left there.
- ``compile``: milliseconds for random functions of ten elementwise ops, from the graph to the first result,
  with nothing of them on disk, in a process that has compiled others before.
- ``call``: microseconds of a call with NumPy arrays of 100 elements, the result's allocation included.

Targets are for the median, on a machine without other work; processor time is disturbed less than time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

import esat
from benchmarks.peers.cases import CASES
from benchmarks.peers.esat_contender import executable
from esat.base.storage.store import DIRECTORY_VARIABLE
from esat.graph import Variable
from esat.tools.calibration import seconds_of

PARTS = ("start", "compile", "call")
ELEMENTS = 100
CALL_ROUNDS = 9
WARM_UP = 3
"""Kernels compiled before one counts."""

FIRST_RESULT = """
import json, time
wall, processor = time.perf_counter(), time.process_time()
import esat
import numpy as np

x, y, z = (esat.vector(name) for name in "xyz")
function = esat.compile(esat.Graph([x, y, z], [esat.tanh(x) * y + esat.exp(-z * z / 2)]))
values = np.linspace(-1.0, 1.0, 100)
result = function(values, values, values)
seconds = time.perf_counter() - wall, time.process_time() - processor
assert np.allclose(result, np.tanh(values) * values + np.exp(-values * values / 2))
print(json.dumps(seconds))
"""

UNARY: tuple[Callable[[Variable], Variable], ...] = (esat.tanh, esat.exp, esat.sin, esat.erf, esat.sigmoid)


@dataclass(frozen=True)
class Figure:
    """Times of one kind, in the unit they are printed in, and the most that their median may be."""

    name: str
    unit: str
    times: tuple[float, ...]
    target: float | None = None

    @property
    def is_missed(self) -> bool:
        return self.target is not None and median(self.times) > self.target

    def __str__(self) -> str:
        limit = "" if self.target is None else f"  (at most {self.target:g}{', MISSED' * self.is_missed})"
        every = " ".join(f"{one:.3g}" for one in sorted(self.times))
        return f"{self.name:40} {median(self.times):8.3g} {self.unit}{limit}\n    {every}"


def starts(processes: int) -> Iterator[Figure]:
    """First results of new processes, with an empty directory and with what the first process left in it."""
    with tempfile.TemporaryDirectory() as directory:
        package = os.path.dirname(esat.__file__)
        subprocess.run([sys.executable, "-m", "compileall", "-q", package], check=True)
        environment = {**os.environ, DIRECTORY_VARIABLE: directory}
        ever, ever_processor = first_result(environment)
        warm = [first_result(environment) for _ in range(processes)]
    yield Figure("first result ever", "s", (ever,))
    yield Figure("first result ever, processor time", "s", (ever_processor,))
    yield Figure("first result, warm", "s", tuple(wall for wall, _ in warm), 0.8)
    yield Figure("first result, warm, processor time", "s", tuple(processor for _, processor in warm))


def first_result(environment: Mapping[str, str]) -> tuple[float, float]:
    """Seconds and seconds of processor time from the import to the first result, in a new process."""
    command = [sys.executable, "-c", FIRST_RESULT]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall, processor = json.loads(run.stdout)
    return wall, processor


def random_kernel(generator: random.Random) -> tuple[list[Variable], Variable]:
    """Three vectors, and an expression of them with ten ops that no rule makes trivial."""
    inputs = [esat.vector(name) for name in "xyz"]
    result = generator.choice(inputs)
    for factor, summand in zip(generator.sample(inputs, 3), generator.sample(inputs, 3), strict=True):
        result = generator.choice(UNARY)(result) * factor + summand
    return inputs, generator.choice(UNARY)(result)


def compilations(kernels: int) -> Iterator[Figure]:
    """Kernels of several shapes, which nobody compiled before."""
    script = f"from benchmarks.latency import print_compilations; print_compilations({kernels})"
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, DIRECTORY_VARIABLE: directory}
        command = [sys.executable, "-c", script]
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    whole, processor, kernel = json.loads(run.stdout)
    yield Figure("function of ten ops, cold", "ms", tuple(whole), 120.0)
    yield Figure("function of ten ops, processor time", "ms", tuple(processor))
    yield Figure("its kernel alone", "ms", tuple(kernel))


def print_compilations(kernels: int) -> None:
    """Milliseconds, those of processor time, and those of the kernel's own, as JSON; the cache is empty."""
    generator = random.Random(0)
    values = np.linspace(-1.0, 1.0, ELEMENTS)
    times: list[tuple[float, float, float]] = []
    for _ in range(WARM_UP + kernels):
        inputs, result = random_kernel(generator)
        begin, processor = time.perf_counter(), time.process_time()
        function = esat.compile(esat.Graph(inputs, [result]))
        function(values, values, values)
        whole, busy = time.perf_counter() - begin, time.process_time() - processor
        times.append((whole * 1e3, busy * 1e3, function.profile.stages["kernels"] * 1e3))
    print(json.dumps([list(column) for column in zip(*times[WARM_UP:], strict=True)]))


def calls() -> Iterator[Figure]:
    """Calls of functions of 100 elements, where little but the call itself takes time."""
    targets = {"a*x+b": 1.5, "tanh(x)*y+exp(-z*z/2)": 1.5, "20 kernels": 10.0}
    cases = {case.name: case for case in CASES}
    for name, target in targets.items():
        case = cases[name]
        for dtype in ("float32", "float64"):
            function = executable(case, dtype)
            arrays = case.arrays(ELEMENTS, dtype)
            times = [seconds_of(partial(function, *arrays))[0] * 1e6 for _ in range(CALL_ROUNDS)]
            yield Figure(f"call of {name}, {dtype}", "us", tuple(times), target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a median, and all values below it; the number of targets missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=15, help="processes with a warm cache")
    parser.add_argument("--kernels", type=int, default=15, help="kernels compiled")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args(arguments)
    measured: dict[str, Callable[[], Iterator[Figure]]] = {
        "start": lambda: starts(options.processes),
        "compile": lambda: compilations(options.kernels),
        "call": calls,
    }
    missed = 0
    for part in options.only:
        for figure in measured[part]():
            print(figure, flush=True)
            missed += figure.is_missed
    return missed


if __name__ == "__main__":
    sys.exit(main() > 0)
