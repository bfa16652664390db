"""The benchmark of latencies measures what it says."""

import json
import os
import random

import numpy as np
import pytest

import esat
from benchmarks import latency


@pytest.mark.parametrize("seed", range(4))
def test_kernels_have_ten_ops_and_finite_results(seed):
    inputs, result = latency.random_kernel(random.Random(seed))
    assert len(esat.FunctionGraph(inputs, [result])) == 10
    values = np.linspace(-1.0, 1.0, 5)
    assert np.isfinite(esat.evaluate([result], dict.fromkeys(inputs, values))[0]).all()


def test_a_figure_is_missed_by_its_median():
    assert latency.Figure("call", "us", (1.0, 3.0, 2.0), 1.9).is_missed
    assert not latency.Figure("call", "us", (1.0, 3.0, 2.0), 2.0).is_missed
    assert "MISSED" in str(latency.Figure("call", "us", (2.0,), 1.0))
    assert not latency.Figure("call", "us", (5.0,)).is_missed


def test_calls_are_timed(capsys, monkeypatch):
    monkeypatch.setattr(latency, "CALL_ROUNDS", 1)
    latency.main(["--only", "call"])
    printed = capsys.readouterr().out
    for name in ("call of a*x+b, float32", "call of 20 kernels, float64"):
        assert name in printed


def test_compilations_are_timed_whole_and_in_part(capsys, monkeypatch):
    monkeypatch.setattr(latency, "WARM_UP", 0)
    latency.print_compilations(2)
    wholes, _, kernels = json.loads(capsys.readouterr().out)
    assert len(wholes) == len(kernels) == 2
    assert all(0.0 < kernel < whole for kernel, whole in zip(kernels, wholes, strict=True))


def test_a_new_process_is_timed():
    wall, processor = latency.first_result(os.environ)
    assert processor > 0.0
    assert wall > 0.0
