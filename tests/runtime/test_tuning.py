"""Autotuning: measurements correct a cost model that is wrong, and are made once."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import esat
from esat.base.storage import DiskStore
from esat.extract.prices.machine import MachineProfile
from esat.runtime import tuning
from esat.runtime.executable import Executable
from esat.runtime.tuning import Tuning, Winners, winners

# Work costs nothing, calls everything: every order of products is predicted to take the same time.
BLIND = MachineProfile(
    matrix_rate=1e18,
    matrix_half=1e-3,
    bandwidths=(1e18, 1e18, 1e18),
    matrix_call=1e-3,
)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Winners:
    own = Winners(DiskStore(tmp_path, "choice"))
    monkeypatch.setattr(tuning, "winners", lambda: own)
    return own


def chain(sizes: tuple[int, ...], right_first: bool) -> esat.Graph:
    a, b, c = (esat.tensor(name, shape=pair) for name, pair in zip("abc", pairwise(sizes), strict=False))
    return esat.Graph([a, b, c], [a @ (b @ c) if right_first else (a @ b) @ c])


def is_right_first(executable: Executable) -> bool:
    last = executable.optimized.outputs[0].owner
    assert last is not None
    return last.inputs[0] in executable.optimized.input_set


@pytest.mark.parametrize(
    ("sizes", "right_first"), [((900, 900, 900, 2), True), ((2, 900, 900, 900), False)], ids=["right", "left"]
)
@pytest.mark.parametrize("written_right_first", [True, False])
def test_measuring_corrects_a_wrong_model(
    sizes: tuple[int, ...], right_first: bool, written_right_first: bool
) -> None:
    graph = chain(sizes, written_right_first)
    f = esat.compile(graph, mode=esat.Mode("fast_run", machine=BLIND, autotune=True))
    assert is_right_first(f) is right_first
    arrays = [np.random.default_rng(0).normal(size=pair) for pair in pairwise(sizes)]
    np.testing.assert_allclose(f(*arrays), np.linalg.multi_dot(arrays), rtol=1e-9)


def test_a_winner_is_remembered_in_memory_and_on_disk(
    tmp_path: Path, own_store: Winners, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = esat.Mode("fast_run", machine=BLIND, autotune=True)
    first = esat.compile(chain((900, 900, 900, 2), False), mode=mode)
    assert not first.report.tuning.remembered
    assert len(first.report.tuning.seconds) >= 2
    assert is_right_first(first)

    def refuse(*_: object) -> None:
        raise AssertionError("timed again")

    monkeypatch.setattr(tuning, "_timed", refuse)
    again = esat.compile(chain((900, 900, 900, 2), False), mode=mode)
    assert again.report.tuning == Tuning(remembered=True)
    assert is_right_first(again)
    fresh = Winners(DiskStore(tmp_path, "choice"))
    monkeypatch.setattr(tuning, "winners", lambda: fresh)
    other_process = esat.compile(chain((900, 900, 900, 2), False), mode=mode)
    assert other_process.report.tuning.remembered
    assert is_right_first(other_process)
    with pytest.raises(AssertionError, match="timed again"):
        esat.compile(chain((2, 900, 900, 900), False), mode=mode)  # other sizes


def test_a_remembered_selection_that_does_not_fit_is_not_taken(own_store: Winners) -> None:
    f = esat.compile(chain((9, 9, 9, 2), False), mode="fast_run")
    for wrong in ([], [10**6] * 3, [-1] * f.report.e_classes, [0] * f.report.e_classes):
        own_store.keep("0" * 64, np.array(wrong, np.int64))
        assert own_store.find("0" * 64, f.report.extraction) is None


def test_updates_and_donations_are_not_made_while_timing() -> None:
    x = esat.tensor("x", shape=(600, 600))
    w = esat.shared(np.eye(600), shape=(600, 600))
    v = esat.tensor("v", shape=(600, 1))
    graph = esat.Graph([x, v], [(x @ w) @ v], updates={w: w * 2.0})
    mode = esat.Mode("fast_run", machine=BLIND, autotune=True)
    f = esat.compile(graph, mode=mode, donate=[x])
    assert len(f.report.tuning.seconds) >= 2
    np.testing.assert_array_equal(w.get_value(), np.eye(600))
    a, b = np.random.default_rng(0).normal(size=(600, 600)), np.ones((600, 1))
    np.testing.assert_allclose(f(a.copy(), b), a @ b, rtol=1e-9)
    np.testing.assert_array_equal(w.get_value(), 2.0 * np.eye(600))


def test_a_program_that_random_arguments_do_not_fit_stays_as_predicted() -> None:
    x = esat.tensor("x", shape=(5, 5))
    factor = esat.linalg.cholesky(x)  # of no matrix that is not positive definite
    f = esat.compile(
        esat.Graph([x], [(factor @ x) @ x]), mode=esat.Mode("fast_run", machine=BLIND, autotune=True)
    )
    assert f.report.tuning.seconds == ()
    np.testing.assert_allclose(f(np.eye(5)), np.eye(5))
    given = esat.Mode("fast_run", machine=BLIND, autotune=True, samples=(np.eye(5),))
    assert len(esat.compile(esat.Graph([x], [(factor @ x) @ x]), mode=given).report.tuning.seconds) >= 2


def test_the_report_tells_of_it() -> None:
    mode = esat.Mode("fast_run", machine=BLIND, autotune=True)
    f = esat.compile(chain((300, 300, 300, 2), False), mode=mode)
    assert "programs timed" in str(f.report)
    assert f.profile.stages["autotune"] > 0.0
    assert winners() is not None
