"""What a second process does without: it finds e-graphs, kernels and the compiler's own loops on disk."""

import json
import os
import subprocess
import sys

PROGRAM = """
import json, sys
import numpy as np
import esat

x, y, z = (esat.vector(name) for name in "xyz")
function = esat.compile(esat.Graph([x, y, z], [esat.tanh(x) * y + esat.exp(-z * z / 2)]))
values = np.linspace(-1.0, 1.0, 9)
assert np.allclose(function(values, values, values), np.tanh(values) * values + np.exp(-values * values / 2))
cache = sys.modules.get("esat.codegen.cache")  # which programs that are recorded whole do without
print(json.dumps([cache.misses() if cache else 0, sorted(sys.modules)]))
"""

ENGINE = (
    "egglog",
    "esat.egraph.engine",
    "esat.egraph.preparation.prepare",
    "esat.egraph.preparation.rule_compiler",
)
"""What searches for e-graphs."""

NEEDLESS = (*ENGINE, "esat.base.native.translate", "networkx", "rich", "scipy.linalg", "scipy.special")


def test_a_second_process_searches_and_compiles_nothing(tmp_path):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path), "ESAT_EGRAPH_CACHE": "1"}
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True, env=environment)
        for _ in range(2)
    ]
    (first_misses, first), (misses, modules) = (json.loads(run.stdout) for run in runs)
    assert first_misses > 0
    assert "scipy.linalg" not in first  # which numba would import
    assert "esat.egraph.engine" in first
    assert "esat.egraph.preparation.rule_compiler" in first
    assert misses == 0
    assert not {*NEEDLESS} & {*modules}


BESIDE_NUMBA = """
import sys
import numba
import numpy as np
{change}
import esat

x = esat.vector("x")
function = esat.compile(esat.Graph([x], [esat.tanh(x) + 1]))
assert np.allclose(function(np.ones(3)), np.tanh(1.0) + 1)
print("esat.compilation.pipeline" in sys.modules)
"""


def test_processes_that_imported_numba_before_have_their_own_programs(tmp_path):
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path), "ESAT_EGRAPH_CACHE": "1"}
    changed = "numba.config.LOOP_VECTORIZE = 0"
    loaded = [
        subprocess.run(
            [sys.executable, "-c", BESIDE_NUMBA.replace("{change}", change)],
            capture_output=True,
            check=True,
            env=environment,
        ).stdout.strip()
        for change in ("", "", changed, changed, "")
    ]
    assert loaded == [b"True", b"False", b"True", b"False", b"False"]
