"""Values that a function cannot take are told while running, by an error of the kind that NumPy raises."""

import numpy as np
import pytest

import esat
from esat.errors import AssertionFailed, IndexingError, ParameterError, ShapeError
from esat.mode import mode_names

NAN = np.nan
MODES = [mode for mode in mode_names() if mode != "unsafe"]  # which leaves assertions out
CASES = {
    "bincount": (ParameterError, lambda m, i: m.bincount(i), [[1, -2]]),
    "bincount of weights": (ParameterError, lambda m, i, x: m.bincount(i, x), [[0, -1], [0.5, 2.0]]),
    "unravel_index": (IndexingError, lambda m, i: m.unravel_index(i, (2, 3))[1], [[1, 6]]),
    "unravel_index below": (IndexingError, lambda m, i: m.unravel_index(i, (2, 3))[0], [[-1]]),
    "nanargmax": (ParameterError, lambda m, x: m.nanargmax(x), [[NAN, NAN]]),
    "nanargmin": (ParameterError, lambda m, x: m.nanargmin(x, axis=1), [[[NAN, NAN], [1.0, NAN]]]),
    "gradient": (ShapeError, lambda m, x: m.gradient(x), [[1.0]]),
    "gradient of order 2": (ShapeError, lambda m, x: m.gradient(x, edge_order=2), [[1.0, 2.0]]),
    "repeat": (ShapeError, lambda m, x, i: m.repeat(x, i), [[1.0, 2.0, 3.0], [1, 2]]),
    "einsum": (ShapeError, lambda m, x: m.einsum("ii", x), [[[1.0, 2.0]]]),
    "broadcast_arrays": (ShapeError, lambda m, x, y: m.broadcast_arrays(x, y)[0], [[1.0, 2.0], [1.0] * 3]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_is_of_numpys_kind_in_every_mode(name):
    error, call, values = CASES[name]
    arrays = [np.array(value) for value in values]
    with pytest.raises(ValueError):
        call(np, *arrays)
    variables = [esat.TensorType(array.dtype, shape=(None,) * array.ndim)() for array in arrays]
    output = call(esat, *variables)
    message = rf"{name.split()[0]}[\s\S]*\n  at .*test_errors_at_run_time\.py"
    for mode in MODES:
        function = esat.compile(esat.Graph(variables, output), mode)
        for _ in range(2):
            with pytest.raises(error, match=message) as caught:
                function(*arrays)
            assert isinstance(caught.value, ValueError)
            assert not isinstance(caught.value, AssertionError)
    with pytest.raises(error, match=message):
        esat.evaluate(output, dict(zip(variables, arrays, strict=True)))


@pytest.mark.parametrize("mode", MODES)
def test_two_assertions_of_one_condition_keep_their_errors(mode):
    x = esat.vector("x")
    first = esat.assert_(x, x > 0, message="small", error=ShapeError)
    second = esat.assert_(x, x > 0, message="small")
    assert first.owner.op != second.owner.op
    for output, error in ((first, ShapeError), (second, AssertionFailed)):
        with pytest.raises(error, match="small"):
            esat.compile(esat.Graph([x], output + 1), mode)(np.array([1.0, -1.0]))
