"""Complex constants that are real numbers are numbers of the rules; what they then give is NumPy's value."""

import warnings

import numpy as np
import pytest

import esat
from esat.egraph.analyses.uniform import uniform_value

INF = np.inf
POINTS = np.array(
    [
        *(complex(INF, 1), complex(1, -INF), complex(np.nan, 1), complex(-0.0, -0.0), complex(0, -0.0)),
        *(1, 0, complex(-0.0, 1), 2j, -3 + 4j, 1e-300, 1e200 + 1j, -1e-9 + 1e9j),
    ]
)
PROGRAMS = {
    "mul one": lambda m, x: x * (1 + 0j),
    "div one": lambda m, x: x / (1 + 0j),
    "mul minus one": lambda m, x: x * (-1 + 0j),
    "add zero": lambda m, x: x + 0j,
    "sub zero": lambda m, x: x - 0j,
    "two numbers": lambda m, x: x * 2 * 3 + 2 - 3,
    "one over": lambda m, x: 1 / x,
    "where": lambda m, x: m.where(m.real(x) > 0, x * 1, 0),
    "one to": lambda m, x: (1 + 0j) ** x,
    **{f"power {k}": lambda m, x, k=k: x**k for k in (0, 1, 2, 3, 8, 31, 0.5, -0.5, -1, -2)},
}
BITWISE = ("mul one", "div one", "mul minus one", "add zero", "sub zero", "where", "power 0")


def parts(values):
    return np.ascontiguousarray(values).view(np.float64)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_finite_value_stays_numpys(name, mode):
    x = esat.vector("x", dtype="complex128")
    function = esat.compile(esat.Graph([x], PROGRAMS[name](esat, x)), mode)
    # Powers of infinities are the kernel's own affair.
    points = POINTS[np.isfinite(POINTS)] if name.startswith("power") else POINTS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = PROGRAMS[name](np, points)
        computed = function(points)
    assert computed.dtype == wanted.dtype
    if mode == "strict" and name in BITWISE:
        same = parts(wanted).view(np.uint64) == parts(computed).view(np.uint64)
        assert np.all(same | np.isnan(parts(wanted)) & np.isnan(parts(computed)))
    finite = np.isfinite(wanted)
    np.testing.assert_allclose(computed[finite], wanted[finite], rtol=1e-12)


def test_which_complex_constants_have_a_value():
    assert uniform_value(np.array([1 + 0j])) == 1.0
    assert uniform_value(np.full((2, 3), -2.5 + 0j, "complex64")) == -2.5
    for other in (1j, complex(1, -0.0), complex(-0.0, 0), complex(np.nan, 0), complex(0, np.nan)):
        assert uniform_value(np.array([other])) is None
    assert uniform_value(np.array([1 + 0j, 2 + 0j])) is None
    assert uniform_value(np.zeros(0, "complex128")) is None
