"""One pass over a matrix for ``a' (a x)``: right for all sizes and layouts, and the same for any threads."""

import numpy as np
import pytest

from esat.codegen.normal_product import PARTS, ROWS, SHARED_FROM, normal_routine
from esat.ops.linalg.normal import NormalProduct

TOLERANCE = {"float32": 1e-4, "float64": 1e-12}


def operands(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(rows + columns)
    return generator.normal(size=(rows, columns)).astype(dtype), generator.normal(size=(columns, 1)).astype(
        dtype
    )


def refused(*_arguments: object) -> object:
    raise AssertionError("the matrix was read twice")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, ROWS - 1, PARTS, PARTS * ROWS - 1, PARTS * ROWS, 3 * PARTS * ROWS + 5])
@pytest.mark.parametrize("columns", [1, 3, 64, 301])
def test_all_sizes_by_one_pass(rows: int, columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NormalProduct, "perform", refused)
    matrix, column = operands(rows, columns, dtype)
    output = np.full((columns, 1), np.nan, dtype)
    normal_routine(dtype, 1)(matrix, column, output)
    wanted = matrix.T.astype(np.float64) @ (matrix.astype(np.float64) @ column)
    np.testing.assert_allclose(
        output, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(wanted).max()
    )


@pytest.mark.parametrize(
    "turn", [np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a[::-1]]
)
def test_other_layouts(turn: object) -> None:
    matrix, column = operands(70, 30, "float64")
    output = np.empty((30, 1))
    normal_routine("float64", 1)(turn(matrix), column, output)  # type: ignore[operator]
    np.testing.assert_allclose(output, turn(matrix).T @ (turn(matrix) @ column))  # type: ignore[operator]


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_nothing(shape: tuple[int, int]) -> None:
    output = np.full((shape[1], 1), np.nan)
    normal_routine("float64", 1)(np.empty(shape), np.ones((shape[1], 1)), output)
    assert np.array_equal(output, np.zeros((shape[1], 1)))


def test_the_result_does_not_depend_on_threads() -> None:
    matrix, column = operands(700, 301, "float64")
    assert matrix.size > SHARED_FROM
    results = []
    for threads in (1, 2, 3):
        output = np.empty((301, 1))
        normal_routine("float64", threads)(matrix, column, output)
        results.append(output)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_what_is_not_finite_spreads_as_in_two_products() -> None:
    matrix, column = operands(40, 6, "float64")
    matrix[3, 2] = np.inf
    output = np.empty((6, 1))
    normal_routine("float64", 1)(matrix, column, output)
    with np.errstate(invalid="ignore"):
        wanted = matrix.T @ (matrix @ column)
    assert np.array_equal(np.isnan(output), np.isnan(wanted))
    assert np.array_equal(np.isinf(output), np.isinf(wanted))
