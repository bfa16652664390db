"""Single kernels over arrays of many shapes on a CUDA device, as shares of a copy's bandwidth.

``python -m benchmarks.gpu_kernels [--dtypes ...] [--elements N] [--output FILE]``. A share is the bytes a
second of a call, of what it reads and returns, by those of cupy's copy; both by the device's events.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import esat
from benchmarks.device.clock import copy_bandwidth, seconds_by_events
from benchmarks.peers import cases
from esat.gpu.device import Device, cuda_device

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """A program of one kernel, and for how many elements of its first argument it is run in which shapes.

    Attributes
    ----------
    function
        ``function(esat, *arguments)``.
    shapes
        Number of elements -> the shapes of the arguments, one tuple a run.
    """

    name: str
    function: Callable[..., Any]
    shapes: Callable[[int], Sequence[tuple[Shape, ...]]]


def _flat(count: int = 1) -> Callable[[int], Sequence[tuple[Shape, ...]]]:
    return lambda n: [((n,),) * count]


def _square(n: int) -> Sequence[tuple[Shape, ...]]:
    return [((math.isqrt(n),) * 2,)]


def _rows(*lengths: int) -> Callable[[int], Sequence[tuple[Shape, ...]]]:
    return lambda n: [((max(n // length, 1), length),) for length in lengths if length <= n]


def _columns(*numbers: int) -> Callable[[int], Sequence[tuple[Shape, ...]]]:
    return lambda n: [((max(n // number, 1), number),) for number in numbers if number <= n]


def _layernorm(xp: Any, m: Any) -> Any:
    centred = m - m.mean(axis=1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)


ROWS = _rows(64, 500, 512, 768, 1000, 4096, 10_000, 16_384, 100_000, 1_000_000)
KERNELS = (
    Kernel("2 * x + 1", lambda xp, x: 2 * x + 1, _flat()),
    Kernel("exp", lambda xp, x: xp.exp(x), _flat()),
    Kernel("log", lambda xp, x: xp.log(x), _flat()),
    Kernel("tanh", lambda xp, x: xp.tanh(x), _flat()),
    Kernel("erf", lambda xp, x: xp.erf(x), _flat()),
    Kernel("sin", lambda xp, x: xp.sin(x), _flat()),
    Kernel("sqrt", lambda xp, x: xp.sqrt(x), _flat()),
    Kernel("x / y", lambda xp, x, y: x / y, _flat(2)),
    Kernel("x ** y", lambda xp, x, y: x**y, _flat(2)),
    Kernel("sum", lambda xp, x: x.sum(), _flat()),
    Kernel("max", lambda xp, x: x.max(), _flat()),
    Kernel("argmax", lambda xp, x: x.argmax(), _flat()),
    Kernel("(M+r)*c", cases.row_and_column, lambda n: [((s, s), (s,), (s, 1)) for s in [math.isqrt(n)]]),
    Kernel("transpose", lambda xp, m: m.T + 1, _square),
    Kernel("row sums", lambda xp, m: m.sum(axis=1), ROWS),
    Kernel("row argmax", lambda xp, m: m.argmax(axis=1), ROWS),
    Kernel("softmax", lambda xp, m: xp.softmax(m, axis=1), ROWS),
    Kernel("layernorm", _layernorm, ROWS),
    Kernel("column sums", lambda xp, m: m.sum(axis=0), _columns(8, 64, 100, 1000, 10_000, 1_000_000)),
    Kernel("column softmax", lambda xp, m: xp.softmax(m, axis=0), _square),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print a line for each kernel, shape and dtype; 0 unless one fails."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_kernels", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"], choices=("float32", "float64"))
    parser.add_argument("--elements", type=lambda text: int(float(text)), default=10**8, metavar="N")
    parser.add_argument("--kernels", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--output", type=Path, metavar="FILE", help="a file for the lines, besides")
    options = parser.parse_args(arguments)
    device = cuda_device()
    copy = copy_bandwidth(device, options.elements)
    lines = [f"copy of {options.elements:.0e} float32: {copy / 1e12:.2f} TB/s"]
    print(lines[0], flush=True)
    failed = False
    for kernel in KERNELS:
        if options.kernels and kernel.name not in options.kernels:
            continue
        for dtype in options.dtypes:
            try:
                for line in _measured(kernel, dtype, options.elements, device, copy):
                    print(line, flush=True)
                    lines.append(line)
            except Exception as error:  # whatever it is: the others go on
                failed = True
                print(f"{kernel.name:15} {dtype}: {type(error).__name__}: {error}", flush=True)
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if failed else 0


def _measured(kernel: Kernel, dtype: str, elements: int, device: Device, copy: float) -> Iterator[str]:
    all_shapes = kernel.shapes(elements)
    known = [tuple(1 if size == 1 else None for size in shape) for shape in all_shapes[0]]
    inputs = [esat.tensor(f"x{place}", shape=shape, dtype=dtype) for place, shape in enumerate(known)]
    mode = esat.Mode("fast_run", device="cuda", variants=0)
    function = esat.compile(esat.Graph(inputs, [kernel.function(esat, *inputs)]), mode)
    for shapes in all_shapes:
        part = np.random.default_rng(0).uniform(0.1, 2.0, 1 << 16).astype(dtype)
        there = device.upload(part)
        given = [device.arrays.resize(there, shape) for shape in shapes]
        moved = sum(array.nbytes for array in (*given, function(*given)))
        seconds = seconds_by_events(device, partial(function, *given), 7)
        yield (
            f"{kernel.name:15} {' x '.join(map(str, shapes[0])):>18} {dtype[5:]}b {seconds * 1e6:9.1f} us"
            f" {moved / seconds / 1e12:5.2f} TB/s {moved / seconds / copy:5.0%}"
        )


if __name__ == "__main__":
    sys.exit(main())
