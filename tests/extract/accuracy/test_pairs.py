"""Points at which one or two inputs are near an end of the range."""

from itertools import combinations, product

import numpy as np
import pytest

from esat.extract.accuracy.pairs import POWERS, paired_extremes


def is_near(values, power):
    """Where numbers are a power of the largest number of their format."""
    largest = float(np.finfo(values.dtype).max)
    with np.errstate(divide="ignore"):
        return np.isclose(np.log(np.abs(values.astype(np.float64))) / np.log(largest), power, atol=0.03)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_input_and_each_two_are_at_each_end(dtype):
    inputs = {number: np.ones(5, dtype) for number in range(3)}
    found = paired_extremes(inputs, dict.fromkeys(inputs, ()), 10_000)
    for one, other in combinations(inputs, 2):
        for first, second in product(POWERS, POWERS):
            assert (is_near(found[one], first) & is_near(found[other], second)).any()
    others = np.stack([is_near(values, 0) | (values == 0) for values in found.values()])
    for number, power in product(inputs, POWERS):
        assert (is_near(found[number], power) & (others.sum(axis=0) == 2)).any()
    assert all(np.isfinite(values).all() and values.dtype == dtype for values in found.values())


def test_zeros_are_beside_single_inputs_only():
    inputs = {number: np.ones(5) for number in range(6)}
    found = np.stack(list(paired_extremes(inputs, dict.fromkeys(inputs, ()), 48).values()))
    assert (found[:, :24] == 0).any()
    assert not (found[:, 24:] == 0).any()


def test_the_double_of_one_input_leaves_the_range_where_all_others_are_one():
    inputs = {number: np.ones(5) for number in range(3)}
    found = np.stack(list(paired_extremes(inputs, dict.fromkeys(inputs, ()), 15).values()))[:, 12:]
    largest = np.finfo(np.float64).max
    for number, values in enumerate(np.abs(found.T)):
        assert largest / 2 < values[number] < largest
        others = np.delete(values, number)
        assert (others > 0.7).all()
        assert (others < 1.0).all()


def test_each_input_comes_before_pairs():
    inputs = {number: np.ones(5) for number in range(3)}
    found = paired_extremes(inputs, dict.fromkeys(inputs, ()), 12)
    assert all(is_near(found[number], power).any() for number, power in product(inputs, POWERS))


def test_signs_that_are_known_are_kept_and_other_inputs_taken_as_they_are():
    inputs = {0: np.ones((5, 2), "float16"), 1: np.arange(5), 2: np.ones((5,))}
    found = paired_extremes(inputs, {0: ("negative",), 1: (), 2: ("positive",)}, 20)
    assert [values.shape for values in found.values()] == [(20, 2), (20,), (20,)]
    assert (found[0] < 0).all()
    assert (found[2] > 0).all()
    np.testing.assert_array_equal(found[1], np.arange(20) % 5)


@pytest.mark.parametrize(("kind", "count"), [("float64", 5), ("int64", 0)])
def test_one_input(kind, count):
    found = paired_extremes({0: np.ones(5, kind)}, {0: ()}, 1000)
    assert len(found.get(0, ())) == count
    assert all(is_near(found[0], power).any() for power in POWERS[:count])
