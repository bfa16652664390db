import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import AxisError, ShapeError

RNG = np.random.default_rng(31)
ARRAY = RNG.standard_normal((3, 4, 2))
MATRIX = ARRAY[..., 0]


def both(function, *arrays):
    """The same function of esat's and NumPy's names."""
    agree(lambda *x: function(esat, *x), lambda *x: function(np, *x), *arrays)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_flip_and_roll(axis):
    both(lambda m, x: m.flip(x, axis), ARRAY)
    for shift in (0, 2, -1, 17):
        both(lambda m, x, s=shift: m.roll(x, s, axis), ARRAY)
    both(lambda m, x: m.roll(x, 1, axis), ARRAY[:0])


def test_roll_by_several_or_symbolic_distances():
    both(lambda m, x: m.roll(x, (1, 2), (0, 1)), ARRAY)
    n, x = esat.lscalar("n"), esat.matrix("x")
    for distance in (-7, 0, 3):
        np.testing.assert_array_equal(
            value(esat.roll(x, n, 1), {x: MATRIX, n: distance}), np.roll(MATRIX, distance, 1)
        )
    with pytest.raises(AxisError):
        esat.roll(x, (1, 2, 3), (0, 1))


@pytest.mark.parametrize("turns", range(-3, 6))
def test_rot90(turns):
    both(lambda m, x: m.rot90(x, turns), MATRIX)
    both(lambda m, x: m.rot90(x, turns, axes=(2, 0)), ARRAY)


@pytest.mark.parametrize("repetitions", [2, (2,), (1, 3), (2, 1, 3), (2, 1, 1, 3), 0, ()])
def test_tile(repetitions):
    both(lambda m, x: m.tile(x, repetitions), ARRAY)
    both(lambda m, x: m.tile(x, repetitions), MATRIX[0])


def test_repeat():
    both(
        lambda m, x: [m.repeat(x, 2), m.repeat(x, 3, 1), m.repeat(x, 0, -1), m.repeat(x, [0, 1, 2, 1], 1)],
        ARRAY,
    )
    both(lambda m, x, c: [m.repeat(x, c, 0), m.repeat(x[:, 0, 0], c)], ARRAY, np.array([1, 0, 2]))
    x, c = esat.vector("x"), esat.lvector("c")
    with pytest.raises(ShapeError, match="3 counts for 2"):
        esat.repeat(np.ones(2), [1, 2, 3])
    with pytest.raises(ShapeError):
        value(esat.repeat(x, c), {x: np.ones(2), c: np.array([1, -1])})
    esat.verify_grad(lambda x: esat.repeat(x, [0, 1, 2, 1], 1), [ARRAY])
    esat.verify_grad(lambda x: esat.tile(x, (2, 1, 2)), [ARRAY])


def test_joining():
    both(
        lambda m, x: [
            m.hstack([x, x]), m.vstack([x, x]), m.dstack([x, x]), m.stack([x, x], -1), m.stack([x, 2 * x]),
            m.concatenate([x, x], None), m.concatenate([x, x], -1), m.hstack([x[0], x[1]]),
            m.vstack([x[0], x[1]]),
        ],
        MATRIX,
    )  # fmt: skip
    both(
        lambda m, x: [m.stack([x, x, 1]), m.hstack([x, 2.0]), m.concatenate([x, [1, 2]], None)], np.float32(3)
    )
    with pytest.raises(ShapeError, match="one rank"):
        esat.stack([MATRIX, MATRIX[0]])
    with pytest.raises(ShapeError):
        esat.stack([])


def test_splitting():
    both(lambda m, x: [*m.hsplit(x, 2), *m.vsplit(x, 3), *m.hsplit(x[0], [1])], MATRIX)
    for parts in (1, 3, 5, [1, 2]):
        both(lambda m, x, p=parts: list(m.array_split(x, p, 1)), ARRAY)
    x = esat.matrix("x")
    pieces = value(esat.array_split(x, 3, 1), {x: MATRIX})
    assert [piece.shape[1] for piece in pieces] == [2, 1, 1]


def test_broadcasting():
    both(lambda m, x, y: [m.broadcast_to(x, (2, 3, 4)), m.broadcast_to(y, (3, 4))], MATRIX, MATRIX[:1])
    both(lambda m, x, y: list(m.broadcast_arrays(x, y, 1.0)), MATRIX, MATRIX[:, :1])
    with pytest.raises(ShapeError):
        esat.broadcast_to(MATRIX, (3, 5))
    with pytest.raises(ShapeError):
        esat.broadcast_arrays(MATRIX, MATRIX[:2])


def test_at_least():
    both(lambda m, x: [m.atleast_1d(x), m.atleast_2d(x), m.atleast_3d(x), *m.atleast_2d(x, x)], np.float64(1))
    both(lambda m, x: [m.atleast_1d(x), m.atleast_2d(x), m.atleast_3d(x)], MATRIX[0])
    both(lambda m, x: [m.atleast_3d(x), m.fliplr(x), m.flipud(x), m.matrix_transpose(x)], MATRIX)
