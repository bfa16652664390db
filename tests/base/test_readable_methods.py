"""Reports and explanations, read or called."""

import inspect

import numpy as np
import pytest

import esat
from esat.base.readable_methods import readable
from esat.errors import OptimizerError


class Square:
    @readable
    def area(self, side: float = 2.0) -> float:
        """Of a square."""
        return side * side


def test_what_is_read_is_what_a_call_returns() -> None:
    square = Square()
    assert square.area(3.0) == 9.0
    assert repr(square.area) == str(square.area) == "4.0"
    assert square.area.is_integer()
    assert Square.area.__doc__ == "Of a square."
    assert list(inspect.signature(square.area).parameters) == ["side"]
    with pytest.raises(AttributeError):
        square.area._private


def test_report_and_explain_of_both_kinds_of_function() -> None:
    compiled = esat.compile(esat.Graph([x := esat.vector("x")], [esat.log(esat.exp(x)) * 2]))
    jitted = esat.jit(lambda x: np.log(np.exp(x)) * 2)
    jitted(np.ones(3))
    for function in (compiled, jitted):
        assert str(function.report) == str(function.report())
        assert str(function.explain) == str(function.explain())
        assert function.explain.parts == function.explain().parts
        assert function.explain(limit=0).parts[0].alternatives == ()


def test_reading_fails_as_a_call_does() -> None:
    plain = esat.compile(esat.Graph([x := esat.vector("x")], [x * 2]), mode="fast_compile")
    for ask in (plain.explain, lambda: str(plain.explain), lambda: plain.explain.parts):
        with pytest.raises(OptimizerError):
            ask()
