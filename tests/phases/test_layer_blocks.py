"""Layers over the rows of matrices become one op: which graphs, with what results."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from phases.programs import Program, assert_results, graph_of

import esat
from esat import codegen
from esat.codegen.rowwise.layers import RowBlocksRoutine
from esat.errors import ShapeError
from esat.graph import FunctionGraph
from esat.phases.layer_blocks import join_row_blocks
from esat.runtime import program_in_blocks as runtime_blocks

RNG = np.random.default_rng(5)


def hidden(xp: Any, x: Any, v: Any, b: Any) -> Any:
    return xp.tanh(xp.matmul(x, v) + b)


def training(xp: Any, x: Any, y: Any, v: Any, b: Any, w: Any) -> Any:
    first = hidden(xp, x, v, b)
    slope = xp.matmul(first, w) - y
    back = xp.matmul(slope, w.T) * (1 - first * first)
    return (
        v - 0.1 * xp.matmul(x.T, back),
        b - 0.1 * xp.sum(back, axis=0, keepdims=True),
        w - 0.1 * xp.matmul(first.T, slope),
        xp.sum(slope * slope),
        xp.sum(slope, axis=0),
    )


JOINED: dict[str, Program] = {
    "layers": lambda xp, x, y, v, b, w: xp.matmul(hidden(xp, x, v, b), w),
    "all layers read": lambda xp, x, y, v, b, w: (
        hidden(xp, x, v, b),
        xp.matmul(hidden(xp, x, v, b), w),
        xp.matmul(hidden(xp, x, v, b), w) - y,
    ),
    "with rows from elsewhere": lambda xp, x, y, v, b, w: xp.maximum(
        xp.matmul(hidden(xp, x * 2.0, v, b) * xp.max(x, axis=1, keepdims=True), w) * y, 0.0
    ),
    "back": lambda xp, x, y, v, b, w: xp.matmul(xp.exp(xp.matmul(xp.tanh(y), w.T)), v.T) + x,
    "training": training,
    "normalised between": lambda xp, x, y, v, b, w: xp.matmul(
        xp.tanh(xp.matmul(xp.exp(hidden(xp, x, v, b)), w)) / xp.sum(xp.exp(x), axis=1, keepdims=True), w.T
    ),
    "weights that are computed": lambda xp, x, y, v, b, w: xp.matmul(hidden(xp, x, xp.exp(v), b), w * 2.0),
}
APART: dict[str, Program] = {
    "one product": lambda xp, x, y, v, b, w: xp.tanh(hidden(xp, x, v, b)) * 2.0,
    "over all rows": lambda xp, x, y, v, b, w: xp.matmul(
        hidden(xp, x, v, b) / xp.sum(xp.exp(xp.matmul(x, v)), axis=0, keepdims=True), w
    ),
    "products alone": lambda xp, x, y, v, b, w: xp.matmul(xp.matmul(x, v), w),
    "along rows": lambda xp, x, y, v, b, w: xp.matmul(xp.cumsum(hidden(xp, x, v, b), axis=1), w),
    "weights that depend on rows": lambda xp, x, y, v, b, w: xp.matmul(
        xp.matmul(x, v) + b, xp.matmul(xp.tanh(xp.matmul(x, v)).T, y)
    ),
}


def variables(dtype: str = "float64") -> list[Any]:
    made = {name: esat.matrix(name, dtype=dtype) for name in "xyvw"}
    made["b"] = esat.tensor("b", shape=(1, None), dtype=dtype)
    return [made[name] for name in "xyvbw"]


def graph(program: Program, dtype: str = "float64") -> tuple[list[int], esat.Graph]:
    return graph_of(program, variables(dtype))


def arrays(rows: int, features: int, width: int, classes: int, dtype: str = "float64") -> list[np.ndarray]:
    shapes = (rows, features), (rows, classes), (features, width), (1, width), (width, classes)
    return [(RNG.normal(size=shape) / shape[-1] ** 0.5).astype(dtype) for shape in shapes]


@functools.cache
def compiled(program: Program, dtype: str = "float64") -> tuple[list[int], Any]:
    """The places of a program's inputs, and its function."""
    places, built = graph(program, dtype)
    return places, esat.compile(built)


def names(program: Program, mode: Any = None) -> list[str]:
    """The ops of the program in blocks; none where there is no such program."""
    function = compiled(program)[1] if mode is None else esat.compile(graph(program)[1], mode)
    second = function.in_blocks
    return [] if second is None else [node.op.name for group in second.steps for node in group.nodes]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are taken for small sizes, too."""
    monkeypatch.setattr(runtime_blocks, "WORTH_FROM", 0)


@pytest.mark.parametrize("name", JOINED)
def test_what_becomes_one_op(name: str) -> None:
    found = names(JOINED[name])
    assert found.count("row_blocks") == 1
    assert "matmul" not in found


@pytest.mark.parametrize("name", APART)
def test_what_does_not(name: str) -> None:
    assert "row_blocks" not in names(APART[name])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "float64") for name in JOINED | APART), ("layers", "float32"), ("training", "float32")],
)
@pytest.mark.usefixtures("always")
def test_values(name: str, dtype: str) -> None:
    program = (JOINED | APART)[name]
    places, function = compiled(program, dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    # The last weights are too large for blocks.
    for sizes in ((1, 1, 1, 1), (2, 9, 4, 3), (700, 20, 30, 10), (40, 300, 200, 3)):
        given = arrays(*sizes, dtype)
        wanted = program(np, *(array.astype(np.float64) for array in given))
        for turned in (given[0], np.asfortranarray(given[0])):
            passed = [(turned, *given[1:])[place] for place in places]
            for _ in range(3):
                assert_results(function(*passed), wanted, tolerance)


@pytest.mark.usefixtures("always")
def test_calls_by_the_native_function() -> None:
    _, built = graph(JOINED["training"])
    function = esat.compile(built, esat.Mode(threads=1))
    given = arrays(400, 30, 40, 10)
    wanted = JOINED["training"](np, *given)
    for _ in range(450):
        found = function(*given)
    assert_results(found, wanted, 1e-11)


@pytest.mark.usefixtures("always")
def test_a_result_in_a_given_array() -> None:
    _, built = graph(JOINED["with rows from elsewhere"])
    function = esat.compile(built)
    for sizes in ((50, 5, 6, 4), (40, 300, 200, 3)):
        given = arrays(*sizes)
        out = np.full((sizes[0], sizes[3]), np.nan)
        assert function(*given, out=out) is out
        assert_results(out, JOINED["with rows from elsewhere"](np, *given), 1e-11)


def test_sizes_decide_which_program_runs() -> None:
    function = esat.compile(graph(JOINED["training"])[1])
    chosen = function._calls.in_blocks
    assert chosen is not None
    for sizes, suits in (
        ((50, 64, 64, 10), False),
        ((5000, 64, 64, 10), True),
        ((5000, 512, 512, 10), False),
    ):
        assert chosen.suits(tuple(array.shape for array in arrays(*sizes))) == suits


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_modes(mode: str) -> None:
    function = esat.compile(graph(JOINED["training"])[1], mode)
    assert function.in_blocks is not None
    assert any("row_blocks{" in str(group) for group in function.in_blocks.steps)
    given = arrays(50, 7, 6, 5)
    for _ in range(100):
        assert_results(function(*given), JOINED["training"](np, *given), 1e-11)


def test_blocks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    call = RowBlocksRoutine.__call__

    def counted(routine: RowBlocksRoutine, *passed: np.ndarray) -> None:
        calls.append(len(passed[0]))
        call(routine, *passed)

    monkeypatch.setattr(RowBlocksRoutine, "__call__", counted)
    function = esat.compile(graph(JOINED["training"])[1])
    for rows in (50, 2000):
        given = arrays(rows, 64, 64, 10)
        for _ in range(30):
            assert_results(function(*given), JOINED["training"](np, *given), 1e-11)
    assert set(calls) == {2000}
    assert len(calls) > 15  # the first calls may find out whether other rules make a better program


def test_modes_of_one_program_have_no_blocks() -> None:
    assert esat.compile(graph(JOINED["training"])[1], esat.Mode(variants=0)).in_blocks is None
    assert esat.compile(graph(JOINED["training"])[1], "debug").in_blocks is None


@pytest.mark.usefixtures("always")
def test_a_shared_variable_that_is_updated() -> None:
    x, _, v, b, w = variables()
    weights = esat.shared(np.zeros((4, 3)), name="weights")
    first = hidden(esat, x, v, b)
    slope = esat.matmul(first, weights) - 1.0
    back = esat.matmul(slope, w.T)
    updates = {weights: weights - 0.1 * esat.matmul(first.T, slope)}
    function = esat.compile(esat.Graph([x, v, b, w], [back], updates=updates))
    assert function.in_blocks is not None
    given = [array for place, array in enumerate(arrays(60, 5, 4, 3)) if place != 1]
    value = np.zeros((4, 3))
    for _ in range(30):
        bent = np.tanh(given[0] @ given[1] + given[2])
        np.testing.assert_allclose(function(*given), (bent @ value - 1.0) @ given[3].T, atol=1e-10)
        value = value - 0.1 * bent.T @ (bent @ value - 1.0)
        np.testing.assert_allclose(weights.get_value(), value, atol=1e-10)


def test_exact_modes_and_those_without_fusion_multiply_apart() -> None:
    assert "row_blocks" not in names(JOINED["layers"], esat.Mode(soundness="exact"))
    assert "row_blocks" not in names(JOINED["layers"], esat.Mode().excluding("elemwise_fusion"))


def test_layers_under_a_condition_are_not_joined_with_those_always_needed() -> None:
    x, y, v, b, w = variables()
    chosen = esat.scalar("chosen", dtype="bool")
    first = hidden(esat, x, v, b)
    function = esat.compile(
        esat.Graph([x, y, v, b, w, chosen], [first, esat.ifelse(chosen, esat.matmul(first, w), y)])
    )
    assert function.in_blocks is None
    given = arrays(20, 5, 4, 3)
    for condition in (True, False):
        wanted = JOINED["layers"](np, *given) if condition else given[1]
        np.testing.assert_allclose(function(*given, condition)[1], wanted)


def test_layers_one_behind_the_other_with_all_rows_between() -> None:
    def program(xp: Any, x: Any, y: Any, v: Any, b: Any, w: Any) -> Any:
        first = xp.matmul(hidden(xp, x, v, b), w)
        centred = first - xp.sum(first, axis=0, keepdims=True)
        return xp.matmul(xp.tanh(xp.matmul(centred, w.T)), v.T)

    _places, built = graph(program)
    found = join_row_blocks(built.function_graph(), codegen)
    assert [node.op.name for node in found.toposort()].count("row_blocks") == 2
    places, built = graph(program)
    given = arrays(30, 5, 4, 3)
    function = esat.compile(built)
    assert_results(function(*(given[place] for place in places)), program(np, *given), 1e-11)


@pytest.mark.parametrize("size", [64, 512])
def test_weights_of_known_sizes(size: int) -> None:
    x, weights = esat.matrix("x"), esat.tensor("w", shape=(size, size))
    outputs = [esat.matmul(esat.tanh(esat.matmul(x, weights)), weights)]
    found = join_row_blocks(FunctionGraph([x, weights], outputs), codegen)
    assert ("row_blocks" in str(found)) == (size == 64)


def test_the_graph_that_is_given_stays_as_it_is() -> None:
    given = graph(JOINED["training"])[1].function_graph()
    text = str(given)
    joined = join_row_blocks(given, codegen)
    assert joined is not given
    assert "row_blocks{" in str(joined)
    assert str(given) == text


@pytest.mark.usefixtures("always")
def test_results_do_not_depend_on_threads() -> None:
    _, built = graph(JOINED["training"])
    given = arrays(3000, 33, 20, 10)
    found: dict[int, set[bytes]] = {}
    for threads in (1, 2, 3):
        function = esat.compile(built, esat.Mode(threads=threads))
        for call in range(12):  # the first ones may go to the program without blocks
            results = b"".join(array.tobytes() for array in function(*given))
            found.setdefault(call, set()).add(results)
        assert function.in_blocks is not None
    assert [len(results) for results in found.values()] == [1] * 12
    later = [found[call] for call in range(6, 12)]
    assert len(set.union(*later)) == 1  # and from then on always the same


@pytest.mark.parametrize("place", range(5))
def test_sizes_that_do_not_fit_name_the_line(place: int) -> None:
    function = esat.compile(graph(JOINED["training"])[1])
    given = arrays(7, 3, 4, 5)
    given[place] = np.zeros((11, 12)) if place != 3 else np.zeros((1, 12))
    with pytest.raises(ShapeError, match=r"do not match|must be equal") as raised:
        function(*given)
    assert Path(__file__).name in str(raised.value)


@pytest.mark.parametrize("mode", ["o2", "greedy", "fast_compile"])
def test_weights_that_are_turned_twice_or_more(mode: str) -> None:
    """Modes without rules about views leave transposes of transposes to the phase."""
    x, y, v = esat.matrix("x"), esat.vector("y"), esat.matrix("v")
    layers = esat.tanh(esat.tanh(x @ v.T.T) @ v.T.T.T)
    by_inverse = esat.grad((esat.linalg.inv(x @ x.T + 2.0) @ y).sum(), x)
    values = {x: RNG.standard_normal((40, 40)), y: RNG.standard_normal(40), v: RNG.standard_normal((40, 3))}
    expected = esat.evaluate([layers, by_inverse], values)
    function = esat.compile(esat.Graph(list(values), [layers, by_inverse]), mode)
    assert_results(function(*values.values()), tuple(expected), 1e-9)
