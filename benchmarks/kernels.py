"""Compiled functions side by side with those of other libraries, in one run.

``python -m benchmarks.kernels [--quick] [--cases NAME ...] [--sizes N ...] [--peers NAME ...]``.

Every contender runs in a process of its own environment (``make bench-peers`` makes them), takes NumPy
arrays and returns NumPy arrays. Its results are compared with NumPy's in float64 before it is timed. Calls
are interleaved: each round times every contender once, over as many calls as fill the round's time; what
counts is the median over the rounds. A ratio is a peer's time by ours: above 1 esat is faster. The table,
the figures as JSON and a plot go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.client import ROOT
from benchmarks.peers.contenders import OURS, PEERS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Settings
from benchmarks.peers.plot import draw
from benchmarks.peers.record import Limits, Record, Run, load, save
from benchmarks.peers.table import line, table

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Plan:
    """What is run: every combination."""

    cases: tuple[Case, ...]
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    threads: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 unless esat failed at a case."""
    options = _parser().parse_args(arguments)
    if options.show:
        print(table(load(options.show)))
        return 0
    interpreters = _interpreters(options.peers, dict(options.interpreter))
    settings = Settings(rounds=5, seconds=0.002) if options.quick else Settings(rounds=15, seconds=0.01)
    run = measure(_plan(options), settings, interpreters)
    print()
    print(table(run))
    if options.output:
        stem = options.output / ("quick" if options.quick else "kernels")
        save(run, stem)
        stem.with_suffix(".txt").write_text(table(run) + "\n", encoding="utf-8")
        drawn = draw(run, stem.with_suffix(".png"))
        print(f"\nwritten: {stem}.json, .txt{', .png' if drawn else ' (a plot needs matplotlib)'}")
    failed = [record for record in run.records if OURS not in record.seconds]
    for record in failed:
        print(f"esat failed: {record.case}, n={record.size}, {record.dtype}: {record.notes.get(OURS)}")
    return 1 if failed else 0


def measure(plan: Plan, settings: Settings, interpreters: dict[str, Path]) -> Run:
    """Run everything; a line a combination as it goes.

    Parameters
    ----------
    plan
        What to run.
    settings
        How long.
    interpreters
        Contender -> the Python of its environment.
    """
    records: list[Record] = []
    limits: list[Limits] = []
    versions: dict[str, str] = {}
    for threads in plan.threads:
        with Contest(interpreters, threads, settings) as contest:
            limits.append(contest.limits(plan.dtypes))
            print(limits[-1], flush=True)
            for dtype in plan.dtypes:
                for case in plan.cases:
                    for size in plan.sizes:
                        if size <= case.largest:
                            records.append(contest.play(case, size, dtype))
                            print(line(records[-1], interpreters, limits[-1]), flush=True)
            versions.update(contest.versions)
    return Run(tuple(records), tuple(limits), versions)


def _plan(options: argparse.Namespace) -> Plan:
    chosen = [case for case in CASES if not options.cases or case.name in options.cases]
    missing = set(options.cases or ()) - {case.name for case in CASES}
    if missing:
        names = ", ".join(case.name for case in CASES)
        raise SystemExit(f"no case is named {', '.join(sorted(missing))}; there are: {names}")
    sizes = (100, 10_000, 1_000_000) if options.quick else (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)
    threads = (1,) if options.quick else (1, 2)
    return Plan(
        tuple(chosen),
        tuple(options.sizes or sizes),
        tuple(options.dtypes or ("float64", "float32")),
        tuple(options.threads or threads),
    )


def _interpreters(peers: Sequence[str] | None, given: dict[str, Path]) -> dict[str, Path]:
    found = {}
    for contender in (OURS, *(PEERS if peers is None else peers)):
        interpreter = interpreter_of(contender, given)
        if interpreter is None:
            print(f"{contender}: left out, no environment has it (make bench-peers)")
        else:
            found[contender] = interpreter
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="three sizes, one thread, few rounds")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these cases")
    parser.add_argument("--sizes", nargs="+", type=lambda text: int(float(text)), metavar="N")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"))
    parser.add_argument("--threads", nargs="+", type=int, metavar="N")
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="only these peers")
    parser.add_argument(
        "--interpreter", nargs="+", type=_interpreter, default=[], metavar="PEER=PATH", help="a peer's Python"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for results")
    parser.add_argument("--show", type=Path, metavar="JSON", help="print the table of a stored run")
    return parser


def _interpreter(text: str) -> tuple[str, Path]:
    name, found, path = text.partition("=")
    if not found or name not in (OURS, *PEERS):
        raise argparse.ArgumentTypeError(f"{text!r} is not PEER=PATH")
    return name, Path(path)


if __name__ == "__main__":
    sys.exit(main())
