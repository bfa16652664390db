"""Log-densities and gradients of models, written as PyMC writes them, and one of PyMC's own."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from frontend.pytensor.peer import MODES, REFERENCE

RNG = np.random.default_rng(20)


def normal(x, mu, sigma):
    return -0.5 * ((x - mu) / sigma) ** 2 - pt.log(pt.sqrt(2 * np.pi)) - pt.log(sigma)


def half_cauchy(x, beta):
    return pt.switch(x >= 0, pt.log(2.0) - pt.log(np.pi * beta) - pt.log1p((x / beta) ** 2), -np.inf)


def student(x, nu, mu, sigma):
    lam = 1 / sigma**2
    return (
        pt.gammaln((nu + 1) / 2)
        - pt.gammaln(nu / 2)
        + 0.5 * pt.log(lam / (nu * np.pi))
        - (nu + 1) / 2 * pt.log1p(lam * (x - mu) ** 2 / nu)
    )


def eight_schools(v):
    y, sigma = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mu, log_tau, theta = v[0], v[1], v[2:]
    tau = pt.exp(log_tau)
    return (
        normal(mu, 0.0, 5.0)
        + half_cauchy(tau, 5.0)
        + log_tau
        + normal(theta, 0.0, 1.0).sum()
        + normal(y, mu + tau * theta, sigma).sum()
    )


def multilevel(v):
    group, floor, y = RNG.integers(0, 12, 90), RNG.integers(0, 2, 90), RNG.normal(size=90)
    mean, slope, scale, noise = v[0], v[1], pt.exp(v[2]), pt.exp(v[3])
    levels = v[4:16]
    rate = mean + levels[group] * scale + slope * floor
    prior = normal(v[:2], 0.0, 10.0).sum() - scale + v[2] + half_cauchy(noise, 5.0) + v[3]
    return prior + normal(levels, 0.0, 1.0).sum() + student(y, 4.0, rate, noise).sum()


def logistic(v):
    x, y = RNG.normal(size=(60, 4)), RNG.integers(0, 2, 60)
    eta = v[0] + pt.dot(x, v[1:5])
    return normal(v[:5], 0.0, 2.0).sum() + pt.switch(y, -pt.softplus(-eta), -pt.softplus(eta)).sum()


def gaussian_process(v):
    x, y = np.linspace(0, 10, 25), RNG.normal(size=25)
    length, scale, noise = pt.exp(v[0]), pt.exp(v[1]), pt.exp(v[2])
    square = ((x[:, None] - x[None, :]) / length) ** 2
    covariance = scale**2 * pt.exp(-0.5 * square) + (noise**2 + 1e-6) * pt.eye(25)
    factor = pt.linalg.cholesky(covariance)
    white = pt.linalg.solve_triangular(factor, pt.as_tensor(y), lower=True, b_ndim=1)
    density = -0.5 * (white**2).sum() - pt.log(pt.diag(factor)).sum() - 12.5 * np.log(2 * np.pi)
    density = pt.switch(pt.all(pt.diag(factor) > 0), density, -np.inf)
    return density + normal(v[:3], 0.0, 1.0).sum()


def mixture(v):
    y = np.concatenate([RNG.normal(-2, 1, 40), RNG.normal(3, 0.5, 30)])
    weights = pt.special.log_softmax(v[:3])
    means, scales = v[3:6], pt.exp(v[6:9])
    parts = weights + normal(y[:, None], means, scales)
    return pt.logsumexp(parts, axis=-1).sum() + normal(v, 0.0, 3.0).sum()


MODELS = {
    "eight schools": (eight_schools, 10),
    "multilevel": (multilevel, 16),
    "logistic": (logistic, 5),
    "gaussian process": (gaussian_process, 3),
    "mixture": (mixture, 9),
}


def agree(found, expected):
    """To 1e-11 of each result's largest element."""
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.isfinite(other).all()
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11 * np.abs(other).max())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", MODES)
def test_log_density_and_gradient(name, mode):
    """At two points, before and after there is a native function; nothing is run by PyTensor."""
    build, size = MODELS[name]
    v = pt.tensor("v", dtype="float64", shape=(size,))
    density = build(v)
    outputs = [density, pytensor.grad(density, v)]
    function = pytensor.function([v], outputs, mode=mode)
    assert not function.vm.jit_fn.report.foreign, str(function.vm.jit_fn.report)
    reference = pytensor.function([v], outputs, mode=REFERENCE)
    for point in (np.zeros(size), RNG.normal(size=size) * 0.3):
        agree(function(point), reference(point))
        for _ in range(210):
            found = function(point)
        agree(found, reference(point))


def test_parameters_out_of_range_have_density_0():
    """A Cholesky factor that there is not makes NaN, and that -inf."""
    v = pt.tensor("v", dtype="float64", shape=(2,))
    covariance = pt.stack([pt.stack([v[0], v[1]]), pt.stack([v[1], v[0]])])
    factor = pt.linalg.cholesky(covariance)
    density = pt.switch(pt.all(pt.diag(factor) > 0), -pt.log(pt.diag(factor)).sum(), -np.inf)
    for mode in MODES:
        function = pytensor.function([v], [density, pytensor.grad(density, v)], mode=mode)
        assert function(np.array([1.0, 2.0]))[0] == -np.inf
        np.testing.assert_allclose(function(np.array([2.0, 1.0]))[0], -0.5 * np.log(3.0))


def test_slopes_at_rates_of_zero_are_finite():
    """Of a Poisson density they are 0 * 0 / 0 as they are written; the exposure cancels."""
    patients, intervals = 20, 6
    sex = RNG.integers(0, 2, patients)[:, None]
    exposure, counts = np.ones((patients, intervals)), np.zeros((patients, intervals))
    exposure[np.arange(intervals) >= RNG.integers(1, intervals + 1, patients)[:, None]] = 0.0
    counts[3, 0] = counts[7, 0] = 1.0
    v = pt.tensor("v", dtype="float64", shape=(patients + 2 * intervals,))
    frailty, baseline = v[:patients], v[patients:].reshape((intervals, 2))
    rate = exposure * pt.exp(baseline)[np.arange(intervals)[None, :], sex] * frailty[:, None]
    impossible, nothing = pt.eq(pt.log(rate), -np.inf) & (counts <= 0), pt.eq(rate, 0) & pt.eq(counts, 0)
    power = pt.switch(impossible, pt.switch(pt.eq(counts, 0), 0.0, -np.inf), counts * pt.log(rate))
    density = pt.switch(nothing, 0.0, power - pt.gammaln(counts + 1) - rate).sum()
    point = RNG.uniform(0.5, 2.0, patients + 2 * intervals)
    weights = point[:patients, None]
    gathered = point[patients:].reshape((intervals, 2))[np.arange(intervals)[None, :], sex]
    observed = counts - exposure * np.exp(gathered) * weights
    by_baseline = np.zeros((intervals, 2))
    np.add.at(by_baseline, (np.arange(intervals)[None, :], sex), observed)
    for mode in MODES:
        function = pytensor.function([v], [density, pytensor.grad(density, v)], mode=mode)
        np.testing.assert_allclose(
            function(point)[1],
            [*(observed / weights).sum(axis=1), *by_baseline.ravel()],
            rtol=1e-11,
            atol=1e-12,
        )


if importlib.util.find_spec("pymc"):
    import pymc as pm

    def test_a_model_of_pymc():
        """Its density, also out of range, draws from the prior, and a few steps of its sampler."""
        with pm.Model() as model:
            sigma = pm.HalfNormal("sigma", 1.0)
            mu = pm.Normal("mu", 0.0, 2.0, shape=3)
            pm.Normal("y", mu[np.array([0, 1, 2, 1])], sigma, observed=np.array([0.1, 0.3, -0.2, 0.5]))
        point = model.initial_point()
        expected = model.compile_logp(mode=REFERENCE)(point)
        for mode in MODES:
            np.testing.assert_allclose(model.compile_logp(mode=mode)(point), expected, rtol=1e-12)
        with pm.Model() as direct:
            s = pm.Normal("s")
            pm.Normal("y", 0.0, s, observed=np.ones(3))
        assert direct.compile_logp(mode="ESAT")({"s": -1.0}) == -np.inf
        with model:
            draws = [
                pm.sample_prior_predictive(5, random_seed=3, compile_kwargs={"mode": mode}).prior["mu"].values
                for mode in ("ESAT", "FAST_COMPILE")
            ]
            np.testing.assert_array_equal(*draws)
            trace = pm.sample(
                20,
                tune=20,
                chains=1,
                cores=1,
                random_seed=1,
                progressbar=False,
                nuts_sampler="pymc",
                compute_convergence_checks=False,
                compile_kwargs={"mode": "ESAT"},
            )
        assert np.isfinite(trace.posterior["mu"].values).all()


def test_code_of_the_page_runs():
    """All blocks in turn, but for those that need PyMC or nutpie where these are not installed."""
    page = Path(__file__).parents[3] / "docs" / "tutorials" / "from_pymc.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 6
    names = {}
    for block in blocks:
        peer = "nutpie" if "import nutpie" in block else "pymc"
        if peer not in block or importlib.util.find_spec(peer):
            exec(compile(block, str(page), "exec"), names)
