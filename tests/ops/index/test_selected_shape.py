"""The shape of a part is found without reading the part, and as NumPy finds it."""

import random
import tracemalloc

import numpy as np
import pytest

import esat
from esat.errors import IndexingError
from esat.ops.index.entries import ARRAY, NEW_AXIS, Slice, selected_shape


def random_index(chooser, shape):
    """Entries, their operands, and the index that NumPy takes."""
    entries, operands, index, axis = [], [], [], 0
    broadcast = (chooser.randrange(1, 3), chooser.randrange(1, 4))
    while axis < len(shape) and chooser.random() < 0.85:
        size = shape[axis]
        match chooser.randrange(5):
            case 0:
                entries.append(NEW_AXIS)
                index.append(None)
                continue
            case 1:
                parts = (
                    chooser.choice((None, 0, 1)),
                    chooser.choice((None, -1, 2)),
                    chooser.choice((None, 1, 2)),
                )
                entries.append(Slice(*parts))
                index.append(slice(*parts))
            case 2 if size:
                entries.append(chooser.randrange(size))
                index.append(entries[-1])
            case 3 if axis + 1 < len(shape) and sum(mask.dtype == bool for mask in operands) == 0:
                mask = np.random.default_rng(chooser.randrange(99)).random(shape[axis : axis + 2]) < 0.5
                if mask.sum() not in (1, broadcast[1]):
                    mask[:] = False
                    mask.flat[: broadcast[1]] = True
                if mask.sum() not in (1, broadcast[1]):
                    continue
                entries.append(ARRAY)
                operands.append(mask)
                index.append(mask)
                axis += 1
            case _ if size:
                dims = chooser.choice((broadcast, broadcast[1:], (1,)))
                operands.append(np.random.default_rng(chooser.randrange(99)).integers(-size, size, dims))
                entries.append(ARRAY)
                index.append(operands[-1])
            case _:
                continue
        axis += 1
    return tuple(entries), operands, tuple(index)


def test_shapes_are_numpys():
    chooser, advanced = random.Random(5), 0
    for _ in range(2000):
        shape = tuple(chooser.randrange(0, 5) for _ in range(chooser.randrange(1, 5)))
        entries, operands, index = random_index(chooser, shape)
        array = np.zeros(shape)
        try:
            wanted = array[(*index, ...)].shape
        except IndexError:
            continue
        advanced += ARRAY in entries
        assert selected_shape("write", entries, array, operands) == wanted, (shape, index)
    assert advanced > 500


@pytest.mark.parametrize(
    ("shape", "operands"),
    [((3, 4), [np.array([0, 3])]), ((3, 4), [np.array([-4])]), ((3, 4), [np.ones(4, bool)])],
)
def test_what_is_out_of_range_is_refused(shape, operands):
    with pytest.raises(IndexingError):
        selected_shape("write", (ARRAY, Slice()), np.zeros(shape), operands)


def test_a_check_reads_no_part():
    """Rows of half a megabyte each: a check that gathered them would take eight megabytes."""
    x, i, v = esat.matrix("x"), esat.vector("i", "int64"), esat.matrix("v")
    written = esat.set_subtensor(x[i], v)
    node = written.owner
    target, index = np.zeros((4, 65_536)), np.tile(np.arange(4), 4)
    value = np.zeros((16, 65_536))
    tracemalloc.start()
    node.op.check_operands(node, [target, value, index])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
