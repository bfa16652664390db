"""Whole programs with a device: a stand-in for cupy, and the emulator for printed kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import esat
from esat.gpu.device import Device
from esat.phases.placement import Ends
from tests.gpu.programs import PROGRAMS, compiled_for, numbers, of_host

TOLERANCES = {"float32": 2e-6, "float64": 1e-12}


def close(found: Any, wanted: Any) -> None:
    """Equal but for the order of additions, relative to the largest number."""
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    scale = max(float(np.abs(wanted).max()), 1e-30)
    assert float(np.abs(found - wanted).max()) / scale <= TOLERANCES[str(wanted.dtype)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_the_hosts_call_after_call(name: str, device: Device) -> None:
    """Six calls: the first ones step by step, the last ones as a graph where that is possible."""
    results = []
    for there in (False, True):
        graph, data = PROGRAMS[name]()
        function = compiled_for(device, graph) if there else of_host(graph)
        found: list[Any] = []
        for _ in range(6):
            returned = function(*data)
            found += returned if isinstance(returned, tuple) else [returned]
        results.append([*found, *(variable.get_value() for variable in graph.updated)])
    for wanted, found in zip(*results, strict=True):
        close(found, wanted)


def test_results_are_on_the_device_where_the_placement_says_so(device: Device) -> None:
    graph, data = PROGRAMS["elementwise"]()
    wanted = of_host(graph)(*data)
    function = compiled_for(device, graph, ends=Ends(frozenset((0, 1)), "device"))
    given = [device.upload(array) for array in data]
    for _ in range(6):
        found = function(*given)
        assert all(map(device.is_array, found))
        for one, other in zip(found, wanted, strict=True):
            close(device.download(one), other)


def test_a_training_step_copies_only_data_and_loss(stand_in: Device) -> None:
    graph, data = PROGRAMS["logistic_regression"]()
    function = compiled_for(stand_in, graph)
    function(*data)
    stand_in.arrays.uploads.clear()
    stand_in.arrays.downloads.clear()
    function(*data)
    assert sorted(stand_in.arrays.uploads) == sorted(array.nbytes for array in data)
    assert stand_in.arrays.downloads == [4]
    (w,) = graph.updated
    assert w.is_elsewhere
    assert stand_in.is_array(w.get_value(borrow=True))
    assert w.get_value().shape == (16,)


def test_a_recorded_call_sees_values_set_on_the_host(device: Device) -> None:
    x = esat.vector("x", dtype="float32")
    w = esat.shared(np.ones(5, "f"), name="w")
    function = compiled_for(device, esat.Graph([x], [esat.exp(x) * w], updates={w: w + np.float32(1)}))
    ones = np.ones(5, "f")
    for _ in range(8):
        function(ones)
    w.set_value(np.full(5, 3, "f"))
    close(function(ones), np.exp(ones) * np.float32(3))
    close(w.get_value(), np.full(5, 4, "f"))


def test_changing_a_value_between_calls_does_not_confuse_the_sides(device: Device) -> None:
    x = esat.scalar("x", dtype="float32")
    w = esat.shared(np.zeros(4, "f"), name="w")
    step = esat.Graph([x], [w.sum()], updates={w: w + x})
    there, here = compiled_for(device, step), of_host(step)
    one = np.float32(1)
    totals = [float(function(one)) for function in (there, here, there, there, here, there)]
    assert totals == [0, 4, 8, 12, 16, 20]
    lent = w.get_value(borrow=True)
    lent[0] = 100
    assert w.get_value()[0] == 100
    assert float(here(one)) == 100 + 3 * 6


def test_out_on_either_side(device: Device) -> None:
    graph, data = PROGRAMS["elementwise"]()
    wanted = of_host(graph)(*data)
    function = compiled_for(device, graph)
    here = tuple(np.full_like(array, 7) for array in wanted)
    there = tuple(device.upload(array) for array in here)
    assert function(*data, out=here)[1] is here[1]
    for one, other in zip(here, wanted, strict=True):
        close(one, other)
    assert function(*data, out=there)[0] is there[0]
    for one, other in zip(there, wanted, strict=True):
        close(device.download(one), other)
    with pytest.raises(esat.InputError, match="out: output 0"):
        function(*data, out=(np.zeros((3, 3), "f"), here[1]))


def test_arguments_of_the_wrong_kind(device: Device) -> None:
    graph, data = PROGRAMS["elementwise"]()
    function = compiled_for(device, graph)
    with pytest.raises(esat.InputError, match="takes 2 inputs"):
        function(data[0])
    with pytest.raises(esat.InputError, match="device array of dtype float64"):
        function(device.upload(data[0].astype("d")), data[1])
    with pytest.raises(esat.InputError, match="the rank differs"):
        function(data[1], data[1])
    with pytest.raises(esat.ShapeError):
        function(data[0], numbers(7))


def test_arguments_that_are_given_away(stand_in: Device) -> None:
    x, y = esat.vector("x", dtype="float32"), esat.vector("y", dtype="float32")
    graph = esat.Graph([x, y], [esat.exp(x) * y])
    function = compiled_for(stand_in, graph, ends=Ends(frozenset((0, 1)), "device"), donated=(0,))
    a, b = stand_in.upload(numbers(100)), stand_in.upload(numbers(100, seed=1))
    wanted = np.exp(numbers(100)) * numbers(100, seed=1)
    found = function(a, b)
    assert np.shares_memory(found.memory, a.memory)
    close(stand_in.download(found), wanted)
    same = stand_in.upload(numbers(100))
    close(stand_in.download(function(same, same)), np.exp(numbers(100)) * numbers(100))


def test_measured_calls_count_steps_and_bytes(device: Device) -> None:
    graph, data = PROGRAMS["elementwise"]()
    function = compiled_for(device, graph)
    function.measure()
    function(*data)
    assert [step.calls for step in function.profile.steps] == [1] * len(function.steps)
    assert sum(step.bytes for step in function.profile.steps) > data[0].nbytes


def _replays(function: Any) -> list[bool]:
    """Whether calls of each combination of shapes are replayed as a graph."""
    driver = function._calls.driver.call
    return [bool(one.replays) for one in driver.signatures.known.values()]


@pytest.mark.parametrize("name", ["elementwise", "logistic_regression"])
def test_calls_that_repeat_are_recorded(name: str, device: Device) -> None:
    graph, data = PROGRAMS[name]()
    function = compiled_for(device, graph)
    for _ in range(3):
        function(*data)
    assert _replays(function) == [False]
    for _ in range(2):
        function(*data)
    assert _replays(function) == [True]


def test_results_of_recorded_calls_are_the_callers(device: Device) -> None:
    x = esat.vector("x", dtype="float32")
    w = esat.shared(np.zeros(5, "f"), name="w")
    graph = esat.Graph([x], [esat.exp(x) + w, esat.sort(x)], updates={w: w + np.float32(1)})
    function = compiled_for(device, graph, ends=Ends(frozenset((0,)), "device"))
    given, base = device.upload(numbers(5)), np.exp(numbers(5))
    kept = [function(given) for _ in range(9)]
    views = [one[0][1:] for one in kept[-2:]]
    del kept[-2:]
    kept += [function(given) for _ in range(3)]
    for call, (found, ordered) in enumerate([*kept[:7], *[(None, None)] * 2, *kept[7:]]):
        if found is not None:
            close(device.download(found), base + np.float32(call))
            close(device.download(ordered), np.sort(numbers(5)))
    for call, view in enumerate(views, 7):
        close(device.download(view), (base + np.float32(call))[1:])
    assert _replays(function) == [True]
    del kept, views, found, ordered, view
    seen = {id(function(given)[0]) for _ in range(4)}
    assert len(seen) <= 2  # nobody looks: the same memory again


def test_values_that_change_places_do_so_in_recorded_calls(device: Device) -> None:
    x = esat.vector("x", dtype="float32")
    a, b = esat.shared(np.zeros(3, "f"), name="a"), esat.shared(np.ones(3, "f"), name="b")
    graph = esat.Graph([x], [esat.exp(x) + a], updates={a: b, b: a})
    function = compiled_for(device, graph)
    ones = np.ones(3, "f")
    for call in range(9):
        close(function(ones), np.exp(ones) + np.float32(call % 2))
    assert _replays(function) == [True]
    close(a.get_value(), np.ones(3, "f"))
    close(b.get_value(), np.zeros(3, "f"))


def test_calls_that_wait_for_values_are_not_recorded(device: Device) -> None:
    x = esat.vector("x", dtype="float32")
    function = compiled_for(device, esat.Graph([x], [esat.exp(x[x > 0])]))
    for _ in range(6):
        close(function(numbers(9)), np.exp(numbers(9)[numbers(9) > 0]))
    assert _replays(function) == [False]


def test_numbers_that_are_written_over_have_been_read(device: Device) -> None:
    """Loops that follow read a number again: it may not be overwritten before them."""
    a, b = esat.scalar("a", dtype="float64"), esat.scalar("b", dtype="float64")
    x = esat.vector("x", dtype="float64")
    ends = Ends(frozenset(range(3)), "device")
    for outputs in ([a + b, a * b], [a + x.sum(), x * a, b - a]):
        used = [one for one in (a, b, x) if one is not x or len(outputs) == 3]
        wanted = of_host(esat.Graph(used, outputs))(*[np.arange(3.0) if one is x else 2.5 for one in used])
        function = compiled_for(device, esat.Graph(used, outputs), ends=ends, donated=(0, 1))
        given = [device.upload(np.arange(3.0) if one is x else np.array(2.5)) for one in used]
        for one, other in zip(function(*given), wanted, strict=True):
            close(device.download(one), np.asarray(other))
