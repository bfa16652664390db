"""Functions that a second process traces, and whose programs it finds on disk."""

import json
import os
import subprocess
import sys

import pytest
from caches import with_rules

PROGRAM = """
import json, sys
import numpy as np
import esat

number = {number}
rate = number

def scaled(x, factor=number):
    return factor * x

def closed(factor):
    return lambda x: np.tanh(factor * x)

class Layer:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        return x @ self.weights

def loss(w, X, y):
    return np.log1p(np.exp(-y * (X @ w))).mean() + 0.5 * (w * w).sum()

v, X = np.linspace(-1.0, 1.0, 5), np.cos(np.arange(20.0)).reshape(4, 5)
calls = [
    (esat.jit(lambda x: np.sin(x) * rate), v),
    (esat.jit(lambda x: scaled(np.cos(x))), v),
    (esat.jit(closed(number)), v),
    (esat.jit(Layer(np.full((5, 2), number))), X),
    (esat.jit(esat.value_and_grad(loss)), v, X, np.sign(np.arange(4) - 1.5)),
    (esat.jit(lambda x, k, f, g: {{"sum": x * k + f, "last": (x * g)[-1]}}), v, 3, 0.5, np.float64(0.25)),
]
results = [f(*given) for f, *given in calls]
results += [f(*given) for f, *given in calls]
jitted = [getattr(f, "__func__", f) for f, *_ in calls]
kinds = [type(one).__name__ for f in jitted for one in f.programs.values()]
loaded = sorted(sys.modules)

def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [x for one in value for x in flat(one)] if isinstance(value, (tuple, list)) else [value]

told = [f.profile.message.split(" at ")[0] for f in jitted] if "{rest}" else None
kinds_then = [type(one).__name__ for f in jitted for one in f.programs.values()]
numbers = [np.ravel(x).tolist() for x in flat(results)]
print(json.dumps([numbers, kinds, loaded, told, kinds_then]))
"""

COMPILER = ("numba", "egglog", "scipy.linalg", "esat.compilation.pipeline", "esat.mode", "esat.egraph")


def run(folder, number=2.0, rest=""):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(folder), "ESAT_EGRAPH_CACHE": "1"}
    text = PROGRAM.format(number=number, rest=rest)
    command = [sys.executable, "-W", "error::UserWarning", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    folder = with_rules(tmp_path_factory.mktemp("cache"))
    return folder, run(folder, rest="all")


def test_a_second_process_traces_and_runs_what_was_recorded(cold):
    folder, (results, kinds, _, _, _) = cold
    assert kinds == ["Executable"] * 6
    again, kinds, loaded, _, _ = run(folder)
    assert again == results
    assert kinds == ["RecordedExecutable"] * 6
    assert not {*COMPILER} & {*loaded}


def test_asked_for_more_the_program_is_compiled_under_the_function_s_name(cold):
    folder, (_, _, _, told, _) = cold
    _, kinds, _, same_told, kinds_then = run(folder, rest="all")
    assert kinds == ["RecordedExecutable"] * 6
    assert kinds_then == ["Executable"] * 6
    assert same_told == told
    assert told[4] == "value_and_grad(loss)"


def test_whatever_tracing_reads_decides_what_is_found(cold):
    """Globals, defaults and closures are those of the process that asks, not of the one that recorded."""
    folder, (before, *_) = cold
    results, kinds, *_ = run(folder, number=3.0)
    # What an object holds is an argument of the program.
    assert kinds == ["Executable"] * 3 + ["RecordedExecutable"] * 3
    for place in range(4):
        assert results[place] != before[place]
    assert results[4:8] == before[4:8]
