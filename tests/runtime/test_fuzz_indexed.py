"""Random parts of random arrays, read, written, added to and differentiated, against NumPy.

``python tests/runtime/test_fuzz_indexed.py 0 200`` tries the parts of these seeds.
"""

import sys

import numpy as np
import pytest

import esat
from esat.errors import EsatError, IndexingError

DTYPES = ("float64", "float32", "int8", "uint16", "int64", "bool")
INDEX_DTYPES = ("int64", "int32", "uint8")
MODES = ("fast_run", "greedy", "o2")


def random_index(rng, shape):
    """An index with one array at the least, the arrays, and where they stand in it."""
    rank = int(rng.integers(0, 3))
    common = tuple(int(size) for size in rng.integers(0 if rng.random() < 0.15 else 1, 5, rank))
    axes = [int(axis) for axis in np.flatnonzero(rng.random(len(shape)) < 0.6)] or [0]
    index, arrays, given = [], [], []
    for axis, size in enumerate(shape):
        if rng.random() < 0.15:
            index.append(None)
        if axis not in axes:
            kind = rng.integers(4)
            index.append(
                int(rng.integers(-size, size)) if kind == 0 else slice(1, None) if kind == 1 else slice(None)
            )
            continue
        own = tuple(1 if rng.random() < 0.3 else n for n in common[int(rng.integers(0, rank + 1)) :])
        dtype = INDEX_DTYPES[rng.integers(3)]
        low = 0 if dtype.startswith("u") else -size
        arrays.append(rng.integers(low, size, own).astype(dtype))
        given.append(len(index))
        index.append(None)
    return index, arrays, given


def with_arrays(index, given, arrays):
    whole = list(index)
    for place, array in zip(given, arrays, strict=True):
        whole[place] = array
    return tuple(whole)


def check(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 5, rng.integers(1, 5)))
    dtype = DTYPES[rng.integers(len(DTYPES))]
    array = (rng.standard_normal(shape) * 3).astype(dtype)
    index, arrays, given = random_index(rng, shape)
    flags = [tuple(1 if n == 1 else None for n in one.shape) for one in arrays]
    x = esat.tensor("x", dtype=dtype, shape=(None,) * len(shape))
    places = [
        esat.tensor(f"i{n}", dtype=str(a.dtype), shape=flag)
        for n, (a, flag) in enumerate(zip(arrays, flags, strict=True))
    ]
    chosen = array[with_arrays(index, given, arrays)]
    value = (rng.standard_normal(chosen.shape) * 3).astype(dtype)
    y = esat.tensor("y", dtype=dtype, shape=tuple(1 if n == 1 else None for n in value.shape))
    symbolic = with_arrays(index, given, places)
    part = x[symbolic]
    outputs = [part, x.at[symbolic].set(y), x.at[symbolic].add(y)]
    put, added = array.copy(), array.copy()
    put[with_arrays(index, given, arrays)] = value
    np.add.at(added, with_arrays(index, given, arrays), value)
    wanted = [chosen, put, added]
    if dtype == "float64":
        outputs += esat.grad((part * part * y).sum(), [x, y])
        gradient = np.zeros_like(array)
        np.add.at(gradient, with_arrays(index, given, arrays), 2 * chosen * value)
        wanted += [gradient, chosen**2]
    program = esat.compile(esat.Graph([x, y, *places], outputs), mode=MODES[seed % 3])
    held = array.copy()
    for got, one in zip(program(array, value, *arrays), wanted, strict=True):
        assert got.dtype == one.dtype
        assert got.shape == one.shape
        np.testing.assert_allclose(
            got, one, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-6, err_msg=str(seed)
        )
    np.testing.assert_array_equal(array, held)
    for number, one in enumerate(arrays):
        if one.size:
            wrong = one.copy()
            wrong.flat[rng.integers(one.size)] = 100
            with pytest.raises(IndexingError):
                program(array, value, *arrays[:number], wrong, *arrays[number + 1 :])


@pytest.mark.parametrize("seed", range(8))
def test_parts_are_those_of_numpy(seed):
    check(seed)


if __name__ == "__main__":
    for one in range(*map(int, sys.argv[1:])):
        try:
            check(one)
        except (AssertionError, EsatError, pytest.fail.Exception) as error:
            print(one, type(error), error)
