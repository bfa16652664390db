"""Ctrl-C while the first compilation of a process imports the compiler."""

import os
import subprocess
import sys

from caches import with_rules

PROGRAM = """
import signal, sys
import esat

class Interrupting:
    armed = True

    def find_spec(self, name, path=None, target=None):
        if self.armed and name == "numba.core.ir_utils":
            self.armed = False
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
x = esat.vector("x")
graph = esat.Graph([x], esat.exp(x) * 0)
try:
    esat.compile(graph)
except KeyboardInterrupt:
    print(esat.compile(graph)([1.0, 2.0]).tolist())
"""


def test_the_next_compilation_works(tmp_path):
    """Modules of numba import each other: those that are there in part would stay so."""
    environment = {**os.environ, "ESAT_CACHE_DIR": str(with_rules(tmp_path)), "ESAT_PROGRESS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.stdout.strip(), done.stderr) == ("[0.0, 0.0]", "")
