"""Bits that formulas of numerical practice lose: as written, by esat, and by its peers.

``python -m benchmarks.accuracy [--points N] [--write] [--only WORD] [--interpreter NAME=PATH]``

Each formula is computed at random points, which have nothing to do with those that esat's choice is based on,
and compared with its value for the same float64 arguments in 400 decimal digits (mpmath). The bits lost at a
point are ``log2(1 + error / ulp)``, ulp being the distance of floats at the true value; Inf, NaN, or a number
without a right digit, count 64. ``--write`` puts the table into ``docs/accuracy.md``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np

from benchmarks.accuracy_formulas import Formula, formulas, points
from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of

CONTENDERS = ("numpy", "esat", "pytensor", "jax")
TITLES = {"numpy": "as written", "esat": "esat", "pytensor": "PyTensor", "jax": "JAX"}
WORST = 64.0
PAGE = ROOT / "docs" / "accuracy.md"
START, END = "<!-- table: written by python -m benchmarks.accuracy --write -->", "<!-- end of table -->"
SEED = 2026

_mp = mpmath.mp.clone()
_mp.dps = 400
_NAMES: Mapping[str, Any] = {
    **{
        name: getattr(_mp, name)
        for name in ("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    "arccos": _mp.acos,
    "arctan": _mp.atan,
    "erf": _mp.erf,
    "erfc": _mp.erfc,
    "maximum": max,
    "where": lambda condition, yes, no: yes if condition else no,
    "sigmoid": lambda x: 1 / (1 + _mp.exp(-x)),
}


class Score(NamedTuple):
    """Mean bits lost, those of the worst point, and microseconds of a call."""

    mean: float
    worst: float
    microseconds: float


def truths(formula: Formula, values: Sequence[Sequence[float]]) -> list[Any]:
    """The true value at each point; None where there is no real one, or none that is finite as a float."""
    letters = "xyz"[: len(values)]
    code = compile(f"lambda {', '.join(letters)}: {formula.text}", formula.name, "eval")
    function = eval(code, dict(_NAMES))
    found: list[Any] = []
    for point in zip(*values, strict=True):
        try:
            value = function(*map(_mp.mpf, point))
        except (ValueError, ZeroDivisionError, OverflowError):
            found.append(None)
            continue
        real = isinstance(value, _mp.mpf) and _mp.isfinite(value) and abs(value) < 1.7e308
        found.append(value if real else None)
    return found


def bits_lost(value: float, truth: Any) -> float:
    """Bits that a result lacks."""
    right = float(truth)
    if value == right:
        return 0.0
    if not np.isfinite(value):
        return WORST
    ulp = _mp.mpf(float(np.spacing(max(abs(right), 2.3e-308))))
    return min(WORST, float(_mp.log(1 + abs(_mp.mpf(value) - truth) / ulp, 2)))


def measured(contender: str, interpreter: Path, task: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a contender computes."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "task.json", Path(folder) / "result.json"
        asked.write_text(json.dumps(task))
        worker = Path(__file__).with_name("accuracy_worker.py")
        command = [str(interpreter), str(worker), contender, str(asked), str(answered)]
        environment = {"PYTHONPATH": str(ROOT)} if contender == "esat" else {}
        subprocess.run(command, check=True, env={**_environment(), **environment}, stderr=subprocess.DEVNULL)
        results: list[dict[str, Any]] = json.loads(answered.read_text())
    return results


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def scores(result: Mapping[str, Any], right: Sequence[Any]) -> Score | None:
    """The score of a result; None where there is none."""
    if "values" not in result:
        return None
    values = map(float.fromhex, result["values"])
    bits = [bits_lost(v, truth) for v, truth in zip(values, right, strict=True) if truth is not None]
    return Score(float(np.mean(bits)), max(bits), 1e6 * result["seconds"])


def table(names: Sequence[Formula], found: Mapping[str, Sequence[Score | None]]) -> list[str]:
    """The table in Markdown."""
    heads = [TITLES[contender] for contender in found]
    lines = [
        "| formula | "
        + " | ".join(f"{head}: bits" for head in heads)
        + " | "
        + " | ".join(f"{head}: us" for head in heads)
        + " |",
        "|---|" + "---|" * (2 * len(heads)),
    ]
    topic = ""
    for place, formula in enumerate(names):
        if formula.topic != topic:
            topic = formula.topic
            lines.append(f"| **{topic}** |" + " |" * (2 * len(heads)))
        row = [column[place] for column in found.values()]
        bits = ["-" if score is None else f"{score.mean:.1f} ({score.worst:.0f})" for score in row]
        times = ["-" if score is None else f"{score.microseconds:.0f}" for score in row]
        text = formula.text.replace("|", "\\|")
        lines.append(f"| {formula.name}: `{text}` | " + " | ".join([*bits, *times]) + " |")
    return lines


def summary(found: Mapping[str, Sequence[Score | None]]) -> list[str]:
    """What the table says as a whole, over the formulas that all contenders computed."""
    common = [place for place, row in enumerate(zip(*found.values(), strict=True)) if None not in row]
    lines = [
        f"Over the {len(common)} formulas that all computed: mean bits lost, geometric mean of times.",
        "",
    ]
    for contender, column in found.items():
        rows = [score for place in common if (score := column[place]) is not None]
        mean = float(np.mean([score.mean for score in rows]))
        microseconds = float(np.exp(np.mean(np.log([score.microseconds for score in rows]))))
        lines.append(f"- {TITLES[contender]}: {mean:.2f} bits, {microseconds:.0f} us")
    if "esat" in found and "numpy" in found:
        pairs = zip(found["esat"], found["numpy"], strict=True)
        worse = [ours.mean - theirs.mean for ours, theirs in pairs if ours is not None and theirs is not None]
        lines += [
            "",
            f"The formula that esat makes worst, against what was written: {max(worse):+.2f} bits.",
        ]
    return lines


def write_page(lines: Sequence[str]) -> None:
    """Put the table into the page, between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text("\n".join([before + START, "", *lines, "", END + after]), encoding="utf-8")


def main() -> int:
    """Measure, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--only", default="", help="formulas whose name or topic has this word")
    parser.add_argument("--write", action="store_true", help="put the table into docs/accuracy.md")
    parser.add_argument("--interpreter", action="append", default=[], metavar="NAME=PATH")
    options = parser.parse_args()
    given = {name: Path(path) for name, _, path in (entry.partition("=") for entry in options.interpreter)}
    chosen = [f for f in formulas() if options.only in f.name or options.only in f.topic]
    values = [[column.tolist() for column in points(f, options.points, SEED)] for f in chosen]
    task = [{"name": f.name, "text": f.text, "values": v} for f, v in zip(chosen, values, strict=True)]
    right = [truths(f, v) for f, v in zip(chosen, values, strict=True)]
    found: dict[str, list[Score | None]] = {}
    for contender in CONTENDERS:
        interpreter = interpreter_of(contender, given)
        if interpreter is None:
            print(f"{contender}: not installed (python -m benchmarks.peers.environments {contender})")
            continue
        results = measured(contender, interpreter, task)
        found[contender] = [scores(result, truth) for result, truth in zip(results, right, strict=True)]
        for formula, result in zip(chosen, results, strict=True):
            if "error" in result:
                print(f"{contender}: {formula.name}: {result['error'][:200]}")
    lines = [*summary(found), "", *table(chosen, found)]
    print("\n".join(lines))
    if options.write:
        write_page(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
