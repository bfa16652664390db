"""Functions of NumPy arrays, compiled: ``esat.jit`` and the functions of functions.

======== =======================================================================
programs a function traced and compiled for arguments of one structure
jitted   ``esat.jit``: which program a call runs
======== =======================================================================
"""

from esat.frontend.tracing.namespace import register_tracing
from esat.functions.jitted import Jitted, jit

__all__ = ["Jitted", "jit"]

register_tracing()
