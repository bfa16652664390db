"""Sizes that types know are known wherever a graph computes with them."""

import numpy as np
import pytest

import esat
from esat.graph import TensorType

KNOWN = TensorType("float64", shape=(1, 8))
OPEN = TensorType("float64", shape=(None, 8))

FORMS = {
    "zeros of elements": (lambda x: esat.zeros((x.shape[1], x.shape[-1])), (8, 8)),
    "zeros of a slice of sizes": (lambda x: esat.zeros(x.shape[1:]), (8,)),
    "zeros of joined sizes": (lambda x: esat.zeros(esat.concatenate([x.shape[1:], [3]])), (8, 3)),
    "zeros of a list": (lambda x: esat.zeros([x.shape[1], 2]), (8, 2)),
    "zeros of arithmetic": (lambda x: esat.zeros(x.shape[1] // 2 * x.shape[-1] + 1), (33,)),
    "zeros of a choice": (lambda x: esat.zeros(esat.maximum(x.shape[1], 4)), (8,)),
    "arange": (lambda x: esat.arange(x.shape[1]), (8,)),
    "arange between": (lambda x: esat.arange(1, x.shape[1] + 1, 2), (4,)),
    "linspace": (lambda x: esat.linspace(0.0, 1.0, x.shape[1]), (8,)),
    "eye": (lambda x: esat.eye(x.shape[1]), (8, 8)),
    "tri": (lambda x: esat.tri(x.shape[1], x.shape[1] + 1), (8, 9)),
    "identity": (lambda x: esat.identity(x.shape[1]), (8, 8)),
    "slice": (lambda x: x[0, : x.shape[1] - 1], (7,)),
    "reshape": (lambda x: x[0].reshape((x.shape[1] // 2, 2)), (4, 2)),
    "broadcast_to": (lambda x: esat.broadcast_to(x[0], (x.shape[1], x.shape[1])), (8, 8)),
    "pad": (lambda x: esat.pad(x[0], (0, 2)), (10,)),
    "kron": (lambda x: esat.kron(x[0], x[0]), (64,)),
    "tile": (lambda x: esat.tile(x[0], x.shape[1]), (64,)),
    "full": (lambda x: esat.full((x.shape[1],), 2.0), (8,)),
}


@pytest.mark.parametrize("type", [KNOWN, OPEN], ids=["all known", "one known"])
@pytest.mark.parametrize("name", FORMS)
def test_sizes_are_known(name, type):
    make, shape = FORMS[name]
    x = type("x")
    result = make(x)
    assert result.type.shape == shape
    value = np.arange(8.0).reshape(1, 8)
    assert esat.compile(esat.Graph([x], [result, x]), "fast_compile")(value)[0].shape == shape


def test_all_sizes_of_a_known_shape():
    x = KNOWN("x")
    assert esat.zeros(x.shape).type.shape == (1, 8)
    assert esat.zeros(x.shape[::-1]).type.shape == (8, 1)
    assert esat.zeros((x.shape[0], 3)).type.broadcastable == (True, False)


def test_what_is_padded_to_one_row_broadcasts():
    x, y = KNOWN("x"), TensorType("float64", shape=(4, 10))("y")
    result = esat.pad(x, ((0, 0), (0, 2))) + y
    assert result.type.shape == (4, 10)
    one, other = np.arange(8.0).reshape(1, 8), np.ones((4, 10))
    value = esat.compile(esat.Graph([x, y], result))(one, other)
    np.testing.assert_array_equal(value, np.pad(one, ((0, 0), (0, 2))) + other)


def test_parts_of_constants_can_still_be_set():
    y = esat.scalar("y")
    values = esat.constant(np.arange(4.0))
    changed = esat.set_subtensor(values[1:3], y)
    np.testing.assert_array_equal(esat.compile(esat.Graph([y], changed))(7.0), [0.0, 7.0, 7.0, 3.0])
