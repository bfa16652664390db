"""Points at which one or two inputs are near an end of the range."""

from itertools import combinations, product

import numpy as np
import pytest

from esat.extract.accuracy.pairs import POWERS, paired_extremes


def powers_of(values):
    largest = float(np.finfo(values.dtype).max)
    return np.log(np.abs(values.astype(np.float64))) / np.log(largest)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_two_inputs_are_at_each_two_ends(dtype):
    inputs = {number: np.ones(5, dtype) for number in range(3)}
    found = paired_extremes(inputs, dict.fromkeys(inputs, ()), 10_000)
    powers = {number: powers_of(values) for number, values in found.items()}
    for one, other in combinations(inputs, 2):
        for first, second in product(POWERS, POWERS):
            if first or second:
                near = np.abs(powers[one] - first) + np.abs(powers[other] - second) < 0.06
                assert near.any(), (one, other, first, second)
    assert all(np.isfinite(values).all() and values.dtype == dtype for values in found.values())


def test_signs_that_are_known_are_kept_and_other_inputs_taken_as_they_are():
    inputs = {0: np.ones((5, 2), "float16"), 1: np.arange(5), 2: np.ones((5,))}
    found = paired_extremes(inputs, {0: ("negative",), 1: (), 2: ("positive",)}, 20)
    assert [values.shape for values in found.values()] == [(20, 2), (20,), (20,)]
    assert (found[0] < 0).all()
    assert (found[2] > 0).all()
    np.testing.assert_array_equal(found[1], np.arange(20) % 5)


@pytest.mark.parametrize(("kind", "count"), [("float64", 4), ("int64", 0)])
def test_one_input(kind, count):
    found = paired_extremes({0: np.ones(5, kind)}, {0: ()}, 1000)
    assert len(found.get(0, ())) == count
    if count:
        assert {round(float(power) * 2) for power in powers_of(found[0])} == {1, -1, 2, -2}
