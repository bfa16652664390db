"""How long a user waits for the first result of a process: an installed wheel beside JAX.

Run ``python -m benchmarks.start [--rounds N] [--only PROGRAM ...] [--wheel PATH]``. It makes esat's wheel
(:mod:`tools.wheel`) and installs it into an environment of its own, ``.peers/wheel``; JAX runs in its own,
``.peers/jax``.

Each round starts one process a program and contender, cold and warm, in turns: cold ones find nothing on disk
but bytecode and what the wheel brings, warm ones find what one process left before them in a cache directory;
JAX's is its own persistent one, in which it is told to keep everything. Times are seconds from the first line
of a script to the first result as a NumPy array, split by stage: imports, writing the graph down, compiling
it, the first call, in which JAX compiles. ``process`` adds the interpreter's start and its end; ``processor``
is the time that processors worked for that long, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median

from benchmarks.first_results import PROGRAMS, script
from benchmarks.peers.environments import FOLDER, interpreter_of
from esat.base.storage.store import DIRECTORY_VARIABLE
from tools.wheel import make_wheel

STAGES = ("import", "write", "compile", "call")
TARGETS = {"cold": 2.0, "warm": 0.45}
"""The most that esat may take of JAX's time."""


@dataclass(frozen=True)
class Start:
    """Seconds of one process: of its stages, of processors meanwhile, and of the whole process."""

    stages: tuple[float, ...]
    processor: float
    process: float

    @property
    def total(self) -> float:
        return sum(self.stages)


def installed(path: Path) -> Path:
    """The interpreter of the environment that a wheel is installed in; dependencies stay from last time."""
    environment = FOLDER / "wheel"
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (environment / "pyvenv.cfg").exists():  # without it pip would install into the base interpreter
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(path)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", str(path)]
    subprocess.run(install, check=True)
    return python


def environment_of(contender: str, cache: Path | None) -> Mapping[str, str]:
    """Environment variables of a process that uses a cache directory; of JAX, None for none."""
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    if contender == "esat":
        return {**own, DIRECTORY_VARIABLE: str(cache)}
    own |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    if cache is not None:
        own |= {
            "JAX_COMPILATION_CACHE_DIR": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    return own


def started(python: Path, text: str, environment: Mapping[str, str]) -> tuple[Start, list[float]]:
    """A new process's times, and its first result."""
    command = [str(python), "-c", text]
    with tempfile.TemporaryDirectory() as elsewhere:
        begin = time.perf_counter()
        run = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd=elsewhere
        )
        whole = time.perf_counter() - begin
    if run.returncode:
        raise SystemExit(f"{python} failed:\n{run.stderr}")
    stages, processor, result = json.loads(run.stdout)
    return Start(tuple(stages), processor, whole), result


def measure(
    program: str, pythons: Mapping[str, Path], rounds: int, folder: Path
) -> dict[tuple[str, str], list[Start]]:
    """(contender, cold or warm) -> the starts of a program, in rounds over all of them."""
    found: dict[tuple[str, str], list[Start]] = {(one, kind): [] for kind in TARGETS for one in pythons}
    results: dict[str, list[float]] = {}
    caches = {one: folder / f"{one}-{program}" for one in pythons}
    for one, python in pythons.items():  # leaves what warm processes find; bytecode, too
        for _ in range(2):
            _, results[one] = started(python, script(program, one), environment_of(one, caches[one]))
    first, *others = results.values()
    for other in others:
        worst = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(first, other, strict=True))
        if worst > 1e-9:
            raise SystemExit(f"{program}: results differ by {worst:.1e}")
    for _ in range(rounds):
        for (one, kind), starts in found.items():
            with tempfile.TemporaryDirectory() as empty:
                cold = Path(empty) if one == "esat" else None
                environment = environment_of(one, caches[one] if kind == "warm" else cold)
                starts.append(started(pythons[one], script(program, one), environment)[0])
    return found


def printed(program: str, found: Mapping[tuple[str, str], Sequence[Start]]) -> int:
    """Print a program's medians; how many targets are missed."""
    missed = 0
    for (one, kind), starts in found.items():
        stages = " ".join(
            f"{name} {median(start.stages[place] for start in starts):6.3f}"
            for place, name in enumerate(STAGES)
        )
        total = median(start.total for start in starts)
        line = f"{program:10} {kind:5} {one:5} {total:6.3f}  ({stages})"
        line += f"  processor {median(start.processor for start in starts):6.3f}"
        line += f"  process {median(start.process for start in starts):6.3f}"
        rival = found.get(("jax", kind))
        if one == "esat" and rival:
            total, processor, process = (
                median(a / b for a, b in zip(map(of, starts), map(of, rival), strict=True))
                for of in (attrgetter("total"), attrgetter("processor"), attrgetter("process"))
            )
            is_missed = total > TARGETS[kind]
            missed += is_missed
            line += f"  {total:.2f} of JAX's (processor {processor:.2f}, process {process:.2f})"
            line += f", at most {TARGETS[kind]}{', MISSED' * is_missed}"
        print(line, flush=True)
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; the number of targets missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="processes of each kind")
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--wheel", type=Path, help="a wheel that is there; by default one is built")
    options = parser.parse_args(arguments)
    jax = interpreter_of("jax", {})
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        pythons = {"esat": installed(options.wheel or make_wheel(Path(folder)))}
        if jax is None:
            print("JAX is not installed: python -m benchmarks.peers.environments jax", file=sys.stderr)
        else:
            pythons["jax"] = jax
        for program in options.only:
            missed += printed(program, measure(program, pythons, options.rounds, Path(folder)))
    return missed


if __name__ == "__main__":
    sys.exit(main() > 0)
