"""Functions of NumPy arrays, compiled: ``esat.jit`` and the functions of functions.

======== =======================================================================
programs a function traced and compiled for arguments of one structure
calls    the method that a call enters, written for a function's parameters
guards   code written for the structure of arguments and results
jitted   ``esat.jit``: which program a call runs
differentiation  derivatives and batches of functions that are traced
transformations  functions of functions
traced_loops     loops whose body is traced once
saved            compiled functions as files
======== =======================================================================
"""

from esat.frontend.tracing.code.namespace import register_tracing
from esat.functions.jitted import Jitted, jit
from esat.functions.traced_loops import fori_loop, map, scan, while_loop
from esat.functions.transformations import (
    CustomGradient,
    checkpoint,
    grad,
    hessian,
    jacobian,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

__all__ = [
    "CustomGradient", "Jitted", "checkpoint", "fori_loop", "grad", "hessian", "jacobian", "jit", "jvp",
    "linearize", "map", "scan", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip

register_tracing()
