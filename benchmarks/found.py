"""What is found: by esat, by its greedy mode, and by PyTensor's default rewrites.

``python -m benchmarks.found [--interpreter pytensor=PATH]``.

The expressions of :mod:`benchmarks.found_cases` are compiled with small sizes and medium ones that types
know, and with sizes unknown. What is left of each is measured by one count of operations for all
(:mod:`benchmarks.found_work`), of the graphs before they are fused. A contender misses what another finds
where it leaves more than 5 % more, and more than two steps take; what esat refuses to do is listed with the
reason. PyTensor runs in an environment of its own. The table is kept in ``benchmarks/results/found.txt``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import esat
from benchmarks.found_cases import FINDABLES, KINDS, Findable
from benchmarks.found_work import work
from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of
from esat.graph.algorithms.evaluate import computed

RESULTS = ROOT / "benchmarks" / "results" / "found.txt"
MODES = {"esat": "fast_run", "greedy": "greedy"}
SLACK, FEW = 1.05, 200.0
"""What may be left beside what the other leaves: a share, and the operations in the time of two steps."""
REFUSED = {
    (
        "determinant of Kronecker",
        "unknown",
    ): "factors that may not be square: their product is, of determinant 0",
    ("diagonal of Kronecker", "unknown"): "factors that may not be square",
    **{
        ("Cholesky of a diagonal", kind): "a diagonal that is not positive has no factor: an error of NumPy's"
        for kind in KINDS
    },
}
"""What PyTensor does and esat does not, and why not, by name and kind of sizes."""
Left = dict[tuple[str, str, str], tuple[float, list[str]]]
"""By family, name and kind of sizes: operations, and the names of what computes."""


class Namespace:
    """The functions of the expressions."""

    exp, log, sqrt, tanh, abs, erf = esat.exp, esat.log, esat.sqrt, esat.tanh, esat.abs, esat.erf
    expm1, log1p, sinh, arcsinh, sigmoid = esat.expm1, esat.log1p, esat.sinh, esat.arcsinh, esat.sigmoid
    where, concatenate, stack, matmul = esat.where, esat.concatenate, esat.stack, esat.matmul
    zeros_like, ones_like, full_like = esat.zeros_like, esat.ones_like, esat.full_like
    set_subtensor, softmax, grad = esat.set_subtensor, esat.softmax, esat.grad
    inv, solve, det, cholesky = esat.linalg.inv, esat.linalg.solve, esat.linalg.det, esat.linalg.cholesky
    kron, diag, diagonal = esat.linalg.kron, esat.diag, esat.diagonal


def left(case: Findable, kind: str, mode: str) -> tuple[float, list[str]]:
    """Operations of what a mode of esat leaves of an expression, and the names of what computes."""
    shapes = case.shapes(kind)
    static = [shape if kind != "unknown" else (None,) * len(shape) for shape in shapes]
    inputs = [esat.tensor(f"x{place}", shape=shape) for place, shape in enumerate(static)]
    graph = esat.Graph(inputs, case.build(Namespace, *inputs), on_unused_input="ignore")
    program = esat.compile(graph, mode=mode).optimized
    generator = np.random.default_rng(0)
    arrays = [generator.uniform(0.5, 1.5, shape) for shape in shapes]
    values = computed(program.outputs, dict(zip(program.inputs, arrays, strict=True)))
    total, names = 0.0, []
    for node in program.toposort():
        operands, results = (
            [np.shape(values.get(one, getattr(one, "data", None))) for one in ends]
            for ends in (node.inputs, node.outputs)
        )
        own = work(node.op.name.lower(), operands, results)
        total += own
        names += [node.op.name] if own else []
    return total, names


def ours(mode: str) -> Left:
    """What a mode of esat leaves of all expressions."""
    return {(case.family, case.name, kind): left(case, kind, mode) for case in FINDABLES for kind in KINDS}


def theirs(interpreter: Path) -> Left:
    """What PyTensor leaves, in an environment that has it."""
    command = [str(interpreter), "-m", "benchmarks.found_worker"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(family, name, kind): (total, names) for family, name, kind, total, names in rows}


def missed(found: Left, by: Left) -> list[tuple[str, str, str]]:
    """What one contender leaves more of than another, but for what esat refuses."""
    return [
        key
        for key in found
        if key in by and found[key][0] > SLACK * by[key][0] + FEW and key[1:] not in REFUSED
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and keep it; 0 if esat misses nothing that PyTensor finds."""
    parser = argparse.ArgumentParser(description="What is found, beside PyTensor.")
    parser.add_argument("--interpreter", default=[], nargs="*", metavar="NAME=PATH")
    options = parser.parse_args(arguments)
    given = {name: Path(path) for name, _, path in (text.partition("=") for text in options.interpreter)}
    interpreter = interpreter_of("pytensor", given)
    if interpreter is None:
        print("pytensor: no environment has it (python -m benchmarks.peers.environments pytensor)")
        return 2
    results = {"pytensor": theirs(interpreter), **{name: ours(mode) for name, mode in MODES.items()}}
    text = table(results)
    print(text)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    return int(bool(missed(results["esat"], results["pytensor"])))


def table(results: Mapping[str, Left]) -> str:
    """A row for each expression and kind of sizes, and the counts."""
    lines = ["Operations left; * where PyTensor leaves less, + where it leaves more."]
    lines.append(f"{'':44}{'':8}" + "".join(f"{name:>13} " for name in results))
    for key in results["pytensor"]:
        cells = [f"{found[key][0]:13.0f}{_mark(results, name, key)}" for name, found in results.items()]
        lines.append(f"{key[0] + ': ' + key[1]:44}{key[2]:8}" + "".join(cells))
    for name in MODES:
        behind = len(missed(results[name], results["pytensor"]))
        ahead = len(missed(results["pytensor"], results[name]))
        count = len(results[name])
        lines.append(f"{name}: leaves more than PyTensor in {behind} of {count}, less in {ahead}")
    lines += [f"refused: {name}, sizes {kind}: {reason}" for (name, kind), reason in REFUSED.items()]
    return "\n".join(lines)


def _mark(results: Mapping[str, Left], name: str, key: tuple[str, str, str]) -> str:
    own, other = {key: results[name][key]}, {key: results["pytensor"][key]}
    return "*" if missed(own, other) else "+" if missed(other, own) else " "


if __name__ == "__main__":
    sys.exit(main())
