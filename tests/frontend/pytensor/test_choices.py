"""Gradients of choices: the side that is not chosen leaves no NaN, as in PyTensor's own default modes."""

import importlib.util

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery

from esat.frontend.pytensor.linker import INCOMPATIBLE
from frontend.pytensor.peer import MODES

REWRITTEN = Mode("py", RewriteDatabaseQuery(include=["fast_run"], exclude=[*INCOMPATIBLE]))
"""What PyTensor makes of a graph for its compiled modes, op by op."""
INF = np.inf


def support(x):
    return pt.switch(x > 0, pt.log(x), -INF)


def nested(x):
    inside = pt.switch(pt.eq(x, 1), 0.0, pt.sqrt(x) * pt.log1p(-x))
    return pt.switch((x >= 0) & (x <= 1), inside, -INF)


def negated(x):
    return -pt.switch(x < 0, 3.0, pt.sqrt(x)) / 4


def sides(x):
    share = pt.sigmoid(x)
    return pt.switch(x > 1, pt.log(share), pt.log1p(-share))


def decided(x):
    """By a number, over a sum and a product of matrices."""
    rows = pt.atleast_1d(x)[:, None]
    whole = pt.dot(rows, pt.sqrt(rows).T).sum() + pt.log(x).sum()
    return pt.switch(pt.all(x > 0), whole, -INF)


POINTS = [-INF, -2.0, 0.0, 0.25, 1.0, 1.5, 40.0, INF]
SLOPES = {
    "support": (support, [0, 0, 0, 4, 1, 1 / 1.5, 1 / 40, 0]),
    "nested": (nested, [0, 0, -INF, np.log(0.75) - 0.5 / 0.75, 0, 0, 0, 0]),
    "negated": (negated, [0, 0, -INF, -0.25, -0.125, -0.125 / np.sqrt(1.5), -0.125 / np.sqrt(40), 0]),
    "sides": (
        sides,
        [*(-1 / (1 + np.exp(-np.array(POINTS[:5])))), *(1 / (1 + np.exp(np.array(POINTS[5:]))))],
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name, mode, dtype):
    """Of vectors, and of their elements one by one."""
    function, expected = SLOPES[name]
    expected = np.array(expected, dtype)
    points = np.array(POINTS, dtype)
    kept = ~((points == 0) & (name == "nested"))  # log1p(-0) / sqrt(0)
    for rank in (0, 1):
        x = pt.tensor("x", dtype=dtype, shape=(None,) * rank)
        slope = pytensor.function([x], pytensor.grad(function(x).sum(), x), mode=mode)
        found = slope(points) if rank else np.array([slope(point) for point in points])
        np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_slopes_of_what_one_number_decides(mode):
    """All elements are in range, or no element has a slope."""
    x = pt.vector("x", dtype="float64")
    slope = pytensor.function([x], pytensor.grad(decided(x), x), mode=mode)
    np.testing.assert_array_equal(slope(np.array([1.0, 0.0, 2.0, -1.0])), np.zeros(4))
    inside = np.array([1.0, 0.25, 2.0])
    roots = np.sqrt(inside)
    np.testing.assert_allclose(slope(inside), roots.sum() + inside.sum() / (2 * roots) + 1 / inside)


def test_large_arguments_of_choices_between_logarithms():
    """What cancels in one side cancels: its factors are 0 and Inf, of which PyTensor's rewrites make NaN."""
    x, v = pt.scalar("x", dtype="float64"), pt.scalar("v", dtype="int64")
    share = pt.sigmoid(x)
    density = pt.switch(v, pt.log(share), pt.log1p(-share))
    slope = pytensor.function([x, v], pytensor.grad(density, x), mode="ESAT")
    assert slope(800.0, 0) == -1.0
    assert slope(-800.0, 1) == 1.0
    assert slope(800.0, 1) == slope(-800.0, 0) == 0.0


if importlib.util.find_spec("pymc"):
    import pymc as pm

    EVERYWHERE = np.array([0.3, 0.0, 1.0, -0.5, 1.5, 2.0, 40.0, INF, -INF])
    COUNTS = np.array([0, 1, 2, 5, 6, -1, 30])
    DISTRIBUTIONS = {
        "Bernoulli": {"p": 0.3},
        "Beta": {"alpha": 1.5, "beta": 2.2},
        "Binomial": {"n": 5, "p": 0.3},
        "DiscreteWeibull": {"q": 0.4, "beta": 0.7},
        "ExGaussian": {"mu": 0.1, "sigma": 1.2, "nu": 0.9},
        "Exponential": {"lam": 1.7},
        "Gamma": {"alpha": 1.7, "beta": 0.8},
        "Geometric": {"p": 0.3},
        "HalfNormal": {"sigma": 1.2},
        "InverseGamma": {"alpha": 1.7, "beta": 0.8},
        "Kumaraswamy": {"a": 1.7, "b": 0.8},
        "LogNormal": {"mu": 0.1, "sigma": 0.8},
        "LogitNormal": {"mu": 0.1, "sigma": 0.8},
        "NegativeBinomial": {"mu": 1.3, "alpha": 0.8},
        "Pareto": {"alpha": 1.7, "m": 0.8},
        "Poisson": {"mu": 1.3},
        "Rice": {"nu": 1.2, "sigma": 0.8},
        "Triangular": {"lower": 0.0, "c": 0.4, "upper": 1.0},
        "Uniform": {"lower": 0.0, "upper": 1.0},
        "Weibull": {"alpha": 1.1, "beta": 0.8},
    }

    def test_densities_in_the_tail_beside_their_slopes():
        """The exponential of what is squared is zero there; at one sample point of many the truths of this
        graph's forms contradict each other."""
        value, nu, sigma = (pt.scalar(name, dtype="float64") for name in ("value", "nu", "sigma"))
        density = pm.logp(pm.Rice.dist(nu=nu, sigma=sigma), value)
        outputs = [density, *pytensor.grad(density, [nu, sigma, value])]
        known = pytensor.compile.mode.predefined_modes["ESAT"]
        rewrites = known.provided_optimizer.including("local_check_parameter_to_ninf_switch")
        function = pytensor.function([nu, sigma, value], outputs, mode=Mode(known.linker, rewrites))
        assert not function.vm.jit_fn.report.foreign
        np.testing.assert_allclose(function(1.2, 0.8, 50.0)[0], -1859.3296037327716)

    @pytest.mark.parametrize("name", DISTRIBUTIONS)
    def test_distributions_in_and_out_of_their_support(name):
        """Where PyTensor's rewritten graph has a number, the density and its slopes have it too."""
        given = DISTRIBUTIONS[name]
        parameters = {
            key: pt.scalar(key, dtype="int64" if isinstance(value, int) else "float64")
            for key, value in given.items()
        }
        distribution = getattr(pm, name)
        counts = issubclass(distribution, pm.Discrete)
        value = pt.vector("value", dtype="int64" if counts else "float64")
        density = pm.logp(distribution.dist(**parameters), value)
        inputs = [*parameters.values(), value]
        real = [one for one in inputs if one.dtype == "float64"]
        slopes = [pytensor.grad(density[place], real) for place in range(len(COUNTS))]
        outputs = [density, *(one for each in slopes for one in each)]
        names = ("random_make_inplace", "local_check_parameter_to_ninf_switch")
        for mode in MODES:
            known = pytensor.compile.mode.predefined_modes[mode]
            functions = [
                pytensor.function(inputs, outputs, Mode(one.linker, one.provided_optimizer.including(*names)))
                for one in (known, REWRITTEN)
            ]
            for values in (EVERYWHERE[:7], EVERYWHERE[2:]) if not counts else (COUNTS,):
                found, expected = (function(*given.values(), values) for function in functions)
                for one, other in zip(found, expected, strict=True):
                    finite = np.isfinite(other)
                    np.testing.assert_allclose(one[finite], other[finite], rtol=1e-9, atol=1e-14)
