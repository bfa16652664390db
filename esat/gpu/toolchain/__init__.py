"""Printed kernels compiled for devices, on machines that need none.

``interface`` says what a toolchain is and what it makes; ``numba_cuda`` compiles texts as they are by the
package of that name; ``linking`` goes from PTX to machine code; ``cache`` keeps that on disk.
"""

from esat.gpu.toolchain.interface import Cubin, Toolchain, default_toolchain

__all__ = ["Cubin", "Toolchain", "default_toolchain"]
