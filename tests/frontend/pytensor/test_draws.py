"""Random variables: the numbers that PyTensor draws, in the same order."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from frontend.pytensor.peer import MODES, REFERENCE

R = pt.random
EXACT = {
    "beta": lambda rng, size: R.beta(2.0, [1.0, 3.0], size=size, rng=rng),
    "binomial": lambda rng, size: R.binomial(10, [0.3, 0.6], size=size, rng=rng),
    "exponential": lambda rng, size: R.exponential([1.0, 2.0], size=size, rng=rng),
    "gamma": lambda rng, size: R.gamma(2.0, scale=[0.5, 1.0], size=size, rng=rng),
    "geometric": lambda rng, size: R.geometric([0.3, 0.6], size=size, rng=rng),
    "integers": lambda rng, size: R.integers(0, [10, 20], size=size, rng=rng),
    "laplace": lambda rng, size: R.laplace(0.0, [1.0, 2.0], size=size, rng=rng),
    "logistic": lambda rng, size: R.logistic(0.0, [1.0, 2.0], size=size, rng=rng),
    "normal": lambda rng, size: R.normal([0.0, 5.0], 2.0, size=size, rng=rng),
    "poisson": lambda rng, size: R.poisson([1.0, 20.0], size=size, rng=rng),
    "bernoulli": lambda rng, size: R.bernoulli([0.3, 0.6], size=size, rng=rng),
    "categorical": lambda rng, size: R.categorical([[0.2, 0.8], [0.5, 0.5]], size=size, rng=rng),
    "hypergeometric": lambda rng, size: R.hypergeometric(5, 7, [3, 4], size=size, rng=rng),
    "lognormal": lambda rng, size: R.lognormal(0.0, [1.0, 2.0], size=size, rng=rng),
    "multinomial": lambda rng, size: R.multinomial([5, 9], [0.2, 0.8], size=size, rng=rng),
    "triangular": lambda rng, size: R.triangular(0.0, 0.5, [1.0, 2.0], size=size, rng=rng),
    "vonmises": lambda rng, size: R.vonmises(0.0, [1.0, 2.0], size=size, rng=rng),
    "wald": lambda rng, size: R.wald(1.0, [1.0, 2.0], size=size, rng=rng),
    "weibull": lambda rng, size: R.weibull([1.0, 2.0], size=size, rng=rng),
    "beta_binomial": lambda rng, size: R.betabinom(10, 2.0, [1.0, 2.0], size=size, rng=rng),
    "multivariate_normal, by eigenvalues": lambda rng, size: R.multivariate_normal(
        np.arange(3.0), np.eye(3) + 0.5, size=size, rng=rng, method="eigh"
    ),
    "multivariate_normal, by Cholesky": lambda rng, size: R.multivariate_normal(
        np.arange(6.0).reshape(2, 3), np.eye(3) + 0.5, size=size, rng=rng, method="cholesky"
    ),
    "negative_binomial": lambda rng, size: R.nbinom(5, [0.3, 0.6], size=size, rng=rng),
    "dirichlet": lambda rng, size: R.dirichlet([[1.0, 2.0], [3.0, 1.0]], size=size, rng=rng),
    "uniform": lambda rng, size: R.uniform(0.0, [1.0, 2.0], size=size, rng=rng),
}
COMPUTED = {
    "cauchy": lambda rng, size: R.cauchy(0.0, [1.0, 2.0], size=size, rng=rng),
    "gengamma": lambda rng, size: R.gengamma(2.0, 1.5, [1.0, 2.0], size=size, rng=rng),
    "gumbel": lambda rng, size: R.gumbel(0.0, [1.0, 2.0], size=size, rng=rng),
    "halfcauchy": lambda rng, size: R.halfcauchy(0.0, [1.0, 2.0], size=size, rng=rng),
    "halfnormal": lambda rng, size: R.halfnormal(0.0, [1.0, 2.0], size=size, rng=rng),
    "invgamma": lambda rng, size: R.invgamma(3.0, [1.0, 2.0], size=size, rng=rng),
    "multivariate_normal": lambda rng, size: R.multivariate_normal(
        np.zeros((2, 3)), np.eye(3), size=size, rng=rng
    ),
    "pareto": lambda rng, size: R.pareto(3.0, [1.0, 2.0], size=size, rng=rng),
    "t": lambda rng, size: R.t(4.0, 0.0, [1.0, 2.0], size=size, rng=rng),
    "truncexpon": lambda rng, size: R.truncexpon(2.0, 0.0, [1.0, 2.0], size=size, rng=rng),
}
WHOLE = {
    "choice": lambda rng: R.choice(np.arange(5.0), size=(3,), rng=rng),
    "choice without replacement": lambda rng: R.choice(np.arange(5.0), size=(3,), replace=False, rng=rng),
    "choice without replacement, by shares": lambda rng: R.choice(
        np.arange(10.0).reshape(5, 2), size=(2, 1), replace=False, p=[0.1, 0.2, 0.3, 0.3, 0.1], rng=rng
    ),
    "permutation": lambda rng: R.permutation(np.arange(5), rng=rng),
}


def draws(build, mode):
    """Two calls, each with two draws in a row; the shared generator goes on."""
    rng = pytensor.shared(np.random.default_rng(42))
    first = build(rng)
    after = first.owner.outputs[0]
    second = build(after)
    function = pytensor.function(
        [], [first, second, first + second], mode=mode, updates={rng: second.owner.outputs[0]}
    )
    return [*function(), *function()], function


@pytest.mark.parametrize("size", [None, (2,), (3, 2)])
@pytest.mark.parametrize("name", [*EXACT, *COMPUTED])
def test_streams_are_pytensors(name, size):
    """Numbers that SciPy computes of those of a generator have its digits but for the last."""
    build = {**EXACT, **COMPUTED}[name]
    expected, _ = draws(lambda rng: build(rng, size), REFERENCE)
    for mode in MODES:
        found, function = draws(lambda rng: build(rng, size), mode)
        for one, other in zip(found, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one, other, rtol=0 if name in EXACT else 1e-13)
        report = function.vm.jit_fn.report
        assert not report.foreign, str(report)


@pytest.mark.parametrize("name", WHOLE)
def test_draws_of_arrays(name):
    def build(rng):
        made = WHOLE[name](rng)
        while made.owner.op.__class__.__name__ in ("Subtensor", "AdvancedSubtensor", "DimShuffle"):
            made = made.owner.inputs[-1 if "Advanced" in type(made.owner.op).__name__ else 0]
        return made

    expected, _ = draws(build, REFERENCE)
    for mode in MODES:
        found, function = draws(build, mode)
        assert not function.vm.jit_fn.report.foreign, str(function.vm.jit_fn.report)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "build",
    [
        lambda: R.halfnormal(0.0, -1.0),
        lambda: R.t(-1.0, 0.0, [1.0, 2.0]),
        lambda: R.pareto(-1.0),
        lambda: R.gengamma(1.0, 2.0, -1.0),
        lambda: R.bernoulli(1.5),
        lambda: R.weibull(-1.0),
    ],
)
def test_parameters_out_of_range(build):
    """A ValueError, as PyTensor raises."""
    for mode in (REFERENCE, *MODES):
        with pytest.raises(ValueError, match=r"Domain|p < 0|< 0|<= 0"):
            pytensor.function([], build(), mode=mode)()


def test_a_generator_that_is_not_updated_stays_where_it_is():
    rng = pytensor.shared(np.random.default_rng(1))
    sample = R.normal(size=(3,), rng=rng)
    function = pytensor.function([], sample, mode="ESAT")
    np.testing.assert_array_equal(function(), function())
    given = R.normal(size=(3,), rng=pt.random.type.random_generator_type("rng"))
    taken = pytensor.function([given.owner.inputs[0]], given, mode="ESAT")
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(taken(generator), function())
    np.testing.assert_array_equal(taken(generator), np.random.default_rng(1).normal(size=3))


def test_float32():
    with pytensor.config.change_flags(floatX="float32"):
        expected, _ = draws(lambda rng: R.normal(0, 2, size=(4,), rng=rng), REFERENCE)
        found, _ = draws(lambda rng: R.normal(0, 2, size=(4,), rng=rng), "ESAT")
    assert found[0].dtype == "float32"
    np.testing.assert_array_equal(found[0], expected[0])
