"""Steps of simulations: esat beside its peers, and beside loops by hand.

``python -m benchmarks.simulations [--n N ...] [--cases NAME ...] [--peers NAME ...]``

The programs are those of :mod:`benchmarks.peers.simulation_cases`, written once over NumPy's names; by hand
they are loops that numba compiles. Each contender runs in a process of its own environment, on one thread,
and is compared with NumPy before; calls are interleaved, and what counts is the median over the rounds. A
ratio is a contender's time by ours: at least 1 of the best library's is asked for, and 0.8 of the loops.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.peers.contenders import OURS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Settings
from benchmarks.peers.record import Record
from benchmarks.peers.simulation_cases import SIMULATIONS

HAND = "handwritten"
LEAST = {"jax": 1.0, "pytensor": 1.0, HAND: 0.8}
"""Peer -> the least that its time by ours may be."""
SETTINGS = Settings(rounds=15, seconds=0.02)


def misses(record: Record) -> list[str]:
    """The peers that are too fast."""
    ratios = {name: record.ratio(name) for name in LEAST}
    return [name for name, ratio in ratios.items() if ratio is not None and ratio < LEAST[name]]


def line(record: Record) -> str:
    """One record: our microseconds, and the ratio of each peer."""
    ours = record.seconds.get(OURS)
    cells = [f"{record.case:24}{record.size:6}", "    failed" if ours is None else f"{ours * 1e6:10.1f}"]
    for name in LEAST:
        ratio = record.ratio(name)
        mark = "*" if name in misses(record) else " "
        cells.append(f"{'-':>11} " if ratio is None else f"{ratio:11.2f}{mark}")
    return "".join([*cells, *(f"  {name}: {note}" for name, note in record.notes.items())]).rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a peer is too fast, or we failed."""
    names = [case.name for case in SIMULATIONS]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.simulations", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--n", nargs="+", type=int, default=[32, 128, 400], help="sizes")
    parser.add_argument("--cases", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--peers", nargs="*", choices=LEAST, default=list(LEAST))
    options = parser.parse_args(arguments)
    found = {name: interpreter_of(name, {}) for name in (OURS, *options.peers)}
    for name in [name for name, interpreter in found.items() if interpreter is None]:
        print(f"{name}: left out, no environment has it (make bench-peers)")
    print(f"{'':24}{'n':>6}{'esat, us':>10}" + "".join(f"{name:>11} " for name in LEAST))
    missed = 0
    with Contest({name: one for name, one in found.items() if one is not None}, 1, SETTINGS) as contest:
        for case in SIMULATIONS:
            for size in options.n if case.name in options.cases else ():
                record = contest.play(case, size, "float64")
                missed += bool(misses(record)) or OURS not in record.seconds
                print(line(record), flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
