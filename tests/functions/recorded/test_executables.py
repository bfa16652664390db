"""Programs that a second process finds on disk: same results and errors as the compiler's, without it."""

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

def text(error):
    return f"{type(error).__name__}: {error}"

x, y, z = (esat.vector(name) for name in "xyz")
small = esat.compile(esat.Graph([x, y, z], [esat.tanh(x) * y + esat.exp(-z * z / 2)]))
X, t, w = esat.matrix("X"), esat.vector("t"), esat.vector("w")
loss = esat.log1p(esat.exp(-t * (X @ w))).mean() + 0.5 * (w * w).sum()
logistic = esat.compile(esat.Graph([X, t, w], [loss, esat.grad(loss, w)]))
weights = esat.shared(np.linspace(-1.0, 1.0, 12).reshape(4, 3), name="W")
A, B = esat.matrix("A"), esat.matrix("B")
cost = ((esat.tanh(A @ weights) - B) ** 2).sum()
update = {weights: weights - 0.125 * esat.grad(cost, weights)}
step = esat.compile(esat.Graph([A, B], [cost], updates=update), shapes={A: (5, 4), B: (5, 3)})

v = np.linspace(-1.0, 1.0, 9)
data = np.cos(np.arange(20.0)).reshape(5, 4), np.sin(np.arange(15.0)).reshape(5, 3)
results = [small(v, v + 1, v - 1), *logistic(np.outer(v, v[:3]), np.sign(v + 0.01), v[:3])]
results += [step(*data), step(*data), weights.get_value()]
given = np.empty(9)
assert small(v, v, v, out=given) is given
results.append(given)
results.append(small(np.repeat(v, 2)[::2], v, v[::-1]))
loaded = sorted(sys.modules)
entered = np.empty(9)
assert small.c_entry(v, v, v)([v, v, v], [entered]) == 0
results.append(entered)
functions = [small, logistic, step]
kinds = [type(one).__name__ for one in functions]
assert all(isinstance(one, esat.Executable) for one in functions)
if "{rest}":
    errors = []
    for arguments in ((v, v), (v, v, v[:4]), (v, v, v.reshape(3, 3)), (v, v, "text")):
        try:
            small(*arguments)
        except esat.EsatError as error:
            errors.append(text(error))
    try:
        step.c_entry(*data)
    except esat.EsatError as error:
        errors.append(text(error))
    assert small.c_entry(v[:4], v[:4], v[:4])([v[:4]] * 3, [entered[:4]]) == 0
    results.append(entered[:4])
    results.append(small(v[::2], v[::2], v[::2]))
    results.append(small(list(v), v.astype("float32"), z=v))
    told = [small.report.nodes_before, small.report.strategy, small.source(), str(step.updated)]
    told += [repr(one.graph) for one in functions]
else:
    errors = told = None
print(json.dumps([[np.ravel(one).tolist() for one in results], loaded, kinds, errors, told]))
"""

COMPILER = (
    "numba",
    "egglog",
    "scipy.linalg",
    "esat.compilation.pipeline",
    "esat.mode",
    "esat.egraph",
    "esat.codegen.cache",
)


def run(folder, rest="", **settings):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(folder), "ESAT_EGRAPH_CACHE": "1", **settings}
    command = [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM.replace("{rest}", rest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def cold(tmp_path_factory):
    folder = with_rules(tmp_path_factory.mktemp("cache"))
    return folder, run(folder, "all")


def test_a_second_process_runs_what_was_recorded_without_the_compiler(cold):
    folder, (results, _, kinds, _, _) = cold
    assert kinds == ["Executable"] * 3
    again, loaded, kinds, _, _ = run(folder)
    assert again == results[: len(again)]
    assert kinds == ["RecordedExecutable"] * 3
    assert not {*COMPILER} & {*loaded}


def test_asked_for_more_it_is_what_the_compiler_makes(cold):
    folder, (results, _, _, errors, told) = cold
    again, _, _, same_errors, same_told = run(folder, "all")
    assert again == results
    assert len(errors) == 5
    assert same_errors == errors
    assert same_told == told


def test_another_setting_finds_nothing(cold):
    folder, (results, _, _, _, _) = cold
    again, _, kinds, _, _ = run(folder, NUMBA_LOOP_VECTORIZE="0")
    assert kinds == ["Executable"] * 3
    assert all(
        value == pytest.approx(wanted, rel=1e-12)
        for one, other in zip(again, results, strict=False)
        for value, wanted in zip(one, other, strict=True)
    )


LARGE = """
import json, sys
import numpy as np
import esat

x, y, m = esat.vector("x"), esat.vector("y"), esat.matrix("m")
programs = {
    "elementwise": ([x, y], [esat.tanh(x) * y + esat.exp(-y * y / 2)]),
    "reduction": ([x], [esat.sum(esat.exp(x) * esat.sin(x)), esat.max(x)]),
    "rows": ([m], [esat.softmax(m, axis=1), esat.logsumexp(m, axis=0)]),
    "past the caches": ([x, y], [x * 2.0 + y]),
}
v, w = np.sin(np.arange(100_000.0)), np.cos(np.arange(100_000.0))
long = np.linspace(0.0, 1.0, 3_000_000)
rows = v.reshape(1000, 100)
arguments = {"elementwise": (v, w), "reduction": (v,), "rows": (rows,), "past the caches": (long, long)}
found = {}
for name, (inputs, outputs) in programs.items():
    shapes = {one: value.shape for one, value in zip(inputs, arguments[name])}
    function = esat.compile(esat.Graph(inputs, outputs), shapes=shapes)
    results = function(*arguments[name])
    second = function(*arguments[name])
    assert all(np.array_equal(one, other) for one, other in zip(results, second))
    kind = type(function).__name__
    found[name] = (kind, "numba" in sys.modules, [float(np.sum(one)).hex() for one in results])
print(json.dumps(found))
"""


def test_programs_that_several_threads_could_share_are_recorded(tmp_path):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path), "ESAT_EGRAPH_CACHE": "1"}
    command = [sys.executable, "-c", LARGE]
    first, second = (
        json.loads(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
        for _ in range(2)
    )
    for name, (kind, compiler, sums) in second.items():
        assert (name, kind, compiler) == (name, "RecordedExecutable", False)
        assert sums == first[name][2]
