"""How long a new process takes to the first result of a program."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.peers.cases import Case
from benchmarks.peers.client import ROOT
from benchmarks.peers.model_cases import Model
from esat.base.storage.store import DIRECTORY_VARIABLE

_START = """
import json, sys, time
from benchmarks.peers.worker import Worker
worker = Worker(sys.argv[1])
before = time.process_time()
print(json.dumps(before + worker.prepare(sys.argv[2], int(sys.argv[3]), "float64")["processor"]))
"""


def started(
    contender: str, interpreter: Path, program: Case | Model, size: int, rounds: int = 1
) -> tuple[float, float]:
    """Medians of a process's processor seconds up to its first result, imports included.

    The first figure is of processes that find nothing on disk, the second of those that find what one of them
    left. An interpreter in whose environment esat is installed runs that, not the working tree.

    Raises
    ------
    subprocess.CalledProcessError
        When the contender fails.
    """
    found: tuple[list[float], list[float]] = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as empty:
            folder = Path(empty)
            (folder / "benchmarks").symlink_to(ROOT / "benchmarks")  # without what stands beside it
            (folder / "cache").mkdir()
            environment = {**os.environ, **caches(folder / "cache"), "PYTHONWARNINGS": "ignore"}
            command = [str(interpreter), "-c", _START, contender, program.name, str(size)]
            for kind in found:
                run = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, text=True, check=True
                )
                kind.append(float(json.loads(run.stdout.splitlines()[-1])))
    return median(found[0]), median(found[1])


def caches(folder: Path) -> dict[str, str]:
    """Environment variables that let every library keep what it compiles in a folder."""
    return {
        DIRECTORY_VARIABLE: str(folder),
        "PYTENSOR_FLAGS": f"base_compiledir={folder}",
        "NUMBA_CACHE_DIR": str(folder),
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
