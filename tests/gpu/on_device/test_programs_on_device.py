"""Whole programs on the device: those of the benchmark, and random ones."""

import numpy as np
import pytest
from gpu.on_device.random_on_device import check_on_device
from gpu.programs import compiled_for

import esat
from benchmarks.device.cases import DEVICE_CASES
from benchmarks.peers.cases import Case
from benchmarks.peers.numpy_contender import Reference
from esat.gpu.device import Device
from esat.phases.placement import Ends

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", DEVICE_CASES, ids=lambda case: case.name)
def test_programs_of_the_benchmark(case: Case, dtype: str, device: Device) -> None:
    inputs = [esat.tensor(f"x{n}", shape=shape, dtype=dtype) for n, shape in enumerate(case.static_shapes())]
    made = case.function(esat, *inputs)
    outputs = list(made) if isinstance(made, tuple) else [made]
    ends = Ends(frozenset(range(len(inputs))), "device")
    function = compiled_for(device, esat.Graph(inputs, outputs), ends=ends)
    for size in (4096, 1000, 1_000_000, 300_007, 1):
        arrays = case.arrays(size, dtype)
        wanted = case.function(Reference, *(array.astype("float64") for array in arrays))
        there = [device.upload(array) for array in arrays]
        for _ in range(5):  # the later ones are replayed
            found = function(*there)
        found = found if isinstance(found, tuple | list) else [found]
        for one, right in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            error = np.abs(device.download(one) - right).max(initial=0.0)
            assert error <= TOLERANCE[dtype] * max(np.abs(right).max(initial=0.0), 1e-30), (size, error)


@pytest.mark.parametrize("first", range(0, 300, 4))
def test_random_programs(first: int, device: Device) -> None:
    for seed in range(first, first + 4):
        check_on_device(seed, 3 + seed % 6, device)
