"""Programs as printed kernels, run by the emulator and compared with the ops' own NumPy functions."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from codegen.kernel_cases import group_of, reference
from gpu.conftest import IS_REAL
from gpu.emulator import run_launches

from esat.codegen import lower
from esat.codegen.kernel.loop_ir import Kernel
from esat.gpu.device import Device, cuda_device
from esat.gpu.kernel_text.kernels import Compiled
from esat.gpu.kernel_text.launches import Launches, LaunchVariant
from esat.gpu.printing import print_launches, sizes_in, variant_for
from esat.graph import Variable


def run(
    kernel: Kernel, outputs: Sequence[np.ndarray], inputs: Sequence[np.ndarray], seed: int | None, **changes
) -> list[str]:
    """Run a kernel's variant for these arrays, but for ``changes``; the families of its launches."""
    arrays = [*outputs, *inputs]
    strides = [array.strides for array in arrays]
    variant = variant_for(kernel, [array.shape for array in arrays], strides)
    variant = replace(variant, **changes)
    launches = print_launches(kernel, variant)
    names = [f"o{number}" for number in range(len(outputs))] + [f"x{number}" for number in range(len(inputs))]
    sizes = sizes_in(kernel, [array.shape for array in arrays], strides if variant.strided else None)
    run_anywhere(launches, dict(zip(names, arrays, strict=True)), sizes, seed)
    return [one.family for one in launches.launches]


def run_anywhere(
    launches: Launches, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], seed: int | None = None
) -> None:
    """Run launches in the emulator, or on the real device when tests run on one; outputs are filled in."""
    if not IS_REAL:
        run_launches(launches, arrays, sizes, seed=seed)
        return
    device = cuda_device()
    there = [_copied_with_strides(device, array) for array in arrays.values()]
    Compiled(device).prepared(launches, list(arrays), sizes)(there)
    for (name, array), found in zip(arrays.items(), there, strict=True):
        if name.startswith("o"):
            array[...] = device.download(found)


def _copied_with_strides(device: Device, array: np.ndarray) -> Any:
    """An array of the device with the elements of another as they lie in memory, and what is between them."""
    if array.flags.c_contiguous or not array.size:
        return device.upload(array)
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8)
    first = device.upload(memory)[array.__array_interface__["data"][0] - low :]
    first = first[: len(first) // array.itemsize * array.itemsize].view(array.dtype)
    return device.arrays.lib.stride_tricks.as_strided(first, array.shape, array.strides)


def check(
    outputs: Sequence[Variable],
    inputs: Sequence[Variable],
    data: Sequence[np.ndarray],
    seeds: Sequence[int | None] = (None,),
    **changes,
) -> list[str]:
    """Run a program in each order of threads; its results are NumPy's; the families of its launches."""
    group = group_of(outputs, inputs)
    kernel = lower(group)
    values = dict(zip(inputs, data, strict=True))
    passed = [values[group.inputs[place]] for place in kernel.operands]
    with np.errstate(all="ignore"):
        wanted = reference(group, values)
    families: list[str] = []
    first: list[np.ndarray] = []
    for seed in seeds:
        got = [np.full(one.shape, 99, one.dtype) for one in wanted]
        families = run(kernel, got, passed, seed, **changes)
        for one, expected in zip(got, wanted, strict=True):
            _compare(one, expected)
        for one, before in zip(got, first or got, strict=True):
            assert one.tobytes() == before.tobytes(), "results depend on the order of threads"
        first = got
    return families


def _compare(got: np.ndarray, wanted: np.ndarray) -> None:
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
        return
    tolerance = 2e-6 if got.dtype == np.float32 else 4e-15
    finite = np.isfinite(wanted)
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * largest)


def variant_of(kernel: Kernel, *shapes: tuple[int, ...]) -> LaunchVariant:
    """The variant for contiguous arrays of such shapes."""
    return variant_for(kernel, shapes)
