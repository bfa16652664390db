"""How compile time grows with the program: chains, recurrences, wide sums, many inputs, many outputs.

``python -m benchmarks.scale [--families NAME ...] [--contenders NAME ...] [--factor F] [--limit SECONDS]``

Each family of programs is compiled at a size n, at 2n and at 4n, by each contender, each in a process of its
own (its environment: see ``benchmarks.peers.environments``), with nothing of it on disk. Printed are seconds
from the program's first op to its first result, and the exponent of their growth: of a least-squares line
through the logarithms. Goals: an exponent of at most 1.2 for each family, and a recurrence of 150 steps
with gradient in less than twice JAX's time. Times of a busy machine tell little; the exponent suffers less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.scale_cases import FAMILIES, Family
from esat.base.storage.store import DIRECTORY_VARIABLE

CONTENDERS = ("esat", "jax", "pytensor")
MOST_GROWTH = 1.2
RECURRENCE, STEPS, MOST_OF_JAX = "recurrence with gradient", 150, 2.0


@dataclass(frozen=True)
class Growth:
    """Compile times of one family by one contender.

    Attributes
    ----------
    seconds
        Size -> seconds, for those that were compiled within the limit.
    note
        Why sizes are missing.
    """

    seconds: Mapping[int, float]
    note: str = ""

    @property
    def exponent(self) -> float | None:
        """How time grows: as this power of the size; None for fewer than two sizes."""
        if len(self.seconds) < 2:
            return None
        sizes, times = (np.log(list(values)) for values in (self.seconds.keys(), self.seconds.values()))
        return float(np.polyfit(sizes, times, 1)[0])

    def __str__(self) -> str:
        times = "".join(f"{size:8}: {seconds:7.2f} s" for size, seconds in self.seconds.items())
        exponent = "" if self.exponent is None else f"  exponent {self.exponent:.2f}"
        return f"{times}{exponent}{'  ' * bool(self.note)}{self.note}"


def measure(contender: str, interpreter: Path, family: Family, sizes: Sequence[int], limit: float) -> Growth:
    """Compile a family's programs, each in a new process that finds nothing on disk, until one fails."""
    seconds: dict[int, float] = {}
    for size in sizes:
        found = _compiled(contender, interpreter, family, size, limit)
        if isinstance(found, str):
            return Growth(seconds, found)
        seconds[size] = found
    return Growth(seconds)


def _compiled(contender: str, interpreter: Path, family: Family, size: int, limit: float) -> float | str:
    """Seconds, or why there are none."""
    command = [str(interpreter), "-m", "benchmarks.peers.scale_worker", contender, family.name, str(size)]
    with tempfile.TemporaryDirectory() as directory:
        own = {DIRECTORY_VARIABLE: directory, "PYTENSOR_FLAGS": f"base_compiledir={directory}"}
        try:
            run = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **own},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:g} s"
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or not lines:
        return run.stderr.strip()[-200:] or f"exit status {run.returncode}"
    return float(lines[0]["seconds"]) if "seconds" in lines[0] else str(lines[0]["failed"])


def missed(found: Mapping[tuple[str, str], Growth]) -> list[str]:
    """The goals that were not reached, of those that were measured."""
    reports = []
    for (family, contender), growth in found.items():
        exponent = growth.exponent
        if contender == "esat" and (growth.note or exponent is None or exponent > MOST_GROWTH):
            reports.append(f"{family}: exponent {exponent}, at most {MOST_GROWTH} wanted; {growth.note}")
    ours, theirs = (found.get((RECURRENCE, name), Growth({})).seconds.get(STEPS) for name in ("esat", "jax"))
    if ours is not None and theirs is not None and ours > MOST_OF_JAX * theirs:
        reports.append(f"{RECURRENCE}, {STEPS} steps: {ours / theirs:.2f} times JAX's time")
    return reports


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the number of goals missed."""
    names = [family.name for family in FAMILIES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("--families", nargs="+", choices=names, default=names)
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=CONTENDERS)
    parser.add_argument("--factor", type=float, default=1.0, help="times the sizes of the families")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of one program")
    options = parser.parse_args(arguments)
    interpreters = {name: interpreter_of(name, {}) for name in options.contenders}
    found: dict[tuple[str, str], Growth] = {}
    for family in FAMILIES:
        if family.name not in options.families:
            continue
        print(family.name, flush=True)
        sizes = [round(options.factor * family.size) * times for times in (1, 2, 4)]
        for contender, interpreter in interpreters.items():
            if interpreter is None:
                print(f"  {contender}: no environment has it (make bench-peers)")
                continue
            growth = measure(contender, interpreter, family, sizes, options.limit)
            found[family.name, contender] = growth
            print(f"  {contender:9}{growth}", flush=True)
    reports = missed(found)
    for report in reports:
        print(f"MISSED  {report}")
    return len(reports)


if __name__ == "__main__":
    sys.exit(main() > 0)
