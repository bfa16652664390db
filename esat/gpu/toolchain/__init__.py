"""Printed kernels compiled for devices, on machines that need none.

``interface`` says what a toolchain is and what it makes. ``numba_cuda`` compiles texts as they are to PTX by
the package of that name; ``linking`` takes that to machine code, and ``cache`` keeps it on disk.
"""

from esat.gpu.toolchain.default import default_toolchain
from esat.gpu.toolchain.interface import Cubin, Toolchain

__all__ = ["Cubin", "Toolchain", "default_toolchain"]
