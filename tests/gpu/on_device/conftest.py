"""Tests that only a real device is quick enough for, and that tell nothing new on the stand-in."""

from gpu.conftest import IS_REAL

if not IS_REAL:
    collect_ignore_glob = ["test_*.py"]
