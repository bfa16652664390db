"""The loop IR as text of kernels that numba-cuda compiles, one function a launch.

Kernels take pointers and ``int64`` numbers, never arrays: that is the calling convention of CUDA C, and
anyone can launch them.

===============================  ====================================================================
``source``                       lines of a function
``nests``                        what is parallel in a kernel, and so of which family it is
``body``                         elements: their places, definitions, loads and stores of vectors
``gathering``                    accumulators, within a thread and between threads
``flat``, ``tiles``              families that gather nothing; the second reads arrays across memory
``full``, ``rows``, ``columns``  families that gather
``splitting``, ``rows_split``    what several blocks gather together
``program``                      all launches of a kernel
``variants``                     which text fits given arrays
===============================  ====================================================================
"""

from esat.codegen.kernel.loop_ir import Kernel
from esat.gpu.kernel_text.launches import LaunchVariant
from esat.gpu.printing.program import print_launches
from esat.gpu.printing.source import UnprintableError
from esat.gpu.printing.variants import sizes_in, variant_for

__all__ = ["UnprintableError", "is_printable", "print_launches", "sizes_in", "variant_for"]


def is_printable(kernel: Kernel) -> bool:
    """Whether a kernel has a form for a device."""
    try:
        print_launches(kernel, LaunchVariant())
    except UnprintableError:
        return False
    return True
