import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, ShapeError

RNG = np.random.default_rng(22)


def arrays(*shapes):
    return [RNG.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3),
        (5, 3, 4)),
        ((2, 5, 3), (6, 3, 4)), ((2, 3, 4), (4,)), ((3,), (2, 3, 4)), ((), (3,)), ((2, 2), ()), ((0, 3),
        (3, 0)),
    ],
)  # fmt: skip
def test_dot(left, right):
    agree(esat.dot, np.dot, *arrays(left, right))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "complex64"])
def test_numbers_are_arrays_to_dot_and_inner(dtype):
    array = np.arange(3).astype(dtype)
    agree(lambda x: esat.dot(x, 2), lambda x: np.dot(x, 2), array)
    agree(lambda x: esat.inner(2, x), lambda x: np.inner(2, x), array)


@pytest.mark.parametrize("axes", [0, 1, 2, ([1, 0], [0, 1]), ([0], [-1]), (1, 0), ([], [])])
def test_tensordot(axes):
    shapes = ((2, 3), (3, 2)) if axes in (1, ([1, 0], [0, 1]), (1, 0), ([0], [-1])) else ((2, 3), (2, 3))
    agree(lambda a, b: esat.tensordot(a, b, axes), lambda a, b: np.tensordot(a, b, axes), *arrays(*shapes))


def test_tensordot_of_higher_rank():
    agree(
        lambda a, b: esat.tensordot(a, b, ([1, 3], [2, 0])),
        lambda a, b: np.tensordot(a, b, ([1, 3], [2, 0])),
        *arrays((2, 3, 4, 5), (5, 2, 3)),
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "complex64"])
def test_tensordot_over_all_axes_is_a_sum_of_products(dtype):
    one = np.random.default_rng(1).integers(0, 100, (3, 4, 5)).astype(dtype)
    other = np.random.default_rng(2).integers(0, 100, (5, 3, 4)).astype(dtype)
    axes = ([2, 0, -2], [0, -2, 2])
    agree(lambda a, b: esat.tensordot(a, b, axes), lambda a, b: np.tensordot(a, b, axes), one, other)
    a, b = (esat.tensor(name, ndim=3, dtype=dtype) for name in "ab")
    compiled = esat.compile(esat.Graph([a, b], [esat.tensordot(a, b, axes)]))
    assert not any(node.op.name in ("reshape", "matmul") for node in compiled.graph.toposort())
    with pytest.raises(ShapeError):
        compiled(one, other[:, :1])


def test_tensordot_does_not_spread_an_axis_of_one_element():
    row, matrix = esat.matrix("row", shape=(1, None)), esat.matrix("matrix")
    ones = np.ones((1, 3)), np.ones((2, 3))
    for first, second in ((row, matrix), (matrix, row)):
        product = esat.compile(esat.Graph([row, matrix], [esat.tensordot(first, second, 2)]))
        assert product(ones[0], ones[1][:1]) == 3
        with pytest.raises(ShapeError):
            product(*ones)


def test_relatives():
    a, b = arrays((2, 3), (3, 2))
    agree(
        lambda x, y: [
            esat.inner(x, y.T),
            esat.outer(x, y),
            esat.vdot(x, y),
            esat.kron(x, y),
            esat.kron(x, y[0]),
        ],
        lambda x, y: [np.inner(x, y.T), np.outer(x, y), np.vdot(x, y), np.kron(x, y), np.kron(x, y[0])],
        a,
        b,
    )
    agree(lambda x, y: esat.vecdot(x, y), lambda x, y: np.sum(x.conj() * y, -1), a + 1j, a)  # noqa: PLW0108
    agree(lambda x: esat.inner(x, 2.0), lambda x: np.inner(x, 2.0), a)


def test_batched_dot():
    x, y = arrays((5, 2, 3), (5, 3, 4))
    agree(esat.batched_dot, np.matmul, x, y)
    agree(esat.batched_dot, lambda x, y: np.einsum("bk,bkn->bn", x, y), x[:, 0], y)
    agree(esat.batched_dot, lambda x, y: np.einsum("bmk,bk->bm", x, y), x, y[..., 0])
    with pytest.raises(ShapeError, match="rank 2 or 3"):
        esat.batched_dot(esat.vector(), esat.matrix())


def test_errors():
    x = esat.matrix(shape=(2, 3))
    for axes in (3, -1, ([0], [0, 1]), ([0, 1, 0],)):
        with pytest.raises(ShapeError):
            esat.tensordot(x, x, axes)
    with pytest.raises(ShapeError, match="sizes 3 and 2 of axes 1 and 0"):
        esat.tensordot(x, x, 1)
    with pytest.raises(AxisError):
        esat.tensordot(x, x, ([0, 0], [0, 1]))


def test_gradients():
    for function in (esat.dot, esat.outer, lambda a, b: esat.tensordot(a, b, ([0], [1])), esat.kron):
        esat.verify_grad(function, arrays((2, 3), (3, 2)))


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2)])
def test_cross_products_of_vectors_of_two_elements(sizes):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(4, size)) for size in sizes)
    for axisc in (-1, 0):
        found = esat.jit(lambda a, b, axisc=axisc: np.cross(a, b, axisc=axisc), static_argnames="axisc")(a, b)
        expected = np.cross(a, b, axisc=axisc)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)
