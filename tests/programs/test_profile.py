import re
import time

import pytest

import esat
from esat.classic.profile import OptimizerProfile
from esat.egraph.saturation.saturation_report import SaturationReport
from esat.optimize.saturation import _describe
from esat.runtime.function_profile import Profile, StepProfile


class Clock:
    """A clock that goes only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("esat.runtime.function_profile.time", clock)
    return clock


def test_stages_keep_their_order_and_add_up(clock) -> None:
    profile = Profile()
    for name in ("encode", "saturate", "encode"):
        with profile.stage(name):
            clock.sleep(2.0)
    assert profile.stages == {"encode": 4.0, "saturate": 2.0}
    assert list(profile.stages) == ["encode", "saturate"]
    assert profile.compile_seconds == 6.0


def test_a_stage_inside_another_counts_once(clock) -> None:
    profile = Profile()
    with profile.stage("outer"):
        clock.sleep(2.0)
        with profile.stage("inner", "linker"):
            clock.sleep(10.0)
    assert profile.stages == {"outer": 2.0, "inner": 10.0}
    assert profile.compile_seconds == 12.0
    assert profile.phase_seconds("linker") == 10.0


def test_stages_of_a_whole_leave_no_gap(clock) -> None:
    profile = Profile()
    with profile.whole():
        clock.sleep(10.0)
        with profile.stage("first"):
            with profile.stage("inside"):
                clock.sleep(2.0)
            clock.sleep(3.0)
        clock.sleep(20.0)
        with profile.stage("second"):
            pass
        clock.sleep(5.0)
    assert profile.compile_seconds == 40.0
    assert profile.stages == {"first": 13.0, "inside": 2.0, "second": 25.0}
    clock.sleep(10.0)
    with profile.stage("later"):
        pass
    assert profile.stages["later"] == 0.0


def test_a_stage_that_fails_is_timed_all_the_same() -> None:
    profile = Profile()
    with pytest.raises(ValueError), profile.stage("decode"):
        raise ValueError
    with profile.stage("fusion"):
        pass
    assert list(profile.stages) == ["decode", "fusion"]


def test_printing_follows_the_documents() -> None:
    profile = Profile(message="model.py:23", nodes_before=123, nodes_after=50)
    profile.stages = {"saturate": 1.5, "extract": 0.5, "kernels": 0.25}
    profile.phases = {"saturate": "optimizer", "extract": "optimizer", "kernels": "linker"}
    profile.details.append(("saturate", "0.5s - 3 - 4 - exp-log"))
    assert str(profile).splitlines() == [
        "Function profiling",
        "==================",
        "  Message: model.py:23",
        "  Time in 0 calls to Executable.__call__: 0.000000e+00s (counted after measure())",
        "  Total compile time: 2.250000e+00s",
        "    Number of Apply nodes: 50 (before optimization: 123)",
        "    esat Optimizer time: 2.000000e+00s",
        "       saturate time: 1.500000e+00s",
        "          0.5s - 3 - 4 - exp-log",
        "       extract time: 5.000000e-01s",
        "    esat Linker time (includes kernel generation/compiling): 2.500000e-01s",
        "       kernels time: 2.500000e-01s",
        "  Time in all call to esat.grad() 0.000000e+00s",
    ]


def test_steps_print_sorted_by_time_with_their_bandwidth() -> None:
    profile = Profile(steps=[StepProfile("library: matmul"), StepProfile("kernel: add, exp", nodes=2)])
    for _ in range(2):
        profile.steps[0].add(1e-6, 2000)
        profile.steps[1].add(3e-6, 6000)
        profile.add_call(5e-6)
    lines = str(profile).splitlines()
    first, second = lines[-2:]
    assert re.search(r"75.0%\s+75.0% 6.000e-06s 3.000e-06s\s+2\s+12000\s+2.00\s+2\s+kernel: add, exp", first)
    assert re.search(r"25.0% 100.0%.*library: matmul", second)
    assert any("Time in 2 calls to Executable.__call__: 1.000000e-05s" in line for line in lines)


def test_the_same_as_data() -> None:
    profile = Profile(message="here", steps=[StepProfile("view: x")])
    profile.steps[0].add(0.5, 100)
    with profile.stage("encode"):
        pass
    data = profile.as_dict()
    assert data["stages"] == profile.stages
    assert data["steps"] == [
        {
            "name": "view: x",
            "nodes": 1,
            "calls": 1,
            "seconds": 0.5,
            "bytes": 100,
            "bandwidth": 200.0,
            "threads": 1,
        }
    ]


def test_time_of_gradients_is_told_and_no_part_of_the_compilation() -> None:
    x = esat.vector("x")
    first = esat.compile(esat.Graph([x], [x + 1.0]), "fast_compile").profile
    begin = time.perf_counter()
    gradient = esat.grad(esat.tanh(x).sum(), x)
    spent = time.perf_counter() - begin
    second = esat.compile(esat.Graph([x], [gradient]), "fast_compile").profile
    assert 0.0 < second.gradient_seconds - first.gradient_seconds <= spent
    assert second.compile_seconds == sum(second.stages.values())
    assert f"Time in all call to esat.grad() {second.gradient_seconds:.6e}s" in str(second)


def test_what_routines_compile_is_no_part_of_the_memory_plan() -> None:
    x, w = esat.matrix("x"), esat.vector("w")
    profile = esat.compile(esat.Graph([x, w], x.T @ esat.tanh(x @ w))).profile
    assert profile.phases["routines"] == "linker"
    names = list(profile.stages)
    assert names.index("routines") < names.index("memory plan")
    assert profile.stages["memory plan"] < 0.5 * sum(profile.stages.values())


def test_a_kept_e_graph_tells_of_its_rounds() -> None:
    kept = OptimizerProfile("e-graph cache", "Stage")
    _describe([kept], SaturationReport("saturated", 3, 0.1, 40, ()), [])
    text = str(kept)
    assert "for 3 rounds of another process, ended by: saturated" in text
    assert "nb e-nodes at the end 40" in text
