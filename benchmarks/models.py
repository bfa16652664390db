"""Statistical models: log-density and gradient, by esat, its peers and by hand.

``python -m benchmarks.models [--models NAME ...] [--peers NAME ...] [--steps] [--start]``

Each model is written once over NumPy's names (``benchmarks/peers/model_cases.py``); each contender
differentiates and compiles it in a process of its own environment, on one processor. Values are compared with
NumPy's, the derivative in one direction with central differences, before anything is timed. Calls are
interleaved: each round times every contender once; what counts is the median over the rounds. A ratio is a
peer's time by ours. Beside it stands what esat predicts a call takes. ``--steps`` adds what runs step by step
through Python and what each step takes, ``--start`` the processor seconds of a process up to its first
result: of one that finds nothing on disk, and of one that finds what the first left there.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np

from benchmarks.peers.contenders import OURS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.esat_contender import differentiated
from benchmarks.peers.match import Contest, Settings
from benchmarks.peers.model_cases import MODELS, Model
from benchmarks.peers.record import Record, geometric_mean
from benchmarks.peers.starts import started
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import machine_profile
from esat.phases.fusing.price import plan_seconds
from esat.runtime import Executable
from esat.tools.calibration import seconds_of

HAND = "handwritten"
PEERS = ("jax", "pytensor", HAND)
LIBRARIES = PEERS[:2]
SETTINGS = Settings(rounds=15, seconds=0.02)


@dataclass(frozen=True)
class Row:
    """One model: times of a call, what was predicted, seconds to the first result."""

    record: Record
    predicted: float
    start: Mapping[str, tuple[float, float]]

    @property
    def best(self) -> float:
        """The fastest library's time by ours; NaN where there is none."""
        return max(0.0, min((self.ratio(name) for name in LIBRARIES), default=math.nan))

    def ratio(self, peer: str) -> float:
        """A peer's time by ours; infinite where it has none."""
        return self.record.ratio(peer) or math.inf

    def __str__(self) -> str:
        measured = self.record.seconds.get(OURS, math.nan)
        cells = [f"{self.record.case:22}{measured * 1e6:10.1f}"]
        cells += [
            f"{one:12.2f}" if (one := self.record.ratio(name)) is not None else f"{'-':>12}" for name in PEERS
        ]
        cells.append(f"{self.predicted * 1e6:12.1f}{self.predicted / measured:8.2f}")
        cells += [f"  {name} {cold:.2f} {warm:.2f} s" for name, (cold, warm) in self.start.items()]
        return "".join([*cells, *(f"  {name}: {note}" for name, note in self.record.notes.items())])


def predicted_seconds(function: Executable, model: Model) -> float:
    """What the cost model says that a call takes."""
    return plan_seconds(function.steps, CostModel(machine_profile()))


def steps_report(function: Executable, model: Model) -> list[str]:
    """Each step of the Python driver and its microseconds, the largest first."""
    arrays = model.arrays(model.size, "float64")
    function.measure(True)
    for _ in range(100):
        function(*arrays)
    function.measure(False)
    steps = sorted(function.profile.steps, key=lambda step: -step.seconds)
    return [
        f"    {step.seconds / step.calls * 1e6:8.1f} us  {step.name[:100]}" for step in steps if step.calls
    ]


def way_of(function: Executable, model: Model) -> str:
    """``native``, or the number of steps that run through Python."""
    arrays = model.arrays(model.size, "float64")
    (seconds,) = seconds_of(partial(function, *arrays), samples=5)
    entered = type(function.entry).__name__
    kinds = [group.kind for group in function.steps]
    return f"{entered}, {len(kinds)} steps ({kinds.count('kernel')} kernels), {seconds * 1e6:.1f} us alone"


def table(rows: Sequence[Row]) -> str:
    """All models, with geometric means."""
    head = f"{'model':22}{'esat, us':>10}" + "".join(f"{name:>12}" for name in PEERS)
    lines = [f"{head}{'predicted':>12}{'/ own':>8}", *map(str, rows)]
    means = [
        geometric_mean([one for row in rows if (one := row.record.ratio(name)) is not None]) for name in PEERS
    ]
    lines.append(f"{'geometric mean':32}" + "".join(f"{mean:12.2f}" for mean in means))
    best = [row.best for row in rows if math.isfinite(row.best)]
    behind = [row.record.case for row in rows if row.best < 1.0]
    lines.append(
        f"against the best library: {geometric_mean(best):.2f}; behind at {', '.join(behind) or 'none'}"
    )
    factors = [max(f, 1.0 / f) for row in rows if (f := _factor(row)) is not None]
    if factors:
        lines.append(f"predictions are off by {median(factors):.2f} by median, {max(factors):.2f} at most")
    return "\n".join(lines)


def _factor(row: Row) -> float | None:
    measured = row.record.seconds.get(OURS)
    return None if measured is None else row.predicted / measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a contender named esat failed at a model."""
    names = [model.name for model in MODELS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--steps", action="store_true", help="print the driver's steps and their times")
    parser.add_argument("--start", action="store_true", help="measure the way to the first result as well")
    options = parser.parse_args(arguments)
    interpreters = {name: interpreter_of(name, {}) for name in (OURS, *options.peers)}
    for name in [name for name, found in interpreters.items() if found is None]:
        print(f"{name}: left out, no environment has it (make bench-peers)")
    present = {name: found for name, found in interpreters.items() if found is not None}
    rows: list[Row] = []
    with Contest(present, 1, SETTINGS) as contest:
        for model in MODELS:
            if model.name not in options.models:
                continue
            start: dict[str, tuple[float, float]] = {}
            for name in (one for one in present if options.start and one != HAND):
                with contextlib.suppress(subprocess.CalledProcessError):  # its note says why
                    start[name] = started(name, present[name], model, model.size)
            record = contest.play(model, model.size, "float64")
            function = differentiated(model, "float64")
            rows.append(Row(record, predicted_seconds(function, model), start))
            print(rows[-1], flush=True)
            if options.steps:
                print(f"    {way_of(function, model)}")
                print("\n".join(steps_report(function, model)), flush=True)
    print()
    print(table(rows))
    return int(any(OURS not in row.record.seconds for row in rows))


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
