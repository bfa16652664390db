"""Structured products are taken where they are faster, not wherever they take fewer operations."""

import numpy as np
import pytest

import esat
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
