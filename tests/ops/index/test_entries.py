import numpy as np
import pytest

import esat
from esat.errors import IndexingError
from esat.ops.index.entries import (
    ARRAY,
    NEW_AXIS,
    OPERAND,
    Slice,
    entries_text,
    make_entry,
    numpy_index,
    split_index,
)


def test_lengths_are_those_of_python():
    for start in (None, -5, -1, 0, 2, 9):
        for stop in (None, -5, -1, 0, 2, 9):
            for step in (None, -2, -1, 1, 3):
                expected = len(range(*slice(start, stop, step).indices(4)))
                assert Slice(start, stop, step).length(4) == expected
    assert Slice(OPERAND).length(4) is None
    assert Slice(1).length(None) is None
    assert Slice().length(None) is None


def test_entries_of_a_known_size_are_canonical():
    operands = []
    for index in (slice(-3, None), slice(1, 4), slice(1, 100, None)):
        entry = make_entry("op", index, 4, operands)
        assert np.arange(4)[numpy_index([entry], [])].tolist() == [1, 2, 3]
    assert make_entry("op", -1, 4, operands) == 3
    assert make_entry("op", slice(3, None, -1), 4, operands) == Slice(3, None, -1)
    assert operands == []


def test_every_axis_has_an_item():
    type = esat.TensorType("float64", shape=(2, 3, 4))
    assert split_index("op", (0, ...), type) == [0, slice(None), slice(None)]
    assert split_index("op", (None, ..., 1), type) == [None, slice(None), slice(None), 1]
    with pytest.raises(IndexingError):
        split_index("op", (0, 0, 0, 0), type)


def test_text():
    entries = (Slice(1, OPERAND), Slice(None, None, -1), 3, NEW_AXIS, ARRAY, OPERAND)
    assert entries_text(entries) == "1:?,::-1,3,None,array,?"
