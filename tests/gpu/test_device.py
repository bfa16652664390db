"""A device: what it refuses, arrays of other libraries, memory that is short, a context that is lost."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gpu.emulator.stand_in import CUDARuntimeError, OutOfMemoryError, StandIn

import esat
from esat.errors import DeviceError, DeviceMemoryError
from esat.gpu.device import Device, cuda_device
from esat.phases.placement import Ends
from tests.gpu.programs import PROGRAMS, compiled_for, numbers


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_device.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(esat.ModeError, match=r"takes the package cupy \(pip install 'esat\[gpu\]'\)"):
        cuda_device()


def test_without_a_driver() -> None:
    arrays = StandIn()

    def refuse() -> int:
        raise CUDARuntimeError("cudaErrorInsufficientDriver: driver version is insufficient")

    arrays.cuda.runtime.getDeviceCount = refuse
    with pytest.raises(esat.ModeError, match="no CUDA driver that works: cudaErrorInsufficientDriver"):
        Device(arrays)


def test_without_a_device_and_with_an_old_one() -> None:
    with pytest.raises(esat.ModeError, match="there are 0 CUDA devices, none of number 0"):
        Device(StandIn(devices=0))
    with pytest.raises(esat.ModeError, match=r"capability 7.5; kernels take 8.0 or newer"):
        Device(StandIn(compute_capability="75"))
    assert Device(StandIn(compute_capability="100")).compute_capability == (10, 0)


def test_arrays_go_there_and_come_back(device: Device) -> None:
    for array in (numbers(300, 400), numbers(7)[::2], np.array(3.0), np.zeros((0, 4)), np.arange(5) > 2):
        there = device.upload(array)
        assert device.is_array(there)
        found = device.download(there)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(device.download(device.upload(numbers(3, 4)).T), numbers(3, 4).T)


def test_memory_that_comes_back_is_nobody_elses(device: Device) -> None:
    there = device.upload(numbers(600, 700))
    first, second = device.download(there), device.download(there)
    assert not np.shares_memory(first, second)
    del first
    np.testing.assert_array_equal(device.download(there), second)


def test_arrays_of_other_libraries_are_taken_without_a_copy(stand_in: Device) -> None:
    graph, data = PROGRAMS["elementwise"]()
    function = compiled_for(stand_in, graph, ends=Ends(frozenset((0, 1)), "device"))
    there = [stand_in.upload(array) for array in data]
    wanted = [stand_in.download(array) for array in function(*there)]
    shown = SimpleNamespace(__cuda_array_interface__=there[0].__cuda_array_interface__)
    packed = SimpleNamespace(
        __dlpack_device__=lambda: (2, 0), __dlpack__=lambda **_: there[1].memory.__dlpack__()
    )
    stand_in.arrays.uploads.clear()
    found = [stand_in.download(array) for array in function(shown, packed)]
    assert stand_in.arrays.uploads == []
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert stand_in.address(stand_in.admit(shown)) == stand_in.address(there[0])
    assert stand_in.address(stand_in.admit(packed)) == stand_in.address(there[1])
    assert stand_in.admit(data[0]) is None
    assert stand_in.admit([1.0]) is None


def _training() -> tuple[esat.Graph, Any, Any]:
    x = esat.vector("x", dtype="float32")
    w = esat.shared(np.ones(1000, "f"), name="w")
    return esat.Graph([x], [(x * w).sum()], updates={w: w + x}), w, x


def test_memory_that_is_short_is_given_back_and_asked_for_again(stand_in: Device) -> None:
    graph, w, _ = _training()
    function = compiled_for(stand_in, graph)
    ones = np.ones(1000, "f")
    arrays = stand_in.arrays
    real, failures = arrays.empty, [1]

    def short(shape: Any, dtype: Any = float) -> Any:
        if failures and np.dtype(dtype) == np.float32:
            failures.pop()
            raise OutOfMemoryError("Out of memory allocating 4,096 bytes (allocated so far: 0 bytes).")
        return real(shape, dtype)

    arrays.empty = short
    assert float(function(ones)) == 1000
    assert not failures
    assert arrays.get_default_memory_pool().given_back == 1
    np.testing.assert_array_equal(w.get_value(), np.full(1000, 2, "f"))


def test_what_programs_keep_for_later_calls_is_given_back_too(stand_in: Device) -> None:
    x = esat.matrix("x", dtype="float32")
    graph = esat.Graph([x], [esat.exp((x @ x.T).sum(axis=0))])
    function = compiled_for(stand_in, graph)
    for _ in range(6):
        wanted = function(numbers(9, 4))
    (signature,) = function._calls.driver.call.signatures.known.values()
    assert signature.replays
    assert signature.idle
    stand_in.give_back()
    assert not signature.replays
    assert not signature.idle
    np.testing.assert_array_equal(function(numbers(9, 4)), wanted)


def test_shapes_whose_calls_are_recorded_are_few(stand_in: Device) -> None:
    x = esat.matrix("x", dtype="float32")
    function = compiled_for(stand_in, esat.Graph([x], [esat.sort(x * np.float32(2), axis=1)]))
    for rows in range(1, 12):
        for _ in range(5):
            function(numbers(rows, 4))
    found = function._calls.driver.call.signatures.known.values()
    assert [bool(one.replays) for one in found] == [False] * 3 + [True] * 8


def test_no_memory_at_all_leaves_everything_as_it_was(stand_in: Device) -> None:
    graph, w, _ = _training()
    function = compiled_for(stand_in, graph)
    ones = np.ones(1000, "f")
    function(ones)
    stand_in.arrays.limit = 100
    with pytest.raises(DeviceMemoryError, match="no room for 4000 bytes, 100 are free") as caught:
        function(ones)
    assert (caught.value.needed, caught.value.free) == (4000, 100)
    assert "transfer" in caught.value.step
    stand_in.arrays.limit = 1 << 40
    np.testing.assert_array_equal(w.get_value(), np.full(1000, 2, "f"))
    assert float(function(ones)) == 2000


def test_a_lost_context_says_so_and_keeps_the_hosts_values(stand_in: Device) -> None:
    graph, w, _ = _training()
    function = compiled_for(stand_in, graph)
    ones = np.ones(1000, "f")
    arrays = stand_in.arrays

    def lost(*_: Any, **__: Any) -> Any:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access was encountered")

    arrays.asnumpy = lost
    w.set_value(np.full(1000, 5, "f"))
    kept = esat.shared(np.arange(3.0), name="kept")
    with pytest.raises(DeviceError, match="the device is lost"):
        function(ones)
    with pytest.raises(DeviceError, match="start the process anew"):
        function(ones)
    np.testing.assert_array_equal(ones, np.ones(1000, "f"))
    np.testing.assert_array_equal(kept.get_value(), np.arange(3.0))


def test_an_error_of_the_driver_that_passes(stand_in: Device) -> None:
    graph, _, _ = _training()
    function = compiled_for(stand_in, graph)
    arrays, real = stand_in.arrays, stand_in.arrays.asnumpy

    def refused(*_: Any, **__: Any) -> Any:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument")

    arrays.asnumpy = refused
    with pytest.raises(DeviceError, match="the device refused: cudaErrorInvalidValue"):
        function(np.ones(1000, "f"))
    arrays.asnumpy = real
    function(np.ones(1000, "f"))
