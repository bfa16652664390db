"""Sizes of 1 that are not declared: no silently wrong result, also where optimization leaves nodes out."""

import numpy as np
import pytest

import esat
from esat.errors import ShapeError
from esat.mode import mode_names

MODES = [name for name in mode_names() if name not in ("o1", "o4")]

V, W = esat.vector("v"), esat.vector("w")
M, N = esat.matrix("m"), esat.matrix("n")
I = esat.tensor("i", shape=(None,), dtype="int64")  # noqa: E741
SHAPES = {V: (1,), W: (5,), M: (1, 5), N: (5, 5)}

GRADIENTS = {
    "sum": lambda: esat.grad((M + N).sum(), M),
    "difference": lambda: esat.grad((N - M).sum(), M),
    "product": lambda: esat.grad((V * N).sum(), V),
    "quotient": lambda: esat.grad((N / (V + 2.0)).sum(), V),
    "maximum": lambda: esat.grad(esat.maximum(V, W).sum(), V),
    "where": lambda: esat.grad(esat.where(N > 0.0, V, 0.0).sum(), V),
    "of the other": lambda: esat.grad((V + W).sum() ** 2, W),
    "of means": lambda: esat.grad((M + N).mean(axis=0).sum(), M),
    "below other ops": lambda: esat.grad(esat.exp(esat.sin(V) + W).sum(), V),
    "second": lambda: esat.grad((esat.grad((V**3 + W).sum(), V) * 2.0).sum(), V),
    "forward": lambda: esat.jvp((V + W).sum(), V, V),
    "added to a part": lambda: esat.grad(esat.inc_subtensor(W[:3], V).sum(), V),
    "a part set": lambda: esat.grad(esat.set_subtensor(W[:3], V).sum(), V),
    "a row set": lambda: esat.grad(esat.set_subtensor(N[1], V).sum(), V),
    "of the rest": lambda: esat.grad(esat.set_subtensor(W[1:4], V).sum(), W),
    "filled": lambda: esat.grad(esat.broadcast_to(V, (4, 3)).sum(), V),
    "a part": lambda: esat.grad((W[: V.shape[0]] + W).sum(), W),
    "no gradient": lambda: (V + W) - W,
    "a multiple of zero": lambda: (V + W) * 0.0 + W,
}


def given_for(result):
    needed = set(esat.graph.ancestors([result]))
    inputs = [variable for variable in SHAPES if variable in needed]
    return inputs, [np.linspace(0.5, 1.5, int(np.prod(SHAPES[one]))).reshape(SHAPES[one]) for one in inputs]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GRADIENTS)
def test_they_are_refused_in_every_mode(name, mode):
    result = GRADIENTS[name]()
    inputs, given = given_for(result)
    function = esat.compile(esat.Graph(inputs, result), mode)
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"test_written_sizes\.py"):
            function(*given)


@pytest.mark.parametrize("name", ["sum", "product", "a part set"])
def test_they_are_refused_after_shapes_that_fit(name):
    result = GRADIENTS[name]()
    inputs, given = given_for(result)
    function = esat.compile(esat.Graph(inputs, result))
    fitting = [np.ones({1: (3,), 2: (5, 5)}[one.ndim]) for one in given]
    if name == "product":
        fitting = [np.ones(5), np.ones((5, 5))]
    if name == "a part set":
        fitting = [np.ones(3), np.ones(5)]
    for _ in range(3):
        function(*fitting)
        with pytest.raises(ShapeError):
            function(*given)


def test_what_is_declared_has_its_gradient():
    row = esat.tensor("row", shape=(1, None), dtype="float64")
    function = esat.compile(esat.Graph([row, N], esat.grad((row + N).sum(), row)))
    np.testing.assert_array_equal(function(np.ones((1, 5)), np.ones((4, 5))), np.full((1, 5), 4.0))
    kept = esat.compile(esat.Graph([N], esat.grad((N - N.mean(axis=1, keepdims=True)).sum() + N.sum(), N)))
    for shape in ((4, 5), (1, 5), (4, 1), (1, 1)):
        np.testing.assert_allclose(kept(np.ones(shape)), np.ones(shape), atol=1e-15)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "unsafe"])
def test_sizes_that_fit_have_their_results(mode):
    results = [esat.grad((V * W).sum(), V), (V + W) - W, esat.grad(esat.set_subtensor(N[1], V).sum(), N)]
    function = esat.compile(esat.Graph([V, W, N], results), mode)
    for size in (1, 5, 1, 3):
        v, w, n = np.arange(1.0, size + 1), np.arange(2.0, size + 2), np.ones((4, size))
        by_v, rest, by_n = function(v, w, n)
        np.testing.assert_array_equal(by_v, w)
        np.testing.assert_allclose(rest, v, rtol=1e-15)
        np.testing.assert_array_equal(by_n, np.where(np.arange(4)[:, None] == 1, 0.0, np.ones((4, size))))


def test_a_branch_that_is_not_taken_asks_nothing():
    flag = esat.scalar("flag", "bool")
    chosen = esat.ifelse(flag, (V + W).sum() * 0.0 + V.sum(), W.sum())
    function = esat.compile(esat.Graph([flag, V, W], chosen))
    assert function(np.False_, np.ones(1), np.ones(5)) == 5.0


def test_sizes_that_values_decide_are_left_to_the_call():
    picked = esat.grad((V[V > 0.5] * 2.0).sum() + esat.set_subtensor(W[I], V).sum(), V)
    function = esat.compile(esat.Graph([V, W, I], picked))
    found = function(np.array([0.1, 0.9]), np.ones(5), np.array([3, 1]))
    np.testing.assert_array_equal(found, [1.0, 3.0])


def test_shared_variables_count():
    weights = esat.shared(np.ones(1), name="weights", shape=(None,))
    step = weights - 0.5 * esat.grad((weights + W).sum(), weights)
    function = esat.compile(esat.Graph([W], [], updates=[(weights, step)]))
    with pytest.raises(ShapeError):
        function(np.ones(5))
    np.testing.assert_array_equal(weights.get_value(), [1.0])
    weights.set_value(np.ones(5))
    function(np.ones(5))
    np.testing.assert_array_equal(weights.get_value(), np.full(5, 0.5))


def test_jitted_functions_with_open_sizes_are_numpys():
    function = esat.jit(esat.grad(lambda row, matrix: (row + matrix).sum()), shapes="symbolic")
    for rows, columns in ((1, 5), (5, 5), (1, 1), (5, 1), (1, 5)):
        found = function(np.ones((rows, columns)), np.ones((5, 5)))
        np.testing.assert_array_equal(found, np.full((rows, columns), 25.0 / (rows * columns)))
