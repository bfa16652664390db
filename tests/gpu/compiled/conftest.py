"""Tests of compiled device code, which need numba-cuda but no device: `make gpu-build-check` runs them."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("numba_cuda") else ["test_*.py"]
