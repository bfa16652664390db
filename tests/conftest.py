"""Settings of the whole suite."""

import os
import signal
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path

# Without bytecode on disk, each of the hundreds of processes that tests start, and each of pytest's workers,
# compiles all modules itself, and rewrites all assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest  # noqa: E402
from comparisons_guard import guard_comparisons  # noqa: E402

from esat.base.collection import without_collecting, without_old_objects  # noqa: E402
from esat.codegen.ground.blas_library import one_thread  # noqa: E402
from esat.extract.kept_graphs import KeptGraphs  # noqa: E402

# What a test says of saturation must hold of this process, not of the one that filled the user's cache.
os.environ.setdefault("ESAT_EGRAPH_CACHE", "0")

guard_comparisons()


class Memory:
    """A store like those on disk, of this process."""

    def __init__(self):
        self._kept = {}

    def load(self, key, decode):
        return decode(memoryview(self._kept[key])) if key in self._kept else None

    def save(self, key, payload):
        self._kept[key] = payload


ABOUT_SEARCHES = frozenset(
    ["benchmarks", "classic", "egraph", "engine", "extract", "optimize", "recorded", "rules", "tools"]
)
"""Rooms whose tests are about saturation: there each program has an e-graph of its own."""
_GRAPHS, _VERDICTS = KeptGraphs(Memory()), Memory()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Find all tests, which makes a million objects that stay."""
    with without_collecting():
        return (yield)


@pytest.fixture(scope="module", autouse=True)
def _shared_searches(request):
    """Equal programs are saturated and judged once in a process, as a user's are that finds them on disk.

    In tests of functions, kernels and calls that is half of the time: each compiles the same loop bodies,
    or the same program in several modes.
    """
    with pytest.MonkeyPatch.context() as patch:
        if request.path.relative_to(Path(__file__).parent).parts[0] not in ABOUT_SEARCHES:
            patch.setattr("esat.optimize.saturation.kept_graphs", lambda: _GRAPHS)
            patch.setattr("esat.extract.accuracy.kept_verdicts._store", lambda: _VERDICTS)
        yield


@pytest.fixture(scope="module")
def libraries_without_threads():
    """Small matrices by the thousand, for which libraries would wake threads that wait for each other."""
    with ExitStack() as stack:
        for package in ("numpy", "scipy"):
            stack.enter_context(one_thread(package) or nullcontext())
        yield


@pytest.fixture
def only_new_objects():
    """Leave the objects of other tests to themselves: each collection would take a second for them."""
    with without_old_objects():
        yield


@pytest.fixture
def _heeds_interrupts():
    """Python's own handler of Ctrl-C, which a shell's background jobs begin without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
