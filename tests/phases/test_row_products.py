"""Gradients of models linear in their parameters read a matrix once: which graphs, with what results."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import assert_near_linear
from phases.programs import Program, assert_results, graph_of

import esat
from esat import codegen
from esat.errors import ShapeError
from esat.graph import FunctionGraph
from esat.phases.row_products import join_row_products

RNG = np.random.default_rng(23)


def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


JOINED: dict[str, Program] = {
    "least squares": lambda xp, a, y, s, w: a.T @ (a @ w - y),
    "weighted": lambda xp, a, y, s, w: a.T @ (s * (a @ w - y)) / y.shape[0],
    "logistic": lambda xp, a, y, s, w: a.T @ (sigmoid(xp, a @ w) - y) + 0.5 * w,
    "Poisson": lambda xp, a, y, s, w: a.T @ (xp.exp(a @ w) - y),
    "Hessian times vector": lambda xp, a, y, s, w: a.T @ (s * (a @ w)),
    "rows": lambda xp, a, y, s, w: xp.tanh(w @ a.T) @ a,
    "scalar": lambda xp, a, y, s, w: a.T @ xp.tanh((a @ w) * y[0]),
    "condition": lambda xp, a, y, s, w: a.T @ xp.where(a @ w > 0.1, s, y),
    "loss and gradient": lambda xp, a, y, s, w: (
        ((a @ w - y) ** 2).sum(),
        a.T @ (a @ w - y),
        (a @ w - y).sum(),
    ),
    "values of rows too": lambda xp, a, y, s, w: (
        a @ w,
        a.T @ xp.tanh(a @ w),
        xp.tanh(a @ w),
        (a @ w)[:, None],
    ),
}
APART: dict[str, Program] = {
    "over all rows": lambda xp, a, y, s, w: a.T @ (xp.exp(a @ w) / (1 + xp.exp(a @ w)).sum()),
    "another matrix": lambda xp, a, y, s, w: (a * 2.0 + a[0]).T @ xp.tanh(a @ w),
    "the same side": lambda xp, a, y, s, w: (a @ w, a @ xp.tanh(w)),
    "not elementwise": lambda xp, a, y, s, w: a.T @ xp.cumsum(a @ w),
}


def variables(dtype: str = "float64") -> list[Any]:
    return [esat.matrix("a", dtype=dtype), *(esat.vector(name, dtype=dtype) for name in "ysw")]


def graph(program: Program, dtype: str = "float64") -> tuple[list[int], esat.Graph]:
    return graph_of(program, variables(dtype))


def arrays(rows: int, columns: int, dtype: str) -> list[np.ndarray]:
    shapes = (rows, columns), (rows,), (rows,), (columns,)
    return [(RNG.normal(size=shape) / max(columns, 1) ** 0.5).astype(dtype) for shape in shapes]


@functools.cache
def compiled(program: Program, dtype: str = "float64") -> tuple[list[int], Any]:
    """The places of a program's inputs, and its function."""
    places, built = graph(program, dtype)
    return places, esat.compile(built)


def names(program: Program, mode: Any = None) -> list[str]:
    function = compiled(program)[1] if mode is None else esat.compile(graph(program)[1], mode)
    return [node.op.name for group in function.steps for node in group.nodes]


@pytest.mark.parametrize("name", JOINED)
def test_what_becomes_one_pass(name: str) -> None:
    found = names(JOINED[name])
    assert found.count("rows_matmul") == 1
    assert "matmul" not in found


@pytest.mark.parametrize("name", APART)
def test_what_does_not(name: str) -> None:
    assert "rows_matmul" not in names(APART[name])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float64") for name in JOINED | APART),
        ("logistic", "float32"),
        ("values of rows too", "float32"),
    ],
)
def test_values(name: str, dtype: str) -> None:
    program = (JOINED | APART)[name]
    places, function = compiled(program, dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    for rows, columns in ((1, 1), (7, 7), (70, 65), (65, 70), (3000, 61)):
        if name == "the same side" and rows != columns:
            continue
        matrix, *rest = arrays(rows, columns, dtype)
        wanted = program(np, *(array.astype(np.float64) for array in (matrix, *rest)))
        for turned in (matrix, np.asfortranarray(matrix)):
            given = [(turned, *rest)[place] for place in places]
            for _ in range(3):  # by the driver, then natively
                assert_results(function(*given), wanted, tolerance)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing(shape: tuple[int, int]) -> None:
    function = esat.compile(graph(JOINED["loss and gradient"])[1])
    matrix, y, _, w = arrays(*shape, "float64")
    loss, gradient, total = function(matrix, y, w)
    assert np.array_equal(gradient, np.zeros(shape[1]))
    np.testing.assert_allclose([loss, total], [(y**2).sum(), -y.sum()])


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "debug"])
def test_modes(mode: str) -> None:
    function = esat.compile(graph(JOINED["loss and gradient"])[1], mode)
    assert any("rows_matmul{sub}" in str(group) for group in function.steps)
    matrix, y, _, w = arrays(50, 7, "float64")
    _, gradient, total = function(matrix, y, w)
    np.testing.assert_allclose(gradient, matrix.T @ (matrix @ w - y))
    np.testing.assert_allclose(total, (matrix @ w - y).sum())


def test_exact_modes_and_those_without_fusion_multiply_twice() -> None:
    assert "rows_matmul" not in names(JOINED["least squares"], esat.Mode(soundness="exact"))
    assert "rows_matmul" not in names(JOINED["least squares"], esat.Mode().excluding("elemwise_fusion"))


def test_a_product_under_a_condition_is_not_joined_with_one_that_is_always_needed() -> None:
    a, y, _, w = variables()
    chosen = esat.scalar("chosen", dtype="bool")
    products = a @ w
    gradient = esat.ifelse(chosen, a.T @ (products - y), w)
    function = esat.compile(esat.Graph([a, y, w, chosen], [products, gradient]))
    assert not any("rows_matmul" in str(group) for group in function.steps)
    matrix, values, _, column = arrays(20, 5, "float64")
    for condition in (True, False):
        wanted = matrix.T @ (matrix @ column - values) if condition else column
        np.testing.assert_allclose(function(matrix, values, column, condition)[1], wanted)


def test_a_matrix_that_is_an_input_computed_elsewhere() -> None:
    a, y, _, w = variables()
    products = a @ w
    gradient = a.T @ (products - y)
    built = FunctionGraph([a, y, products], [gradient])
    assert join_row_products(built, codegen) is built
    function = esat.compile(built)
    matrix, values, *_ = arrays(20, 5, "float64")
    np.testing.assert_allclose(function(matrix, values, values + 1), matrix.T @ np.ones(20))


def test_the_graph_that_is_given_stays_as_it_is() -> None:
    given = graph(JOINED["logistic"])[1].function_graph()
    text = str(given)
    joined = join_row_products(given, codegen)
    assert joined is not given
    assert "rows_matmul{" in str(joined)
    assert str(given) == text


def test_what_is_not_finite_spreads_as_in_two_products() -> None:
    places, built = graph(JOINED["logistic"])
    function = esat.compile(built)
    for value in (np.inf, -np.inf, np.nan):
        given = arrays(30, 6, "float64")
        given[0][4, 2], given[3][1], given[0][7] = value, 0.0, 0.0
        with np.errstate(all="ignore"):
            wanted = JOINED["logistic"](np, *given)
        np.testing.assert_allclose(function(*(given[place] for place in places)), wanted)


def test_results_do_not_depend_on_threads() -> None:
    places, built = graph(JOINED["loss and gradient"])
    given = arrays(3000, 61, "float64")
    found = set()
    for threads in (1, 2, 3):
        function = esat.compile(built, esat.Mode(threads=threads))
        for _ in range(6):
            gradient = function(*(given[place] for place in places))[1]
            found.add(gradient.tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("rows", [1, 8])
def test_sizes_that_do_not_fit_name_the_line(rows: int) -> None:
    function = esat.compile(graph(JOINED["least squares"])[1])
    matrix, _, _, w = arrays(7, 3, "float64")
    with pytest.raises(ShapeError, match=r"sub.*do not match[\s\S]*test_row_products.py"):
        function(matrix, np.ones(rows), w)
    with pytest.raises(ShapeError, match=r"matmul[\s\S]*test_row_products.py"):
        function(matrix, np.ones(7), np.ones(rows))


def test_sizes_that_show_in_the_call_only() -> None:
    a, y, s, w = variables()
    known = y[s > 0]
    function = esat.compile(esat.Graph([a, y, s, w], [a.T @ (a @ w - known)]))
    matrix, y, _, w = arrays(7, 3, "float64")
    s = np.array([1.0, -1, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(
        function(matrix, np.append(y, 0.0), s, w), matrix.T @ (matrix @ w - np.append(y, 0.0)[s > 0])
    )
    with pytest.raises(ShapeError, match="do not match"):
        function(matrix, y, s[:7], w)


def test_results_in_given_arrays() -> None:
    places, built = graph(JOINED["values of rows too"])
    function = esat.compile(built)
    given = [arrays(40, 9, "float64")[place] for place in places]
    out = np.empty(40), np.empty(9), np.empty(40), np.empty((40, 1))
    assert all(one is other for one, other in zip(function(*given, out=out), out, strict=True))
    products = given[0] @ given[1]
    for array, wanted in zip(
        out, (products, given[0].T @ np.tanh(products), np.tanh(products)), strict=False
    ):
        np.testing.assert_allclose(array, wanted)


def test_the_source_shows_the_function() -> None:
    text = esat.compile(graph(JOINED["logistic"])[1]).source()
    assert "sigmoid(products)" in text
    assert "kernel(own_factors" in text


def recurrence(steps: int) -> FunctionGraph:
    matrix, state = esat.matrix("a"), esat.vector("h")
    value = state
    for _ in range(steps):
        value = esat.tanh(matrix @ value)
    return FunctionGraph([matrix, state], esat.grad(value.sum(), [matrix, state]))


def many_regressions(count: int) -> FunctionGraph:
    matrix, weights = esat.matrix("a"), esat.vector("w")
    targets = [esat.vector(f"y{place}") for place in range(count)]
    residuals = [esat.tanh(matrix @ (weights * (place + 2.0))) - one for place, one in enumerate(targets)]
    return FunctionGraph([matrix, weights, *targets], [matrix.T @ residual for residual in residuals])


@pytest.mark.parametrize("make", [recurrence, many_regressions])
def test_effort_grows_with_the_graph(make: Callable[[int], FunctionGraph]) -> None:
    def work_of(count: int) -> Callable[[], object]:
        found = make(count)
        return lambda: join_row_products(found, codegen)

    assert_near_linear(work_of, 20)


def test_each_of_many_regressions_reads_the_matrix_once() -> None:
    names = [node.op.name for node in join_row_products(many_regressions(5), codegen).toposort()]
    assert names.count("rows_matmul") == 5
    assert "matmul" not in names


def test_what_is_elementwise_too_but_no_part_of_the_function() -> None:
    """Vectors that the function reads may be computed at any length; the products only near by."""
    a, y, w = esat.matrix("a"), esat.vector("y"), esat.vector("w")
    scale = y
    for _ in range(100):
        scale = esat.tanh(scale) + y
    joined = join_row_products(FunctionGraph([a, y, w], [a.T @ (scale * (a @ w))]), codegen)
    assert [node.op.name for node in joined.toposort()].count("rows_matmul") == 1


@pytest.mark.parametrize("mode", ["o2", "greedy", "fast_run"])
def test_columns_that_are_turned_first(mode: str) -> None:
    x, column = esat.matrix("x"), esat.tensor("c", shape=(None, 1))
    row = esat.tanh(column.T @ x.T)
    values = {x: np.arange(12.0).reshape(4, 3) / 7.0, column: np.array([[0.5], [-1.0], [2.0]])}
    function = esat.compile(esat.Graph(list(values), [row @ x, (row @ x).T]), mode)
    expected = esat.evaluate([row @ x, (row @ x).T], values)
    assert_results(function(*values.values()), tuple(expected), 1e-12)
