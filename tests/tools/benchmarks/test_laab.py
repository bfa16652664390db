"""The linear algebra benchmark: esat finds every cheap form, forms by hand are right, judging is strict."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import laab
from benchmarks.peers.by_hand import HAND, merged
from benchmarks.peers.esat_contender import executable
from benchmarks.peers.laab_cases import EXPRESSIONS, Expression
from benchmarks.peers.numpy_contender import Reference
from benchmarks.peers.record import Limits, Record, Run, save
from benchmarks.peers.worker import largest_error


def as_tuple(results: object) -> tuple:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("case", EXPRESSIONS, ids=lambda case: case.name)
def test_esat_finds_the_cheap_form_and_computes_it(case: Expression) -> None:
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-4)):
        arrays = case.arrays(60, dtype)
        compiled = executable(case, dtype)
        found = [np.asarray(one) for one in as_tuple(compiled(*arrays))]
        wanted = as_tuple(case.function(Reference, *(array.astype(np.float64) for array in arrays)))
        assert {array.dtype.name for array in found} == {dtype}
        assert largest_error(found, wanted) < tolerance
        for size in (None, 1500, 3000):
            sized = replace(case, size=size)
            assert laab.products(sized, dtype) == sized.cheap


@pytest.mark.parametrize("case", EXPRESSIONS, ids=lambda case: case.name)
def test_forms_by_hand_are_right(case: Expression) -> None:
    arrays = case.arrays(60, "float64")
    wanted = as_tuple(case.function(Reference, *arrays))
    found = [np.asarray(one) for one in as_tuple(case.by_hand(*arrays))]
    assert largest_error(found, wanted) < 1e-12


def run_of(case: Expression, seconds: dict[str, float]) -> Run:
    quartiles = {name: (time, 2 * time) for name, time in seconds.items()}
    ratios = {name: time for name, time in seconds.items() if name != HAND}
    record = Record(case.name, 9, "float64", 1, seconds, quartiles, {}, {}, 8, None, ratios)
    return Run((record,), (Limits(1, 1.0, {}),), {})


def test_passing_takes_speed_and_the_cheap_form() -> None:
    case = EXPRESSIONS[0]
    for ours, passes in ((1.0, True), (1.04, True), (1.06, False)):
        assert laab.passes(case, "esat", run_of(case, {"esat": ours, "handwritten": 1.0})) == passes
    run = run_of(case, {"esat": 0.5, "jax": 0.5, "handwritten": 1.0})
    other = replace(case, products=("gemv",))
    assert laab.passes(other, "jax", run)
    assert not laab.passes(other, "esat", run)
    assert not laab.passes(case, "torch", run)
    assert "NOT" not in laab.table(run)


def test_a_run_replaces_what_it_measured_again(tmp_path: Path) -> None:
    first, second = EXPRESSIONS[:2]
    old, new = (run_of(first, {"esat": seconds}) for seconds in (2.0, 1.0))
    path = tmp_path / "laab.json"
    save(run_of(second, {"esat": 3.0}), path.with_suffix(""))
    save(merged(path, old, EXPRESSIONS), path.with_suffix(""))
    both = merged(path, new, EXPRESSIONS)
    assert [(record.case, record.seconds["esat"]) for record in both.records] == [
        (first.name, 1.0),
        (second.name, 3.0),
    ]


def test_a_run_through_processes_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--n", "30", "--dtypes", "float64", "--cases", "T B", "--rounds", "1", "--peers"]
    laab.main([*options, "--output", str(tmp_path)])
    (record,) = laab.load(tmp_path / "laab.json").records
    assert set(record.seconds) == {"esat", "greedy", "handwritten"}
    assert not record.notes
    printed = capsys.readouterr().out
    assert laab.main(["--show", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() in printed
    assert (tmp_path / "laab.txt").read_text().strip() in printed
