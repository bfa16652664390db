"""TuningNumbers: the fastest of several values of a number is taken, where it is faster by enough."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from esat.codegen.ground.host import untuned_host
from esat.codegen.ground.target import TuningNumbers
from esat.tools.kernel_tuning import LEAST_GAIN, LEAST_GAIN_IN_MEMORY, TimedKernel, best, measurements

HOST = untuned_host()
NUMBERS = {number: (values, kernels) for number, values, kernels in measurements(HOST)}


def test_numbers_that_are_measured_are_those_of_a_target() -> None:
    assert NUMBERS.keys() <= {field.name for field in fields(TuningNumbers)}
    for number, (values, kernels) in NUMBERS.items():
        assert kernels
        assert len(values) > 1
        kind = type(getattr(HOST.tuning, number))
        assert all(type(value) is kind for value in values)


@pytest.mark.parametrize("gain", [0.01, 0.3])
@pytest.mark.parametrize("number", ["arithmetic_interleave_count", "prefetch_distance"])
def test_the_fastest_value_is_taken_where_it_is_faster_by_enough(number: str, gain: float) -> None:
    values, kernels = NUMBERS[number]
    calls: list[int] = []

    def seconds_of(*variants: Callable[[], Any]) -> list[float]:
        calls.append(len(variants))
        for variant in variants:
            variant()
        return [2.0, *(2.0 + place for place in range(len(variants) - 2)), 2.0 * (1.0 - gain)]

    small = tuple(small_of(kernel) for kernel in kernels)
    tuned = best(HOST, number, values, small, seconds_of)
    others = [value for value in values if value != getattr(HOST.tuning, number)]
    assert calls == [1 + len(others)] * len(kernels)
    assert 0.01 < LEAST_GAIN < LEAST_GAIN_IN_MEMORY < 0.3
    assert tuned == (HOST.tuned(**{number: others[-1]}) if gain == 0.3 else HOST)


def small_of(kernel: TimedKernel) -> TimedKernel:
    """The same for less data."""
    shapes = tuple(tuple(min(size, 4096) for size in shape) for shape in kernel.shapes)
    return replace(kernel, shapes=shapes)


def test_what_is_timed_computes_what_it_says() -> None:
    total, _ = NUMBERS["prefetch_distance"][1]
    arrays = small_of(total).arrays()
    small_of(total).call(HOST, arrays)()
    np.testing.assert_allclose(arrays[0], np.square(arrays[1]).sum(), rtol=1e-6)
