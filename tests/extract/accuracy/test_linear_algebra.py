"""A system is solved, not multiplied by an inverse, also where the inverse is computed beside it."""

import numpy as np
import pytest

import esat


def residual(a: np.ndarray, x: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a @ x - b).max() / (np.abs(a).max() * np.abs(x).max()))


@pytest.mark.parametrize("order", ["alone", "beside the inverse"])
def test_solutions_have_small_residuals(order: str) -> None:
    a, b = esat.matrix("a"), esat.matrix("b")
    outputs = [esat.linalg.inv(a) @ b, esat.linalg.solve(a, b)]
    if order != "alone":
        outputs.append(esat.linalg.inv(a))
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.normal(size=(8, 8)))[0] for _ in range(2))
    matrix = left @ np.diag(np.logspace(0, -12, 8)) @ right
    sides = random.normal(size=(8, 3))
    results = esat.compile(esat.Graph([a, b], outputs))(matrix, sides)
    for solution in results[:2]:
        assert residual(matrix, solution, sides) < 1e-14


def test_an_orthogonal_matrix_is_multiplied_by() -> None:
    a, b = esat.matrix("a"), esat.matrix("b")
    orthogonal = esat.assume(a, "orthogonal")
    function = esat.compile(esat.Graph([a, b], [esat.linalg.inv(orthogonal) @ b]))
    assert [node.op.name for node in function.optimized.toposort() if "solve" in node.op.name] == []
