"""Random programs of parts of arrays, with programs and e-graphs kept on disk, against NumPy.

``python tests/functions/recorded/test_fuzz_recorded.py 0 1000`` tries the programs of these seeds.
"""

import sys

import numpy as np
import pytest

import esat
from esat.runtime.native import direct

MODES = ("fast_run", "fast_run", "greedy", "fast_compile")
DTYPES = ("float64", "float32", "int64")


@pytest.fixture(autouse=True)
def _kept_on_disk(monkeypatch):
    monkeypatch.setenv("ESAT_EGRAPH_CACHE", "1")
    monkeypatch.setattr(direct, "CALLS", 2)


def random_slice(rng, size):
    bounds = (None, None, 0, 1, 2, -1, -2, size, size - 1, -size, size + 2, -size - 2)
    steps = (None, None, 1, 2, -1, -2, 3, -3)
    return slice(*(bounds[rng.integers(len(bounds))] for _ in range(2)), steps[rng.integers(len(steps))])


def random_index(rng, shape):
    """Slices, integers, arrays, new axes and an ellipsis."""
    index, with_arrays = [], rng.random() < 0.3
    for size in shape[: rng.integers(len(shape) + 1)]:
        kind = rng.random()
        if kind < 0.55:
            index.append(random_slice(rng, size))
        elif kind < 0.75 and size:
            index.append(int(rng.integers(-size, size)))
        elif with_arrays and size:
            index.append(rng.integers(-size, size, 3))
        else:
            index.append(slice(None))
    if rng.random() < 0.2:
        index.insert(int(rng.integers(len(index) + 1)), None)
    return tuple(index) if rng.random() < 0.8 else (*index, Ellipsis)


def written(rng, variable, array):
    index, value = random_index(rng, array.shape), array.dtype.type(rng.integers(-1, 8))
    part, result = variable[index], array.copy()
    if rng.random() < 0.5:
        np.add.at(result, index, value)
        return esat.inc_subtensor(part, value), result
    result[index] = value
    return esat.set_subtensor(part, value), result


def random_step(rng, variable, array):
    """A step further: the new variable, and NumPy's value of it."""
    kind = rng.integers(9)
    axis = int(rng.integers(array.ndim)) if array.ndim else None
    if kind <= 2:
        index = random_index(rng, array.shape)
        return variable[index], array[index]
    if kind <= 4:
        return written(rng, variable, array)
    if kind == 5:
        shift = int(rng.integers(-3, 4))
        return esat.roll(variable, shift, axis), np.roll(array, shift, axis)
    if kind == 6:
        return variable.T.ravel(), array.T.ravel()
    if kind == 7 and axis is not None:
        joined = np.concatenate([array, array[::-1]], axis=axis)
        return esat.concatenate([variable, variable[::-1]], axis=axis), joined
    return variable * 2 + 1, array * 2 + 1


def check(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 7, rng.integers(1, 4)))
    array = rng.integers(-9, 9, shape).astype(DTYPES[rng.integers(3)])
    x = esat.tensor("x", shape=shape if rng.random() < 0.5 else (None,) * len(shape), dtype=str(array.dtype))
    variable, value, outputs, wanted = x, array, [], []
    for _ in range(rng.integers(1, 7)):
        variable, value = random_step(rng, variable, value)
        value = np.asarray(value, array.dtype)
        if rng.random() < 0.4:
            outputs.append(variable)
            wanted.append(value)
    graph = esat.Graph([x], [*outputs, variable])
    mode = MODES[rng.integers(len(MODES))]
    for _ in range(2):  # the second one is found on disk
        function = esat.compile(graph, mode)
        for _ in range(4):
            found = function(array)
            for one, other in zip(found if outputs else [found], [*wanted, value], strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(60))
def test_programs_of_parts_are_numpys_when_they_are_kept(seed):
    check(seed)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), sum(map(int, sys.argv[1:3]))):
        try:
            check(number)
        except Exception as error:
            print(f"{number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
