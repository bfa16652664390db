"""``compare_times``: contenders compute the same, and nothing is changed by timing them."""

import numpy as np
import pytest

import esat
from esat.errors import CallError, OptimizerError
from esat.tools.comparison import NUMPY, WRITTEN


def counting() -> tuple[esat.Executable, esat.SharedVariable]:
    x, total = esat.vector("x"), esat.shared(0.0, name="total")
    return esat.compile(esat.Graph([x], [x.sum()], updates={total: total + x.sum()})), total


def test_times_come_first_in_the_report_and_shared_variables_keep_their_values() -> None:
    f, total = counting()
    assert str(f.report).startswith("predicted: ")
    times = esat.compare_times(f, np.arange(4.0), rounds=2)
    assert times.calls == 2
    assert set(times.others) == {WRITTEN, NUMPY}
    assert min(times.seconds, *times.others.values()) > 0.0
    assert f.report.measured is times
    assert str(f.report).splitlines()[0] == str(times)
    assert total.get_value() == 0.0
    assert f(np.arange(4.0)) == 6.0


def test_measured_calls_come_first_in_the_report() -> None:
    f, _ = counting()
    f.measure()
    f(np.ones(3))
    f(np.ones(3))
    assert f.report.measured.calls == 2
    assert f.report.measured.seconds == f.profile.typical_call_seconds
    assert str(f.report).startswith("measured: ")
    assert "a call (median of 2)" in str(f.report).splitlines()[0]


def test_functions_of_jit_are_compared_by_their_last_program() -> None:
    @esat.jit
    def total(x):
        return np.exp(x).sum()

    total(np.ones(3))
    assert esat.compare_times(total, np.ones(3), rounds=1).others
    assert "as written" in str(total.report)


def test_what_cannot_be_compared_is_an_error() -> None:
    x = esat.vector("x")
    with pytest.raises(CallError, match="compiled function is wanted"):
        esat.compare_times(np.sum, np.ones(3))
    with pytest.raises(CallError, match="from 1 on"):
        esat.compare_times(counting()[0], np.ones(3), rounds=0)
    with pytest.raises(CallError, match="donated"):
        esat.compare_times(esat.compile(esat.Graph([x], [x + 1.0]), donate=[x]), np.ones(3))
    f, _ = counting()
    f.again = None
    with pytest.raises(OptimizerError, match="as written"):
        esat.compare_times(f, np.ones(3))
