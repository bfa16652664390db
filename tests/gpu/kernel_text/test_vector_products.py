"""Products with vectors are sums that kernels compute, and what they were."""

from typing import Any

import numpy as np
import pytest
from gpu.programs import compiled_for, numbers, of_host

import esat
from esat.gpu.device import Device
from esat.gpu.kernel_text.vector_products import vector_products_as_sums
from esat.graph import FunctionGraph

SHAPES = [
    ((5, 7), (7,)),
    ((7,), (7, 5)),
    ((7,), (7,)),
    ((5, 7), (7, 1)),
    ((1, 7), (7, 5)),
    ((3, 5, 7), (7,)),
    ((3, 5, 7), (3, 7, 1)),
    ((4, 0), (0,)),
    ((0, 4), (4,)),
    ((4, 1), (1, 1)),
]


def _known(shape: tuple[int, ...]) -> tuple[int | None, ...]:
    return tuple(1 if size == 1 else None for size in shape)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_a_product_with_a_vector_is_a_kernel(first: Any, second: Any, dtype: str, device: Device) -> None:
    x, y = (esat.tensor(shape=_known(shape), dtype=dtype) for shape in (first, second))
    data = numbers(*first, dtype=dtype), numbers(*second, seed=1, dtype=dtype)
    function = compiled_for(device, esat.Graph([x, y], [esat.tanh(x @ y)]))
    found, wanted = function(*data), np.tanh(data[0] @ data[1])
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert np.allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)
    assert [group.kind for group in function.steps if group.kind in ("kernel", "library")] == ["kernel"]


def test_transposed_and_accumulated_products_are_sums(device: Device) -> None:
    x, w = esat.matrix("x", dtype="float64"), esat.vector("w", dtype="float64")
    v = esat.vector("v", dtype="float64")
    graph = esat.Graph([x, w, v], [w - 0.1 * (x.T @ v), 2 * w + 0.5 * (v @ x)])
    data = [numbers(6, 4, dtype="float64"), numbers(4, dtype="float64"), numbers(6, dtype="float64")]
    function = compiled_for(device, graph)
    assert not any(group.kind == "library" for group in function.steps)
    for found, wanted in zip(function(*data), of_host(graph)(*data), strict=True):
        assert np.allclose(found, wanted, rtol=1e-13)


def test_other_products_stay_as_they_are() -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    n = esat.matrix("n", dtype="int64")
    column = esat.tensor("c", shape=(None, 1), dtype="int64")
    single = esat.tensor("s", shape=(None, 1))
    for graph in (
        FunctionGraph([x, y], [x @ y]),
        FunctionGraph([n, column], [n @ column]),
        FunctionGraph([single], [single @ single.T]),
    ):
        assert vector_products_as_sums(graph) is graph


def test_sizes_that_do_not_fit_are_refused(device: Device) -> None:
    x, y = esat.matrix("x"), esat.vector("y")
    function = compiled_for(device, esat.Graph([x, y], [x @ y]))
    with pytest.raises(esat.ShapeError, match="size"):
        function(np.ones((3, 4)), np.ones(5))
    with pytest.raises(esat.ShapeError, match="size"):
        function(np.ones((3, 4)), np.ones(1))
