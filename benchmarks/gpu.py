"""Compiled functions on a CUDA device beside cupy, JAX and torch.compile, in one run.

``python -m benchmarks.gpu [--quick] [--cases NAME ...] [--sizes N ...] [--dtypes D ...] [--peers NAME ...]``.

Takes a machine with a device, and the libraries in this Python's environment; those that are missing are
left out. Arrays are on the device and stay there. Matrix products have full precision for all: JAX's
"highest", torch's "highest", cupy's default, esat's default. Results are compared with NumPy's in float64
(large ones with esat's) before anything is timed. Calls are interleaved: each round times every contender
once, over as many calls as fill the round's time; what counts is the median over the rounds. The table and
the figures as JSON go to ``benchmarks/results``, named after the device.

With ``--processes 8`` so many processes first call everything once, at sizes that fit beside each other, so
that what contenders keep on disk is there: compiling one after the other takes most of a run's time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.device.cases import DEVICE_CASES, bytes_of
from benchmarks.device.clock import copy_bandwidth, product_rate
from benchmarks.device.contenders import PEERS, contenders
from benchmarks.device.match import Contest, Settings
from benchmarks.device.record import DeviceRun, load, save
from benchmarks.device.table import line, table
from benchmarks.peers.cases import Case
from benchmarks.peers.contenders import OURS
from esat.gpu.device import Device, cuda_device

RESULTS = Path(__file__).resolve().parent / "results"
COMPILED_AHEAD = 10**8
"""Size up to which the processes that compile ahead call programs."""
LARGEST_INPUTS = 1 << 34
"""Bytes of inputs up to which a size is run: results and what libraries keep must fit beside them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and store; 0 unless esat failed at a case."""
    options = _parser().parse_args(arguments)
    if options.show:
        print(table(load(options.show)))
        return 0
    plan = _plan(options)
    device = cuda_device()
    found = contenders(device, (OURS, *(PEERS if options.peers is None else options.peers)))
    contest = Contest(device, found, Settings(5, 0.005) if options.quick else Settings(9, 0.01))
    if options.compile_only is not None:
        for case, size, dtype in plan[options.compile_only :: options.processes]:
            if size <= COMPILED_AHEAD:
                contest.compile(case, size, dtype)
        return 0
    if options.processes:
        _compile_ahead(sys.argv[1:] if arguments is None else arguments, options.processes)
    run = DeviceRun(
        _name(device),
        copy_bandwidth(device, options.copied),
        {dtype: product_rate(device, dtype, options.order) for dtype in ("float32", "float64")},
        {name: contender.version for name, contender in found.items()},
    )
    stem = options.output / run.stem
    until = time.monotonic() + 60.0 * options.minutes
    records = []
    for case, size, dtype in plan:
        records.append(contest.play(case, size, dtype))
        run = DeviceRun(run.device, run.copy, run.product, run.versions, tuple(records), run.day)
        print(line(records[-1], run), flush=True)
        save(run, stem.with_suffix(".json"))
        if time.monotonic() > until:
            print("no time for the rest")
            break
    stem.with_suffix(".txt").write_text(table(run) + "\n", encoding="utf-8")
    print("\n" + table(run))
    failed = [record for record in records if OURS not in record.seconds]
    return 1 if failed else 0


def _compile_ahead(arguments: Sequence[str], processes: int) -> None:
    """Call everything once, each process a part of the plan."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.gpu", *arguments, "--compile-only"]
    running = [subprocess.Popen([*command, str(number)]) for number in range(processes)]
    for process in running:
        process.wait()
    print(f"compiled ahead in {time.perf_counter() - start:.0f} s", flush=True)


def _name(device: Device) -> str:
    name = device.arrays.cuda.runtime.getDeviceProperties(device.number)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def _plan(options: argparse.Namespace) -> list[tuple[Case, int, str]]:
    unknown = set(options.cases or ()) - {case.name for case in DEVICE_CASES}
    if unknown:
        names = ", ".join(case.name for case in DEVICE_CASES)
        raise SystemExit(f"no case is named {', '.join(sorted(unknown))}; there are: {names}")
    chosen = [case for case in DEVICE_CASES if not options.cases or case.name in options.cases]
    sizes = options.sizes or ((10**6, 10**8) if options.quick else (10**6, 10**7, 10**8, 10**9))
    dtypes = options.dtypes or (("float32",) if options.quick else ("float32", "float64"))
    return [
        (case, size, dtype)
        for dtype in dtypes
        for size in sizes
        for case in chosen
        if bytes_of(case, size, dtype) <= LARGEST_INPUTS
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two sizes, float32, few rounds")
    parser.add_argument(
        "--processes", type=int, default=0, metavar="N", help="compile everything ahead with N"
    )
    parser.add_argument("--compile-only", type=int, metavar="K", help="what the K-th of those processes does")
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="end after the case that takes it past this"
    )
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these cases")
    parser.add_argument("--sizes", nargs="+", type=lambda text: int(float(text)), metavar="N")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"))
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="only these peers")
    parser.add_argument("--copied", type=int, default=10**8, metavar="N", help="numbers in the copy")
    parser.add_argument("--order", type=int, default=8192, metavar="N", help="of the matrix product")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder for results")
    parser.add_argument("--show", type=Path, metavar="JSON", help="print the table of a stored run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
