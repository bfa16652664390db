"""Identities: who finds the form with the fewest operations, and how long it takes.

``python -m benchmarks.identities [--peers jax pytensor sympy] [--interpreter NAME=PATH ...]``.

Expressions of :mod:`benchmarks.identity_cases` that are equal to simpler ones are given to esat, to its
greedy mode, to PyTensor, to JAX (of which the compiled HLO is counted) and to SymPy's ``simplify`` (scalars
only). The table has, for each family, how many expressions came out with no more operations than the simplest
form that is known, and the median of the milliseconds from expression to program. Peers run in environments
of their own. A power is one operation of PyTensor's and JAX's, and several of the others'.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import esat
from benchmarks.identity_cases import FACTS, IDENTITIES, Identity
from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of

VIEWS = frozenset({"dimshuffle", "fill", "alloc", "cast", "shape_i"})
PEERS = ("pytensor", "jax", "sympy")
Found = dict[tuple[str, str], tuple[int, float]]
"""By family and name: operations, and seconds."""


def operations(function: esat.Executable) -> int:
    """Operations of a compiled program that is not fused yet."""
    return sum(node.op.name not in VIEWS for node in function.optimized.toposort())


def ours(mode: str) -> Found:
    """What a mode of esat finds; each expression is compiled once before, to load the rules it needs."""
    found: Found = {}
    for case in IDENTITIES:
        for _ in range(2):
            graph = _graph(case)
            start = time.perf_counter()
            function = esat.compile(graph, mode=mode)
            found[case.family, case.name] = operations(function), time.perf_counter() - start
    return found


def _graph(case: Identity) -> esat.Graph:
    makers = {"v": esat.vector, "z": esat.zvector}
    inputs = [makers.get(kind, esat.matrix)(name) for name, kind in zip("abcsy", case.inputs, strict=True)]
    return esat.Graph(inputs, case.build(esat, *known(case, inputs)), on_unused_input="ignore")


def known(case: Identity, inputs: Sequence[esat.Variable]) -> list[esat.Variable]:
    """The inputs of a case, with what is known of them."""
    return [
        esat.assume(one, FACTS[kind]) if kind in FACTS else one
        for one, kind in zip(inputs, case.inputs, strict=True)
    ]


def theirs(name: str, interpreter: Path) -> Found:
    """What a peer finds, in an environment that has it."""
    command = [str(interpreter), "-m", "benchmarks.identity_peers", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(family, case): (count, seconds) for family, case, count, seconds in lines}


def table(results: Mapping[str, Found]) -> str:
    """A row for each family, a column for each contender."""
    lines = [" " * 18 + "".join(f"{name:>18}" for name in results)]
    families = list(dict.fromkeys(case.family for case in IDENTITIES))
    for family in [*families, "all"]:
        cases = [case for case in IDENTITIES if family in (case.family, "all")]
        lines.append(f"{family:18}" + "".join(f"{_cell(found, cases):>18}" for found in results.values()))
    return "\n".join(lines)


def _cell(found: Found, cases: Sequence[Identity]) -> str:
    own = [(case, found[case.family, case.name]) for case in cases if (case.family, case.name) in found]
    if not own:
        return "-"
    simplest = sum(count <= case.fewest for case, (count, _) in own)
    return f"{simplest}/{len(own)} {statistics.median(1e3 * seconds for _, (_, seconds) in own):6.1f} ms"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 if esat finds all simplest forms."""
    parser = argparse.ArgumentParser(description="Who finds the form with the fewest operations.")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--interpreter", nargs="*", default=[], metavar="NAME=PATH")
    parser.add_argument("--cases", action="store_true", help="a row for each expression, too")
    options = parser.parse_args(arguments)
    given = {name: Path(path) for name, _, path in (text.partition("=") for text in options.interpreter)}
    results = {"esat": ours("fast_run"), "greedy": ours("greedy")}
    for name in options.peers:
        interpreter = interpreter_of(name, given)
        if interpreter is None:
            print(f"{name}: left out, no environment has it (python -m benchmarks.peers.environments {name})")
        else:
            results[name] = theirs(name, interpreter)
    for case in IDENTITIES if options.cases else ():
        counts = [found.get((case.family, case.name), ("-",))[0] for found in results.values()]
        print(f"{case.family + ': ' + case.name:46} {case.fewest:3}" + "".join(f"{c:>10}" for c in counts))
    print(table(results))
    found = results["esat"]
    return int(any(found[case.family, case.name][0] > case.fewest for case in IDENTITIES))


if __name__ == "__main__":
    sys.exit(main())
