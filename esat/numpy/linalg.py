"""``numpy.linalg`` for arrays and Variables; see :mod:`esat.frontend.tracing.code.namespace`."""

from esat.frontend.tracing.code.namespace import make_module

__getattr__, __dir__ = make_module("numpy.linalg")
