"""``numpy`` for arrays, traced arrays and Variables; see :mod:`esat.frontend.tracing.code.namespace`."""

from esat.frontend.tracing.code.namespace import make_module, names_of

__getattr__ = make_module("numpy")


def __dir__() -> list[str]:
    return names_of("numpy")
