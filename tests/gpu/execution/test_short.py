"""The short way through programs whose arguments and results are on the device."""

from __future__ import annotations

import numpy as np
import pytest
from gpu.programs import PROGRAMS, compiled_for, of_host

import esat
from esat.errors import DeviceMemoryError
from esat.gpu.device import Device
from esat.gpu.execution.driver import DeviceDriver
from esat.gpu.execution.values import MAXIMUM_STREAMS, IdleFrames
from esat.phases.placement import Ends
from esat.runtime import Executable

ROW_SUMS = np.arange(12.0).reshape(3, 4)


def on_device(device: Device, graph: esat.Graph) -> tuple[Executable, DeviceDriver]:
    """A program for arguments and results on the device, and its driver."""
    function = compiled_for(device, graph, ends=Ends(frozenset(range(len(graph.inputs))), "device"))
    driver = function._calls.driver.call
    assert isinstance(driver, DeviceDriver)
    return function, driver


def two_kernels() -> esat.Graph:
    """Columns are summed before rows are: two kernels, and scratch between them."""
    x = esat.matrix("x")
    y = esat.tanh(x - x.sum(axis=0, keepdims=True))
    return esat.Graph([x], [y / (1.0 + (y * y).sum(axis=1, keepdims=True)), (y * y).sum(axis=0)])


def ways_of(driver: DeviceDriver) -> int:
    assert driver._ways is not None
    return len(driver._ways._known)


@pytest.mark.parametrize("name", ["elementwise", "black_scholes", "gaussian_process"])
def test_programs_compute_the_same_on_the_short_way(name: str, device: Device) -> None:
    graph, data = PROGRAMS[name]()
    function, driver = on_device(device, graph)
    wanted = of_host(graph)(*data)
    first = None
    for _ in range(3):  # with other arrays each time, so that nothing is replayed
        found = function(*map(device.upload, data))
        for one, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(device.download(one), right, rtol=2e-5, atol=1e-6)
        first = found if first is None else first
    assert driver._ways is None or ways_of(driver) == 1
    for one, right in zip(first, wanted, strict=True):
        np.testing.assert_allclose(device.download(one), right, rtol=2e-5, atol=1e-6)


def test_other_shapes_layouts_and_places_are_right_too(device: Device) -> None:
    graph = two_kernels()
    function, driver = on_device(device, graph)
    host = of_host(graph)
    for rows, columns in ((3, 4), (5, 6), (3, 4), (5, 6)):
        data = np.random.default_rng(rows).normal(size=(rows, columns))
        for array in (data, np.asfortranarray(data)):
            there = device.upload(array.T).T if array.flags.f_contiguous else device.upload(array)
            for one, right in zip(function(there), host(data), strict=True):
                np.testing.assert_allclose(device.download(one), right, rtol=1e-12)
    assert ways_of(driver) == 2
    beside = device.upload(np.arange(13.0))[1:].reshape(3, 4)
    for one, right in zip(function(beside), host(np.arange(1.0, 13.0).reshape(3, 4)), strict=True):
        np.testing.assert_allclose(device.download(one), right, rtol=1e-12)


def test_the_same_arrays_are_replayed_and_others_are_not(device: Device) -> None:
    graph = two_kernels()
    function, driver = on_device(device, graph)
    there, other = device.upload(ROW_SUMS), device.upload(ROW_SUMS + 1.0)
    for _ in range(6):
        found = function(there)
    (way,) = driver._ways._known.values()
    assert way.is_replayed
    assert way.signature.replays
    for array in (there, other, there):
        for one, right in zip(function(array), of_host(graph)(device.download(array)), strict=True):
            np.testing.assert_allclose(device.download(one), right, rtol=1e-12)
    np.testing.assert_allclose(device.download(found[0]), of_host(graph)(ROW_SUMS)[0], rtol=1e-12)


def test_calls_in_another_stream_have_scratch_and_graphs_of_their_own(stand_in: Device) -> None:
    """What was launched in the first stream may still run when the second one begins."""
    function, driver = on_device(stand_in, two_kernels())
    there = stand_in.upload(ROW_SUMS)
    for _ in range(6):
        function(there)
    (way,) = driver._ways._known.values()
    assert {replay.key[0] for replay in way.signature.replays} == {0}
    others = [stand_in.upload(ROW_SUMS + shift) for shift in range(3)]
    for other in others:
        function(other)
    assert list(way._frames._of) == [0]
    with stand_in.arrays.cuda.Stream() as stream:
        stand_in.arrays._stream = stream
        for array in (there, *others):
            for one, right in zip(
                function(array), of_host(two_kernels())(stand_in.download(array)), strict=True
            ):
                np.testing.assert_allclose(stand_in.download(one), right, rtol=1e-12)
        assert {replay.key[0] for replay in way.signature.replays} == {0}
        assert sorted(way._frames._of) == [0, stream.ptr]
        assert all(len(frames) == 1 for frames in way._frames._of.values())
        for _ in range(6):
            function(there)
        assert {replay.key[0] for replay in way.signature.replays} == {stream.ptr}


def test_scratch_is_kept_for_some_streams() -> None:
    frames: IdleFrames[str] = IdleFrames()
    assert frames.take(1) is None
    for stream in range(MAXIMUM_STREAMS + 1):
        frames.put(stream, str(stream))
    assert frames.take(0) is None
    assert frames.take(MAXIMUM_STREAMS) == str(MAXIMUM_STREAMS)
    assert frames.take(MAXIMUM_STREAMS) is None


def test_what_goes_wrong_is_told_by_the_long_way(stand_in: Device) -> None:
    x = esat.matrix("x")
    function, _ = on_device(stand_in, esat.Graph([x], [esat.exp(x) + 1.0]))
    there = stand_in.upload(ROW_SUMS)
    for _ in range(2):
        function(there)
    stand_in.arrays.limit = 10
    with pytest.raises(DeviceMemoryError, match="no room for 96 bytes"):
        function(there)
    stand_in.arrays.limit = 1 << 40
    np.testing.assert_allclose(stand_in.download(function(there)), np.exp(ROW_SUMS) + 1.0)


def test_programs_that_update_have_no_short_way(device: Device) -> None:
    graph, _data = PROGRAMS["logistic_regression"]()
    _function, driver = on_device(device, graph)
    assert driver._ways is None
