import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import GraphError, IndexingError
from esat.ops.index.advanced import AdvancedSubtensor
from esat.ops.index.basic import Subtensor

ARRAY = np.random.default_rng(34).standard_normal((3, 4))


def test_masks_without_axes_are_compiled():
    x = np.arange(6.0).reshape(2, 3)
    variable = esat.tensor("x", shape=(2, 3))
    for index in (True, False):
        compiled = esat.compile(esat.Graph([variable], variable[index] * 2), "fast_compile")
        np.testing.assert_array_equal(compiled(x), x[index] * 2)


def test_the_kind_of_index_decides():
    x = esat.matrix()
    assert isinstance(x[0, 1:].owner.op, Subtensor)
    assert isinstance(x[np.array(0)].owner.op, Subtensor)
    assert isinstance(x[[0]].owner.op, AdvancedSubtensor)
    assert isinstance(x[esat.lscalar()].owner.op, Subtensor)
    assert isinstance(x[np.bool_(True)].owner.op, AdvancedSubtensor)


def test_elements_of_vectors_of_scalars_are_the_scalars():
    x = esat.matrix()
    assert x.shape[0].owner.op.axis == 0
    assert x.shape[-1].owner.op.axis == 1
    assert x.shape[1:].owner.inputs[0].owner.op.axis == 1
    with pytest.raises(IndexingError):
        x.shape[2]


def test_changed_copies():
    def expected(x):
        x[1:, 0] = 5
        x[0] += 1
        return x

    agree(lambda x: x.at[1:, 0].set(5).at[0].add(1), lambda x: expected(x.copy()), ARRAY)
    agree(lambda x: esat.set_subtensor(x[:], 0.0), np.zeros_like, ARRAY)
    x = esat.vector("x")
    nested = esat.set_subtensor(x[1:][0:1], 9.0)
    assert value(nested, {x: np.zeros(3)}).tolist() == [9.0, 0.0]
    with pytest.raises(GraphError, match="inc_subtensor"):
        esat.inc_subtensor(x.T, 1)
    with pytest.raises(GraphError):
        esat.set_subtensor(x[1:] + 1, 1)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_take(axis):
    for indices in (1, [0, 2, 2], [[0, 1], [1, 0]], np.array(-1)):
        agree(lambda x, i=indices: esat.take(x, i, axis), lambda x, i=indices: np.take(x, i, axis), ARRAY)
    with pytest.raises(IndexingError):
        esat.take(ARRAY, [40], axis)


def test_ranges_are_lists_of_places():
    values = np.arange(12.0).reshape(3, 4)

    def written(a):
        a = a.copy()
        a[range(3), [2, 0, 1]] = 1
        a[range(1)] += 1
        return a

    for f in (lambda a: a[range(2)], lambda a: a[range(3), range(3)], lambda a: a[:, range(0, 4, 2)],
              lambda a: a[range(0)], lambda a: a[range(2, -1, -1)], written):  # fmt: skip
        np.testing.assert_array_equal(esat.jit(f)(values), f(values))
    x = esat.matrix("x")
    f = esat.compile(esat.Graph([x], [x[range(2)]]))
    np.testing.assert_array_equal(f(values), values[range(2)])
