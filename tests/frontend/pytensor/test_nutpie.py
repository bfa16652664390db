"""PyMC's models sampled by nutpie through esat's C functions."""

import ctypes

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
nutpie = pytest.importorskip("nutpie")

from pytensor.tensor.linalg import expm  # noqa: E402

from esat.errors import CallError  # noqa: E402
from esat.frontend.pytensor import nutpie_model  # noqa: E402

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools():
    """Rubin (1981), parameters not centered."""
    with pm.Model() as model:
        mean, spread = pm.Normal("mean", 0.0, 5.0), pm.HalfCauchy("spread", 5.0)
        scores = pm.Normal("scores", shape=8)
        effects = pm.Deterministic("effects", mean + spread * scores)
        pm.Normal("seen", effects, pm.Data("errors", ERRORS), observed=EFFECTS)
    return model


def test_densities_and_variables_are_pymcs():
    model = schools()
    compiled = nutpie_model(model)
    words = (ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(compiled.compiled_logp_func.address)
    logp = model.compile_logp(mode="FAST_COMPILE", jacobian=True)
    slope = model.compile_dlogp(mode="FAST_COMPILE", jacobian=True)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=10)
        gradient, value = np.zeros(10), np.zeros(())
        assert call(10, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, None) == 0
        point = {"mean": x[0], "spread_log__": x[1], "scores": x[2:]}
        np.testing.assert_allclose(value, logp(point), rtol=1e-12)
        np.testing.assert_allclose(gradient, slope(point), rtol=1e-11, atol=1e-12)


def test_posteriors_of_two_chains_are_those_of_numba():
    model, means = schools(), []
    for compiled in (nutpie_model(model), nutpie.compile_pymc_model(model)):
        trace = nutpie.sample(
            compiled, draws=1000, tune=500, chains=2, cores=2, seed=3, progress_bar=False
        ).posterior
        assert trace["effects"].shape == (2, 1000, 8)
        np.testing.assert_allclose(
            trace["effects"], trace["mean"] + trace["spread"] * trace["scores"], rtol=1e-9, atol=1e-12
        )
        means.append([float(trace[name].mean()) for name in ("mean", "spread")])
    np.testing.assert_allclose(means[0], means[1], atol=0.6)  # some four standard errors


def test_what_cannot_be_compiled_or_replaced_says_so():
    with pytest.raises(CallError, match="errors cannot be replaced"):
        nutpie_model(schools()).with_data(errors=ERRORS * 2.0)
    with pm.Model() as model:
        rate = pm.Normal("rate", shape=(2, 2))
        pm.Potential("trace", pm.math.sum(expm(rate)))
    with pytest.raises(CallError, match="run by Python"):
        nutpie_model(model)
