"""The benchmark on a device: a small run on the stand-in, and what its tables say."""

import functools
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gpu.conftest import IS_REAL
from gpu.emulator.stand_in import StandIn
from gpu.programs import compiled_for

from benchmarks import gpu, gpu_kernels
from benchmarks.device import contenders
from benchmarks.device.cases import DEVICE_CASES, bytes_of
from benchmarks.device.match import Contest, Settings
from benchmarks.device.record import DeviceRecord, DeviceRun, load
from benchmarks.device.table import table
from benchmarks.peers.cases import Case
from benchmarks.peers.numpy_contender import Reference
from esat import Graph, tensor
from esat.gpu.device import Device, cuda_device
from esat.phases.placement import Ends

LINEAR = next(case for case in DEVICE_CASES if case.name == "a*x+b")


def ours(device: Device) -> contenders.Contender:
    def prepare(case: Case, dtype: str):
        inputs = [tensor("x", shape=shape, dtype=dtype) for shape in case.static_shapes()]
        ends = Ends(frozenset(range(len(inputs))), "device")
        return compiled_for(device, Graph(inputs, [case.function(None, *inputs)]), ends=ends)

    return contenders.Contender(
        "esat", "here", prepare, lambda a: a, lambda a: a, lambda results: None, lambda: None
    )


def peer(device: Device, name: str = "cupy", change=None) -> contenders.Contender:
    def prepare(case: Case, dtype: str):
        changed = (lambda *arrays: change(case.function(None, *arrays))) if change else None
        return changed or functools.partial(case.function, None)

    return replace(ours(device), name=name, prepare=prepare, by_events=False)


@pytest.mark.skipif(IS_REAL, reason="the stand-in's own run")
def test_a_run_on_the_stand_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = Device(StandIn())
    monkeypatch.setattr(gpu, "cuda_device", lambda: device)
    monkeypatch.setattr(gpu, "contenders", lambda device, names: {"esat": ours(device), "cupy": peer(device)})
    options = ["--quick", "--cases", "a*x+b", "--sizes", "1e3", "--copied", "1000", "--order", "256"]
    assert gpu.main([*options, "--output", str(tmp_path)]) == 0
    run = load(tmp_path / "stand_in.json")
    (record,) = run.records
    assert record.bytes == 16_000
    assert set(record.seconds) == set(record.device) == {"esat", "cupy"}
    assert not record.notes
    printed = capsys.readouterr().out
    assert "geometric mean of all" in printed
    assert gpu.main(["--show", str(tmp_path / "stand_in.json")]) == 0
    assert capsys.readouterr().out.strip() in printed


def test_wrong_and_failing_contenders_are_not_timed() -> None:
    device = Device(StandIn())

    def fails(result):
        raise MemoryError("no room for it")

    found = {
        "esat": peer(device, "esat"),
        "cupy": peer(device, "cupy", lambda result: result * np.float32(1.01)),
        "jax": peer(device, "jax", lambda result: result.astype("float64")),
        "torch": peer(device, "torch", fails),
    }
    record = Contest(device, found, Settings(1, 1e-4)).play(LINEAR, 100, "float32")
    assert set(record.seconds) == {"esat"}
    assert record.notes["cupy"].startswith("wrong by")
    assert record.notes["jax"] == "returns float64"
    assert record.notes["torch"] == "MemoryError: no room for it"


@pytest.mark.parametrize("case", DEVICE_CASES[-3:], ids=lambda case: case.name)
def test_further_cases_compute_what_they_say(case: Case) -> None:
    arrays = case.arrays(10_000, "float64")
    found = case.function(Reference, *arrays)
    assert found.shape == arrays[0].shape
    assert np.isfinite(found).all()
    assert bytes_of(case, 10_000, "float64") == sum(array.nbytes for array in arrays)


def test_tables_show_ratios_and_shares() -> None:
    record = DeviceRecord(
        "a*x+b", 10**8, "float32", {"esat": 1e-3, "jax": 9e-4}, {"esat": 8e-4}, {}, {}, {}, 16 * 10**8, None
    )
    run = DeviceRun("H 100", 2.5e12, {"float32": 5e13}, {"esat": "1", "jax": "2"}, (record,))
    assert run.stem == "h_100"
    shown = table(run)
    assert "0.90 <" in shown
    assert "copy  80%" in shown
    assert "1 of 1 below 0.95" in shown


@pytest.mark.skipif(IS_REAL, reason="the stand-in's own run")
def test_shares_of_single_kernels(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", StandIn())
    cuda_device.cache_clear()
    try:
        options = ["--elements", "1e3", "--dtypes", "float32", "--kernels", "exp", "column sums"]
        assert gpu_kernels.main(options) == 0
    finally:
        cuda_device.cache_clear()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["copy", "exp", *["column"] * 4]
    assert lines[2].split()[2:5] == ["125", "x", "8"]
