"""Printed kernels compiled for devices, on machines that need none.

``interface`` says what a toolchain is and what it makes. ``numba_cuda`` compiles texts as they are by the
package of that name, which its makers only maintain; ``nvrtc`` does without it: ``cpp`` writes texts as CUDA
C++ for NVIDIA's own compiler. ``linking`` takes both from PTX to machine code; ``cache`` keeps that on disk.
"""

from esat.gpu.toolchain.interface import Cubin, Toolchain, default_toolchain

__all__ = ["Cubin", "Toolchain", "default_toolchain"]
