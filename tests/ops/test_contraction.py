import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, ShapeError
from esat.graph.types import DTYPES
from esat.ops.contraction import MATMUL

RNG = np.random.default_rng(3)
SHAPES = [
    ((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((6, 1, 2, 3), (5, 3, 4)), ((0, 3), (3, 4)),
    ((2, 0), (0, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_shapes_are_those_of_numpy(left, right):
    agree(esat.matmul, np.matmul, RNG.standard_normal(left), RNG.standard_normal(right))


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_those_of_numpy(dtype):
    left, right = RNG.integers(0, 90, (2, 3)).astype(dtype), RNG.integers(0, 90, (3, 4)).astype(dtype)
    agree(esat.matmul, np.matmul, left, right)
    agree(esat.matmul, np.matmul, left, right.real.astype("float32"))


def test_strided_operands():
    left, right = RNG.standard_normal((4, 6)), RNG.standard_normal((3, 4))
    agree(lambda a, b: a[:, ::2] @ b.T[::-1][:3], lambda a, b: a[:, ::2] @ b.T[::-1][:3], left, right)


def test_vectors_are_lifted():
    node = esat.matmul(esat.vector(), esat.matrix()).owner.inputs[0].owner
    assert node.op == MATMUL
    assert [variable.ndim for variable in node.inputs] == [2, 2]


def test_errors():
    with pytest.raises(ShapeError, match="inner sizes 3 and 4"):
        esat.matmul(esat.matrix(shape=(2, 3)), esat.matrix(shape=(4, 2)))
    with pytest.raises(ShapeError, match="scalar"):
        esat.matmul(esat.scalar(), esat.matrix())
    with pytest.raises(ShapeError, match="axis 0 do not match"):
        esat.matmul(esat.tensor3(shape=(2, 3, 3)), esat.tensor3(shape=(4, 3, 3)))
    with pytest.raises(DtypeError):
        esat.matmul(esat.matrix(), [["a"]])


def test_unknown_sizes_never_broadcast():
    x, y = esat.tensor3("x"), esat.tensor3("y")
    product = esat.matmul(x, y)
    with pytest.raises(ShapeError, match=r"matmul(?s:.)*test_contraction.py"):
        value(product, {x: np.ones((1, 2, 3)), y: np.ones((4, 3, 2))})
    with pytest.raises(ShapeError, match="inner sizes"):
        value(product, {x: np.ones((4, 2, 3)), y: np.ones((4, 2, 2))})


@pytest.mark.parametrize(("left", "right"), [pair for pair in SHAPES if 0 not in pair[0] + pair[1]])
def test_gradients(left, right):
    esat.verify_grad(esat.matmul, [RNG.standard_normal(left), RNG.standard_normal(right)])


def test_complex_gradient():
    left = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))
    right = RNG.standard_normal((3, 2)) + 1j * RNG.standard_normal((3, 2))
    esat.verify_grad(esat.matmul, [left, right])


def test_work_counts_multiplications_and_additions():
    work = MATMUL.work([(10, 20), (20, 30)], [(10, 30)], [8, 8, 8])
    assert work.flops == 2 * 10 * 20 * 30
    assert work.bytes == 8 * (200 + 600 + 300)
