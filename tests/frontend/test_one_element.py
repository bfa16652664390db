"""Whether a size is declared changes no result: statistics of one element, and quotients of zeros."""

import numpy as np
import pytest

import esat

MODES = ("fast_run", "unsafe", "greedy", "Stabilization", "strict")
VALUES = [3.0, np.nan, np.inf]

STATISTICS = {
    "var": lambda m, x: m.var(x, axis=0),
    "var without freedom": lambda m, x: m.var(x, axis=0, ddof=1),
    "var with more": lambda m, x: m.var(x, axis=0, ddof=-1),
    "std": lambda m, x: m.std(x, ddof=1),
    "ptp": lambda m, x: m.ptp(x, axis=0),
}

ZEROS = {
    "zeros over x": lambda m, x: m.zeros_like(x) / x,
    "number over x": lambda m, x: 0.0 / x,
    "differences over zero": lambda m, x: (x - x) / 0.0,
    "zero over differences": lambda m, x: 0.0 / (x - x),
    "scaled difference over x": lambda m, x: (x - x) * 3 / x,
    "sums": lambda m, x: (x - x).sum() / (x * 0).sum(),
    "zero over what is positive": lambda m, x: 0 / m.exp(x),
    "zero over a root": lambda m, x: 0.0 / m.sqrt(x),
    "polynomial that is zero over x": lambda m, x: ((x + 1) * (x - 1) - x * x + 1) / x,
    "added to x": lambda m, x: x + 0.0 / x,
    "summed": lambda m, x: (0.0 / x).sum(),
    "zero times a quotient": lambda m, x: 0.0 * (1 / x),
    "zero times a sum of quotients": lambda m, x: 0.0 * (1 / x).sum(),
    "zero times a power": lambda m, x: 0.0 * x**-2,
    "zero times the inverse of a root": lambda m, x: 0.0 * x**-0.5,
}


def numpys(function, data):
    with np.errstate(all="ignore"):
        return function(np, data)


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("mode", MODES)
def test_statistics_of_one_element(mode):
    for declared in (True, False):
        x = esat.tensor("x", dtype="float64", shape=(1,) if declared else (None,))
        outputs = [function(esat, x) for function in STATISTICS.values()]
        compiled = esat.compile(esat.Graph([x], outputs), mode=mode)
        for value in VALUES:
            data = np.array([value])
            for name, result in zip(STATISTICS, compiled(data), strict=True):
                wanted = numpys(STATISTICS[name], data)
                np.testing.assert_array_equal(result, wanted, err_msg=f"{name} of {value}, {declared=}")


@pytest.mark.parametrize("mode", [*MODES, "fast_compile"])
def test_zeros_are_divided_as_numpy_divides_them(mode):
    data = np.array([0.0, 2.0])
    for shape in ((2,), (None,)):
        x = esat.tensor("x", dtype="float64", shape=shape)
        compiled = esat.compile(
            esat.Graph([x], [function(esat, x) for function in ZEROS.values()]), mode=mode
        )
        for name, result in zip(ZEROS, compiled(data), strict=True):
            np.testing.assert_array_equal(result, numpys(ZEROS[name], data), err_msg=f"{name}, {shape}")


def test_the_gradient_of_a_variance_of_one_element_is_zero():
    x = esat.tensor("x", dtype="float64", shape=(3, 1))
    gradient = esat.grad(esat.var(x, axis=1).sum(), x)
    np.testing.assert_array_equal(
        esat.compile(esat.Graph([x], [gradient]))(np.ones((3, 1))), np.zeros((3, 1))
    )
