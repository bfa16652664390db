"""Compiled functions side by side with those of other libraries, in one run.

``python -m benchmarks.kernels [--quick] [--resume] [--minutes M] [--cases NAME ...] [--sizes N ...]``.

Every contender runs in a process of its own environment (``make bench-peers`` makes them), takes NumPy
arrays and returns NumPy arrays. Its results are compared with NumPy's in float64 before it is timed. Calls
are interleaved: each round times every contender once, over as many calls as fill the round's time; what
counts is the median over the rounds. A ratio is a peer's time by ours: above 1 esat is faster. The table,
the figures as JSON and a plot go to ``benchmarks/results``.

All combinations take about an hour. What was measured is stored after each of them: ``--minutes 20`` ends a
run in time, and ``--resume`` goes on with what an earlier run of the same code did not come to. Each
combination is a comparison of its own, so that it does not matter in which run it was made.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.client import ROOT
from benchmarks.peers.contenders import OURS, PEERS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Settings
from benchmarks.peers.plot import draw
from benchmarks.peers.record import Limits, Record, Run, load, save
from benchmarks.peers.table import line, table
from esat.base.storage import digest_of, digest_of_sources

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Plan:
    """What is run: every combination."""

    cases: tuple[Case, ...]
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    threads: tuple[int, ...]

    def of_threads(self) -> Iterator[tuple[Case, int, str]]:
        """What is run with each number of threads."""
        for dtype in self.dtypes:
            for case in self.cases:
                for size in self.sizes:
                    yield case, size, dtype


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 unless esat failed at a case."""
    options = _parser().parse_args(arguments)
    if options.show:
        print(table(load(options.show)))
        return 0
    interpreters = _interpreters(options.peers, dict(options.interpreter))
    settings = Settings(rounds=5, seconds=0.002) if options.quick else Settings(rounds=15, seconds=0.01)
    stem = options.output / ("quick" if options.quick else "kernels")
    run = (options.resume and _earlier(stem.with_suffix(".json"), settings)) or Run(
        (), (), {}, _code(settings)
    )
    until = time.monotonic() + 60.0 * options.minutes
    for longer in measure(_plan(options), settings, interpreters, run):
        run = longer
        save(run, stem)
        if time.monotonic() > until:
            break
    print()
    print(table(run))
    stem.with_suffix(".txt").write_text(table(run) + "\n", encoding="utf-8")
    drawn = draw(run, stem.with_suffix(".png"))
    print(f"\nwritten: {stem}.json, .txt{', .png' if drawn else ' (a plot needs matplotlib)'}")
    failed = [record for record in run.records if OURS not in record.seconds]
    for record in failed:
        print(f"esat failed: {record.case}, n={record.size}, {record.dtype}: {record.notes.get(OURS)}")
    return 1 if failed else 0


def measure(plan: Plan, settings: Settings, interpreters: dict[str, Path], run: Run) -> Iterator[Run]:
    """Run everything that a run lacks; a line a combination as it goes, and the run with it.

    Parameters
    ----------
    plan
        What to run.
    settings
        How long.
    interpreters
        Contender -> the Python of its environment.
    run
        What has been measured before. A combination that some contender of now had no part in is repeated.
    """
    for threads in plan.threads:
        records = {_place(record): record for record in run.records}
        missing = [
            (case, size, dtype)
            for case, size, dtype in plan.of_threads()
            if size <= case.largest
            and not _is_complete(records.get((threads, dtype, case.name, size)), interpreters)
        ]
        if not missing:
            continue
        with Contest(interpreters, threads, settings) as contest:
            run = replace(run, limits=_with_limits(run.limits, contest.limits(plan.dtypes)))
            print(run.limit(threads), flush=True)
            for case, size, dtype in missing:
                found = contest.play(case, size, dtype)
                print(line(found, interpreters, run.limit(threads)), flush=True)
                records[_place(found)] = found
                versions = {**run.versions, **contest.versions}
                run = replace(run, records=tuple(_in_order(records.values())), versions=versions)
                yield run


def _place(record: Record) -> tuple[int, str, str, int]:
    return record.threads, record.dtype, record.case, record.size


def _in_order(records: Iterable[Record]) -> list[Record]:
    cases = [case.name for case in CASES]
    return sorted(
        records, key=lambda one: (one.threads, one.dtype != "float64", cases.index(one.case), one.size)
    )


def _is_complete(record: Record | None, contenders: Collection[str]) -> bool:
    return record is not None and all(name in record.seconds or name in record.notes for name in contenders)


def _with_limits(known: Sequence[Limits], found: Limits) -> tuple[Limits, ...]:
    """The best that was seen of the machine: it can do that."""
    limits = {limit.threads: limit for limit in known}
    limits[found.threads] = found.or_better(limits[found.threads]) if found.threads in limits else found
    return tuple(limits[threads] for threads in sorted(limits))


def _code(settings: Settings) -> str:
    """Stands for the code that is measured, and that measures."""
    digests = [digest_of_sources(ROOT / "esat"), digest_of_sources(ROOT / "benchmarks" / "peers")]
    return digest_of([*digests, repr(settings)])


def _earlier(path: Path, settings: Settings) -> Run | None:
    """The stored run, if the same code made it on this machine."""
    if not path.exists():
        return None
    run = load(path)
    if run.code != _code(settings) or run.machine != Run((), (), {}).machine:
        print(f"{path}: of other code or another machine; everything is measured anew")
        return None
    return run


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
    parser.add_argument("--resume", action="store_true", help="go on with the stored run of the same code")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="end after the combination that takes it past this"
    )
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
