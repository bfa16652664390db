"""Normalizations of arrays without elements and of one element: no mode raises where another does not."""

import numpy as np
import pytest

import esat

X = esat.matrix("x")
MODES = ("fast_run", "fast_compile", "greedy", "Stabilization", "strict")
NORMALIZING = {
    "softmax": esat.softmax(X, axis=1),
    "log_softmax": esat.log_softmax(X, axis=1),
    "logsumexp": esat.logsumexp(X, axis=1),
    "softmax, written out": esat.exp(X) / esat.sum(esat.exp(X), axis=1, keepdims=True),
    "log_softmax, written out": X - esat.log(esat.sum(esat.exp(X), axis=1, keepdims=True)),
    "logsumexp, written out": esat.log(esat.sum(esat.exp(X), axis=1)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NORMALIZING)
def test_no_mode_raises_where_another_does_not(name, mode):
    output = NORMALIZING[name]
    function = esat.compile(esat.Graph([X], [output]), mode)
    for shape in ((3, 0), (0, 3), (0, 0), (1, 1), (2, 1)):
        with np.errstate(all="ignore"):
            wanted = esat.evaluate(output, {X: np.zeros(shape)})
            np.testing.assert_array_equal(function(np.zeros(shape)), wanted, strict=True)
