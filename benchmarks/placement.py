"""How good the choice between host and device is: ``python -m benchmarks.placement [--seconds S]``.

Takes a machine with a device. Each program is called with NumPy arrays of some sizes, on the host alone, with
all that can run there on the device, and in the mode ``auto``. A line has the times, how many steps ``auto``
has on the device, and how much longer its call takes than the faster of the other two.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from math import exp, fsum, log
from typing import Any

import numpy as np

import esat
from esat.runtime import Executable

Arrays = list[np.ndarray[Any, np.dtype[Any]]]
Program = tuple[esat.Graph, Callable[[int], list[tuple[int, ...]]]]
"""A graph, and the shapes of its arguments for a number of elements."""


def programs() -> dict[str, Program]:
    """What is measured."""
    x, y = esat.vector("x", dtype="float32"), esat.vector("y", dtype="float32")
    m, w = esat.matrix("m", dtype="float32"), esat.matrix("w", dtype="float32")
    chain = x
    for _ in range(6):
        chain = esat.tanh(esat.exp(chain) - np.float32(1))
    hidden = esat.tanh(m @ w)
    return {
        "x*y+x": (esat.Graph([x, y], [x * y + x]), lambda n: [(n,), (n,)]),
        "sum((x-y)**2)": (esat.Graph([x, y], [((x - y) ** 2).sum()]), lambda n: [(n,), (n,)]),
        "chain": (esat.Graph([x], [chain]), lambda n: [(n,)]),
        "softmax": (esat.Graph([m], [esat.softmax(m, axis=1)]), lambda n: [(-(-n // 512), 512)]),
        "product": (esat.Graph([m, w], [hidden.sum(axis=0)]), lambda n: [(-(-n // 512), 512), (512, 512)]),
    }


def seconds_of(function: Executable, arrays: Arrays, budget: float) -> float:
    """The median time of a call."""
    for _ in range(4):
        function(*arrays)
    found: list[float] = []
    until = time.perf_counter() + budget
    while len(found) < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        function(*arrays)
        found.append(time.perf_counter() - begin)
    return float(np.median(found))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.placement", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=0.1, help="time of each measurement")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10**power for power in (2, 4, 5, 6, 7)])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    losses: list[float] = []
    for name, (graph, shapes) in programs().items():
        host, device = (esat.compile(graph, esat.Mode(device=one)) for one in ("cpu", "cuda"))
        for size in options.sizes:
            arrays = [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes(size)]
            told = dict(zip(graph.inputs, (array.shape for array in arrays), strict=True))
            auto = esat.compile(graph, esat.Mode(device="auto"), shapes=told)
            times = [seconds_of(one, arrays, options.seconds) for one in (host, device, auto)]
            steps = [step for step in auto.steps if step.kind != "transfer"]
            there = sum(step.side == "device" for step in steps)
            losses.append(times[2] / min(times[:2]))
            shown = "  ".join(
                f"{label} {seconds * 1e6:9.1f} us"
                for label, seconds in zip(("host", "device", "auto"), times, strict=True)
            )
            print(f"{name:15} {size:9} {shown}, {there} of {len(steps)} there  {losses[-1]:5.2f}", flush=True)
    mean = exp(fsum(map(log, losses)) / len(losses))
    print(f"auto takes {mean:.2f} times the faster one in the geometric mean, {max(losses):.2f} at most")


if __name__ == "__main__":
    main()
