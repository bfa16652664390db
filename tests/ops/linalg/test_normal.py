"""``a' (a x)`` as one op: values, gradients, and what it refuses."""

import numpy as np
import pytest

import esat
from esat.errors import CallError, DtypeError, ShapeError
from esat.ops.linalg.normal import NORMAL_PRODUCT

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (1, 3), (3, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("columns", [1, 2, 0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(shape: tuple[int, int], columns: int, dtype: str) -> None:
    a, x = esat.matrix("a", dtype=dtype), esat.matrix("x", dtype=dtype)
    left, right = RNG.normal(size=shape).astype(dtype), RNG.normal(size=(shape[1], columns)).astype(dtype)
    found = esat.evaluate(NORMAL_PRODUCT(a, x), {a: left, x: right})
    assert found.dtype == dtype
    np.testing.assert_allclose(found, left.T @ (left @ right), rtol=1e-5)


def test_gradients() -> None:
    esat.verify_grad(NORMAL_PRODUCT, [RNG.normal(size=(4, 3)), RNG.normal(size=(3, 1))])
    esat.verify_grad(NORMAL_PRODUCT, [RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2))])


def test_what_is_refused() -> None:
    a, x = esat.matrix("a", shape=(4, 3)), esat.matrix("x", shape=(4, 1))
    with pytest.raises(ShapeError, match="inner sizes 3 and 4"):
        NORMAL_PRODUCT(a, x)
    with pytest.raises(ShapeError, match="are matrices"):
        NORMAL_PRODUCT(a, esat.vector("v"))
    with pytest.raises(DtypeError, match="float32, float64"):
        NORMAL_PRODUCT(esat.matrix("c", dtype="complex128"), esat.matrix("d", dtype="complex128"))
    with pytest.raises(CallError, match="takes 2 operands, not 1"):
        NORMAL_PRODUCT(a)
    y = esat.matrix("y")
    with pytest.raises(ShapeError):
        esat.evaluate(NORMAL_PRODUCT(a, y), {a: np.ones((4, 3)), y: np.ones((2, 1))})
