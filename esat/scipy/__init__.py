"""SciPy's modules of functions for arrays, traced arrays and Variables: ``linalg`` and ``special``."""

from esat.frontend.tracing.code.namespace import make_module, names_of

__getattr__ = make_module("scipy")


def __dir__() -> list[str]:
    return names_of("scipy")
