"""Groups of nodes to machine code.

==================  ==========================================================================
``loop_ir``         what a kernel does, as data; ``verify`` checks it
``lowering``        groups to the loop IR
``overwriting``     kernels in place
``collapse``        fewer loops, for contiguous arrays
``narrow``          kernels for one size of a short innermost axis
``partition``       loops that several threads can share
``moments``         a mean and the deviations from it, in one pass
``effort``          how long these take
``streaming``       results written past the caches
``printing``        the loop IR to numba source
``scalar``          functions with NumPy's semantics that op templates call
``processor``       what the processor can do, and does by itself
``interleaving``    loops in which several vectors take turns
``vector_math``     elementary functions as branch-free LLVM IR
``compile``         source to machine code
``native_call``     whole calls of small programs as one native function
``small_products``  products of matrices in them
``rows_product``    two products with the rows of a matrix, and what lies between, in one pass
``row_tiles``       short rows of it, some vectors of columns after others
``product_tiles``   products with small matrices in tiles of registers
``row_blocks``      several layers over the rows of matrices, block after block of rows
``parallel``        kernels for several threads
``threads``         the pool that runs them
``cache``           compiled kernels in memory and on disk
``helpers``         processes that compile the kernels of one program together
==================  ==========================================================================
"""

from esat.codegen.compile import compile_kernel, compile_narrow
from esat.codegen.loop_ir import Kernel
from esat.codegen.lowering.lower import can_fuse, lower, supported
from esat.codegen.narrow import Narrow, computes_functions, find_narrow
from esat.codegen.overwriting import overwritable, overwrite
from esat.codegen.printing.layout import Layout, layout_of
from esat.codegen.printing.printer import print_kernel
from esat.codegen.verify import verify

__all__ = [
    "Kernel",
    "Layout",
    "Narrow",
    "can_fuse",
    "compile_kernel",
    "compile_narrow",
    "computes_functions",
    "find_narrow",
    "layout_of",
    "lower",
    "overwritable",
    "overwrite",
    "print_kernel",
    "supported",
    "verify",
]
