"""What is learnt of sizes in a branch that is computed lazily holds in that branch alone."""

from typing import Any

import numpy as np
import pytest

import esat
from esat.errors import ShapeError
from esat.graph import FunctionGraph
from esat.phases.branches import Within, join_branches, separate_branches

X, Y = esat.vector("x"), esat.vector("y")
M, N = esat.matrix("m"), esat.matrix("n")
C, D = esat.scalar("c", dtype="bool"), esat.scalar("d", dtype="bool")
MODES = ("fast_run", "greedy", "strict", "Stabilization", "debug")
RNG = np.random.default_rng(4)


def counted(n: int) -> Any:
    return np.arange(1.0, n + 1.0)


def rectangle(*shape: int) -> Any:
    return RNG.uniform(0.5, 1.5, shape)


def total(x: Any) -> Any:
    return esat.sum(esat.exp(x))


CHOICES: dict[str, tuple[Any, Any, Any, Any]] = {
    "sums": (
        [C, X, Y],
        esat.ifelse(C, total(X + Y), total(X * 2)),
        [(True, counted(3), counted(3)), (False, counted(3), counted(5))],
        lambda c, x, y: np.sum(np.exp(x + y)) if c else np.sum(np.exp(2 * x)),
    ),
    "a part of two choices": (
        [C, D, X, Y],
        esat.ifelse(C, total(X + Y), total(X)) + esat.ifelse(D, total(X), 2.0 * total(X + Y)),
        [
            (True, True, counted(3), counted(3)),
            (False, False, counted(3), counted(3)),
            (False, True, counted(3), counted(5)),
        ],
        lambda c, d, x, y: (
            np.sum(np.exp(x + y if c else x)) + (np.sum(np.exp(x)) if d else 2.0 * np.sum(np.exp(x + y)))
        ),
    ),
    "sizes": (
        [C, X, Y],
        esat.ifelse(C, esat.sum(X + Y), esat.sum(X) * esat.cast(Y.shape[0], "float64")),
        [(True, counted(3), counted(3)), (False, counted(3), counted(5))],
        lambda c, x, y: np.sum(x + y) if c else np.sum(x) * len(y),
    ),
    "known sizes": (
        [C, X],
        esat.ifelse(C, esat.sum(X + np.arange(3.0)), esat.mean(X)),
        [(True, counted(3)), (False, counted(5)), (False, counted(2))],
        lambda c, x: np.sum(x + np.arange(3.0)) if c else np.mean(x),
    ),
    "sums of sums": (
        [C, X, Y],
        esat.ifelse(C, total(X * Y) + esat.sum(X), esat.sum(X) + esat.sum(Y)),
        [(True, counted(3), counted(3)), (False, counted(3), counted(5))],
        lambda c, x, y: np.sum(np.exp(x * y)) + np.sum(x) if c else np.sum(x) + np.sum(y),
    ),
    "results of different shapes": (
        [C, M, N],
        esat.exp(esat.ifelse(C, M @ N, M.T)) * 2.0,
        [(True, rectangle(2, 3), rectangle(3, 4)), (False, rectangle(2, 3), rectangle(5, 4))],
        lambda c, m, n: np.exp(m @ n if c else m.T) * 2.0,
    ),
    "views and factors": (
        [C, M],
        esat.ifelse(C, M.reshape((3, 4)) @ esat.specify_shape(M, (2, 6)).T[:4], M[:, 1:]),
        [(False, rectangle(3, 5)), (False, rectangle(1, 2))],
        lambda c, m: m[:, 1:],
    ),
    "nothing to reduce": (
        [C, M],
        esat.ifelse(C, M.max(axis=0), M.sum(axis=0)),
        [(False, rectangle(0, 5)), (True, rectangle(2, 5))],
        lambda c, m: m.max(axis=0) if c else m.sum(axis=0),
    ),
    "choices within choices": (
        [C, D, X, Y],
        esat.ifelse(C, esat.ifelse(D, X + Y, X - 1.0), Y * 2.0),
        [(True, False, counted(3), counted(5)), (False, True, counted(3), counted(5))],
        lambda c, d, x, y: x - 1.0 if c else y * 2.0,
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CHOICES)
def test_sizes_need_to_fit_in_the_branch_that_is_chosen_only(name: str, mode: str) -> None:
    inputs, output, calls, expected = CHOICES[name]
    function = esat.compile(esat.Graph(inputs, [output]), mode)
    for arguments in (*calls, *calls):
        result = function(*arguments)
        wanted = np.asarray(expected(*arguments))
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted)


@pytest.mark.parametrize("mode", MODES)
def test_sizes_that_do_not_fit_are_an_error_in_the_branch_that_is_chosen(mode: str) -> None:
    function = esat.compile(esat.Graph([C, X, Y], [esat.ifelse(C, esat.exp(X) + Y, Y)]), mode)
    for _ in range(2):
        np.testing.assert_array_equal(function(False, counted(3), counted(5)), counted(5))
        with pytest.raises(ShapeError, match=r"(?s)sizes 3 and 5.*test_branches.py"):
            function(True, counted(3), counted(5))


def test_marks_leave_with_the_branches_joined() -> None:
    one = esat.exp(X) + Y
    graph = FunctionGraph([C, X, Y], [esat.ifelse(C, one * one, X), esat.sum(X)])
    before = str(graph)
    separate_branches(graph)
    marks = [node for node in graph.toposort() if isinstance(node.op, Within)]
    assert {node.inputs[0] for node in marks} == set(graph.inputs[1:])
    assert len(marks) == 2
    join_branches(graph)
    assert str(graph) == before


def test_the_interpreter_computes_the_side_that_is_chosen_only() -> None:
    chosen = esat.shared(np.asarray(False), "chosen")
    known = {X: counted(3), Y: counted(5)}
    for condition in (chosen, ~chosen == np.asarray(False), np.asarray(False)):
        result = esat.evaluate(esat.ifelse(condition, X + Y, Y * 2.0), known)
        np.testing.assert_array_equal(result, counted(5) * 2.0)
    chosen.set_value(np.asarray(True))
    with pytest.raises(ShapeError):
        esat.evaluate(esat.ifelse(chosen, X + Y, Y * 2.0), known)


@pytest.mark.parametrize("mode", MODES)
def test_a_branch_whose_sizes_contradict_those_outside_it_is_never_computed(mode: str) -> None:
    a, b = (esat.TensorType("float64", shape=(1, 4))(name) for name in "ab")
    residuals = esat.linalg.lstsq(a, b)[1]  # none, of which optimization learns
    outputs = [esat.array_equal(residuals, [1, 2]), esat.ifelse(C, residuals.sum(), residuals.sum() + X[0])]
    f = esat.compile(esat.Graph([a, b, C, X], outputs), mode)
    assert [bool(f(rectangle(1, 4), rectangle(1, 4), True, counted(2))[0]) for _ in range(2)] == [False] * 2
