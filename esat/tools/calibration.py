"""``calibrate``: measure the machine, so that costs are seconds of this one.

Small programs are compiled as any other and timed; most rates are differences between a long program
and a short one of the same kind, or between much data and little, in which the costs of a call cancel.
Both are timed in turns, so that neither has the better hour of the machine, and the least of several
times is taken: what else runs on the machine only ever adds to a time.
"""

from __future__ import annotations

import reprlib
import time
from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any, Literal, overload

import numpy as np

from esat import codegen
from esat.base.records import record
from esat.codegen.compile import compile_parallel_kernel
from esat.codegen.ground.host import host_target, store_tuning, untuned_host
from esat.codegen.threads import default_threads
from esat.compilation.pipeline import compile as compile_graph
from esat.errors import ModeError
from esat.extract.prices.machine import MachineProfile, store_profile
from esat.frontend.elements.elementwise import exp, log, reciprocal, sqrt, tanh
from esat.frontend.graph import Graph
from esat.frontend.tensor import matrix, vector
from esat.gpu.profile import DeviceProfile, store_device_profile
from esat.graph import FunctionGraph, Variable
from esat.graph.calls.arguments import instance_of
from esat.ops.arrays.cumulative import cumsum
from esat.ops.arrays.sorting import sort
from esat.ops.contraction import MATMUL
from esat.ops.linalg.structured import StructuredProduct
from esat.ops.reduction import SUM, reduce
from esat.phases.fusing.fusion import fuse
from esat.tools.device_calibration import measured_device
from esat.tools.kernel_tuning import tuned

VECTOR = 8192
"""Elements of the vectors on which arithmetic is timed: they fit into a core's own cache."""
_SAMPLES = 12
_PRODUCT_SAMPLES = 20  # a product's threads wait for each other, so that more of its times are disturbed
_SECONDS_EACH = 3e-4
_LEAST_SHARE = 0.1
"""What is left of a time, at least, after that of another program is taken off it: on a busy machine the
shorter program may have been disturbed in all its samples and seem to take as long as the longer one."""

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[[Variable], Variable]


@overload
def calibrate(store: bool = True, *, device: Literal["cpu"] = "cpu") -> MachineProfile: ...
@overload
def calibrate(store: bool = True, *, device: Literal["cuda"]) -> DeviceProfile: ...
def calibrate(
    store: bool = True, *, device: Literal["cpu", "cuda"] = "cpu"
) -> MachineProfile | DeviceProfile:
    """Measure this machine: rates, bandwidths and overheads the cost model uses, and numbers of tuning.

    Takes some seconds (more the first time, when the kernels are compiled), in one thread but for what
    several of them gain. If the results are stored, modes made afterwards use them, in this process and in
    later ones. Kernels are tuned by which of several variants of some programs were the fastest.

    Parameters
    ----------
    store
        Whether to keep the profile in the user's cache directory, or where the environment variable
        ``ESAT_MACHINE_PROFILE`` says, and to measure the numbers of tuning, which are kept beside it.
    device
        What to measure: ``cpu``, or ``cuda``, the first CUDA device and the way to it, for modes with a
        device; its profile is kept beside the machine's.

    Returns
    -------
    The profile.

    Raises
    ------
    CallError
        When ``store`` is neither True nor False.
    ModeError
        For another device, or one that there is not; the message names what is missing.
    OSError
        When the profile cannot be stored.
    """
    instance_of("calibrate", "store", store, bool)
    if not isinstance(device, str) or device != "cpu":
        return _calibrate_device(store, device)
    profile = _Bench().profile()
    if store:
        store_profile(profile)
        store_tuning(tuned(untuned_host(), busy_seconds_of))
    return profile


def _calibrate_device(store: bool, name: object) -> DeviceProfile:
    if not isinstance(name, str) or name != "cuda":
        raise ModeError(f"calibrate: device={reprlib.repr(name)}: it is 'cpu' or 'cuda'")
    from esat.gpu.device import cuda_device

    profile = measured_device(cuda_device())
    if store:
        store_device_profile(profile)
    return profile


Call = Callable[[], Any]


def seconds_of(
    *calls: Call, samples: int | None = None, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Seconds of each call, timed in turns: the least of its samples, each so long that a clock can tell."""
    repetitions = []
    for call in calls:
        call()
        repetitions.append(max(1, round(_SECONDS_EACH / max(_seconds(call, 1, clock), 1e-7))))
    best = [float("inf")] * len(calls)
    for _ in range(samples or _SAMPLES):
        for place, (call, count) in enumerate(zip(calls, repetitions, strict=True)):
            best[place] = min(best[place], _seconds(call, count, clock))
    return best


def busy_seconds_of(*calls: Call) -> list[float]:
    """The same in time of the processor, which other processes may take meanwhile."""
    return seconds_of(*calls, clock=time.process_time)


def _seconds(call: Call, count: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(count):
        call()
    return (clock() - begin) / count


def beyond(elapsed: float, other: float) -> float:
    """Seconds by which a time exceeds that of a program with less to do, at least a tenth of the time."""
    return max(elapsed - other, _LEAST_SHARE * elapsed)


def _seconds_beyond(longer: Call, shorter: Call, samples: int | None = None) -> float:
    return beyond(*seconds_of(longer, shorter, samples=samples))


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
        bandwidths = self.bandwidths()
        rates = self.matrices()
        indexed = self.indexed()
        block, structured_call = self.structured()
        return MachineProfile(
            element_rate=1.0 / plain,
            single_speedup=single,
            moderate=max(1.0, fmean(self.single_op(op, "float64") / flops for op, flops in moderate) / plain),
            transcendental=max(
                1.0, fmean(self.single_op(op, "float64") / flops for op, flops in transcendental) / plain
            ),
            reduction_rate=self.reduction(bandwidths[0]),
            row=self.row(),
            transposed_rate=self.transposed(),
            gather_rate=indexed[0],
            scatter_rate=indexed[1],
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
            library_rate=self.library(),
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
        few, many = (partial(_chain(step, count, "float64"), operand) for count in (short, long))
        return _seconds_beyond(many, few) / (long - short) / VECTOR

    def single_op(self, op: Step, dtype: str) -> float:
        """Seconds an element that one op takes in a kernel that reads and writes as much without it."""
        operand = self.values(VECTOR, dtype=dtype)
        with_op = partial(_chain(lambda y: op(y) + 1.5, 1, dtype), operand)
        without = partial(_chain(lambda y: y + 1.5, 1, dtype), operand)
        return _seconds_beyond(with_op, without) / VECTOR

    def overheads(self) -> tuple[float, float, float, float]:
        """Seconds of a call, and of entering a kernel, a matrix product and a NumPy function."""
        x, y = matrix("x"), matrix("y")
        square = self.values(4, 4)
        kinds: dict[str, Step] = {"product": lambda z: z @ y, "both": lambda z: z @ y + 1.0}
        programs = {
            (kind, count): partial(_compiled([x, y], _repeated(step, x, count)), square, square)
            for kind, step in kinds.items()
            for count in (1, 9)
        }
        seconds = dict(zip(programs, seconds_of(*programs.values()), strict=True))
        slopes = {kind: (seconds[kind, 9] - seconds[kind, 1]) / 8.0 for kind in kinds}
        product = max(slopes["product"], 1e-7)
        kernel = max(slopes["both"] - product, 1e-8)
        small = self.values(8)
        few, many = (partial(_chain(lambda z: sort(-z), count, "float64"), small) for count in (1, 5))
        first, all_ = seconds_of(few, many)
        library = max((all_ - first) / 4.0 - kernel, 1e-7)
        return max(first - library - kernel, 1e-7), kernel, product, library

    def bandwidths(self) -> tuple[float, float, float]:
        """Bytes a second of ``x + y`` in a core's own cache, in the last level and in memory."""
        x, y = vector("x"), vector("y")
        function = _compiled([x, y], x + y)
        small = partial(function, self.values(8), self.values(8))
        found = []
        for size in (VECTOR, 300_000, 6_000_000):
            large = partial(function, self.values(size), self.values(size))
            found.append(24.0 * size / _seconds_beyond(large, small, 5 if size > 1_000_000 else None))
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
        one, all_ = busy.seconds(self.values(VECTOR))
        lost = all_ - one / speedup
        # As much again has to be gained, at the least.
        return {
            "parallel_from": min(max(2.0 * lost, MachineProfile().parallel_from), 1e-2),
            "parallel_speedup": min(max(speedup, 1.0), float(threads)),
            "parallel_bandwidth": min(max(bandwidth, 1.0), float(threads)),
        }

    def reduction(self, bandwidth: float) -> float:
        """Elements a second of row sums, beside reading them."""
        x = matrix("x")
        function = _compiled([x], reduce(SUM, x, 1))
        large, small = (partial(function, self.values(n, n)) for n in (128, 2))
        reading = 8.0 * 128.0**2 / bandwidth
        return 128.0**2 / beyond(_seconds_beyond(large, small), reading)

    def row(self) -> float:
        """Seconds that a row takes in row sums, whatever its length."""
        x = matrix("x")
        function = _compiled([x], reduce(SUM, x, 1))
        many, few = (partial(function, self.values(rows, 8)) for rows in (1024, 2))
        return _seconds_beyond(many, few) / 1022.0

    def transposed(self) -> float:
        """Elements a second of reading an operand against its order, beside one in order."""
        x, y = matrix("x"), matrix("y")
        operands = self.values(256, 256), self.values(256, 256)
        turned, plain = (partial(_compiled([x, y], sum_), *operands) for sum_ in (x + y.T, x + y))
        return 256.0 * 256.0 / _seconds_beyond(turned, plain)

    def indexed(self) -> tuple[float, float]:
        """Elements a second that are read by an index array, and that are added where it says."""
        x, i, y = vector("x"), vector("i", dtype="int64"), vector("y")
        places = np.random.default_rng(self.seed).integers(0, VECTOR, VECTOR)
        array = self.values(VECTOR)
        rates = []
        for program in (_compiled([x, i, y], x[i] + y), _compiled([x, i, y], x.at[i].add(y))):
            many, few = (partial(program, array, places[:count], array[:count]) for count in (VECTOR, 2))
            rates.append((VECTOR - 2.0) / _seconds_beyond(many, few))
        return rates[0], rates[1]

    def library(self) -> float:
        """Flops a second of NumPy's own loops, as the records of their ops count them."""
        operand, small = self.values(20_000), self.values(1)
        functions = [_chain(step, 1, "float64") for step in (sort, cumsum)]
        sorting, adding = (
            _seconds_beyond(partial(function, operand), partial(function, small)) for function in functions
        )
        comparisons = 2.0 * len(operand) * np.log2(len(operand))
        return float(np.sqrt(comparisons / sorting * len(operand) / adding))

    def matrices(self) -> tuple[float, float, float]:
        """Rate of a large float64 product, float32's factor, and the length of half the rate."""
        kinds = [("float64", 768, 768), ("float32", 768, 768), ("float64", 64, 64), ("float64", 256, 4)]
        small, *products = (self.product(*kind) for kind in [("float64", 2, 2), *kinds])
        overhead, *seconds = seconds_of(small, *products, samples=_PRODUCT_SAMPLES)
        rate, single, *others = (
            2.0 * size * size * columns / beyond(elapsed, overhead)
            for (_, size, columns), elapsed in zip(kinds, seconds, strict=True)
        )
        halves = [
            (max(rate / other, 1.0) - 1.0) / (2.0 / size + 1.0 / columns)
            for (_, size, columns), other in zip(kinds[2:], others, strict=True)
        ]
        return rate, single / rate, max(float(np.sqrt(np.prod(halves))), 0.1)

    def product(self, dtype: str, size: int, columns: int) -> Call:
        """A square matrix times one with so many columns."""
        x, y = matrix("x", dtype=dtype), matrix("y", dtype=dtype)
        operands = self.values(size, size, dtype=dtype), self.values(size, columns, dtype=dtype)
        return partial(_compiled([x, y], x @ y), *operands)

    def structured(self) -> tuple[float, float]:
        """Size of the blocks that a triangular product computes in full, and seconds besides."""
        x, y = matrix("x"), matrix("y")
        whole, half = (_compiled([x, y], op(x, y)) for op in (MATMUL, StructuredProduct("lower")))
        size = 256
        large, small = ((self.values(n, n), self.values(n, n)) for n in (size, 4))
        half_large, whole_large, half_small, whole_small = seconds_of(
            *(partial(function, *operands) for operands in (large, small) for function in (half, whole)),
            samples=_PRODUCT_SAMPLES,
        )
        block = min(max(2.0 * half_large / whole_large - 1.0, 0.01), 1.0) * size
        return block, max(half_small - whole_small, 1e-8)


class _ForThreads:
    """A kernel of one vector that can be run in one thread or in several."""

    def __init__(self, step: Step, threads: int) -> None:
        x = vector("x")
        graph = FunctionGraph([x], [step(x)])
        (group,) = fuse(graph, codegen).groups
        self._kernel = compile_parallel_kernel(codegen.lower(group), host_target())
        self._threads = threads

    def gain(self, operand: Array) -> float:
        """How many times faster several threads are."""
        one, all_ = self.seconds(operand)
        return one / all_

    def seconds(self, operand: Array) -> tuple[float, float]:
        """Seconds of a call in one thread, and in all, which are awake from the call before."""
        result = np.empty_like(operand)
        one, all_ = seconds_of(*(partial(self._kernel, n, result, operand) for n in (1, self._threads)))
        return one, all_


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
