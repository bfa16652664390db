"""SciPy's modules of functions for arrays, traced arrays and Variables: ``linalg`` and ``special``."""

from esat.frontend.tracing.code.namespace import make_module

__getattr__, __dir__ = make_module("scipy")
