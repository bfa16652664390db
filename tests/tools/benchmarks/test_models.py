"""The benchmark of models: what it calls right and wrong, and a model through real processes."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.models import main
from benchmarks.peers.esat_contender import differentiated
from benchmarks.peers.model_cases import MODELS
from benchmarks.peers.numpy_contender import Reference

SMALL = next(model for model in MODELS if model.name == "eight schools")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_densities_are_numbers(model):
    value = model.density(Reference, *model.arrays(model.size, "float64"))
    assert np.shape(value) == ()
    assert np.isfinite(value)


def test_errors_are_seen():
    at = SMALL.arrays(SMALL.size, "float64")
    found = list(differentiated(SMALL, "float64")(*at))
    assert SMALL.error(Reference, found, at) < 1e-10
    for place in range(len(found)):
        wrong = [*found[:place], found[place] * 1.01 + 0.01, *found[place + 1 :]]
        assert SMALL.error(Reference, wrong, at) > 1e-10
    assert SMALL.error(Reference, found[:-1], at) == np.inf
    assert replace(SMALL, shapes=((), (), (5,))).error(Reference, found, at) == np.inf


def test_a_model_in_processes(capsys):
    assert main(["--models", "eight schools", "--peers", "handwritten", "--steps"]) == 0
    printed = capsys.readouterr().out
    assert "eight schools" in printed
    assert "predictions are off by" in printed
