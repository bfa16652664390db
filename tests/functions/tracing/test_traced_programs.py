"""Programs as they are written for NumPy, with nothing but the decorator added."""

import copy

import numpy as np
import pytest

import esat
from functions.everyday import PROGRAMS
from functions.kernels import KERNELS

ALL = {**KERNELS, **PROGRAMS}


def equal(found, expected):
    if isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) or isinstance(expected, tuple)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            equal(one, other)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            equal(found[key], expected[key])
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert type(found) is type(expected)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        tolerance = 1e-5 if found.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        assert type(found) is type(expected)
        assert found == expected


@pytest.mark.parametrize("name", ALL)
def test_runs_as_written(name):
    function, make = ALL[name]
    compiled = esat.jit(function, mode="fast_compile")
    for seed in (0, 1):
        given = make(np.random.default_rng(seed))
        expected_of = copy.deepcopy(given)
        expected = function(*expected_of)
        equal(compiled(*given), expected)
        equal(given, expected_of)
    assert len(compiled.programs) == 1
