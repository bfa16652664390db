"""Groups of nodes to machine code.

=================  =========================================================================
``ground``         the target; LLVM, BLAS and CPython as they are
``kernel``         what a kernel does, as data, and which form of code suits its loops
``lowering``       groups to the loop IR; ``verify`` checks it
``printing``       the loop IR to numba source
``llvm``           prefetches, non-temporal stores, interleaving, and NumPy's scalar functions
``vector_math``    elementary functions as branch-free LLVM IR
``loop_compiler``  numba's compiler, without what printed loops do not need
``cache``          compiled kernels in memory and on disk
``compile``        source to machine code, for one thread and for several; ``effort``, its time
``threads``        the pool that runs them
``helpers``        processes that compile the kernels of one program together
``matmul``         products of matrices, and BLAS's routines
``rowwise``        what is computed row by row between products with matrices
``sparse``         products with sparse matrices, and sums over them
``routines``       which of these computes an op
``native_call``    whole calls of small programs as one native function
=================  =========================================================================

Names that are handed on here are loaded when they are first used: what runs programs that were found on disk
needs no compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esat.codegen.compile import compile_kernel, compile_narrow
    from esat.codegen.kernel.loop_ir import Kernel
    from esat.codegen.kernel.narrow import Narrow, computes_functions, find_narrow
    from esat.codegen.kernel.overwriting import overwritable, overwrite, without_copies
    from esat.codegen.lowering.lower import can_fuse, lower, supported
    from esat.codegen.lowering.verify_kernel import verify
    from esat.codegen.printing.input_layout import Layout, layout_of
    from esat.codegen.printing.print_narrow import print_narrow
    from esat.codegen.printing.printer import print_kernel
    from esat.phases.fusing.fusion import Limits

    limits: Limits
    """How large kernels may become; with ``supported`` and ``can_fuse``, this module's rules of fusion."""

__all__ = [
    "Kernel", "Layout", "Narrow", "can_fuse", "compile_kernel", "compile_narrow", "computes_functions",
    "find_narrow", "layout_of", "limits", "lower", "overwritable", "overwrite", "print_kernel",
    "print_narrow", "supported", "verify", "without_copies",
]  # fmt: skip

_LATER = {
    "compile": ("compile_kernel", "compile_narrow"),
    "kernel.loop_ir": ("Kernel",),
    "kernel.narrow": ("Narrow", "computes_functions", "find_narrow"),
    "kernel.overwriting": ("overwritable", "overwrite", "without_copies"),
    "lowering.lower": ("can_fuse", "lower", "supported"),
    "lowering.verify_kernel": ("verify",),
    "printing.input_layout": ("Layout", "layout_of"),
    "printing.print_narrow": ("print_narrow",),
    "printing.printer": ("print_kernel",),
}


def __getattr__(name: str) -> Any:
    if name == "limits":
        from esat.phases.fusing.fusion import Limits

        found: Any = Limits()
    else:
        home = next((module for module, names in _LATER.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module 'esat.codegen' has no attribute {name!r}")
        found = getattr(importlib.import_module(f"esat.codegen.{home}"), name)
    globals()[name] = found
    return found
