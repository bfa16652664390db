"""The sweep over single ops: every form is measured, and what is slow is listed first."""

import numpy as np
import pytest

from benchmarks import operations
from esat.graph.registry import op_named
from esat.ops.reduction import ARGMAX, SUM


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr(operations, "SECONDS", 1e-6)
    monkeypatch.setattr(operations, "ROUNDS", 1)


def test_every_form_of_an_op_is_measured():
    found = list(operations.elementwise_results(op_named("add"), "float64", [200]))
    assert [one.form for one in found] == list(operations.FORMS)
    assert all(one.seconds > 0 and one.ratio > 0 for one in found)


def test_reductions_run_over_every_kind_of_axes():
    sums = list(operations.reduction_results(SUM, "float32", [160]))
    assert [one.form for one in sums] == [form for form, _ in operations.AXES]
    places = list(operations.reduction_results(ARGMAX, "float32", [160]))
    assert [one.form for one in places] == ["all", "last", "first", "middle"]


@pytest.mark.parametrize("form", operations.FORMS)
def test_operands_have_the_layout_that_their_form_names(form):
    left, right = operations.operands(op_named("add"), form, "float64", 1000)
    assert left.shape == (10, 100)
    assert np.broadcast_shapes(left.shape, right.shape) == left.shape
    assert left.flags.c_contiguous == (form in ("C", "row", "column"))


def test_what_is_slower_than_numpy_is_printed(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["operations", "--ops", "exp", "--sizes", "100", "--below", "1e9"])
    operations.main()
    lines = capsys.readouterr().out.splitlines()
    ratios = [float(line.split()[0]) for line in lines[1:-1]]
    assert ratios == sorted(ratios)
    assert len(ratios) == 6
    assert lines[-1].startswith("6 of 6 below")
