import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, GraphError, IndexingError, ShapeError
from esat.graph.algorithms.evaluate import apply_node
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Slice

RNG = np.random.default_rng(11)
ARRAY = RNG.standard_normal((4, 5, 3))
INDICES = [
    np.s_[0], np.s_[-1], np.s_[1:3], np.s_[:, 2], np.s_[..., 0], np.s_[1, ..., 2], np.s_[None, 1:, None, 0],
    np.s_[::-1], np.s_[3:0:-2, ::2], np.s_[10:], np.s_[-2:], np.s_[:-1, 1:-1], np.s_[1, 2, 0], np.s_[...],
    np.s_[:], np.s_[-10:10, :, 5:2], np.s_[::-2, ::-1, ::-1], np.s_[..., None], (), np.s_[np.int8(2)],
    np.s_[2:-2:1, 4:None:-3], np.s_[:0:-1], np.s_[-1:-6:-1],
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading_writing_adding(index):
    def written(array):
        copy = array.copy()
        copy[index] = 7
        return copy

    def added(array):
        copy = array.copy()
        copy[index] += 7
        return copy

    agree(lambda x: x[index], lambda x: x[index], ARRAY)
    agree(lambda x: esat.set_subtensor(x[index], 7), written, ARRAY)
    agree(lambda x: x.at[index].add(7), added, ARRAY)


def test_random_indices():
    rng = np.random.default_rng(0)
    for _ in range(150):
        index = tuple(random_item(rng, size) for size in ARRAY.shape[: rng.integers(1, 4)])
        agree(lambda x, index=index: x[index], lambda x, index=index: x[index], ARRAY)


def random_item(rng, size):
    if rng.random() < 0.25:
        return int(rng.integers(-size, size))
    bounds = [None if rng.random() < 0.3 else int(rng.integers(-size - 2, size + 3)) for _ in range(2)]
    step = int(rng.choice([-3, -2, -1, 1, 2, 3]))
    return slice(*bounds, None if rng.random() < 0.3 else step)


def test_symbolic_numbers():
    x, i, j = esat.tensor3("x"), esat.lscalar("i"), esat.iscalar("j")
    values = {x: ARRAY, i: np.int64(-3), j: np.int32(2)}
    np.testing.assert_array_equal(value(x[i], values | {j: 0}), ARRAY[-3])
    np.testing.assert_array_equal(value(x[i:, :j, ::i], values), ARRAY[-3:, :2, ::-3])
    np.testing.assert_array_equal(value(x[x.shape[0] - 1, j], values), ARRAY[3, 2])
    np.testing.assert_array_equal(
        value(esat.set_subtensor(x[i, 1:j], 0.0), values)[-3, :3], [ARRAY[1, 0], np.zeros(3), ARRAY[1, 2]]
    )
    assert x[i:].owner.op == Subtensor((Slice(OPERAND), Slice(), Slice()))


def test_the_result_is_a_view():
    node = esat.matrix()[1:, ::-1].owner
    array = np.arange(12.0).reshape(3, 4)
    (part,) = node.op.perform([array])
    assert np.shares_memory(part, array)
    assert node.op.view_map == {0: (0,)}
    assert esat.vector()[0].owner.op.perform([array[0]])[0].shape == ()


def test_static_shapes():
    x = esat.tensor(shape=(10, None, 3))
    assert x[2:8:2].type.shape == (3, None, 3)
    assert x[:, 0:1].type.shape == (10, None, 3)
    assert x[..., None, 1:2].type.shape == (10, None, 1, 1)
    assert x[-1].owner.op == x[9].owner.op
    assert x[0:10].owner.op == x[:].owner.op


def test_writing_leaves_the_argument_alone_unless_inplace():
    array = np.zeros(3)
    x = esat.vector()
    node = esat.set_subtensor(x[1:], 1.0).owner
    assert node.op.perform([array, np.ones(1)])[0].sum() == 2
    assert array.sum() == 0
    inplace = SetSubtensor(node.op.entries, inplace=True)
    assert inplace.destroy_map == {0: (0,)}
    assert inplace != node.op
    assert inplace.perform([array, np.ones(1)])[0] is array
    assert array.sum() == 2
    assert apply_node(esat.Apply(inplace, node.inputs, [x.type()]), [array, np.full(1, 5.0)])[0].sum() == 10
    assert array.sum() == 2


def test_values_broadcast_and_are_cast():
    agree(
        lambda x, y: esat.set_subtensor(x[:, 1:3], y),
        lambda x, y: assigned(x, np.s_[:, 1:3], y),
        ARRAY,
        np.ones((2, 1)),
    )
    agree(
        lambda x, y: esat.set_subtensor(x[0], y),
        lambda x, y: assigned(x, 0, y),
        np.zeros((2, 3), "int8"),
        np.array([1.7, -1.7, 3]),
    )
    agree(
        lambda x, y: esat.set_subtensor(x[None, 1:, None], y),
        lambda x, y: assigned(x, np.s_[None, 1:, None], y),
        np.zeros((3, 2)),
        np.arange(4.0).reshape(1, 2, 1, 2),
    )
    x = esat.vector(dtype="int64")
    with pytest.raises(DtypeError, match="inc_subtensor"):
        esat.inc_subtensor(x[1:], 1.5)
    with pytest.raises(DtypeError, match="complex"):
        esat.set_subtensor(x[1:], 1j)


INCREMENTS = [2, True, -1, 300, 1.5, 1j, np.float64(1.5), np.int64(1), np.uint64(1), np.ones(1, "uint8")]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint64", "int64", "float32", "complex64"])
@pytest.mark.parametrize("increment", INCREMENTS, ids=repr)
def test_what_may_be_added_is_what_numpy_adds_in_place(dtype, increment):
    array = np.ones(3, dtype)
    x = esat.vector(dtype=dtype)
    try:
        array[1:] += increment
    except (TypeError, OverflowError):
        with pytest.raises(DtypeError):
            esat.inc_subtensor(x[1:], increment)
    else:
        result = esat.evaluate(esat.inc_subtensor(x[1:], increment), {x: np.ones(3, dtype)})
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, array)


def assigned(array, index, new):
    copy = array.copy()
    copy[index] = new
    return copy


def test_errors():
    x = esat.matrix("x", shape=(2, 3))
    for index in (2, -3, (0, 0, 0), (..., ...), np.s_[::0]):
        with pytest.raises(IndexingError):
            x[index]
    for index in (1.5, "a", (0, 1.0), slice("a"), esat.scalar()):
        with pytest.raises((DtypeError, ShapeError)):
            x[index]
    with pytest.raises(GraphError, match="set_subtensor"):
        x[0] = 1
    with pytest.raises(GraphError, match="not the result of indexing"):
        esat.set_subtensor(x + 1, 0)
    with pytest.raises(ShapeError, match="do not match"):
        esat.set_subtensor(x[0], np.zeros(4))
    with pytest.raises(ShapeError, match="only 1 axes"):
        esat.set_subtensor(x[0], np.zeros((1, 3)))


def test_errors_at_run_time():
    x, i, y = esat.vector("x"), esat.lscalar("i"), esat.vector("y")
    with pytest.raises(IndexingError, match=r"(?s:.)*test_basic.py"):
        value(x[i], {x: np.zeros(3), i: 3})
    with pytest.raises(IndexingError, match="step"):
        value(x[::i], {x: np.zeros(3), i: 0})
    with pytest.raises(ShapeError, match=r"does not fit(?s:.)*test_basic.py"):
        value(esat.set_subtensor(x[1:], y), {x: np.zeros(3), y: np.zeros(1)})


@pytest.mark.parametrize("index", INDICES[:13], ids=str)
def test_gradients(index):
    esat.verify_grad(lambda x: x[index], [ARRAY])
    part = ARRAY[index]
    esat.verify_grad(lambda x, y: esat.set_subtensor(x[index], y), [ARRAY, part + 1])
    esat.verify_grad(lambda x, y: esat.inc_subtensor(x[index], y), [ARRAY, np.ones((1,) * part.ndim)])


def test_gradients_with_symbolic_numbers():
    esat.verify_grad(lambda x: x[x.shape[0] // 2 :, 0], [RNG.standard_normal((4, 2))])
    assert isinstance(esat.grad(esat.vector("x")[1:].sum(), esat.vector("z"), "zero").owner.op, esat.Op)
    x = esat.vector("x")
    assert isinstance(esat.grad(x[1:].sum(), x).owner.op, IncSubtensor)
