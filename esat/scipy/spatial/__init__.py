"""``scipy.spatial`` for arrays and Variables; see :mod:`esat.frontend.tracing.code.namespace`."""

from esat.frontend.tracing.code.namespace import make_module, names_of

__getattr__ = make_module("scipy.spatial")


def __dir__() -> list[str]:
    return names_of("scipy.spatial")
