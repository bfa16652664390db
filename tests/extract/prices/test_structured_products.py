"""Structured products are taken where they are faster, not wherever they take fewer operations."""

import numpy as np
import pytest

import esat
from esat.errors import ShapeError
from esat.graph import Variable


def products(inputs: list[Variable], output: Variable) -> list[str]:
    """Names of the products in the compiled program."""
    compiled = esat.compile(esat.Graph(inputs, [output]))
    return [node.op.name for node in compiled.graph.toposort() if "matmul" in node.op.name]


def product_with(fact: str, size: int, columns: int) -> list[str]:
    matrix = esat.matrix("matrix", shape=(size, size))
    other = esat.matrix("other", shape=(size, columns))
    return products([matrix, other], esat.assume(matrix, fact) @ other)


@pytest.mark.parametrize(
    ("fact", "size", "columns", "chosen"),
    [
        ("lower_triangular", 8, 8, "matmul"),
        ("lower_triangular", 512, 512, "lower_matmul"),
        ("lower_triangular", 512, 8, "matmul"),
        ("lower_triangular", 16, 1, "matmul"),
        ("lower_triangular", 1000, 1, "lower_matmul"),
        ("upper_triangular", 10, 300, "matmul"),
        ("upper_triangular", 300, 300, "upper_matmul"),
        ("diagonal", 300, 300, "diagonal_matmul"),
        ("tridiagonal", 6, 6, "matmul"),
        ("tridiagonal", 300, 300, "tridiagonal_matmul"),
        # A symmetric matrix saves reading, not operations.
        ("symmetric", 300, 300, "matmul"),
        ("symmetric", 1000, 1, "symmetric_matmul"),
        ("symmetric", 16, 1, "matmul"),
    ],
)
def test_the_size_decides(fact: str, size: int, columns: int, chosen: str) -> None:
    assert product_with(fact, size, columns) == [chosen]


@pytest.mark.parametrize(
    ("rows", "inner", "chosen"),
    [
        (8, 8, "matmul"),
        (300, 300, "gram_matmul"),
        (1000, 4, "matmul"),
        (8, 1000, "matmul"),
        (100, 1000, "gram_matmul"),
    ],
)
def test_a_matrix_with_its_own_transpose(rows: int, inner: int, chosen: str) -> None:
    matrix = esat.matrix("matrix", shape=(rows, inner))
    assert products([matrix], matrix @ matrix.T) == [chosen]
    turned = esat.matrix("turned", shape=(inner, rows))
    assert products([turned], turned.T @ turned) == [chosen]


@pytest.mark.parametrize("length", [3, 6, 9])
def test_chains_are_multiplied_in_the_best_order(length: int) -> None:
    """Against the optimum by dynamic programming over the cost of products of two."""
    generator = np.random.default_rng(length)
    sizes = generator.choice([3, 40, 200, 700], size=length + 1).tolist()
    matrices = [esat.matrix(f"m{k}", shape=(sizes[k], sizes[k + 1])) for k in range(length)]
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    compiled = esat.compile(esat.Graph(matrices, [product]))
    flops = sum(
        node.inputs[0].tensor_type.shape[0]
        * node.inputs[0].tensor_type.shape[1]
        * node.inputs[1].tensor_type.shape[1]
        for node in compiled.graph.toposort()
        if node.op.name == "matmul"
    )
    best = {(k, k + 1): 0 for k in range(length)}
    for span in range(2, length + 1):
        for start in range(length - span + 1):
            stop = start + span
            best[start, stop] = min(
                best[start, cut] + best[cut, stop] + sizes[start] * sizes[cut] * sizes[stop]
                for cut in range(start + 1, stop)
            )
    assert flops <= 1.1 * best[0, length]


def test_gradients_are_those_of_the_plain_product() -> None:
    matrix, other = esat.matrix("matrix", shape=(200, 200)), esat.matrix("other", shape=(200, 200))
    loss = (esat.assume(matrix, "lower_triangular") @ other).sum()
    compiled = esat.compile(esat.Graph([matrix, other], esat.grad(loss, [matrix, other])))
    lower, values = np.tril(np.random.default_rng(0).normal(size=(200, 200))), np.ones((200, 200))
    by_lower, by_other = compiled(lower, values)
    assert np.allclose(by_lower, np.ones((200, 200)) @ values.T)
    assert np.allclose(by_other, lower.T @ np.ones((200, 200)))


@pytest.mark.parametrize(("size", "names"), [(100, ["matmul", "matmul"]), (1000, ["normal_matmul"])])
def test_a_large_matrix_is_read_once_for_its_normal_product(size: int, names: list[str]) -> None:
    matrix, column = esat.matrix("matrix", shape=(size, size)), esat.matrix("column", shape=(size, 1))
    vector = esat.vector("vector", shape=(size,))
    assert products([matrix, column], matrix.T @ matrix @ column) == names
    assert products([matrix, column], column.T @ matrix.T @ matrix) == names
    assert products([matrix, vector], matrix.T @ (matrix @ vector)) == names
    # Rows of a transposed matrix do not lie in one piece.
    assert products([matrix, column], matrix @ (matrix.T @ column)) == ["matmul", "matmul"]


def test_the_normal_product_of_a_program_for_all_sizes() -> None:
    matrix, vector = esat.matrix("matrix"), esat.vector("vector")
    compiled = esat.compile(
        esat.Graph([matrix, vector], [matrix.T @ (matrix @ vector)]),
        shapes={matrix: (2000, 500), vector: (500,)},
    )
    assert [node.op.name for node in compiled.graph.toposort() if "matmul" in node.op.name] == [
        "normal_matmul"
    ]
    generator = np.random.default_rng(3)
    for rows, columns in ((2000, 500), (7, 5), (1, 5), (5, 1), (0, 5), (5, 0)):
        a, x = generator.normal(size=(rows, columns)), generator.normal(size=columns)
        np.testing.assert_allclose(compiled(a, x), a.T @ (a @ x), rtol=1e-10, atol=1e-10)
        turned = np.asfortranarray(a)
        np.testing.assert_allclose(compiled(turned, x), a.T @ (a @ x), rtol=1e-10, atol=1e-10)
    with pytest.raises(ShapeError):
        compiled(np.ones((3, 4)), np.ones(5))


@pytest.mark.parametrize("weights", ["quotients", "a divisor", "a square below"])
def test_weights_that_are_products_found_late(weights: str) -> None:
    """Half of a product with weights of the rows is enough, however these came to be positive."""
    matrix, column = esat.matrix("matrix", shape=(800, 200)), esat.matrix("column", shape=(800, 1))
    chance = 1 / (1 + esat.exp(-column))
    weighted = {
        "quotients": matrix * (chance * (1 - chance)),
        "a divisor": matrix / (1 + esat.abs(column)),
        "a square below": matrix * (esat.exp(column) / (1 + esat.exp(column)) ** 2),
    }[weights]
    assert products([matrix, column], matrix.T @ weighted) == ["gram_matmul"]
