"""Every elementwise op and reduction by itself, where a kernel is slower than NumPy.

``python -m benchmarks.operations [--dtypes ...] [--sizes ...] [--ops NAME ...] [--below RATIO]``. Both sides
write into arrays that are there already, on one thread, calls interleaved; a ratio is NumPy's time by ours.
Operands are contiguous (``C``), every second element of a row (``strided``), transposed (``T``), or a matrix
with a row or a column (``row``, ``column``). Reductions run over the axes that their form names.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import esat
from benchmarks.peers.record import geometric_mean
from esat.graph.registry import registered_ops
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.reduction import REDUCERS, Reducer, Reduction

Array = Any
ROUNDS = 12
SECONDS = 0.001
FORMS = ("C", "strided", "T", "row", "column")
AXES: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("all", (0, 1, 2)),
    ("last", (2,)),
    ("first", (0,)),
    ("middle", (1,)),
    ("outer", (0, 1)),
    ("ends", (0, 2)),
)


@dataclass(frozen=True)
class Result:
    """One op in one form."""

    name: str
    form: str
    dtype: str
    size: int
    seconds: float
    ratio: float

    def __str__(self) -> str:
        place = f"{self.name:16} {self.form:8} {self.dtype:8} {self.size:8}"
        return f"{self.ratio:6.2f}  {place}  {self.seconds / self.size * 1e9:7.3f}"


def measured(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the fastest turn of each, turns taken: what other processes do not disturb."""
    counts = []
    for call in (ours, theirs):
        call()
        start = time.perf_counter()
        call()
        counts.append(max(1, int(SECONDS / (time.perf_counter() - start + 1e-9))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for call, count, taken in zip((ours, theirs), counts, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                call()
            taken.append((time.perf_counter() - start) / count)
    return min(times[0]), min(times[1])


def operands(op: Elementwise, form: str, dtype: str, size: int) -> list[Array]:
    """Arrays in a form, with values between 0.05 and 0.95, where nearly every function is defined."""
    generator = np.random.default_rng(size)
    shape = (max(1, size // 100), 100)

    def made(shape: tuple[int, ...], typing: str) -> Array:
        values = generator.uniform(0.05, 0.95, shape)
        return values > 0.5 if typing == "bool" else values.astype(dtype)

    found = []
    for place, typing in enumerate(op.operand_typing):
        if form == "strided":
            found.append(made((shape[0], 2 * shape[1]), typing)[:, ::2])
        elif form == "T":
            found.append(made(shape[::-1], typing).T)
        elif place and form in ("row", "column"):
            found.append(made((1, shape[1]) if form == "row" else (shape[0], 1), typing))
        else:
            found.append(made(shape, typing))
    return found


def elementwise_results(op: Elementwise, dtype: str, sizes: list[int]) -> Iterator[Result]:
    """An elementwise op in every form that it has."""
    for form in FORMS if op.arity > 1 else FORMS[:3]:
        inputs = []
        for number, array in enumerate(operands(op, form, dtype, 1000)):
            shape = tuple(1 if size == 1 else None for size in array.shape)
            inputs.append(esat.tensor(f"x{number}", dtype=str(array.dtype), shape=shape))
        program = esat.compile(esat.Graph(inputs, op(*inputs)))
        for size in sizes:
            arrays = operands(op, form, dtype, size)
            ours, theirs = measured(partial(program, *arrays), numpy_call(op, arrays))
            yield Result(op.name, form, dtype, size, ours, theirs / ours)


def numpy_call(op: Elementwise, arrays: list[Array]) -> Callable[[], object]:
    """NumPy's function, into an array in C order, as esat's results are, where it takes one."""
    if not isinstance(op.numpy, np.ufunc):
        return partial(op.numpy, *arrays)
    result = np.asarray(op.numpy(*arrays))
    return partial(op.numpy, *arrays, out=np.empty(result.shape, result.dtype))


def reduction_results(reducer: Reducer, dtype: str, sizes: list[int]) -> Iterator[Result]:
    """A reduction of a tensor of three axes over every kind of axes."""
    x = esat.tensor("x", dtype=dtype, shape=(None, None, None))
    for form, axes in AXES:
        index = reducer.typing == "argreduce"
        if index and 1 < len(axes) < 3:
            continue
        program = esat.compile(esat.Graph([x], Reduction(reducer, axes)(x)))
        axis: Any = axes if not index else None if len(axes) == 3 else axes[0]
        for size in sizes:
            side = max(1, round((size / 10) ** 0.5))
            array = np.random.default_rng(size).uniform(0.5, 1.5, (side, 10, side)).astype(dtype)
            call = partial(reducer.numpy, array, axis=axis, keepdims=False)
            ours, theirs = measured(partial(program, array), call)
            yield Result(reducer.name, form, dtype, array.size, ours, theirs / ours)


def results(dtypes: list[str], sizes: list[int], names: list[str]) -> Iterator[Result]:
    """All of them."""
    for dtype in dtypes:
        for op in sorted(registered_ops(), key=lambda op: op.name):
            wanted = not names or op.name in names
            if wanted and isinstance(op, Elementwise) and op.admits(dtype) == dtype and op.source(dtype):
                yield from elementwise_results(op, dtype, sizes)
        for reducer in REDUCERS:
            floats = dtype.startswith("float") or reducer.name != "logsumexp"
            if floats and reducer.name not in ("any", "all") and (not names or reducer.name in names):
                yield from reduction_results(reducer, dtype, sizes)


def main() -> None:
    """Print what is slower than NumPy, slowest first, and the geometric mean of all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument(
        "--sizes", nargs="+", type=lambda text: int(float(text)), default=[1000, 100_000, 1_000_000]
    )
    parser.add_argument("--ops", nargs="+", default=[])
    parser.add_argument("--below", type=float, default=0.95)
    options = parser.parse_args()
    with np.errstate(all="ignore"):
        found = list(results(options.dtypes, options.sizes, options.ops))
    slower = sorted((one for one in found if one.ratio < options.below), key=lambda one: one.ratio)
    print(f"{'ratio':>6}  {'op':16} {'form':8} {'dtype':8} {'size':>8}  ns per element")
    for one in slower:
        print(one)
    mean = geometric_mean([one.ratio for one in found])
    print(f"{len(slower)} of {len(found)} below {options.below}; geometric mean of all {mean:.2f}")


if __name__ == "__main__":
    main()
