"""Runs the tests of the device on a real one, and small programs under NVIDIA's sanitizer.

    python -m tools.gpu_check                 # all of it; exit status 1 where something fails
    python -m tools.gpu_check --only tests    # or sanitizer
    python -m tools.gpu_check --tests -k softmax

Every test of ``tests/gpu`` that otherwise runs in the emulator or on the stand-in runs on the device then
(``ESAT_TEST_DEVICE=cuda``), and those of ``tests/gpu/on_device`` besides: all ops over their dtypes, random
programs, the programs of the benchmark. Takes pytest, cupy and numba-cuda; pytest-xdist where it is to be
quick; compute-sanitizer, which comes with CUDA.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ("memcheck", "racecheck", "initcheck")
MOST_LINES = 400
"""Of what a tool of the sanitizer says."""
CUDA_TOOLS = "/usr/local/cuda/bin"


def main() -> int:
    """Run what is asked for; 0 if nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.gpu_check", description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=("tests", "sanitizer"))
    parser.add_argument("--processes", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--seconds", type=float, default=3600.0, help="of each part; what takes longer fails")
    parser.add_argument("--tests", nargs=argparse.REMAINDER, default=[], help="options for pytest")
    options = parser.parse_args()
    results = []
    if options.only != "sanitizer":
        results.append(("tests", _tests(options.processes, options.tests, options.seconds)))
    if options.only != "tests":
        with ThreadPoolExecutor() as pool:
            passed = pool.map(lambda tool: _sanitized(tool, options.seconds), SANITIZERS)
            results += list(zip(SANITIZERS, passed, strict=True))
    print()
    for name, passed in results:
        print(f"{name:10} {'passed' if passed else 'FAILED'}")
    return 0 if all(passed for _, passed in results) else 1


def _environment() -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "ESAT_TEST_DEVICE": "cuda", "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _tests(processes: int, options: list[str], seconds: float) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    command += ["-o", "addopts=", "-p", "tools.gpu_failures", "-s", "--tb=short", *options]
    if not any(option.startswith("tests/") for option in options):
        command.append("tests/gpu")
    if importlib.util.find_spec("xdist") and processes > 1:
        command += ["-n", str(processes), "--dist", "worksteal"]
    return _run("tests", command, seconds)


def _sanitized(tool: str, seconds: float) -> bool:
    """Whether a tool of the sanitizer finds nothing in the small programs."""
    program = shutil.which("compute-sanitizer") or f"{CUDA_TOOLS}/compute-sanitizer"
    command = [program, "--tool", tool, "--error-exitcode", "9", "--target-processes", "all"]
    command += [sys.executable, "-m", "tools.gpu_small"]
    return _run(tool, command, seconds)


def _run(name: str, command: list[str], seconds: float) -> bool:
    print(f"---- {name}: {' '.join(command)}", flush=True)
    start = time.perf_counter()
    status = -1
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        # What runs beside others is told when it is done.
        output = said if name in SANITIZERS else None
        try:
            running = subprocess.Popen(
                command, cwd=ROOT, env=_environment(), start_new_session=True, stdout=output, stderr=output
            )
            try:
                status = running.wait(seconds)
            except subprocess.TimeoutExpired:
                print(f"{name}: ended after {seconds:.0f} s")
                # With all that it started: what goes on would disturb what is timed next.
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
        except OSError as error:
            print(error)
        said.seek(0)
        print(*said.read().splitlines()[:MOST_LINES], sep="\n", end="\n" if output else "")
    print(f"---- {name}: status {status}, {time.perf_counter() - start:.0f} s", flush=True)
    return status == 0


if __name__ == "__main__":
    sys.exit(main())
