"""The native module loads alone, and a user's egglog works before and after."""

import subprocess
import sys

import pytest

CHECKS = {
    "esat first": """
from esat.egraph.bindings import native_module
native = native_module()
assert "egglog" not in sys.modules
import egglog, egglog.bindings
assert egglog.bindings.EGraph is native.EGraph
assert native_module() is native
assert str(egglog.EGraph().extract(egglog.i64(1) + 2)) == "i64(3)"
""",
    "egglog first": """
import egglog
from esat.egraph.bindings import native_module
assert native_module().EGraph is egglog.bindings.EGraph
assert str(egglog.EGraph().extract(egglog.i64(1) + 2)) == "i64(3)"
""",
    "threads": """
import threading
from esat.egraph.bindings import native_module
found = []
threads = [threading.Thread(target=lambda: found.append(native_module())) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(found) == 8 and len(set(map(id, found))) == 1
import egglog.bindings
assert egglog.bindings.EGraph is found[0].EGraph
""",
}


@pytest.mark.parametrize("name", CHECKS)
def test_import_order(name):
    finished = subprocess.run(
        [sys.executable, "-c", "import sys\n" + CHECKS[name]], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
