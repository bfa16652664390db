"""Calls in one thread or in several, whichever is faster, and the native functions of both ways."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runtime.test_threads import EAGER, compiled, data, programs, same_bits

import esat
from esat.codegen.threads import choice as calls_module
from esat.codegen.threads.choice import ChosenCalls
from esat.frontend.graph import Graph
from esat.graph import Variable
from esat.runtime.native import direct

CALLS = 20
X, V = esat.matrix("x"), esat.vector("v")


class Told:
    """A choice that is set from outside, and keeps what it is told."""

    def __init__(self, calls_alone: int = 0) -> None:
        self.calls_alone = calls_alone
        self.way, self.untimed, self.summed, self.slow = True, 0, 0, 0.0
        self.told: list[tuple[bool, float, int]] = []

    def next(self) -> bool:
        return self.way

    def add(self, together: bool, seconds: float, calls: int = 1) -> None:
        self.told.append((together, seconds, calls))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    choice = Told()
    monkeypatch.setattr(calls_module, "ThreadingChoice", lambda calls_alone: choice)
    return choice


def timed(monkeypatch: pytest.MonkeyPatch, seconds: list[float]) -> Callable[..., Any]:
    """A function whose calls take so long, one after the other."""
    clock, left = [0.0], iter(seconds)
    monkeypatch.setattr(calls_module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def function(*arguments: Any) -> Any:
        clock[0] += next(left)
        return arguments

    return function


def test_calls_in_threads_are_told_of_together_and_slow_ones_alone(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = timed(monkeypatch, [1.0, 2.0, 3.0, 1.0, 50.0, 1.0])
    noted = SimpleNamespace(used=0)
    told.summed, told.slow = 2, 10.0
    run = ChosenCalls(3, function, function, noted)
    assert [run("x") for _ in range(6)] == [(3, "x")] * 6
    assert noted.used == 3
    # The mean of the first two and the third by itself; the fourth, and the slow one after it.
    assert told.told == [(True, 1.5, 2), (True, 3.0, 1), (True, 1.0, 1), (True, 50.0, 1)]


def test_calls_in_one_thread_are_mostly_not_timed(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    function = timed(monkeypatch, [float(number) for number in range(1, 9)])
    noted = SimpleNamespace(used=0)
    told.way, told.untimed = False, 3
    run = ChosenCalls(2, function, function, noted)
    assert [run("x") for _ in range(8)] == [("x",)] * 8
    assert noted.used == 1
    assert told.told == [(False, 4.0, 4), (False, 8.0, 4)]


def test_calls_that_do_nothing_are_not_told_of(told: Told) -> None:
    def refused(*_arguments: Any) -> Any:
        return NotImplemented

    run = ChosenCalls(2, refused, refused, SimpleNamespace(used=0))
    assert run("x") is NotImplemented
    assert not told.told


@pytest.fixture
def alternating(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Native functions are made soon, and run in one thread and in several in turns; these ways."""
    ways: list[bool] = []

    class Alternating(Told):
        def add(self, together: bool, seconds: float, calls: int = 1) -> None:
            ways.append(together)
            self.way = not together

    monkeypatch.setattr(direct, "CALLS", CALLS)
    monkeypatch.setattr(calls_module, "ThreadingChoice", Alternating)
    return ways


def called_often(outputs: list[Variable], inputs: list[Variable], arrays: list[np.ndarray]) -> Any:
    function = compiled(inputs, outputs, 3)
    for _ in range(CALLS):
        function(*arrays)
    assert isinstance(function.entry, ChosenCalls)
    return function


@pytest.mark.parametrize("name", sorted(programs().keys() - {"products"}))  # those round in a fixed order
@pytest.mark.parametrize("shape", [(70, 90), (301, 257)])
def test_native_functions_give_the_drivers_bits_in_any_number_of_threads(
    name: str, shape: tuple[int, int], alternating: list[bool]
) -> None:
    inputs, outputs = programs()[name]
    arrays = data(inputs, shape, special=True)
    expected = compiled(inputs, outputs, 1)(*arrays)
    function = called_often(outputs, inputs, arrays)
    alternating.clear()
    for _ in range(6):
        same_bits(function(*arrays), expected)
    assert alternating.count(True) == alternating.count(False) == 3  # once a call: by the native functions
    strided = [np.repeat(array, 2, axis=-1)[..., ::2] for array in arrays]
    same_bits(function(*strided), compiled(inputs, outputs, 1)(*strided))
    others = data(inputs, (shape[0] + 3, shape[1] + 1))
    same_bits(function(*others), compiled(inputs, outputs, 1)(*others))
    placed = tuple(np.empty_like(one) for one in (expected if isinstance(expected, tuple) else (expected,)))
    function(*arrays, out=placed if len(placed) > 1 else placed[0])
    same_bits(placed, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_do_not_use_the_pool_of_their_parent(alternating: list[bool]) -> None:
    (array,) = data([X], (90, 70))
    outputs: list[Variable] = [esat.exp(X) + 1.0, esat.sum(X)]
    expected = compiled([X], outputs, 1)(array)
    function = called_often(outputs, [X], [array])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for _ in range(4):
                same_bits(function(array), expected)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    same_bits(function(array), expected)


def test_set_num_threads_is_honoured_by_native_functions(alternating: list[bool]) -> None:
    import numba

    before = numba.get_num_threads()
    (array,) = data([V], (1, 5000))
    function = esat.compile(Graph([V], [esat.exp(V)]), esat.Mode("o2", machine=EAGER))
    for _ in range(CALLS):
        function(array)
    expected = function(array)
    try:
        numba.set_num_threads(1)
        alternating.clear()
        for _ in range(4):
            same_bits(function(array), expected)
        assert not alternating
    finally:
        numba.set_num_threads(before)
