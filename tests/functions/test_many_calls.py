"""Calls of functions of many numbers and arrays, until after their native functions are made."""

import numpy as np
import pytest
from native_calls import way_of

import esat
from esat.runtime.native import direct
from functions.many_calls import Program


@pytest.mark.parametrize("seed", range(40))
def test_each_of_many_calls_is_right(seed):
    jitted = Program(seed).run(calls=direct.CALLS + 100, shapes="symbolic" if seed % 3 == 2 else "static")
    assert {way_of(program) for program in jitted.programs.values()} == {"native"}


@pytest.mark.parametrize("kind", [complex, np.complex128, np.complex64])
def test_complex_numbers_are_taken_natively(kind):
    function = esat.jit(lambda z, c: (z * z + c, c.real * 2.0))
    z = np.linspace(0.0, 1.0, 5) * (1.0 + 2.0j)
    for call in range(230):
        c = kind(0.25 * call - 0.5j)
        for found, wanted in zip(function(z, c), (z * z + c, c.real * 2.0), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6 if kind is np.complex64 else 1e-14)
