"""``calibrate``: measure the machine, so that costs are seconds of this one.

Small programs are compiled as any other and timed; most rates are differences between a long program
and a short one of the same kind, in which the costs of a call cancel. The least of several times is
taken: what else runs on the machine only ever adds to a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np

from esat import codegen
from esat.codegen.parallel import compile_parallel_kernel
from esat.codegen.threads import default_threads
from esat.extract.machine import MachineProfile, store_profile
from esat.frontend.elementwise import exp, log, reciprocal, sqrt, tanh
from esat.frontend.graph import Graph
from esat.frontend.tensor import matrix, vector
from esat.graph import FunctionGraph, Variable
from esat.ops.contraction import MATMUL
from esat.ops.cumulative import cumsum
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.reduction import SUM, reduce
from esat.ops.sorting import sort
from esat.phases.fusion import fuse
from esat.pipeline import compile as compile_graph
from esat.records import record

VECTOR = 8192
"""Elements of the vectors on which arithmetic is timed: they fit into a core's own cache."""
_SAMPLES = 12
_PRODUCT_SAMPLES = 20  # a product's threads wait for each other, so that more of its times are disturbed
_SECONDS_EACH = 3e-4

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[[Variable], Variable]


def calibrate(store: bool = True) -> MachineProfile:
    """Measure this machine: rates, bandwidths and overheads the cost model uses.

    Takes some seconds (more the first time, when the kernels are compiled), in one thread but for what
    several of them gain. Modes made afterwards use the result, in this process and, if it is stored, in
    later ones.

    Parameters
    ----------
    store
        Whether to keep the profile in the user's cache directory, or where the environment variable
        ``ESAT_MACHINE_PROFILE`` says.

    Returns
    -------
    The profile.

    Raises
    ------
    OSError
        When the profile cannot be stored.
    """
    profile = _Bench().profile()
    if store:
        store_profile(profile)
    return profile


def seconds_of(function: Callable[..., Any], *arguments: Any, samples: int = _SAMPLES) -> float:
    """Seconds of a call: the least of several samples, each of so many calls that a clock can tell."""
    function(*arguments)
    begin = time.perf_counter()
    function(*arguments)
    calls = max(1, round(_SECONDS_EACH / max(time.perf_counter() - begin, 1e-7)))
    best = float("inf")
    for _ in range(samples):
        begin = time.perf_counter()
        for _ in range(calls):
            function(*arguments)
        best = min(best, (time.perf_counter() - begin) / calls)
    return best


@record(frozen=True)
class _Bench:
    """Measurements, each of one kind of program."""

    seed: int = 0

    def profile(self) -> MachineProfile:
        default = MachineProfile()
        plain = self.chained(lambda y: y * 1.01 + 0.1) / 2.0
        moderate = [(reciprocal, 4.0), (sqrt, 5.0)]
        transcendental = [(exp, 10.0), (log, 14.0), (tanh, 14.0)]
        single = fmean(self.single_op(exp, "float64") / self.single_op(exp, "float32") for _ in range(2))
        call, kernel_call, matrix_call, library_call = self.overheads()
        bandwidths = self.bandwidths(call + kernel_call)
        rates = self.matrices(call + matrix_call)
        block, structured_call = self.structured()
        return MachineProfile(
            element_rate=1.0 / plain,
            single_speedup=single,
            moderate=max(1.0, fmean(self.single_op(op, "float64") / flops for op, flops in moderate) / plain),
            transcendental=max(
                1.0, fmean(self.single_op(op, "float64") / flops for op, flops in transcendental) / plain
            ),
            reduction_rate=self.reduction(call + kernel_call, bandwidths[0]),
            transposed_rate=self.transposed(),
            matrix_rate=rates[0],
            matrix_single_speedup=rates[1],
            matrix_half=rates[2],
            diagonal_block=block,
            structured_call=structured_call,
            cache_sizes=default.cache_sizes,
            bandwidths=bandwidths,
            kernel_call=kernel_call,
            matrix_call=matrix_call,
            library_call=library_call,
            library_rate=self.library(call + library_call),
            fused_op=default.fused_op,
            fused_traffic=default.fused_traffic,
            call=call,
            **self.threads(),
        )

    def values(self, *shape: int, dtype: str = "float64") -> Array:
        return np.random.default_rng(self.seed).uniform(0.2, 1.0, shape).astype(dtype)

    def chained(self, step: Step, short: int = 2, long: int = 10) -> float:
        """Seconds that one step more in a fused chain adds to each element."""
        operand = self.values(VECTOR)
        few, many = (seconds_of(_chain(step, count, "float64"), operand) for count in (short, long))
        return max(many - few, 1e-9) / (long - short) / VECTOR

    def single_op(self, op: Step, dtype: str) -> float:
        """Seconds an element that one op takes in a kernel that reads and writes as much without it."""
        operand = self.values(VECTOR, dtype=dtype)
        with_op = seconds_of(_chain(lambda y: op(y) + 1.5, 1, dtype), operand)
        without = seconds_of(_chain(lambda y: y + 1.5, 1, dtype), operand)
        return max(with_op - without, 1e-9) / VECTOR

    def overheads(self) -> tuple[float, float, float, float]:
        """Seconds of a call, and of entering a kernel, a matrix product and a NumPy function."""
        x, y = matrix("x"), matrix("y")
        square = self.values(4, 4)
        kinds: dict[str, Step] = {"product": lambda z: z @ y, "both": lambda z: z @ y + 1.0}
        slopes = {}
        for kind, step in kinds.items():
            few, many = (_compiled([x, y], _repeated(step, x, count)) for count in (1, 9))
            slopes[kind] = (seconds_of(many, square, square) - seconds_of(few, square, square)) / 8.0
        product = max(slopes["product"], 1e-7)
        kernel = max(slopes["both"] - product, 1e-8)
        small = self.values(8)
        few, many = (_chain(lambda z: sort(-z), count, "float64") for count in (1, 5))
        first = seconds_of(few, small)
        library = max((seconds_of(many, small) - first) / 4.0 - kernel, 1e-7)
        return max(first - library - kernel, 1e-7), kernel, product, library

    def bandwidths(self, overhead: float) -> tuple[float, float, float]:
        """Bytes a second of ``x + y`` in a core's own cache, in the last level and in memory."""
        x, y = vector("x"), vector("y")
        function = _compiled([x, y], x + y)
        found = []
        for size in (VECTOR, 300_000, 6_000_000):
            operands = self.values(size), self.values(size)
            elapsed = seconds_of(function, *operands, samples=5 if size > 1_000_000 else _SAMPLES)
            found.append(24.0 * size / max(elapsed - overhead, 1e-8))
        own, last, memory = found
        last = min(last, own)
        return own, last, min(memory, last)

    def threads(self) -> dict[str, float]:
        """What several threads gain, and from how much work on they do; nothing where there is but one."""
        threads = default_threads()
        if threads == 1:
            return {}
        busy, copying = (_ForThreads(step, threads) for step in (_many_exponentials, _plus_one))
        speedup = busy.gain(self.values(200_000))
        bandwidth = copying.gain(self.values(6_000_000))
        small = self.values(VECTOR)
        lost = busy.seconds(small, threads) - busy.seconds(small, 1) / speedup
        # As much again has to be gained, at the least.
        return {
            "parallel_from": min(max(2.0 * lost, MachineProfile().parallel_from), 1e-2),
            "parallel_speedup": min(max(speedup, 1.0), float(threads)),
            "parallel_bandwidth": min(max(bandwidth, 1.0), float(threads)),
        }

    def reduction(self, overhead: float, bandwidth: float) -> float:
        """Elements a second of row sums, beside reading them."""
        x = matrix("x")
        elapsed = seconds_of(_compiled([x], reduce(SUM, x, 1)), self.values(128, 128)) - overhead
        reading = 8.0 * 128.0**2 / bandwidth
        return 128.0**2 / max(elapsed - reading, 0.2 * elapsed, 1e-8)

    def transposed(self) -> float:
        """Elements a second of reading an operand against its order, beside one in order."""
        x, y = matrix("x"), matrix("y")
        operands = self.values(256, 256), self.values(256, 256)
        plain = seconds_of(_compiled([x, y], x + y), *operands)
        turned = seconds_of(_compiled([x, y], x + y.T), *operands)
        return 256.0 * 256.0 / max(turned - plain, 1e-8)

    def library(self, overhead: float) -> float:
        """Flops a second of NumPy's own loops, as the records of their ops count them."""
        operand = self.values(20_000)
        sorting = seconds_of(_chain(sort, 1, "float64"), operand) - overhead
        adding = seconds_of(_chain(cumsum, 1, "float64"), operand) - overhead
        comparisons = 2.0 * len(operand) * np.log2(len(operand))
        return float(np.sqrt(comparisons / max(sorting, 1e-8) * len(operand) / max(adding, 1e-8)))

    def matrices(self, overhead: float) -> tuple[float, float, float]:
        """Rate of a large float64 product, float32's factor, and the length of half the rate."""
        large = {dtype: self.rate(dtype, 768, 768, overhead) for dtype in ("float64", "float32")}
        rate = large["float64"]
        halves = []
        for size, columns in ((64, 64), (256, 4)):
            slowdown = max(rate / self.rate("float64", size, columns, overhead), 1.0)
            halves.append((slowdown - 1.0) / (2.0 / size + 1.0 / columns))
        return rate, large["float32"] / rate, max(float(np.sqrt(np.prod(halves))), 0.1)

    def structured(self) -> tuple[float, float]:
        """Size of the blocks that a triangular product computes in full, and seconds besides."""
        x, y = matrix("x"), matrix("y")
        whole, half = (_compiled([x, y], op(x, y)) for op in (MATMUL, StructuredProduct("lower")))
        size = 256
        large, small = ((self.values(n, n), self.values(n, n)) for n in (size, 4))
        share = seconds_of(half, *large) / seconds_of(whole, *large)
        besides = seconds_of(half, *small) - seconds_of(whole, *small)
        return min(max(2.0 * share - 1.0, 0.01), 1.0) * size, max(besides, 1e-8)

    def rate(self, dtype: str, size: int, columns: int, overhead: float) -> float:
        """Flops a second of a square matrix times one with so many columns."""
        x, y = matrix("x", dtype=dtype), matrix("y", dtype=dtype)
        operands = self.values(size, size, dtype=dtype), self.values(size, columns, dtype=dtype)
        elapsed = seconds_of(_compiled([x, y], x @ y), *operands, samples=_PRODUCT_SAMPLES)
        return 2.0 * size * size * columns / max(elapsed - overhead, 1e-8)


class _ForThreads:
    """A kernel of one vector that can be run in one thread or in several."""

    def __init__(self, step: Step, threads: int) -> None:
        x = vector("x")
        graph = FunctionGraph([x], [step(x)])
        (group,) = fuse(graph, codegen).groups
        self._kernel = compile_parallel_kernel(codegen.lower(group))
        self._threads = threads

    def gain(self, operand: Array) -> float:
        """How many times faster several threads are."""
        return self.seconds(operand, 1) / self.seconds(operand, self._threads)

    def seconds(self, operand: Array, threads: int) -> float:
        """Seconds of a call that finds the other threads awake, from the call before."""
        return seconds_of(self._kernel, threads, np.empty_like(operand), operand)


def _plus_one(x: Variable) -> Variable:
    return x + 1.0


def _many_exponentials(x: Variable) -> Variable:
    return _repeated(lambda y: exp(-y), x, 6)


def _chain(step: Step, count: int, dtype: str) -> Any:
    operand = vector("x", dtype=dtype)
    return _compiled([operand], _repeated(step, operand, count))


def _repeated(step: Step, operand: Variable, count: int) -> Variable:
    for _ in range(count):
        operand = step(operand)
    return operand


def _compiled(inputs: list[Variable], output: Variable) -> Any:
    # Without rules, which would see through a chain.
    return compile_graph(Graph(inputs, [output]), mode="o2")
