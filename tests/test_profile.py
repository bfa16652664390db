import re
import time

import pytest

import esat
from esat.profile import Profile, StepProfile


def test_stages_keep_their_order_and_add_up() -> None:
    profile = Profile()
    for name in ("encode", "saturate", "encode"):
        with profile.stage(name):
            time.sleep(0.002)
    assert list(profile.stages) == ["encode", "saturate"]
    assert profile.stages["encode"] > profile.stages["saturate"] >= 0.002
    assert profile.compile_seconds == sum(profile.stages.values())


def test_a_stage_inside_another_counts_once() -> None:
    profile = Profile()
    start = time.perf_counter()
    with profile.stage("outer"):
        time.sleep(0.002)
        with profile.stage("inner", "linker"):
            time.sleep(0.01)
    spent = time.perf_counter() - start
    assert profile.stages["outer"] < profile.stages["inner"]
    assert profile.compile_seconds == pytest.approx(spent, rel=0.2)
    assert profile.phase_seconds("linker") == profile.stages["inner"]


def test_stages_of_a_whole_leave_no_gap() -> None:
    profile = Profile()
    start = time.perf_counter()
    with profile.whole():
        time.sleep(0.01)
        with profile.stage("first"):
            with profile.stage("inside"):
                time.sleep(0.002)
            time.sleep(0.003)
        time.sleep(0.02)
        with profile.stage("second"):
            pass
        time.sleep(0.005)
    spent = time.perf_counter() - start
    assert profile.compile_seconds == pytest.approx(spent, rel=0.01)
    assert 0.013 <= profile.stages["first"] <= profile.stages["second"]
    assert profile.stages["second"] >= 0.025
    time.sleep(0.01)
    with profile.stage("later"):
        pass
    assert profile.stages["later"] < 0.01


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
        "  Time in 0 calls to Executable.__call__: 0.000000e+00s",
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
