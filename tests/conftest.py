"""Settings of the whole suite."""

import os
import signal

import pytest
from comparisons_guard import guard_comparisons

# What a test says of saturation must hold of this process, not of the one that filled the user's cache.
os.environ.setdefault("ESAT_EGRAPH_CACHE", "0")

guard_comparisons()


@pytest.fixture
def _heeds_interrupts():
    """Python's own handler of Ctrl-C, which a shell's background jobs begin without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
