"""Programs with draws that a second process finds on disk: its own streams go on as NumPy's generators."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from caches import with_rules

from esat.codegen.ground import draws

pytestmark = pytest.mark.skipif(
    not draws.DrawLine("normal").is_available, reason="NumPy hides its functions of bit generators"
)
PROGRAM = """
import json, sys
import numpy as np
import esat

state = esat.random.shared_state(np.random.Generator(np.random.{kind}({seed})))
weights = esat.shared(np.linspace(0.0, 1.0, 3), name="weights")
x = esat.vector("x")
after, lengths = esat.random.exponential(state, x.sum() + 2.0, size=(2,))
after, noise = esat.random.normal(after, size=(3,))
after, counts = esat.random.integers(after, -5, 1 << 40, size=(4,))
walk = esat.compile(esat.Graph([x], [weights + noise, counts, lengths], updates={{state: after}}))
kind = type(walk).__name__
results = [[np.ravel(one).tolist() for one in walk(np.zeros(2))] for _ in range(4)]
loaded = "esat.compilation.pipeline" in sys.modules
failed = ""
try:
    walk(np.full(2, -5.0))
except esat.EsatError as error:
    failed = type(error).__name__
results.append([np.ravel(one).tolist() for one in walk(np.zeros(2))])
print(json.dumps([results, failed, loaded, kind]))
"""


def run(folder, seed, kind="PCG64"):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(folder), "ESAT_EGRAPH_CACHE": "1"}
    code = PROGRAM.format(seed=seed, kind=kind)
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(found, seed, kind):
    """The message of the error, whether the compiler was loaded, and what the function was."""
    results, *rest = found
    generator = np.random.Generator(getattr(np.random, kind)(seed))
    assert len(results) == 5
    for place, counts, lengths in results:
        np.testing.assert_array_equal(lengths, generator.exponential(2.0, size=2))
        np.testing.assert_array_equal(place, np.linspace(0.0, 1.0, 3) + generator.normal(size=3))
        np.testing.assert_array_equal(counts, generator.integers(-5, 1 << 40, size=4))
    return rest


def test_a_second_process_draws_from_its_own_stream(tmp_path):
    assert check(run(with_rules(tmp_path), 3), 3, "PCG64") == ["ParameterError", True, "Executable"]
    for seed, kind in ((3, "PCG64"), (8, "PCG64"), (5, "Philox")):
        found = check(run(tmp_path, seed, kind), seed, kind)
        assert found == ["ParameterError", False, "RecordedExecutable"]
