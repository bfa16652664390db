"""PyMC's models in PyTensor's modes: compile times, memory and calls, by esat and by PyTensor's own.

``python -m benchmarks.pymc_models FOLDER [--models NAME ...] [--peers NUMBA JAX] [--only starts calls]``

The folder holds modules in ``models/`` and ``models_discrete/`` that define ``build_model()``, which returns
a model and a point, as https://github.com/ricardoV94/pymc-model-catalogue does. What is compiled is the
log-density with its gradient as functions of one vector, as samplers take them; of discrete models the
log-density. It runs in the environment ``pymc`` of :mod:`benchmarks.peers.environments`.

A start is one process: the processor's seconds of ``pytensor.function`` and the first call, without imports
and the model's own construction, and the largest resident set. A cold one has the directories of a
process that compiled a model of one variable, a warm one those of the cold one. Calls are in one process a
model: least processor time of rounds that take turns, through PyTensor's function and, for numba and esat,
in a compiled loop over their native functions. A ratio is a peer's time by esat's.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.client import ROOT
from benchmarks.peers.environments import interpreter_of
from benchmarks.peers.starts import caches

OURS = "ESAT"
PEERS = ("NUMBA", "JAX")
TRACKED = (
    "models.eight_schools_noncentered",
    "models.multilevel_varying_intercept_slope_noncentered",
    "models.GLM_hierarchical_binomial_rat_tumor",
    "models.gp_marginal_matern52",
    "models.BEST",
    "models.marginalized_gaussian_mixture_model",
    "models.lkj_cholesky_cov_mvnormal",
    "models.frailty_coxph",
    "models_discrete.occupancy_crossbill",
    "models.bayesian_var_ireland",
)
"""The models whose times the catalogue's authors follow over releases of PyMC."""
ROUNDS, SECONDS = 15, 0.02
WARM_CALLS = 600
"""Enough for esat's native function to have taken over, which it does after some hundred calls."""
STEP = 1e-12
"""What a component grows by before each native call, so that a compiler takes no work out of the loop."""
LIMIT_S = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where esat failed at a model or gave other values than a peer."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pymc_models", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=TRACKED, metavar="NAME")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--only", nargs="+", choices=("starts", "calls"), default=("starts", "calls"))
    options = parser.parse_args(arguments)
    interpreter = interpreter_of("pymc", {})
    if interpreter is None:
        print("no environment has PyMC (python -m benchmarks.peers.environments pymc)")
        return 1
    modes = (OURS, *options.peers)
    ratios: dict[str, list[float]] = {}
    failed = False
    for name in options.models:
        figures: dict[str, float] = {}
        if "starts" in options.only:
            for mode in modes:
                figures |= _starts(interpreter, options.folder, name, mode)
        if "calls" in options.only:
            with tempfile.TemporaryDirectory() as caches_at:
                figures |= _child(interpreter, options.folder, Path(caches_at), "calls", name, *modes)
        failed |= not any(key.endswith(OURS) for key in figures) or figures.get("difference", 0.0) > 1e-9
        print(_row(name, figures, modes, ratios), flush=True)
    for kind, found in ratios.items():
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"{kind:24} geometric mean of {len(found):2}: {mean:6.2f}, least {min(found):6.2f}")
    return int(failed)


def _row(
    name: str, figures: Mapping[str, float], modes: Sequence[str], ratios: dict[str, list[float]]
) -> str:
    """A model's figures by kind, each of all modes; the ratios are added to those of their kind."""
    about = [f"{figures['nodes']:.0f} nodes"] if "nodes" in figures else []
    about += [f"values differ by {figures['difference']:.0e}"] if "difference" in figures else []
    lines = [f"{name} ({'; '.join(about)})"]
    for kind, unit in (
        ("cold", "s"), ("warm", "s"), ("memory", "MB"), ("call", "us"), ("native", "us"),
    ):  # fmt: skip
        ours = figures.get(f"{kind} {OURS}")
        cells = []
        for mode in modes:
            found = figures.get(f"{kind} {mode}")
            if found is None:
                cells.append(f"{mode} -")
                continue
            cells.append(f"{mode} {found:.4g}")
            if mode != OURS and ours:
                ratios.setdefault(f"{kind} {mode} / {OURS}", []).append(found / ours)
                cells[-1] += f" ({found / ours:.2f})"
        if ours is not None:
            lines.append(f"    {kind:7} {unit:3} " + ", ".join(cells))
    return "\n".join(lines)


def _starts(interpreter: Path, folder: Path, name: str, mode: str) -> dict[str, float]:
    """Cold and warm seconds and the cold process's largest resident set in MB."""
    with tempfile.TemporaryDirectory() as caches_at:
        at = Path(caches_at)
        _child(interpreter, folder, at, "start", "", mode)
        cold = _child(interpreter, folder, at, "start", name, mode)
        warm = _child(interpreter, folder, at, "start", name, mode)
    figures = {
        f"cold {mode}": cold.get("seconds"), f"memory {mode}": cold.get("memory"),
        f"warm {mode}": warm.get("seconds"), "nodes": cold.get("nodes") if mode == OURS else None,
    }  # fmt: skip
    return {key: value for key, value in figures.items() if value is not None}


def _child(
    interpreter: Path, folder: Path, caches_at: Path, kind: str, name: str, *modes: str
) -> dict[str, float]:
    """What a process of its own measured; nothing, with a note, where it failed or took too long."""
    path = os.pathsep.join((str(ROOT), str(folder.resolve())))
    environment = {**os.environ, **caches(caches_at), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    environment["PYTENSOR_FLAGS"] += ",cxx="  # the modes measured need no C compiler
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # all packages shall have bytecode, as installed ones
    command = [str(interpreter), "-P", "-m", "benchmarks.pymc_models", "--child", kind, name, *modes]
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name} {' '.join(modes)}: no result within {LIMIT_S} s")
        return {}
    if run.returncode != 0:
        print(f"{name} {' '.join(modes)}: {run.stderr.strip().splitlines()[-1]}")
        return {}
    return dict(json.loads(run.stdout.splitlines()[-1]))


# In the environment that has PyMC.


def _function_of(name: str) -> tuple[Callable[[str], Any], Any]:
    """What compiles the function of a model (of one variable, where the name is empty) in a mode, and its
    argument."""
    import pymc as pm
    import pytensor.tensor as pt
    from pymc.blocking import DictToArrayBijection
    from pymc.pytensorf import join_nonshared_inputs, rewrite_pregrad

    import esat.frontend.pytensor  # noqa: F401 - which registers the modes

    if name:
        model, point = importlib.import_module(name).build_model()
    else:
        with pm.Model() as model:
            pm.Normal("x")
        point = model.initial_point()
    values = model.value_vars
    density = rewrite_pregrad(model.logp())
    outputs = [density]
    if not name.startswith("models_discrete"):
        gradient: Any = pt.join(0, *(part.ravel() for part in pt.grad(density, values)))
        outputs.append(gradient)
    joined_outputs, joined = join_nonshared_inputs(point=point, outputs=outputs, inputs=values)
    vector = DictToArrayBijection.map({value.name: point[value.name] for value in values}).data

    def compiled(mode: str) -> Any:
        function = pm.compile([joined], joined_outputs, mode=mode)
        function.trust_input = True
        return function

    return compiled, vector


def _start(name: str, mode: str) -> dict[str, float]:
    compiled, vector = _function_of(name)
    begin = time.process_time()
    function = compiled(mode)
    results = function(vector)
    [np.asarray(result) for result in results]  # JAX returns before the work is done
    seconds = time.process_time() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "memory": memory, "nodes": len(function.maker.fgraph.apply_nodes)}


def _calls(name: str, modes: Sequence[str]) -> dict[str, float]:
    runs: dict[str, Callable[[int], Any]] = {}
    results: dict[str, list[Any]] = {}
    nodes = 0
    compiled, vector = _function_of(name)
    for mode in modes:
        try:
            function = compiled(mode)
            results[mode] = [np.asarray(result) for result in function(vector)]
        except Exception:  # a mode of PyTensor's may refuse a model, in errors of many kinds
            if mode == OURS:
                raise
            continue
        nodes = max(nodes, len(function.maker.fgraph.apply_nodes) if mode == OURS else 0)
        runs[f"call {mode}"] = _repeated(function, vector, mode)
        native = _native(function, vector, mode) if len(results[mode]) == 2 else None
        if native is not None:
            runs[f"native {mode}"] = native
    least = dict.fromkeys(runs, math.inf)
    counts = {}
    for key, run in runs.items():
        run(WARM_CALLS)
        begin = time.process_time()
        run(20)
        counts[key] = max(1, int(SECONDS / max((time.process_time() - begin) / 20, 1e-7)))
    for _ in range(ROUNDS):
        for key, run in runs.items():
            begin = time.process_time()
            run(counts[key])
            least[key] = min(least[key], (time.process_time() - begin) / counts[key] * 1e6)
    difference = max((_difference(results[OURS], one) for mode, one in results.items() if mode != "JAX"))
    return {**least, "nodes": nodes, "difference": difference}


def _difference(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The largest relative difference; denominators are at least a thousandth of the largest component."""
    return max(
        float(np.max(np.abs(one - other) / np.maximum(np.abs(other), 1e-3 * np.max(np.abs(other)) + 1e-300)))
        for one, other in zip(ours, theirs, strict=True)
    )


def _repeated(function: Any, vector: Any, mode: str) -> Callable[[int], None]:
    """Calls of PyTensor's function; JAX's are waited for."""

    def run(count: int) -> None:
        for _ in range(count):
            results = function(vector)
            if mode == "JAX":
                [result.block_until_ready() for result in results]

    return run


def _native(function: Any, vector: Any, mode: str) -> Callable[[int], None] | None:
    """Calls in a compiled loop of numba's function, or of esat's by its address; None for others."""
    import numba

    vector = vector.copy()

    shared = tuple(variable.get_value(borrow=True) for variable in function.get_shared())
    if mode == OURS:
        entry = function.vm.jit_fn.c_entry(vector, *shared)
        pointer, number = ctypes.c_void_p, ctypes.c_uint64
        call = ctypes.CFUNCTYPE(ctypes.c_int64, number, pointer, pointer, pointer, pointer)(
            entry.density_address
        )
        gradient, density = np.empty_like(vector), np.empty(1)

        @numba.njit
        def repeated(count: int, point: Any, gradient: Any, density: Any) -> float:
            for index in range(count):
                point[index % point.size] += STEP
                call(point.size, point.ctypes, gradient.ctypes, density.ctypes, density.ctypes)
            return density[0]

        return lambda count: (entry, repeated(count, vector, gradient, density))[1]
    if mode == "NUMBA":
        compiled = function.vm.jit_fn

        @numba.njit
        def looped(count: int, point: Any, shared: Any) -> float:
            total = 0.0
            for index in range(count):
                point[index % point.size] += STEP
                total += compiled(point, *shared)[0].item()
            return total

        return lambda count: looped(count, vector, shared)
    return None


def _measure_here(kind: str, name: str, modes: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    figures = _start(name, modes[0]) if kind == "start" else _calls(name, modes)
    print(json.dumps(figures))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _measure_here(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        sys.exit(main())
