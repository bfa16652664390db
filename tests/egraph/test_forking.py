"""Forked processes: egglog's threads are not there, and nothing may wait for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys, threading
import numpy as np
import esat

x = esat.vector("x")

def compiled(number):
    f = esat.compile(esat.Graph([x], [esat.log(1 + x) * number + x * 3.5]))
    values = np.arange(1.0, 5.0)
    return np.allclose(f(values), np.log1p(values) * number + values * 3.5)

assert compiled(2.0)
for ending in ("exit at once", "exit", "other thread"):
    if ending == "other thread":
        # Its engines belong to a thread that the child does not have.
        ready, done = threading.Event(), threading.Event()
        threading.Thread(target=lambda: (compiled(2.5), ready.set(), done.wait()), daemon=True).start()
        ready.wait()
    child = os.fork()
    if child == 0:
        right = compiled(3.0) and compiled(4.0)
        if ending == "exit at once":
            os._exit(0 if right else 1)
        sys.exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, ending
    assert compiled(5.0)
"""


def test_a_child_compiles_and_ends():
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(command, cwd=root, timeout=120, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


DURING = """
import os, sys, threading
import esat

x = esat.vector("x")
stop = threading.Event()

def compiling(number):
    while not stop.is_set():
        number += 2
        esat.compile(esat.Graph([x], esat.exp(x) * float(number) + x), "fast_run")

threads = [threading.Thread(target=compiling, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for _ in range(3):
    child = os.fork()
    if child == 0:
        sys.exit(0)  # which frees what there is
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
"""


def test_a_child_of_a_compiling_process_ends_silently(tmp_path):
    """E-graphs that other threads make while the fork waits for them belong to threads the child lacks."""
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", DURING]
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        command, cwd=root, timeout=120, capture_output=True, text=True, env=environment, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "unsendable" not in ended.stderr
