"""Sums of products of matrices as words, and the ways to compute them."""

import numpy as np
import pytest

import esat
from esat.egraph.algebra.equal_forms.polynomials import TooLongError
from esat.egraph.algebra.equal_forms.words import (
    LONGEST_WORD,
    MOST_WORDS,
    MatrixProduct,
    Planner,
    Total,
    combined,
    concatenated,
    limited,
    transposed,
)

A, B, C, X = ((name, False) for name in range(4))
AT, BT = (0, True), (1, True)


def size(letter) -> tuple[float, float]:
    """A is wide, X a column, the others are square."""
    shapes = {0: (10.0, 100.0), 1: (100.0, 100.0), 2: (100.0, 100.0), 3: (100.0, 1.0)}
    rows, columns = shapes[letter[0]]
    return (columns, rows) if letter[1] else (rows, columns)


def test_words_keep_their_order() -> None:
    total = concatenated({(A,): 1, (B,): 2}, {(A,): 1, (B,): -2})
    assert total == {(A, A): 1, (A, B): -2, (B, A): 2, (B, B): -4}
    assert transposed({(A, B): 3}) == {(BT, AT): 3}
    assert combined(total, total, -1) == {}


def test_long_sums_and_words_are_refused() -> None:
    with pytest.raises(TooLongError):
        limited({((name, False),): 1 for name in range(MOST_WORDS + 1)})
    with pytest.raises(TooLongError):
        limited({(A,) * (LONGEST_WORD + 1): 1})


def test_chains_are_multiplied_in_the_best_order() -> None:
    planner = Planner(size)
    assert planner.plan({(B, C, X): 1})[1] == MatrixProduct(B, MatrixProduct(C, X))
    assert planner.plan({(A, B, C): 1})[1] == MatrixProduct(MatrixProduct(A, B), C)


def test_common_letters_are_taken_out_where_that_pays() -> None:
    planner = Planner(size)
    _, plan = planner.plan({(B, X): 1, (C, X): 1})
    assert plan == Total(
        ((1, MatrixProduct(B, X)), (1, MatrixProduct(C, X)))
    )  # a sum of matrices is no cheaper
    _, plan = planner.plan({(C, B): 1, (C, BT): -1})
    assert plan == MatrixProduct(C, Total(((1, B), (-1, BT))))
    _, plan = planner.plan({(B, C, X): 1, (B, X): 2, (X,): 1})
    assert isinstance(plan, Total)
    assert (1, X) in plan.parts


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(3, 4, 5), (1, 4, 2), (5, 1, 1)])
def test_values_of_offers_are_right(dtype, rows, inner, columns) -> None:
    a, b, c, d = (esat.matrix(name, dtype=dtype) for name in "abcd")
    x, y = esat.vector("x", dtype=dtype), esat.vector("y", dtype=dtype)
    outputs = [
        (a + b) @ c - a @ c,
        (a + b) @ (c + d) - a @ c - b @ d - b @ c,
        a @ x + a @ y,
        x @ c.T.T + y @ c,
        (a - b).T @ (a @ x) - a.T @ (a @ x),
        2 * (a @ c) - a @ (c - 3 * d),
        (c.T @ a.T).T - a @ (c + d),
    ]
    rng = np.random.default_rng(0)
    shapes = [(rows, inner), (rows, inner), (inner, columns), (inner, columns), (inner,), (inner,)]
    values = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    function = esat.compile(esat.Graph([a, b, c, d, x, y], outputs))
    m, n, p, q, v, w = values
    expected = [
        n @ p,
        m @ q,
        m @ (v + w),
        (v + w) @ p,
        -(n.T @ (m @ v)),
        m @ (p + 3 * q),
        -(m @ q),
    ]
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for got, want in zip(function(*values), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance)


ROWS_AND_COLUMNS = {
    "products of one element": lambda r, s, c, d: (c @ r) @ d + (d @ r) @ c + (c @ s) @ d,
    "sums of them": lambda r, s, c, d: (0.5 * c @ s + d @ r) @ (c + d) + (d @ r) @ c,
    "elements": lambda r, s, c, d: r @ (c @ (r @ d)) + r @ (d @ (s @ c)),
    "one row": lambda r, s, c, d: r @ (c @ s + d @ s) + r @ (c @ s),
}


@pytest.mark.parametrize("name", ROWS_AND_COLUMNS)
def test_products_of_rows_and_columns(name: str) -> None:
    """The product of a row and a column has one element, and is typed as such."""
    shapes = ((1, 3), (1, 3), (3, 1), (3, 1))
    inputs = [esat.tensor(f"x{place}", shape=shape) for place, shape in enumerate(shapes)]
    f = esat.compile(esat.Graph(inputs, ROWS_AND_COLUMNS[name](*inputs)))
    rng = np.random.default_rng(0)
    values = [rng.normal(size=shape) for shape in shapes]
    np.testing.assert_allclose(f(*values), ROWS_AND_COLUMNS[name](*values), rtol=1e-13)
