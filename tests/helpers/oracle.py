"""Graphs against NumPy: the same function applied to Variables and to arrays."""

from __future__ import annotations

import numpy as np

import esat

TOLERANCES = {"float16": 5e-3, "float32": 2e-5, "complex64": 2e-5}


def variables_for(arrays, static):
    """Variables for arrays; sizes are known if `static`, else only those that are 1."""
    arrays = [np.asarray(array) for array in arrays]
    return [
        esat.TensorType(a.dtype, shape=a.shape if static else [1 if n == 1 else None for n in a.shape])()
        for a in arrays
    ]


def listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def agree(function, reference, *arrays, static=(True, False)):
    """Fail unless both functions give the same dtypes, shapes and values, and types that admit them."""
    for known in static:
        variables = variables_for(arrays, known)
        outputs = listed(function(*variables))
        with np.errstate(all="ignore"):
            expected = [np.asarray(value) for value in listed(reference(*arrays))]
        results = esat.evaluate(outputs, dict(zip(variables, arrays, strict=True)))
        assert len(results) == len(expected)
        for output, result, wanted in zip(outputs, results, expected, strict=True):
            assert result.dtype == wanted.dtype
            assert result.shape == wanted.shape
            assert output.type.dtype == wanted.dtype.name
            assert output.type.admits_shape(wanted.shape), f"{output.type} for shape {wanted.shape}"
            tolerance = TOLERANCES.get(wanted.dtype.name, 1e-12)
            np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=tolerance)


def value(variable, values=None):
    """What a graph without inputs, or with the given ones, evaluates to."""
    return esat.evaluate(variable, values)
