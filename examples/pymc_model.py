"""A hierarchical model of PyMC's on made data: compile and call times of PyTensor's own mode, and of esat's.

Run ``python examples/pymc_model.py`` where PyMC is installed (``pip install esat[pytensor] pymc``), on Python
3.12 or newer. Each mode compiles the log-density and its gradient once; times of calls are medians of rounds
that take turns.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import esat.frontend.pytensor  # noqa: F401 - which registers the modes

MODES = ("NUMBA", "ESAT")
COUNTIES, HOUSES = 85, 919
ROUNDS, CALLS = 11, 200


def model_of(rng: np.random.Generator) -> pm.Model:
    """Levels of a gas in houses, by floor and county, as they could have been measured."""
    county, floor = rng.integers(0, COUNTIES, HOUSES), rng.integers(0, 2, HOUSES).astype(float)
    levels = rng.normal(1.5, 0.4, COUNTIES)[county] - 0.7 * floor + rng.normal(0.0, 0.7, HOUSES)
    with pm.Model() as model:
        mean, slope = pm.Normal("mean", 0.0, 10.0), pm.Normal("slope", 0.0, 10.0)
        spread, noise = pm.HalfCauchy("spread", 5.0), pm.HalfCauchy("noise", 5.0)
        of_county = pm.Normal("of_county", 0.0, 1.0, shape=COUNTIES)
        pm.Normal("level", mean + spread * of_county[county] + slope * floor, noise, observed=levels)
    return model


def main() -> None:
    rng = np.random.default_rng(1)
    model = model_of(rng)
    density = model.logp()
    outputs = [density, *pt.grad(density, model.value_vars)]
    begin = model.initial_point().values()
    point = [np.asarray(value + 0.1 * rng.normal(size=np.shape(value))) for value in begin]
    functions, results = {}, {}
    for mode in MODES:
        begin = time.perf_counter()
        functions[mode] = pytensor.function(model.value_vars, outputs, mode=mode)
        results[mode] = functions[mode](*point)
        print(f"{mode:6} compiled and called in {time.perf_counter() - begin:5.1f} s")
        functions[mode].trust_input = True
        for _ in range(2 * CALLS):
            functions[mode](*point)
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(ROUNDS):
        for mode, function in functions.items():
            begin = time.perf_counter()
            for _ in range(CALLS):
                function(*point)
            times[mode].append((time.perf_counter() - begin) / CALLS)
    for mode in MODES:
        print(f"{mode:6} {median(times[mode]) * 1e6:6.1f} us a call")
    pairs = zip(results["NUMBA"], results["ESAT"], strict=True)
    error = max(float(np.max(np.abs(one - other) / (1e-12 + np.max(np.abs(one))))) for one, other in pairs)
    print(f"largest difference between results: {error:.0e}; {functions['ESAT'].vm.jit_fn.report}")
    begin = time.perf_counter()
    with model:
        trace = pm.sample(
            200, tune=200, chains=1, random_seed=1, nuts_sampler="pymc", compile_kwargs={"mode": "ESAT"},
            progressbar=False, compute_convergence_checks=False,
        )  # fmt: skip
    mean = float(trace.posterior["mean"].mean())
    taken = time.perf_counter() - begin
    print(f"ESAT   400 steps of PyMC's sampler in {taken:.1f} s; mean of the counties {mean:.2f}")


if __name__ == "__main__":
    main()
