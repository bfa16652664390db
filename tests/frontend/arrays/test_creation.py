import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, ParameterError, ShapeError
from esat.graph.types import DTYPES

ARRAY = np.random.default_rng(32).standard_normal((2, 3, 4))


def both(function, *arrays):
    agree(lambda *x: function(esat, *x), lambda *x: function(np, *x), *arrays)


def test_filled():
    both(
        lambda m: [
            m.zeros(3),
            m.ones((2, 3), "int8"),
            m.full((2, 2), 1.5),
            m.full(2, 7, "float32"),
            m.zeros(()),
        ]
    )
    both(
        lambda m, x: [m.full((2, 3, 4), x), m.full_like(x, 2), m.zeros_like(x, "int8"), m.ones_like(x)], ARRAY
    )
    both(lambda m, x: m.full_like(x, 2.7), np.arange(3))
    x, n = esat.matrix("x"), esat.lscalar("n")
    assert value(esat.zeros((n, x.shape[1], 2)), {x: ARRAY[0], n: 5}).shape == (5, 4, 2)
    assert value(esat.ones(x.shape), {x: ARRAY[0]}).shape == (3, 4)


def test_triangles():
    for k in (-1, 0, 2):
        both(lambda m, x, k=k: [m.tril(x, k), m.triu(x, k)], ARRAY)
    both(lambda m, x: m.tril(x), np.array([[np.nan, np.inf], [1, np.nan]]))
    both(lambda m, x: m.triu(x), ARRAY[0] > 0)
    both(lambda m, x: [m.tril(x, 1), m.triu(x)], ARRAY[0, 0])
    with pytest.raises(ShapeError, match="one axis"):
        esat.tril(esat.scalar())
    esat.verify_grad(lambda x: esat.triu(x, 1), [ARRAY])


def test_linspace():
    both(
        lambda m: [
            m.linspace(0, 1, 7),
            m.linspace(0, 3, 4, endpoint=False),
            m.linspace(2, 3, 1),
            m.linspace(1, 2, 0),
        ]
    )
    both(lambda m, a: [m.linspace(a, 2.7, 11), m.linspace(0, 10, 5, dtype="int32")], np.float64(0.1))
    both(lambda m, x, y: [m.linspace(x, y, 3), m.linspace(1, y, 2, False)], ARRAY[0], ARRAY[0, 0])
    both(lambda m, a: [m.linspace(a, 2, 3), m.linspace(a, a, 2, dtype="complex64")], np.complex128(1j))
    with pytest.raises(ShapeError, match="negative"):
        esat.linspace(0, 1, -1)
    with pytest.raises(DtypeError, match=r"num=2\.5"):
        esat.linspace(0, 1, 2.5)


def test_identity_is_a_matrix():
    both(lambda m: [m.identity(3), m.identity(2, "int8"), m.empty((2, 0), "int8")])
    assert esat.evaluate(esat.empty_like(np.ones(3, "int8"))).tolist() == [0, 0, 0]


def test_meshgrid():
    x, y = ARRAY[0, 0], ARRAY[0, :, 0]
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            both(lambda m, x, y, i=indexing, s=sparse: m.meshgrid(x, y, x, indexing=i, sparse=s), x, y)
    both(lambda m, x: m.meshgrid(x), x)
    both(lambda m, x: m.meshgrid(x, 3.5), ARRAY[0])
    with pytest.raises(ParameterError):
        esat.meshgrid(x, indexing="ji")


BOUNDS = [
    (300,), (-100, 100), (5, 2, -1), (1, 0, 1), (250, 260), (0, 10, 0.5), (0.5, 10, 1.7), (0, 0.3, 0.1),
    (True,), (10, 0, -3), (0, -5, -1.5), (1e3,), (3, 3), (-0.5, 0.5, 0.25), (2**63, 2**63 + 3),
    (np.float32(0), np.float32(0.3), np.float32(0.1)), (np.int8(100),), (np.int16(3), 5.5),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [None, *DTYPES])
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_ranges_of_every_dtype(bounds, dtype):
    """Numbers are counted before they are cast: small and unsigned dtypes do not wrap the bounds around."""
    try:
        expected = np.arange(*bounds, dtype=dtype)
    except (TypeError, OverflowError) as error:
        with pytest.raises(
            esat.DtypeError if isinstance(error, TypeError) else esat.ShapeError, match="arange"
        ):
            esat.evaluate(esat.arange(*bounds, dtype=dtype))
        return
    counted = esat.arange(*bounds, dtype=dtype)
    assert counted.type.shape == expected.shape
    scalars = [esat.scalar(dtype=np.asarray(bound).dtype) for bound in bounds]
    given = dict(zip(scalars, bounds, strict=True))
    for result in (
        esat.evaluate(counted),
        esat.evaluate(esat.arange(*scalars, dtype=dtype or expected.dtype), given),
    ):
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)


def test_unsigned_variables_as_bounds():
    start, stop = esat.scalar(dtype="uint8"), esat.scalar(dtype="int8")
    assert esat.evaluate(esat.arange(start, stop), {start: np.uint8(5), stop: np.int8(2)}).size == 0
    assert esat.evaluate(esat.arange(start, stop, -1), {start: np.uint8(5), stop: np.int8(2)}).tolist() == [
        5,
        4,
        3,
    ]
    far = esat.scalar(dtype="int8")
    assert esat.evaluate(esat.arange(stop, far), {stop: np.int8(-100), far: np.int8(100)}).size == 200


@pytest.mark.parametrize(
    "bounds", [(0, 5, 0), (0, np.nan), (0, np.inf), (0, 1e30), (0, 2**62), (0, 1, 1e-300)]
)
def test_ranges_that_cannot_be(bounds):
    with pytest.raises(esat.ShapeError, match="arange"):
        esat.arange(*bounds)


def test_gradient_of_a_range():
    start, step = esat.scalar("start"), esat.scalar("step")
    cost = (esat.arange(start, 10.0, step) ** 2).sum()
    by_start, by_step = esat.grad(cost, [start, step])
    numbers = np.arange(1.5, 10, 2)
    given = {start: 1.5, step: 2.0}
    assert esat.evaluate(by_start, given) == (2 * numbers).sum()
    assert esat.evaluate(by_step, given) == (2 * numbers * np.arange(5)).sum()


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full", "eye", "arange", "linspace"])
def test_devices(name):
    arguments = {"full": (3, 2), "linspace": (0, 1)}.get(name, (3,))
    for device in (None, "cpu"):
        assert getattr(esat, name)(*arguments, device=device).ndim
    with pytest.raises(ParameterError, match=rf"^{name}\(device='gpu'\)"):
        getattr(esat, name)(*arguments, device="gpu")
