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
from pathlib import Path

from benchmarks.kernels import RESULTS
from benchmarks.peers.application_cases import APPLICATIONS
from benchmarks.peers.by_hand import HAND, ROUNDS, measured, paired
from benchmarks.peers.contenders import OURS
from benchmarks.peers.record import Record, Run, load

PEERS = ("numpy", "jax", "pytensor")
CONTENDERS = (OURS, *PEERS)
SLACK = 1.1
"""What a contender may take, by the time of the form by hand."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 if esat passes all formulas that were run."""
    options = _parser().parse_args(arguments)
    stem = options.output / "linear_algebra"
    if options.show:
        print(table(load(stem.with_suffix(".json"))))
        return 0
    chosen = [case for case in APPLICATIONS if not options.cases or case.name in options.cases]
    programs = [(case, size, dtype) for case in chosen for dtype in options.dtypes for size in options.n]
    settings = paired(options.quick, options.rounds, 0.03)
    stored = None if options.quick else stem
    run = measured(APPLICATIONS, programs, (OURS, HAND, *options.peers), settings, line, stored)
    whole = run
    if not options.quick:
        whole = load(stem.with_suffix(".json"))
        stem.with_suffix(".txt").write_text(table(whole) + "\n", encoding="utf-8")
    print(table(whole).splitlines()[-1])
    return 0 if all(passes(record, OURS) for record in run.records) else 1


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
