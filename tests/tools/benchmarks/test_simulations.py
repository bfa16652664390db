"""Steps of simulations: esat and the loops by hand compute what NumPy does."""

import numpy as np
import pytest

from benchmarks import simulations
from benchmarks.peers import esat_contender, handwritten_contender
from benchmarks.peers.numpy_contender import Reference
from benchmarks.peers.record import Record
from benchmarks.peers.simulation_cases import SIMULATIONS


@pytest.mark.parametrize("case", SIMULATIONS, ids=lambda case: case.name)
@pytest.mark.parametrize("contender", [esat_contender, handwritten_contender])
def test_results_are_those_of_numpy(case, contender):
    arrays = case.arrays(11, "float64")
    found = contender.prepare(case, "float64")(*arrays)
    wanted = case.function(Reference, *arrays)
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-11, atol=1e-12)


def test_a_record_tells_which_peers_are_too_fast():
    seconds = {"esat": 2e-6, "jax": 1.9e-6, "pytensor": 9e-6, "handwritten": 1.7e-6}
    record = Record("forces between bodies", 32, "float64", 1, seconds, {}, {}, {}, 0, None)
    assert simulations.misses(record) == ["jax"]
    assert simulations.line(record).count("*") == 1
