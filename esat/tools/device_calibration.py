"""Measures a CUDA device: its rates, and the way to it.

Times are of a clock on the host around calls that wait for the device; each rate is a difference between much
work and little, in which what a call costs besides cancels, and the least of several times is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import matmul
from typing import TYPE_CHECKING, Any

import numpy as np

from esat.base.records import record
from esat.compilation.pipeline import compile as compile_graph
from esat.frontend.elements.elementwise import exp
from esat.frontend.graph import Graph
from esat.frontend.tensor import matrix, vector
from esat.gpu.profile import DeviceProfile, Link
from esat.mode import Mode

if TYPE_CHECKING:
    from esat.gpu.device import Device

Call = Callable[[], object]
MOST_SPEEDUP = 4.0
"""Of float32 against float64."""
_EXPONENTIAL_FLOPS = 10.0
"""Additions that the record of ``exp`` counts for one element."""


@record(frozen=True)
class Sizes:
    """How much is measured.

    Attributes
    ----------
    copied
        Bytes of an array that is copied within the device, and from and to the host.
    elements
        Elements of a vector of which exponentials are computed.
    matrix, small_matrix
        Sizes of the axes of matrices that are multiplied.
    samples
        Times that each call is timed.
    kernels
        Kernels of the longer of two programs that differ in their number.
    """

    copied: int = 1 << 28
    elements: int = 1 << 24
    matrix: int = 4096
    small_matrix: int = 512
    samples: int = 10
    kernels: int = 9


LARGE = Sizes()


def measured_device(device: Device, sizes: Sizes = LARGE) -> DeviceProfile:
    """The profile of a device; what is not measured is that of the shipped one.

    Parameters
    ----------
    device
        The device. Nothing else should run there meanwhile.
    sizes
        How much is measured.
    """
    bench = _Bench(device, sizes)
    call, launch = bench.overheads()
    rate, half = bench.products(np.float64)
    single, _ = bench.products(np.float32)
    element_rate, speedup = bench.exponentials()
    return replace(
        DeviceProfile(),
        bandwidth=bench.copying(),
        call=call,
        launch=launch,
        element_rate=element_rate,
        single_speedup=speedup,
        matrix_rate=rate,
        matrix_single_speedup=single / rate,
        matrix_half=half,
        link=bench.link(),
    )


class _Bench:
    def __init__(self, device: Device, sizes: Sizes) -> None:
        self._device = device
        self._sizes = sizes
        self._arrays = device.arrays
        self._mode = Mode("o2", device="cuda", variants=0)  # without rules, which would see through a chain

    def seconds(self, call: Call) -> float:
        """The least time of a call, and of waiting for what it gave the device to do."""
        call()
        self._device.wait()
        best = np.inf
        for _ in range(self._sizes.samples):
            begin = time.perf_counter()
            call()
            self._device.wait()
            best = min(best, time.perf_counter() - begin)
        return float(best)

    def beyond(self, long: Call, short: Call) -> float:
        """Seconds by which one call takes longer than another, at least a tenth of its time."""
        longer, shorter = self.seconds(long), self.seconds(short)
        return max(longer - shorter, 0.1 * longer)

    def values(self, count: int, dtype: Any = np.float64) -> Any:
        """A vector on the device."""
        return self._device.upload(np.linspace(0.1, 1.0, count, dtype=dtype))

    def copying(self) -> float:
        """Bytes a second that a copy within the device reads and writes."""
        large, small = (self.values(count) for count in (self._sizes.copied // 8, 8))
        targets = [array.copy() for array in (large, small)]
        copy = self._arrays.copyto
        elapsed = self.beyond(lambda: copy(targets[0], large), lambda: copy(targets[1], small))
        return 2.0 * float(large.nbytes) / elapsed

    def link(self) -> Link:
        """Copies of an argument to the device and of a result back, in the mean of both directions."""
        device = self._device
        large, small = (np.ones(count) for count in (self._sizes.copied // 8, 8))
        there, few = device.upload(large), device.upload(small)
        up, down = self.seconds(lambda: device.upload(small)), self.seconds(lambda: device.download(few))
        latency = (up + down) / 2.0
        elapsed = self.beyond(lambda: device.upload(large), lambda: device.upload(small))
        elapsed += self.beyond(lambda: device.download(there), lambda: device.download(few))
        return Link(latency, 2.0 * large.nbytes / elapsed)

    def products(self, dtype: Any) -> tuple[float, float]:
        """Flops a second of a large matrix product, and the length of an axis of half that rate."""
        rates = []
        sizes = (self._sizes.small_matrix, self._sizes.matrix)
        tiny = self.values(16, dtype).reshape(4, 4)
        for size in sizes:
            square = self.values(size * size, dtype).reshape(size, size)
            elapsed = self.beyond(partial(matmul, square, square), partial(matmul, tiny, tiny))
            rates.append(2.0 * size**3 / elapsed)
        slowdown = max(rates[1] / rates[0] - 1.0, 0.01)
        return rates[1], max(slowdown * sizes[0] / 3.0, 1.0)

    def exponentials(self) -> tuple[float, float]:
        """Additions a second by the cost model's count, from exponentials; the factor of float32."""
        found = []
        transcendental = DeviceProfile().machine().transcendental
        for dtype in ("float64", "float32"):
            x = vector("x", dtype=dtype)
            y = x
            for _ in range(8):
                y = exp(-y)
            long = compile_graph(Graph([x], [y]), self._mode)
            short = compile_graph(Graph([x], [exp(-exp(-x))]), self._mode)
            operand = self.values(self._sizes.elements, dtype)
            elapsed = self.beyond(partial(long, operand), partial(short, operand))
            found.append(6.0 * self._sizes.elements * _EXPONENTIAL_FLOPS * transcendental / elapsed)
        # Where memory takes longer than float32 does, that hides in it: no more is believed.
        return found[0], min(found[1] / found[0], MOST_SPEEDUP)

    def overheads(self) -> tuple[float, float]:
        """Seconds of a call besides its kernels, and of each kernel, in calls that come again."""
        x = matrix("x")
        operand = self.values(256).reshape(16, 16)
        seconds, counts = [], []
        for count in (1, self._sizes.kernels):
            y = x
            for place in range(count):
                y = y / (1.0 + y.sum(axis=place % 2, keepdims=True))  # a sum that the next kernel waits for
            program = compile_graph(Graph([x], [y]), self._mode)
            seconds.append(min(self.seconds(partial(program, operand)) for _ in range(3)))
            counts.append(len(program.placements[list(program.placements)[-1]].steps))
        launch = max((seconds[1] - seconds[0]) / max(counts[1] - counts[0], 1), 1e-7)
        return max(seconds[0] - counts[0] * launch, 1e-6), launch
