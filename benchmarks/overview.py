"""The page "How fast, how long to compile": the same programs by esat, its greedy mode, numba, PyTensor, JAX.

``python -m benchmarks.overview [--programs NAME ...] [--starts N] [--wheel PATH]`` writes
``benchmarks/results/overview.md``, which the documentation includes. ``make bench-peers`` makes the peers'
environments.

The time of a call is the median over interleaved rounds, on one processor, NumPy arrays in and out, after the
results were compared with NumPy's. The time to compile is the processor time of a process up to the program's
first result, imports included: ``cold`` finds nothing on disk but what the library's wheel brings, ``warm``
finds what a process before it left. esat is installed from its wheel for that.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.client import ROOT
from benchmarks.peers.contenders import OURS
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.match import Contest, Settings
from benchmarks.peers.model_cases import MODELS, Model
from benchmarks.peers.record import geometric_mean
from benchmarks.peers.starts import started
from benchmarks.start import installed
from tools.wheel import make_wheel

CONTENDERS = {OURS: "esat", "greedy": "greedy", "handwritten": "numba", "pytensor": "PyTensor", "jax": "JAX"}
"""Contenders and what the table calls them; ``greedy`` is a mode of esat's, numba runs loops by hand."""
SIZE = 10_000
"""Elements of the arrays of programs that have no size of their own."""
SETTINGS = Settings(rounds=15, seconds=0.01)
RESULT = ROOT / "benchmarks" / "results" / "overview.md"
_CHOSEN = (
    *(
        "a*x+b",
        "tanh(x)*y+exp(-z*z/2)",
        "softmax",
        "Black-Scholes",
        "pairwise distances",
        "MLP training step",
    ),
    *(
        "Gaussian log-density",
        "eight schools",
        "logistic regression",
        "hierarchical t",
        "Gaussian process 80",
    ),
    *("hidden Markov model", "mixture", "neural network"),
)
PROGRAMS: tuple[Case | Model, ...] = tuple(one for one in (*CASES, *MODELS) if one.name in _CHOSEN)


@dataclass(frozen=True)
class Row:
    """One program: seconds of a call, and processor seconds of a process to its first result."""

    program: Case | Model
    calls: Mapping[str, float]
    starts: Mapping[str, tuple[float, float]]


def _size(program: Case | Model) -> int:
    return program.size if isinstance(program, Model) else SIZE


def measured(
    programs: Sequence[Case | Model], interpreters: Mapping[str, Path], wheel: Path, rounds: int
) -> Iterator[Row]:
    """Each program's row as soon as it is measured."""
    installations = {**interpreters, OURS: wheel, "greedy": wheel}
    with Contest(interpreters, 1, SETTINGS) as contest:
        for program in programs:
            size = _size(program)
            record = contest.play(program, size, "float64")
            for name, note in record.notes.items():
                print(f"{program.name}: {name}: {note}", file=sys.stderr)
            starts = {
                name: started(name, installations[name], program, size, rounds) for name in record.seconds
            }
            yield Row(program, record.seconds, starts)


def page(rows: Sequence[Row], names: Sequence[str], starts: int) -> str:
    """Three tables in Markdown; the least figure of each row is in bold."""
    calls = [[row.calls.get(name, math.nan) * 1e6 for name in names] for row in rows]
    cold = [[row.starts.get(name, (math.nan, math.nan))[0] for name in names] for row in rows]
    warm = [[row.starts.get(name, (math.nan, math.nan))[1] for name in names] for row in rows]
    titles = [CONTENDERS[name] for name in names]
    labels = [row.program.name.replace("*", r"\*") for row in rows]
    return f"""\
Microseconds of a call, on one processor, in float64, of {SIZE:,} elements; models have data of their own, and
are computed with their gradients. numba compiles loops that were written by hand, with their gradients, where
somebody wrote them:

{_table(("program", *titles), labels, calls, "{:.3g}")}

Processor seconds of a process from its start to the program's first result, imports included, with nothing on
disk:

{_table(("program", *titles), labels, cold, "{:.2f}")}

The same, with what an earlier process left on disk:

{_table(("program", *titles), labels, warm, "{:.2f}")}

`python -m benchmarks.overview --starts {starts}`, {date.today()}, {platform.system()} {platform.machine()},
a shared machine. Starts are medians over {starts} of each kind. The last rows are the geometric means of each
contender's time by esat's.
"""


def _table(heads: Sequence[str], labels: Sequence[str], figures: list[list[float]], form: str) -> str:
    """Rows with their least figures in bold, and the geometric means of the ratios to the first."""
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---|" * (len(heads) - 1)]
    for label, row in zip(labels, figures, strict=True):
        least = min(one for one in row if not math.isnan(one))
        texts = ["-" if math.isnan(one) else form.format(one) for one in row]
        cells = [f"**{text}**" if one == least else text for one, text in zip(row, texts, strict=True)]
        lines.append("| " + " | ".join([label, *cells]) + " |")
    means = ["geometric mean"]
    for column in zip(*figures, strict=True):
        ratios = [one / row[0] for one, row in zip(column, figures, strict=True) if not math.isnan(one)]
        means.append(f"{geometric_mean(ratios):.2f}")
    return "\n".join([*lines, "| " + " | ".join(means) + " |"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and store; 1 where esat failed at a program."""
    names = [program.name for program in PROGRAMS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overview", description=__doc__.split("\n")[0])
    parser.add_argument("--programs", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--starts", type=int, default=3, help="processes of each kind")
    parser.add_argument("--wheel", type=Path, help="a wheel that is there; by default one is built")
    options = parser.parse_args(arguments)
    found = {name: interpreter_of(name, {}) for name in CONTENDERS}
    interpreters = {name: python for name, python in found.items() if python is not None}
    chosen = [program for program in PROGRAMS if program.name in options.programs]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        wheel = installed(options.wheel or make_wheel(Path(folder)))
        for row in measured(chosen, interpreters, wheel, options.starts):
            rows.append(row)
            print(row.program.name, row.calls, row.starts, flush=True)
    text = page(rows, list(interpreters), options.starts)
    print(text)
    if len(rows) == len(PROGRAMS):
        RESULT.write_text(text, encoding="utf-8")
    return int(any(OURS not in row.calls for row in rows))


if __name__ == "__main__":
    sys.exit(main())
