"""Measuring the numbers that kernels are tuned by: the same kernels for targets that differ in one number.

Each number is changed only where that makes kernels of its kind faster by more than clocks vary. Numbers that
follow one another are measured for the target that the numbers before them gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from esat import codegen
from esat.base.records import record
from esat.codegen.compile import compile_kernel, compile_parallel_kernel
from esat.codegen.ground.target import LONGEST_VECTOR, Target
from esat.frontend.elements.elementwise import exp, square, tanh
from esat.frontend.elements.reductions import sum as total
from esat.frontend.tensor import matrix, vector
from esat.graph import Constant, FunctionGraph, Variable
from esat.phases.fusing.fusion import fuse

ELEMENTS = 8192
"""Of arrays that stay in a core's own cache."""
LARGE = 8 << 20
"""Elements of arrays that do not stay in any cache."""
ROW = 4096
"""Elements of the rows of such arrays."""
LEAST_GAIN, LEAST_GAIN_IN_MEMORY = 0.05, 0.1
"""Share of the time by which another number must be faster than the one at hand; others use memory, too."""

Call = Callable[[], Any]
Seconds = Callable[..., list[float]]
"""Seconds of each call, timed in turns."""


@record(frozen=True)
class TimedKernel:
    """A kernel that a number matters to.

    Attributes
    ----------
    name
        What people call it.
    inputs, output
        What it computes.
    shapes
        Of the inputs.
    in_parts
        Whether it is the code for several threads, which long loops run; one thread runs it here.
    streams
        Whether it writes past the caches.
    """

    name: str
    inputs: tuple[Variable, ...]
    output: Variable
    shapes: tuple[tuple[int, ...], ...]
    in_parts: bool = False
    streams: bool = False

    def call(self, target: Target, arrays: Sequence[Any]) -> Call:
        """A call of it as compiled for a target; of its arrays the output comes first."""
        graph = FunctionGraph(list(self.inputs), [self.output])
        (group,) = fuse(graph, codegen).groups
        loops = codegen.lower(group)
        given = dict(zip(graph.inputs, arrays[1:], strict=True))
        read = [group.inputs[place] for place in loops.operands]
        passed = [arrays[0], *(one.data if isinstance(one, Constant) else given[one] for one in read)]
        if self.in_parts:
            code = compile_parallel_kernel(loops, target, "C", self.streams)
            return partial(code, 1, *passed)
        return partial(compile_kernel(loops, target).function, *passed)

    def arrays(self) -> list[Any]:
        """An output and inputs of its shapes, between 0.2 and 1."""
        generator = np.random.default_rng(0)
        values = [
            generator.random(prod(shape), dtype=np.float32).reshape(shape) * 0.8 + 0.2
            for shape in self.shapes
        ]
        inputs = [
            array.astype(variable.tensor_type.dtype)
            for array, variable in zip(values, self.inputs, strict=True)
        ]
        rank = self.output.tensor_type.ndim
        shape = np.broadcast_shapes(*self.shapes) if rank else ()
        return [np.empty(shape, self.output.tensor_type.dtype), *inputs]


def tuned(target: Target, seconds_of: Seconds) -> Target:
    """The target with the numbers that kernels were fastest with.

    Parameters
    ----------
    target
        One that this process can run code for, with the numbers to start from.
    seconds_of
        Times calls in turns.
    """
    for number, values, kernels in measurements(target):
        target = best(target, number, values, kernels, seconds_of)
    return target


def best(
    target: Target, number: str, values: Sequence[object], kernels: Sequence[TimedKernel], seconds_of: Seconds
) -> Target:
    """The target with the best of some values of a number."""
    shares = relative_times(target, number, values, kernels, seconds_of)
    means = {value: float(np.prod(times)) ** (1.0 / len(times)) for value, times in shares.items()}
    fastest = min(means, key=lambda value: means[value])
    in_memory = any(kernel.in_parts for kernel in kernels)
    least = LEAST_GAIN_IN_MEMORY if in_memory else LEAST_GAIN
    return target.tuned(**{number: fastest}) if means[fastest] < 1.0 - least else target


def relative_times(
    target: Target, number: str, values: Sequence[object], kernels: Sequence[TimedKernel], seconds_of: Seconds
) -> dict[object, list[float]]:
    """For each value of a number, the one at hand first, times of kernels in units of those with that one."""
    present = getattr(target.tuning, number)
    tried = [present, *(value for value in values if value != present)]
    shares: dict[object, list[float]] = {value: [] for value in tried}
    for kernel in kernels:
        arrays = kernel.arrays()
        calls = [kernel.call(target.tuned(**{number: value}), arrays) for value in tried]
        seconds = seconds_of(*calls)
        for value, elapsed in zip(tried, seconds, strict=True):
            shares[value].append(elapsed / seconds[0])
    return shares


def measurements(target: Target) -> Iterator[tuple[str, tuple[object, ...], tuple[TimedKernel, ...]]]:
    """Names of numbers, values they may have, and kernels that they matter to."""
    functions = (_exponentials("float64"), _tangents("float32"))
    if target.vector_bytes == 64:
        yield "preferred_vector_bytes", (32, 64), (*functions, _chain("float64"))
    counts = tuple(count for count in (0, 2, 4) if count * target.vector_bytes <= LONGEST_VECTOR)
    yield "interleave_count", counts, functions
    yield "arithmetic_interleave_count", (0, 2, 4), (_chain("float64"), _chain("float32"))
    if target.vector_bytes == 64:
        near = target.caches.level2 // 16
        yield "memory_vector_bytes", (32, 64), (_scaled("float64", near), _scaled("float32", near))
    sums, streams = _large_sums(), _large_streams()
    yield "reading_places", (1, 4), sums
    yield "prefetch_distance", (0, 4096, 8192, 16384), (sums[0], streams[0])
    yield "groups_rows", (True, False), (_large_rows(),)
    yield "rows_in_group", (2, 4, 8), (_large_rows(),)


def _exponentials(dtype: str) -> TimedKernel:
    v = vector("v", dtype=dtype)
    name = f"exp(-v*v)/(1+exp(v)) {dtype}"
    return TimedKernel(name, (v,), exp(-v * v) / (1.0 + exp(v)), ((ELEMENTS,),))


def _tangents(dtype: str) -> TimedKernel:
    x, y = vector("x", dtype=dtype), vector("y", dtype=dtype)
    name = f"tanh(x)*y+exp(-x*x) {dtype}"
    return TimedKernel(name, (x, y), tanh(x) * y + exp(-x * x), ((ELEMENTS,), (ELEMENTS,)))


def _chain(dtype: str) -> TimedKernel:
    x = vector("x", dtype=dtype)
    value = x
    for _ in range(20):
        value = value * x + 0.25
    return TimedKernel(f"20 steps of y*x+c {dtype}", (x,), value, ((ELEMENTS,),))


def _scaled(dtype: str, size: int) -> TimedKernel:
    x, y = vector("x", dtype=dtype), vector("y", dtype=dtype)
    return TimedKernel(f"a*x+y {dtype}", (x, y), x * 2.5 + y, ((size,), (size,)))


def _large_sums() -> tuple[TimedKernel, TimedKernel]:
    x, y = vector("x", dtype="float32"), vector("y", dtype="float32")
    return (
        TimedKernel("large sum(x*x)", (x,), total(square(x)), ((LARGE,),), in_parts=True),
        TimedKernel("large sum((x-y)**2)", (x, y), total(square(x - y)), ((LARGE,), (LARGE,)), in_parts=True),
    )


def _large_streams() -> tuple[TimedKernel, TimedKernel]:
    x, y = vector("x", dtype="float32"), vector("y", dtype="float32")
    return (
        TimedKernel("large a*x+b", (x,), x * 2.5 + 1.0, ((LARGE,),), in_parts=True, streams=True),
        TimedKernel("large a*x+y", (x, y), x * 2.5 + y, ((LARGE,), (LARGE,)), in_parts=True, streams=True),
    )


def _large_rows() -> TimedKernel:
    x, scale = matrix("x", dtype="float32"), vector("s", dtype="float32")
    centred = (x - total(x, axis=1, keepdims=True)) * scale
    shapes = (LARGE // ROW, ROW), (ROW,)
    return TimedKernel("large centred rows", (x, scale), centred, shapes, in_parts=True, streams=True)
