"""Formulas of linear algebra: esat's results and those by hand are right, and judging is strict."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import linear_algebra
from benchmarks.peers.application_cases import APPLICATIONS
from benchmarks.peers.esat_contender import executable
from benchmarks.peers.numpy_contender import Reference
from benchmarks.peers.record import Limits, Record, Run
from benchmarks.peers.worker import largest_error

SIZE = 40


def as_tuple(results: object) -> tuple:
    return results if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("case", APPLICATIONS, ids=lambda case: case.name)
def test_forms_by_hand_and_programs_are_right(case) -> None:
    arrays = case.arrays(SIZE, "float64")
    wanted = as_tuple(case.function(Reference, *arrays))
    by_hand = [np.asarray(one) for one in as_tuple(case.by_hand(*case.arrays(SIZE, "float64")))]
    assert largest_error(by_hand, wanted) < 1e-11
    program = executable(case.at(SIZE), "float64")
    found = [np.asarray(one) for one in as_tuple(program(*arrays))]
    assert largest_error(found, wanted) < 1e-11
    assert "inv" not in {node.op.name for node in program.optimized.toposort()}


def test_inputs_are_what_is_said_of_them() -> None:
    for case in APPLICATIONS:
        for one, array in zip(case.inputs, case.arrays(SIZE, "float64"), strict=True):
            assert array.shape == one.shape(SIZE)
            if one.structure == "positive_definite":
                np.testing.assert_allclose(array, array.T)
                assert np.linalg.eigvalsh(array).min() > 0.1
            if one.structure == "positive":
                assert (array > 0).all()
            if one.structure == "lower_triangular":
                np.testing.assert_array_equal(array, np.tril(array))


def test_passing_takes_no_more_than_a_tenth_above() -> None:
    assert len({case.name for case in APPLICATIONS}) == len(APPLICATIONS) >= 25
    quartiles = {linear_algebra.HAND: (1.0, 1.0)}
    record = Record(APPLICATIONS[0].name, 9, "float64", 1, {}, quartiles, {}, {}, 8, None, {"esat": 1.09})
    assert linear_algebra.passes(record, "esat")
    assert not linear_algebra.passes(record, "jax")
    slow = replace(record, ratios={"esat": 1.11})
    assert not linear_algebra.passes(slow, "esat")
    rows = linear_algebra.table(Run((record, slow), (Limits(1, 1.0, {}),), {})).splitlines()
    assert rows[-1].split()[-4:] == ["1", "0", "0", "0"]
    assert "1.11*" in rows[-2]
