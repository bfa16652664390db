"""Calls of functions of many numbers and arrays, until after their native functions are made."""

import pytest
from native_calls import way_of

from esat.runtime import direct
from functions.many_calls import Program


@pytest.mark.parametrize("seed", range(40))
def test_each_of_many_calls_is_right(seed):
    jitted = Program(seed).run(calls=direct.CALLS + 100, shapes="symbolic" if seed % 3 == 2 else "static")
    assert {way_of(program) for program in jitted.programs.values()} == {"native"}
