"""Systems by the factors of their matrix, which serve several right sides and the transpose."""

from __future__ import annotations

import numpy as np
import pytest

import esat
from esat.ops.linalg.packed_factors import PACKED_LU, PackedLU, PackedSolve
from esat.ops.linalg.solve import Solve

RNG = np.random.default_rng(5)


def _count(function, kind):
    return sum(isinstance(node.op, kind) for node in function.optimized.apply_nodes)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(
    ("matrix", "sides"),
    [((1, 1), (1, 2)), ((5, 5), (5, 1)), ((30, 30), (30, 9)), ((2, 3, 4, 4), (3, 4, 2)), ((0, 0), (0, 3))],
)
@pytest.mark.parametrize("calls", [1, 300])
def test_solutions_are_those_of_numpy(matrix, sides, transpose, calls):
    a = esat.tensor(dtype="float64", shape=matrix)
    b = esat.tensor(dtype="float64", shape=sides)
    function = esat.compile(esat.Graph([a, b], [PackedSolve(transpose)(PACKED_LU(a), b)]))
    values = RNG.normal(size=matrix), RNG.normal(size=sides)
    for _ in range(calls):
        found = function(*values)
    turned = np.swapaxes(values[0], -1, -2) if transpose else values[0]
    np.testing.assert_allclose(found, np.linalg.solve(turned, values[1]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("calls", [0, 300])
def test_a_singular_matrix_is_refused_as_by_solve(calls):
    a = esat.tensor(dtype="float64", shape=(3, 3))
    function = esat.compile(esat.Graph([a], [PACKED_LU(a)]))
    for _ in range(calls):
        function(np.eye(3))
    with pytest.raises(esat.errors.LinearAlgebraError, match=r"^solve\(.*singular matrix"):
        function(np.ones((3, 3)))


def test_one_matrix_is_factorized_once():
    a, b, c = (esat.tensor(dtype="float64", shape=shape) for shape in ((60, 60), (60, 1), (60, 2)))
    first = esat.linalg.solve(a, b)
    second = esat.linalg.solve(a, c * first)
    third = esat.linalg.solve(a.T, second)
    function = esat.compile(esat.Graph([a, b, c], [first, second, third]))
    assert _count(function, PackedLU) == 1
    assert _count(function, Solve) == 0
    values = RNG.normal(size=(60, 60)), RNG.normal(size=(60, 1)), RNG.normal(size=(60, 2))
    one = np.linalg.solve(values[0], values[1])
    two = np.linalg.solve(values[0], values[2] * one)
    for _ in range(300):
        found = function(*values)
    for own, wanted in zip(found, (one, two, np.linalg.solve(values[0].T, two)), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-8)


def test_a_system_alone_is_solved_as_ever():
    a, b = esat.tensor(dtype="float64", shape=(60, 60)), esat.tensor(dtype="float64", shape=(60, 1))
    function = esat.compile(esat.Graph([a, b], [esat.linalg.solve(a, b)]))
    assert _count(function, Solve) == 1


def test_the_gradient_of_a_system_takes_its_factors():
    a, b = RNG.normal(size=(40, 40)) + 9 * np.eye(40), RNG.normal(size=40)
    function = esat.value_and_grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), argnums=(0, 1))
    value, (by_matrix, by_sides) = function(a, b)
    solution = np.linalg.solve(a, b)
    back = np.linalg.solve(a.T, 2 * solution)
    np.testing.assert_allclose(value, solution @ solution, rtol=1e-12)
    np.testing.assert_allclose(by_sides, back, rtol=1e-10)
    np.testing.assert_allclose(by_matrix, -np.outer(back, solution), rtol=1e-9, atol=1e-14)
    assert "packed_lu" in str(function.explain())


@pytest.mark.parametrize("mode", ["debug", "strict", "greedy", "fast_compile"])
def test_all_modes(mode):
    a, b = RNG.normal(size=(30, 30)) + 9 * np.eye(30), RNG.normal(size=(30, 2))

    def program(a, b):
        first = np.linalg.solve(a, b)
        return np.linalg.solve(a, first) + np.linalg.solve(a.T, first)

    np.testing.assert_allclose(esat.jit(program, mode=mode)(a, b), program(a, b), rtol=1e-10)
