"""Rows of identities whose size is that of another array become reads by index; errors stay errors."""

import numpy as np
import pytest

import esat
from esat.errors import EsatError

A, B, LABELS = esat.dmatrix("A"), esat.dmatrix("B"), esat.lvector("labels")
PROGRAMS = {
    "rows": (esat.eye(B.shape[0])[LABELS] @ B, lambda a, b, i: np.eye(len(b))[i] @ b),
    "columns": (A @ esat.eye(A.shape[1])[LABELS].T, lambda a, b, i: a @ np.eye(a.shape[1])[i].T),
    "one a row": (
        (esat.eye(A.shape[1])[LABELS] * A).sum(1),
        lambda a, b, i: (np.eye(a.shape[1])[i] * a).sum(1),
    ),
}
GENERATOR = np.random.default_rng(0)
LEFT, RIGHT = GENERATOR.normal(size=(4, 6)), GENERATOR.normal(size=(7, 3))


@pytest.mark.parametrize("mode", ["fast_run", "o3", "unsafe", "greedy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_with_one_hot_rows_are_reads(name, mode):
    output, expected = PROGRAMS[name]
    graph = esat.Graph([A, B, LABELS], [output], on_unused_input="ignore")
    function = esat.compile(graph, mode=mode)
    names = {node.op.name for node in function.optimized.toposort()}
    assert "advanced_subtensor" in names
    assert names.isdisjoint({"matmul", "eye", "mul"})
    for labels in (np.array([1, 2, 0, 1]), np.array([-1, 2, 0, -6])):
        for _ in range(3):
            np.testing.assert_allclose(function(LEFT, RIGHT, labels), expected(LEFT, RIGHT, labels))
    with pytest.raises(EsatError, match="out of bounds"):
        function(LEFT, RIGHT, np.array([0, 1, 2, 7]))
    if name == "one a row":
        with pytest.raises(EsatError):
            function(LEFT, RIGHT, np.array([0, 1, 2]))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_identities_whose_size_may_be_another_stay(mode):
    """Their rows times a matrix of more rows are an error."""
    size = esat.lscalar("size")
    function = esat.compile(esat.Graph([size, LABELS, B], [esat.eye(size)[LABELS] @ B]), mode=mode)
    labels = np.array([1, 0])
    np.testing.assert_allclose(function(7, labels, RIGHT), RIGHT[labels])
    with pytest.raises(EsatError):
        function(6, labels, RIGHT)
