import numpy as np
import pytest

from esat.errors import AxisError
from esat.ops.inference.axes import normalize_axes, normalize_axis, ordered_axes


def test_axes_count_from_both_ends():
    assert normalize_axis("op", -1, 3) == 2
    assert normalize_axis("op", np.int64(1), 3) == 1
    assert normalize_axes("op", None, 3) == (0, 1, 2)
    assert normalize_axes("op", (-1, 0), 3) == (0, 2)
    assert normalize_axes("op", [], 3) == ()
    assert ordered_axes("op", (-1, 0), 3) == (2, 0)


@pytest.mark.parametrize("axis", [3, -4, (0, 5), (1, 1), (1, -2), 1.0, "x", (0, "x")])
def test_bad_axes_are_refused(axis):
    with pytest.raises(AxisError, match="sum"):
        normalize_axes("sum", axis, 3)
