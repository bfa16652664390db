"""Settings of the whole suite."""

import os
import signal
import sys
from contextlib import ExitStack, nullcontext

# Without bytecode on disk, each of the hundreds of processes that tests start, and each of pytest's workers,
# compiles all modules itself, and rewrites all assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest  # noqa: E402
from comparisons_guard import guard_comparisons  # noqa: E402

from esat.base.collection import without_collecting, without_old_objects  # noqa: E402
from esat.codegen.ground.blas_library import one_thread  # noqa: E402

# What a test says of saturation must hold of this process, not of the one that filled the user's cache.
os.environ.setdefault("ESAT_EGRAPH_CACHE", "0")

guard_comparisons()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Find all tests, which makes a million objects that stay."""
    with without_collecting():
        return (yield)


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
