"""Formulas of linear algebra as texts have them: each against its best form by hand, as written, and peers.

``python -m benchmarks.linear_algebra [--n N ...] [--cases NAME ...] [--peers ...] [--quick|--show]``.

The formulas are those of :mod:`benchmarks.peers.application_cases`: filters, regularized systems, restored
signals and images, randomized inverses, generalized least squares, densities, products with diagonals. The
form by hand calls NumPy and LAPACK well, and is the smaller one of those that are equal. A contender passes
where it takes at most 10 % more time than that; two microseconds are allowed besides, for checks of
arguments. All are given the formula as it is written. Sizes are known to all, what is known of matrices to
esat alone, by ``esat.assume``: nothing of the kind is said to the others.

Contenders run as in ``benchmarks.laab``: each in a process of its own environment, on one thread, results
compared with NumPy's in float64 before; each turn beside a turn of the form by hand, in the processor's time.
Results are kept in ``benchmarks/results/linear_algebra.json`` and ``linear_algebra.txt``; a run replaces what
it measured again. The losses of sparse data have a benchmark of their own, ``benchmarks.sparse_losses``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.kernels import RESULTS
from benchmarks.laab import CALL, HAND, SHORT_ROUNDS
from benchmarks.peers.application_cases import APPLICATIONS
from benchmarks.peers.contenders import OURS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Pairing, Settings
from benchmarks.peers.record import Record, Run, load, save

PEERS = ("numpy", "jax", "pytensor")
CONTENDERS = (OURS, *PEERS)
SLACK = 1.1
"""What a contender may take, by the time of the form by hand."""
ROUNDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 if esat passes all formulas that were run."""
    options = _parser().parse_args(arguments)
    stem = options.output / "linear_algebra"
    if options.show:
        print(table(load(stem.with_suffix(".json"))))
        return 0
    interpreters = {name: interpreter_of(name, {}) for name in (OURS, HAND, *options.peers)}
    for name in [name for name, found in interpreters.items() if found is None]:
        print(f"{name}: left out, no environment has it (make bench-peers)")
    pairing = Pairing(HAND, options.rounds if options.quick else SHORT_ROUNDS, CALL)
    settings = Settings(options.rounds, 0.005 if options.quick else 0.03, pairing)
    chosen = [case for case in APPLICATIONS if not options.cases or case.name in options.cases]
    records: list[Record] = []
    with Contest({k: v for k, v in interpreters.items() if v is not None}, 1, settings) as contest:
        limits = contest.limits(options.dtypes)
        for case in chosen:
            for dtype in options.dtypes:
                for size in options.n:
                    records.append(contest.play(case, size, dtype))
                    print(line(records[-1]), flush=True)
                    run = Run(tuple(records), (limits,), contest.versions)
                    if not options.quick:
                        save(merged(stem.with_suffix(".json"), run), stem)
    if not options.quick:
        run = load(stem.with_suffix(".json"))
        stem.with_suffix(".txt").write_text(table(run) + "\n", encoding="utf-8")
    print(table(run).splitlines()[-1])
    return 0 if all(passes(record, OURS) for record in records) else 1


def merged(path: Path, run: Run) -> Run:
    """A stored run with the records of a new one in the place of its own."""
    if not path.exists():
        return run
    known = load(path)
    records = {(record.case, record.dtype, record.size): record for record in (*known.records, *run.records)}
    order = {case.name: place for place, case in enumerate(APPLICATIONS)}
    kept = sorted(records.values(), key=lambda record: (order[record.case], record.dtype, record.size))
    return replace(run, records=tuple(kept), versions={**known.versions, **run.versions})


def passes(record: Record, contender: str) -> bool:
    """Whether a contender takes no longer than what is allowed."""
    ratio = record.ratios.get(contender)
    return ratio is not None and ratio <= SLACK


def line(record: Record) -> str:
    """One record: time by hand, and the ratio of each contender."""
    hand = record.quartiles.get(HAND)
    cells = [f"{record.case:26} {record.size:5} {record.dtype} "]
    cells.append("failed     " if hand is None else f"{hand[0] * 1e3:8.3f} ms")
    for contender in CONTENDERS:
        ratio = record.ratios.get(contender)
        mark = " " if passes(record, contender) else "*"
        cells.append("       -  " if ratio is None else f"{ratio:8.2f}{mark} ")
    notes = [f"{name}: {note}" for name, note in record.notes.items()]
    return "".join([*cells, *notes]).rstrip()


def table(run: Run) -> str:
    """All records, and the count of each contender."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    counts = [sum(passes(record, name) for record in run.records) for name in CONTENDERS]
    return "\n".join(
        [
            f"{run.machine}; {run.day}; one thread; {versions}",
            "Time by hand (first quartile), and time / time by hand beside it (median); * is 10 % above.",
            f"{'':26} {'n':>5} {'dtype':7} {'by hand':>11}" + "".join(f"{name:>8}  " for name in CONTENDERS),
            *map(line, run.records),
            f"{f'within 10 %, of {len(run.records)}':51}" + "".join(f"{count:8}  " for count in counts),
        ]
    )


def _parser() -> argparse.ArgumentParser:
    names = [case.name for case in APPLICATIONS]
    summary = __doc__.split("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_algebra", description=summary)
    parser.add_argument("--n", nargs="+", type=int, default=[200, 800], help="sizes")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=["float64"])
    parser.add_argument("--cases", nargs="+", choices=names, metavar="NAME", help="only these formulas")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds where a call is long")
    parser.add_argument("--quick", action="store_true", help="short turns, nothing stored")
    parser.add_argument("--show", action="store_true", help="print the table of the stored run")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
