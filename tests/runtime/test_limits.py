"""What is kept in bounded numbers: results stay right when each of these bounds is passed, and again."""

import numpy as np
import pytest
from native_calls import way_of

import esat
from esat.codegen.ground import kernel_entry
from esat.egraph.preparation import rule_program
from esat.functions import jitted as jitted_functions
from esat.runtime.entry import signatures
from esat.runtime.native import direct
from esat.runtime.printed import kernel_calls

X, M = esat.vector("x"), esat.matrix("m")
ROUNDS = 3


def rounds(things):
    """All things, several times; the last time in the reverse order."""
    things = list(things)
    return [*things * (ROUNDS - 1), *reversed(things)]


@pytest.mark.parametrize("calls", [2, direct.CALLS])
def test_more_shapes_than_are_remembered(calls, monkeypatch):
    monkeypatch.setattr(direct, "CALLS", calls)
    program = esat.compile(esat.Graph([X], [esat.sum(esat.exp(-X)), X[::-1] * 2.0]))
    for size in rounds(range(1, signatures.MAXIMUM_SIGNATURES + 20)):
        x = np.linspace(0.0, 1.0, size)
        for _ in range(2):
            total, turned = program(x)
            np.testing.assert_allclose(total, np.exp(-x).sum(), rtol=1e-13)
            np.testing.assert_array_equal(turned, x[::-1] * 2.0)
    assert len(program._calls.table.records) <= signatures.MAXIMUM_SIGNATURES


def test_more_sizes_of_results_than_are_remembered():
    chosen = X[X > 0.5]
    program = esat.compile(esat.Graph([X], [esat.sqrt(chosen) + 1.0, esat.sum(chosen)]))
    x = np.empty(signatures.MAXIMUM_SIGNATURES + 20)
    for count in rounds(range(len(x))):
        x[:], x[:count] = 0.25, 0.75 + np.arange(count)
        roots, total = program(x)
        np.testing.assert_allclose(roots, np.sqrt(x[:count]) + 1.0, rtol=1e-15)
        np.testing.assert_allclose(total, x[:count].sum(), rtol=1e-13)


def test_more_short_rows_than_have_kernels_of_their_own():
    program = esat.compile(esat.Graph([M], [esat.softmax(M, axis=1), esat.sum(M * M, axis=1)]))
    for size in rounds(range(1, 2 * kernel_calls.MAXIMUM_VARIANTS + 4)):
        m = np.linspace(-1.0, 1.0, 300 * size).reshape(300, size)
        wanted = np.exp(m) / np.exp(m).sum(axis=1, keepdims=True)
        softmax, sums = program(m)
        np.testing.assert_allclose(softmax, wanted, rtol=1e-13)
        np.testing.assert_allclose(sums, (m * m).sum(axis=1), rtol=1e-13)


def test_more_native_functions_than_are_made(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)
    program = esat.compile(esat.Graph([X, M], [M @ X + 1.0, X * 2.0]))
    for size in rounds(range(2, direct.MAXIMUM_FUNCTIONS + 6)):
        x, m = np.arange(float(size)), np.arange(3.0 * size).reshape(3, size)
        for _ in range(12):
            product, twice = program(x, m)
            np.testing.assert_array_equal(product, m @ x + 1.0)
            np.testing.assert_array_equal(twice, x * 2.0)


def test_more_structures_than_have_guards():
    @esat.jit
    def total(parts):
        return sum(part.sum() for part in parts.values())

    for count in rounds(range(1, 2 * jitted_functions.MOST_GUARDS)):
        parts = {f"part {place}": np.arange(3.0) + place for place in range(count)}
        for _ in range(3):
            assert total(parts) == 3.0 * count + 3.0 * sum(range(count))


@pytest.mark.filterwarnings("ignore::esat.errors.EsatWarning")
def test_more_values_of_a_number_than_anybody_expects():
    @esat.jit
    def scaled(x, rate):
        return x * rate if rate > 0 else x / rate

    x = np.arange(4.0) + 1.0
    for rate in rounds(float(place) - 15.0 for place in range(40) if place != 15):
        np.testing.assert_allclose(scaled(x, rate), x * rate if rate > 0 else x / rate, rtol=1e-15)


def test_kernels_of_more_signatures_than_are_kept():
    def kinds_of(number):
        return tuple((number // 4**place % 4, 8) for place in range(5))

    for number in rounds(range(kernel_entry._DEFINITIONS + 20)):
        address, memory = kernel_entry._definition(kinds_of(number))
        assert (address != 0, memory.shape) == (True, ())


def test_more_sets_of_rules_than_are_kept():
    """One rule at a time, right for positive numbers alone, so that one that stays or is missing shows."""
    numbers = range(2, 14)
    assert len(numbers) > rule_program.PROGRAMS_KEPT
    root = esat.sqrt(X**2)
    for number in (*numbers, *reversed(numbers)):
        sides = "(Mul (Sqrt (Sqr x)) n) (Mul x n)"
        rule = f'(rewrite {sides} :when ((= (val n) {number}.0)) :name "limits-{number}")'
        with esat.rules.add(rule):
            for other in (number, 3.5):
                found = esat.compile(esat.Graph([X], [root * float(other)]))(np.full(3, -1.0))
                np.testing.assert_array_equal(found, [-number if other == number else other] * 3)


def test_calls_of_a_native_function_beside_others(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)
    programs = [esat.compile(esat.Graph([X], [X * float(number) + 1.0])) for number in range(6)]
    for number, program in rounds(enumerate(programs)):
        for _ in range(5):
            np.testing.assert_array_equal(program(np.ones(3)), [number + 1.0] * 3)
    assert {way_of(program) for program in programs} == {"native"}
