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


def test_calls_with_numbers_enter_programs_as_calls_with_arrays_do(monkeypatch):
    def program(x, n, *, rate=0.5):
        return x * n + rate

    def several(x, n):
        return {"a": x + n, "b": (x * x, [n * 2])}

    compiled = esat.jit(program)
    given = [(2.0, 3), (np.float64(2.0), 3), (np.int8(2), np.float32(3.0)), (np.ones(2), 3), (1 + 2j, 2.5)]
    wanted = [compiled(*one) for one in given]
    with monkeypatch.context() as patch:
        patch.setattr(esat.functions.jitted.Jitted, "_found", lambda *_: pytest.fail("looked up in general"))
        for one, value in zip(given, wanted, strict=True):
            found = compiled(*one)
            assert type(found) is type(value) is type(program(*one))
            np.testing.assert_array_equal(found, program(*one))
    both = esat.jit(several)
    both(2.0, 3)
    with monkeypatch.context() as patch:
        patch.setattr(esat.functions.jitted.Jitted, "_found", lambda *_: pytest.fail("looked up in general"))
        assert repr(both(2.5, 4)) == repr(several(2.5, 4))
    for _ in range(2):  # what is part of a program, and what does not fit
        assert compiled(2.0, True) == 2.5
        assert compiled(2.0, False) == 0.5
        with pytest.raises(esat.errors.InputError, match="does not fit"):
            compiled(2.0, 2**70)
