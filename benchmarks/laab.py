"""The linear algebra awareness benchmark: seventeen expressions, each against its best form by hand.

``python -m benchmarks.laab [--n N ...] [--dtypes ...] [--cases NAME ...] [--peers ...] [--quick|--show]``.

A contender passes an expression if it takes at most 5 % more time than the best form in NumPy and SciPy, for
every size and dtype; two microseconds are allowed besides, for a call of a compiled function checks its
arguments where an expression in NumPy does not. esat passes only if its program has the products of the cheap
form as well, so that nothing passes through a faster library. Contenders run as in ``benchmarks.kernels``:
each in a process of its own environment, on one thread, results compared before.

Other work on the machine slows down whatever runs at that moment. So times are those that the process had the
processor, and each turn of a contender stands beside a turn of the form by hand, in the same process (without
SciPy there: in another), either of them first by turns; the ratio is the median of those of the rounds. Turns
take 50 ms, or one call if that takes longer. There are 5 rounds where a call takes longer, and 21 where it
does not, for all contenders alike. esat is told the size, as JAX and torch see it in the arrays that they are
first called with.

Results are kept in ``benchmarks/results/laab.json`` and ``laab.txt``; a run replaces what it measured again.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.kernels import RESULTS
from benchmarks.peers.by_hand import GREEDY, HAND, ROUNDS, measured, paired
from benchmarks.peers.contenders import BASELINES, OURS
from benchmarks.peers.esat_contender import executable
from benchmarks.peers.laab_cases import EXPRESSIONS, Expression
from benchmarks.peers.record import Record, Run, load
from esat.graph import Apply
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.ops.linalg.normal import NormalProduct

LIBRARIES = ("jax", "torch", "pytensor")
CONTENDERS = (OURS, GREEDY, *LIBRARIES)
"""Who is compared with the form by hand."""
SLACK = 1.05


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 if esat passes all expressions that were run."""
    options = _parser().parse_args(arguments)
    stem = options.output / "laab"
    if options.show:
        print(table(load(stem.with_suffix(".json"))))
        return 0
    chosen = [case for case in EXPRESSIONS if not options.cases or case.name in options.cases]
    programs = [(case, size, dtype) for case in chosen for dtype in options.dtypes for size in options.n]
    settings = paired(options.quick, options.rounds, 0.05)
    stored = None if options.quick else stem
    run = measured(EXPRESSIONS, programs, (OURS, *BASELINES, *options.peers), settings, line, stored)
    print()
    print(table(run))
    if not options.quick:
        whole = load(stem.with_suffix(".json"))
        stem.with_suffix(".txt").write_text(table(whole) + "\n", encoding="utf-8")
    return 0 if all(passes(case, OURS, run) for case in chosen) else 1


# ---- structure


@functools.cache
def products(case: Expression, dtype: str) -> tuple[str, ...]:
    """The kinds of the matrix products in esat's program, sorted; a product of two vectors is none."""
    kinds = [kind for node in executable(case, dtype).graph.toposort() if (kind := _kind(node))]
    return tuple(sorted(kinds))


def _kind(node: Apply) -> str:
    if isinstance(node.op, NormalProduct):
        return node.op.name
    if isinstance(node.op, AccumulateProduct):
        operands = node.inputs[2:4]
    elif isinstance(node.op, MatMul):
        if node.op.name != "matmul":
            return node.op.name
        operands = node.inputs[:2]
    else:
        return ""
    rows, columns = operands[0].tensor_type.shape[0], operands[1].tensor_type.shape[1]
    if rows == columns == 1:
        return ""
    return "gemv" if 1 in (rows, columns) else "gemm"


def is_cheap(case: Expression, records: Sequence[Record]) -> bool:
    """Whether esat's programs for some records have the products of the cheap form, and no others."""
    programs = {(record.size, record.dtype) for record in records}
    return all(products(case.at(size), dtype) == case.at(size).cheap for size, dtype in sorted(programs))


# ---- judgement


def passes(case: Expression, contender: str, run: Run) -> bool:
    """Whether a contender passes an expression at all sizes and dtypes of a run."""
    records = [record for record in run.records if record.case == case.name]
    ratios = [record.ratios.get(contender) for record in records]
    fast = bool(ratios) and all(one is not None and one <= SLACK for one in ratios)
    return fast and (contender != OURS or is_cheap(case, records))


def line(record: Record) -> str:
    """One record: time by hand, and the ratio of each contender."""
    hand = record.quartiles.get(HAND)
    time = "failed     " if hand is None else f"{hand[0] * 1e3:8.3f} ms"
    cells = [f"{record.case:18} {record.size:5} {record.dtype} {time}"]
    for contender in CONTENDERS:
        one = record.ratios.get(contender)
        mark = " " if one is not None and one <= SLACK else "*"
        cells.append("       -  " if one is None else f"{one:8.2f}{mark} ")
    notes = [f"{name}: {note}" for name, note in record.notes.items()]
    return "".join([*cells, *notes]).rstrip()


def table(run: Run) -> str:
    """All records, and the count of each contender."""
    present = [case for case in EXPRESSIONS if any(record.case == case.name for record in run.records)]
    rows = [
        f"{run.machine}; {run.day}; one thread; {', '.join(f'{k} {v}' for k, v in run.versions.items())}",
        "Time by hand (first quartile), and time / time by hand beside it (median); * is over 5 % above.",
        f"{'':18} {'n':>5} {'dtype':7} {'by hand':>11}" + "".join(f"{name:>8}  " for name in CONTENDERS),
    ]
    rows += [line(record) for record in run.records]
    rows.append("")
    for size in sorted({record.size for record in run.records}):
        part = replace(run, records=tuple(record for record in run.records if record.size == size))
        counts = "".join(f"{_count(present, name, part):>8}  " for name in CONTENDERS)
        rows.append(f"{f'passed, n = {size}':43}{counts}")
    for case in present:
        records = [record for record in run.records if record.case == case.name]
        sized = case.at(records[0].size)
        found = products(sized, records[0].dtype)
        verdict = "cheap form" if is_cheap(case, records) else f"NOT the cheap form, {sized.cheap}"
        rows.append(f"{case.name:18} {' + '.join(found) or 'no product'}: {verdict}")
    return "\n".join(rows)


def _count(cases: Sequence[Expression], contender: str, run: Run) -> str:
    if all(record.ratios.get(contender) is None for record in run.records):
        return "-"  # had no part in it
    return f"{sum(passes(case, contender, run) for case in cases)}/{len(cases)}"


def _parser() -> argparse.ArgumentParser:
    names = [case.name for case in EXPRESSIONS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laab", description=__doc__.split("\n")[0])
    parser.add_argument("--n", nargs="+", type=int, default=[1500, 3000], help="sizes of the matrices")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=["float32", "float64"])
    parser.add_argument("--cases", nargs="+", choices=names, metavar="NAME", help="only these expressions")
    parser.add_argument("--peers", nargs="*", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds where a call is long")
    parser.add_argument("--quick", action="store_true", help="short turns, nothing stored")
    parser.add_argument("--show", action="store_true", help="print the table of the stored run")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
