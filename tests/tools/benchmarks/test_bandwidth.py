"""The benchmark of programs that wait for memory."""

import pytest

from benchmarks import bandwidth
from benchmarks.peers.cases import CASES


def test_all_programs_are_there():
    assert set(bandwidth.BOUND_BY_MEMORY) <= {case.name for case in CASES}


@pytest.mark.parametrize("size", [100, 10_000])
def test_a_share_is_the_rate_by_that_of_a_copy(size, monkeypatch):
    """Two arrays are read and a number is returned, where a copy reads one array and writes one."""
    case = next(case for case in CASES if case.name == "sum((x-y)**2)")
    monkeypatch.setattr(bandwidth, "COPIED", size)
    monkeypatch.setattr(bandwidth, "_medians", lambda calls, rounds: [1.0 for _ in calls])
    assert bandwidth.share(case, size, "float64") == pytest.approx(1.0 + 0.5 / size)


def test_programs_and_copies_take_turns():
    calls = []
    seconds = bandwidth._medians((lambda: calls.append("ours"), lambda: calls.append("copy")), 2)
    assert calls == ["ours", "copy"] * 2
    assert min(seconds) > 0.0


def test_a_share_below_the_least_is_a_failure(capsys, monkeypatch):
    def share(case, size, dtype, rounds):
        return 0.5 if dtype == "float32" else 1.0

    monkeypatch.setattr(bandwidth, "share", share)
    assert bandwidth.main([]) == 1
    assert "7 of 14 below 0.9" in capsys.readouterr().out
    assert bandwidth.main(["--dtypes", "float64"]) == 0
