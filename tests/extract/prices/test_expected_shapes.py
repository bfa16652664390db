"""Expected shapes decide what is chosen, and are checked."""

from typing import Any

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.errors import GraphError, ShapeError
from esat.extract.prices.expected_shapes import LARGEST_SIZE, hints_of, with_parts


def product_shapes(executable: Any) -> list[tuple[str, ...]]:
    """The operands of each product, by name; a product by P."""
    products = [node for node in executable.optimized.toposort() if node.op.name == "matmul"]
    return sorted(
        tuple(str(variable) if variable.owner is None else "P" for variable in node.inputs)
        for node in products
    )


def test_a_chain_is_associated_for_the_expected_shapes() -> None:
    x, y, z = (esat.matrix(name) for name in "xyz")
    graph = esat.Graph([x, y, z], [x @ y @ z])
    wide = {x: (2, 500), y: (500, 400), z: (400, 300)}
    tall = {x: (300, 400), y: (400, 500), z: (500, 2)}
    left, right = (esat.compile(graph, shapes=shapes) for shapes in (wide, tall))
    assert product_shapes(left) == [("P", "z"), ("x", "y")]
    assert product_shapes(right) == [("x", "P"), ("y", "z")]
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 6))
    for executable in (left, right):  # right for every shape
        np.testing.assert_allclose(executable(a, b, c), a @ b @ c)


def test_the_prediction_follows_the_expected_shapes() -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    graph = esat.Graph([x, y], [esat.exp(x @ y).sum()])
    for mode in ("fast_run", "greedy"):
        small, large = (
            esat.compile(graph, mode, shapes={x: (n, n), y: (n, n)}).report.cost_after for n in (10, 1000)
        )
        assert large > 100 * small


def test_sizes_of_shared_variables_are_known() -> None:
    x = esat.matrix("x")
    weights = esat.shared(np.zeros((30, 7)), name="weights")
    terms = encode(esat.Graph([x], [esat.tanh(x @ weights)]).function_graph())
    hints = hints_of(terms, ())
    assert sorted(hints.values()) == [7.0, 30.0]
    (product,) = [n for n, term in enumerate(terms.terms) if term.constructor == "MatMul"]
    assert [hints.get(symbol) for symbol in terms.types[product].shape] == [None, 7.0]  # type: ignore[arg-type]
    expected = hints_of(terms, ((5, 40),))
    assert sorted(expected.values()) == [5.0, 7.0, 40.0]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3,), "1 sizes for 2 axes"),
        ((3, -1), "cannot have size -1"),
        ((3, 5), "has size 4 by its type, not 5"),
        ((3.0, 4), "no sequence of whole numbers"),
        (7, "no sequence of whole numbers"),
    ],
)
def test_impossible_shapes_are_refused(shape: Any, message: str) -> None:
    x = esat.tensor("x", shape=(None, 4))
    with pytest.raises(ShapeError, match=message):
        esat.compile(esat.Graph([x], [x + 1.0]), shapes={x: shape})


def test_shapes_of_others_and_shapes_at_odds_are_refused() -> None:
    x, y, z = esat.vector("x"), esat.vector("y"), esat.vector("z")
    graph = esat.Graph([x, y], [x + y])
    with pytest.raises(GraphError, match=r"z is no input of the graph; its inputs are: x, y"):
        esat.compile(graph, shapes={z: (3,)})
    with pytest.raises(ShapeError, match=r"axis 0 of y .* size 4.* as an axis of x.* size 3"):
        esat.compile(graph, shapes={x: (3,), y: (4,)})
    esat.compile(graph, shapes={x: (0,), y: (0,)})


def test_sizes_computed_from_sizes_are_bounded_and_looked_at_once() -> None:
    """A reshape of several unknown axes may be expected to have more elements than an int64 counts."""
    x = esat.vector("x")
    size = x.shape[0]
    for _ in range(60):
        size = size * size + size
    graph = esat.Graph([x], [esat.sort(esat.full((size,), x[0]))])
    terms = encode(graph.function_graph())
    found = with_parts(terms, {})
    assert found
    assert max(found.values()) == LARGEST_SIZE
    program = esat.compile(graph)  # NumPy's integers wrap around: no vector is as long as was expected
    with pytest.raises(esat.EsatError):
        program(np.array([2.0, 1.0]))
