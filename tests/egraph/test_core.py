"""Sums and products of any number of operands: what they find, and that they are sound."""

import numpy as np
import pytest

from esat.egraph.saturate import Budgets
from tests.egraph.numeric_oracle import check_egraph
from tests.egraph.term_graphs import GraphBuilder, holds, random_polynomial, saturated

TOLERANCE = {"float32": 1e-3, "float64": 1e-9, "complex128": 1e-9}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8", "uint8", "int64", "complex128"])
@pytest.mark.parametrize("seed", range(12))
def test_every_node_has_the_value_of_its_class(dtype, seed):
    build, graph = random_polynomial(seed, dtype)
    if dtype == "complex128":
        pytest.importorskip("numpy")
    engine, _ = saturated(graph, budgets=Budgets(nodes=3000, seconds=2.0, rounds=4))
    assert check_egraph(engine, build.arrays, TOLERANCE.get(dtype, 0.0)) >= 10
