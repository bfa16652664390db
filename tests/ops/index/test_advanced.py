import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, EsatError, IndexingError, ShapeError
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, AdvancedSubtensor

RNG = np.random.default_rng(13)
ARRAY = RNG.standard_normal((4, 5, 3))
ROWS, COLUMNS = np.array([0, 2, 2]), np.array([[1], [-1]])
MASK = ARRAY[:, :, 0] > 0
INDICES = [
    np.s_[[0, 2, 2]], np.s_[ROWS, :, [0, 1, 2]], np.s_[ROWS, COLUMNS], np.s_[:, ROWS, 1:], np.s_[..., ROWS],
    np.s_[ROWS, None, :, [2, 1, 0]], np.s_[1, ROWS], np.s_[1, :, ROWS], np.s_[:, 1, ROWS], np.s_[[]],
    np.s_[MASK], np.s_[:, [True, False, True, False, True]], np.s_[MASK[:, 0], 1:3], np.s_[ARRAY > 0],
    np.s_[MASK, None], np.s_[0, MASK[0]], np.s_[True], np.s_[False, 1], np.s_[[[0, 1], [2, 3]]],
    np.s_[ROWS.astype("uint8"), ::-1, 0], np.s_[[-1, -4], ..., None, [0]],
]  # fmt: skip


def changed(array, index, new, add=False):
    copy = array.copy()
    if add:
        np.add.at(copy, index, new)
    else:
        copy[index] = new
    return copy


@pytest.mark.parametrize("index", INDICES, ids=range(len(INDICES)))
def test_reading_writing_adding(index):
    agree(lambda x: x[index], lambda x: x[index], ARRAY)
    agree(lambda x: esat.set_subtensor(x[index], 7), lambda x: changed(x, index, 7), ARRAY)
    agree(lambda x: esat.inc_subtensor(x[index], 7), lambda x: changed(x, index, 7, add=True), ARRAY)


@pytest.mark.parametrize("index", INDICES[:14], ids=range(14))
def test_arrays_as_values_and_gradients(index):
    new = RNG.standard_normal(ARRAY[index].shape)
    agree(lambda x, y: x.at[index].set(y), lambda x, y: changed(x, index, y), ARRAY, new)
    agree(lambda x, y: x.at[index].add(y), lambda x, y: changed(x, index, y, add=True), ARRAY, new)
    small = ARRAY.astype("float64")
    esat.verify_grad(lambda x: x[index], [small])
    if new.size and new.size < 30:
        esat.verify_grad(lambda x, y: esat.set_subtensor(x[index], y), [small, new])
        esat.verify_grad(lambda x, y: esat.inc_subtensor(x[index], y), [small, new])


def test_the_last_write_wins_and_gets_the_gradient():
    x, y = esat.vector("x"), esat.vector("y")
    z = esat.set_subtensor(x[[1, 1, 0]], y)
    values = {x: np.zeros(3), y: np.array([1.0, 2.0, 3.0])}
    np.testing.assert_array_equal(value(z, values), [3.0, 2.0, 0.0])
    gradients = value(esat.grad(z.sum(), [x, y]), values)
    np.testing.assert_array_equal(gradients[0], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(gradients[1], [0.0, 1.0, 1.0])


def test_symbolic_indices():
    x, i, m = esat.matrix("x"), esat.lvector("i"), esat.vector("m", dtype="bool")
    k = esat.lscalar("k")
    values = {x: ARRAY[0], i: ROWS, m: np.array([True, False, True]), k: 1}
    np.testing.assert_array_equal(value(x[i, m.sum() - 1], values), ARRAY[0][ROWS, 1])
    np.testing.assert_array_equal(value(x[:, m], values), ARRAY[0][:, [True, False, True]])
    np.testing.assert_array_equal(value(x[k, i], values | {i: np.array([0, 1])}), ARRAY[0][1, [0, 1]])
    np.testing.assert_array_equal(value(x[k:, i], values | {i: np.array([0, 1])}), ARRAY[0][1:, [0, 1]])
    assert x[i].type.shape == (None, None)
    assert x[np.array([0, 1]), i].type.shape == (2,)


def test_results_do_not_share_memory():
    node = esat.matrix()[[0, 1]].owner
    array = np.ones((2, 2))
    assert not np.shares_memory(node.op.perform([array, np.array([0, 1])])[0], array)
    assert node.op.view_map == {}


def test_inplace():
    entries = esat.vector()[[0]].owner.op.entries
    op = AdvancedSetSubtensor(entries, inplace=True)
    array = np.zeros(2)
    assert op.perform([array, np.ones(1), np.array([1])])[0] is array
    assert array[1] == 1
    assert op.destroy_map == {0: (0,)}
    assert AdvancedIncSubtensor(entries) != AdvancedSetSubtensor(entries)
    assert "inplace" in str(op)


def test_errors():
    x = esat.matrix("x", shape=(2, 3))
    for index in (
        [2],
        [-3, 0],
        (slice(None), [3]),
        ([0, 1, 1], [0, 1]),
        [True, False, True],
        ([0], [0], [0]),
    ):
        with pytest.raises(IndexingError):
            x[index]
    with pytest.raises(DtypeError):
        x[[0.5]]
    with pytest.raises(DtypeError):
        x[esat.vector()]
    with pytest.raises(ShapeError):
        esat.set_subtensor(x[[0, 1]], np.zeros((3, 3)))


def test_errors_at_run_time():
    x, i, y = esat.vector("x"), esat.lvector("i"), esat.vector("y")
    with pytest.raises(IndexingError, match=r"(?s:.)*test_advanced.py"):
        value(x[i], {x: np.zeros(3), i: np.array([0, 3])})
    with pytest.raises(IndexingError):
        value(esat.set_subtensor(x[i], 1), {x: np.zeros(3), i: np.array([-4])})
    with pytest.raises(ShapeError, match=r"does not fit(?s:.)*test_advanced.py"):
        value(esat.set_subtensor(x[i], y), {x: np.zeros(3), i: np.array([0, 1]), y: np.zeros(1)})
    mask = esat.vector("m", dtype="bool")
    with pytest.raises(IndexingError):
        value(x[mask], {x: np.zeros(3), mask: np.array([True])})


def test_equal_ops_are_equal():
    x = esat.matrix("x")
    assert x[[0]].owner.op == x[[1, 1]].owner.op
    assert isinstance(x[[0]].owner.op, AdvancedSubtensor)
    assert str(x[[0]].owner.op) == "advanced_subtensor{array,:}"


def test_known_masks_choose_a_known_number_of_elements():
    x = np.arange(12.0).reshape(3, 4)
    masks = [np.eye(3, 4) > 0, np.array([True, False, True]), np.zeros((3, 4), bool)]
    for mask in masks:
        X = esat.tensor("x", shape=(3, 4))
        chosen = X[mask]
        assert None not in chosen.type.shape
        np.testing.assert_array_equal(esat.compile(esat.Graph([X], [chosen]))(x), x[mask])
    np.testing.assert_array_equal(X[:, masks[0][0]].eval({X: x}), x[:, masks[0][0]])
    M = esat.matrix("m")
    with pytest.raises(EsatError):
        esat.compile(esat.Graph([M], [M[masks[1]]]))(np.ones((2, 2)))
