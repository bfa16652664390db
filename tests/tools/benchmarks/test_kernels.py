"""The benchmark of kernels: its cases mean the same everywhere, and a small run through real processes."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kernels
from benchmarks.peers import environments, match
from benchmarks.peers.cases import CASES, Case
from benchmarks.peers.client import Client, ContenderLostError
from benchmarks.peers.esat_contender import executable
from benchmarks.peers.numpy_contender import Reference
from benchmarks.peers.record import Limits, Record, load
from benchmarks.peers.worker import largest_error


def as_tuple(results: object) -> tuple:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_of_two_sizes_through_one_executable(case: Case) -> None:
    compiled = executable(case, "float32", mode="fast_compile")
    for size in (100, 400):
        arrays = case.arrays(size, "float32")
        found = as_tuple(compiled(*arrays))
        wanted = as_tuple(case.function(Reference, *(array.astype(np.float64) for array in arrays)))
        assert {array.dtype.name for array in found} == {"float32"}
        assert largest_error(list(found), wanted) < 1e-5


def test_errors_are_seen() -> None:
    right = np.array([1.0, 2.0])
    assert largest_error([right], (right,)) == 0.0
    assert largest_error([np.array([1.0, 2.2])], (right,)) == pytest.approx(0.1)
    for wrong in ([np.array([1.0, np.nan])], [right[:1]], [right, right]):
        assert largest_error(wrong, (right,)) == np.inf


def test_a_run_through_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--quick", "--cases", "a*x+b", "--sizes", "1e2", "--dtypes", "float64", "--peers", "numpy"]
    assert kernels.main([*options, "--output", str(tmp_path)]) == 0
    (record,) = load(tmp_path / "quick.json").records
    assert record.bytes == 3200
    assert set(record.seconds) == {"esat", "numpy"}
    assert not record.notes
    assert 1e-8 < record.seconds["esat"] < 1.0
    printed = capsys.readouterr().out
    assert "geometric mean of all" in printed
    assert kernels.main(["--show", str(tmp_path / "quick.json")]) == 0
    assert capsys.readouterr().out.strip() in printed


def test_a_run_goes_on_where_another_one_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*options: str) -> list[Record]:
        sizes, where = ["--sizes", "1e2", "1e3"], ["--output", str(tmp_path)]
        chosen = ["--quick", "--cases", "a*x+b", "--dtypes", "float64", *sizes, *where]
        assert kernels.main([*chosen, *options]) == 0
        return list(load(tmp_path / "quick.json").records)

    (first,) = run("--peers", "--minutes", "0")
    assert first.size == 100
    both = run("--peers", "--resume")
    assert both[0] == first
    assert [record.size for record in both] == [100, 1000]
    # Combinations are measured again where a contender had no part in them, and without --resume.
    assert [set(record.seconds) for record in run("--peers", "numpy", "--resume", "--minutes", "0")] == [
        {"esat", "numpy"},
        {"esat"},
    ]
    (again,) = run("--peers", "--minutes", "0")
    assert again.seconds != first.seconds
    # What other code measured does not count.
    stored = json.loads((tmp_path / "quick.json").read_text())
    (tmp_path / "quick.json").write_text(json.dumps({**stored, "code": "other"}))
    capsys.readouterr()
    assert len(run("--peers", "--resume", "--minutes", "0")) == 1
    assert "everything is measured anew" in capsys.readouterr().out


def test_peers_far_behind_take_part_in_few_rounds() -> None:
    seconds = {"esat": 1.0, "numpy": 5.0, "jax": 1.6, "pytensor": 4.7}
    assert match._far_behind(seconds) == {"numpy"}
    assert match._far_behind({"esat": 9.0, "jax": 1.0}) == set()
    assert match._far_behind({"esat": 9.0}) == set()


def test_a_turn_is_filled_though_the_process_was_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def turn(contest: match.Contest, name: str, do: str, count: int) -> dict[str, float]:
        asked.append(count)
        return {"seconds": 0.004 if asked.count(count) == 2 else 2.0**-15}

    monkeypatch.setattr(match.Contest, "_ask", turn)
    contest = match.Contest({}, 1, match.Settings(rounds=15, seconds=0.01))
    assert contest._count("esat") == (327, 2.0**-15)
    assert asked[3] == 3276


def test_a_contender_that_fails_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(match.Contest, "_ask", lambda *_, **__: asked.append("time") or {"failed": "why"})
    assert match.Contest({}, 1, match.Settings(rounds=15, seconds=0.01))._count("jax") == (1, 1.0)
    assert asked == ["time"]


def test_limits_are_the_best_that_was_seen() -> None:
    first, second = Limits(1, 2.0, {"float64": 3.0}), Limits(1, 1.0, {"float64": 4.0, "float32": 5.0})
    assert second.or_better(first) == Limits(1, 2.0, {"float64": 4.0, "float32": 5.0})


def test_unknown_cases_are_refused() -> None:
    with pytest.raises(SystemExit, match=r"no case is named sofmax; there are: a\*x\+b"):
        kernels.main(["--cases", "sofmax"])


def test_a_lost_process_is_named() -> None:
    with pytest.raises(ContenderLostError, match=r"nobody died: .*nobody_contender"):
        Client("nobody", Path(sys.executable), threads=1)


def test_interpreters_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    monkeypatch.delenv("ESAT_BENCH_NUMEXPR", raising=False)
    given = {"numexpr": tmp_path / "given"}
    assert environments.interpreter_of("numexpr", given) == tmp_path / "given"
    monkeypatch.setenv("ESAT_BENCH_NUMEXPR", "/elsewhere")
    assert environments.interpreter_of("numexpr", {}) == Path("/elsewhere")
    assert environments.interpreter_of("esat", {}) == Path(sys.executable)


def test_ratios() -> None:
    times = {"esat": 2.0, "numpy": 8.0, "jax": 3.0}
    record = Record("case", 100, "float64", 1, times, {}, {}, {"numexpr": "failed"}, 0, None)
    assert (record.best_peer, record.best_ratio, record.ratio("numpy")) == ("jax", 1.5, 4.0)
    assert record.ratio("numexpr") is None
    assert json.dumps(record.seconds)
