"""The benchmark of products compares with a product of the same operands."""

import numpy as np
import pytest

from benchmarks import operations, products


@pytest.mark.parametrize("dtype", products.CLOSE)
@pytest.mark.parametrize("case", products.CASES[:3], ids=lambda case: case.name)
def test_the_product_alone_is_that_of_the_graph(case, dtype):
    arrays = [np.random.default_rng(seed).normal(size=(7, 7)).astype(dtype) for seed in range(2)]
    found = products.product(case, arrays, dtype)().T
    np.testing.assert_allclose(found, case.function(np, *arrays), rtol=1e-4)


@pytest.mark.parametrize("case", products.CASES, ids=lambda case: case.name)
def test_graphs_give_what_numpy_gives_and_are_timed(case, monkeypatch):
    monkeypatch.setattr(operations, "SECONDS", 1e-6)
    monkeypatch.setattr(operations, "ROUNDS", 1)
    assert products.share(case, 24, "float64") > 0.0


def test_a_share_below_the_least_is_a_failure(capsys, monkeypatch):
    monkeypatch.setattr(products, "share", lambda case, size, dtype: 0.5 if dtype == "float32" else 1.0)
    assert products.main(["--sizes", "8"]) == 1
    assert f"{len(products.CASES)} of {2 * len(products.CASES)} below 0.95" in capsys.readouterr().out
    assert products.main(["--sizes", "8", "--dtypes", "float64"]) == 0
