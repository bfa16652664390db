"""PyTensor graphs, compiled by esat, beside PyTensor's own results."""

import importlib.util

import pytest

if importlib.util.find_spec("pytensor") is None:
    pytest.skip("PyTensor, which needs Python 3.12, is not installed", allow_module_level=True)
