"""What stays in memory of functions that were compiled, called and dropped.

Run ``python -m benchmarks.memory [--functions N] [--mode MODE] [--warm]``. Each function is another one, of
some ten elementwise ops. With ``--warm`` an earlier process has compiled them, so that all comes from disk.
Printed is the resident memory in MB, of which the first functions take what the compilers themselves need.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import esat
from esat.base.storage.store import DIRECTORY_VARIABLE
from esat.graph import Variable

_UNARY = (esat.exp, esat.sin, esat.tanh, esat.sqrt, esat.log1p, esat.cos, esat.abs, esat.floor)
FIRST = 100
"""Functions after which growth counts: compilers are loaded, and bounded caches are full."""


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def function(number: int) -> esat.Graph:
    """The graph of one of the functions."""
    chosen = random.Random(number)
    x, y = esat.vector("x"), esat.vector("y")
    made: list[Variable] = [x, y]
    for _ in range(6):
        one, other = chosen.choice(_UNARY)(chosen.choice(made)), chosen.choice(made)
        made.append(one * other if chosen.random() < 0.5 else one + other * float(chosen.randrange(2, 99)))
    return esat.Graph([x, y], made[-1] + x * y)


def run(functions: int, mode: str) -> None:
    """Compile, call and drop functions, and print what they leave behind."""
    argument = np.ones(10)
    start, base = time.perf_counter(), 0.0
    for number in range(functions):
        if number == FIRST or number % 250 == 0:
            gc.collect()
            print(
                f"{number:6d} functions {resident():8.1f} MB {time.perf_counter() - start:8.1f} s", flush=True
            )
            base = resident() if number == FIRST else base
        esat.compile(function(number), mode)(argument, argument)
    gc.collect()
    print(f"{functions:6d} functions {resident():8.1f} MB; grown by {resident() - base:.1f} MB since {FIRST}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--functions", type=int, default=2000)
    parser.add_argument("--mode", default="fast_run")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        run(given.functions, given.mode)
        return
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.memory", "--here"]
        command += ["--functions", str(given.functions), "--mode", given.mode]
        for _ in range(1 + given.warm):
            subprocess.run(command, env={**os.environ, DIRECTORY_VARIABLE: directory}, check=True)


if __name__ == "__main__":
    main()
