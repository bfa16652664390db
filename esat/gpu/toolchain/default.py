"""Which toolchain compiles kernels."""

from __future__ import annotations

from esat.errors import ModeError
from esat.gpu.toolchain.interface import Toolchain

ADVICE = "install what CUDA needs by: pip install 'esat[gpu]'"


def default_toolchain() -> Toolchain:
    """The toolchain of numba-cuda.

    Raises
    ------
    ModeError
        Where it is not installed; the message says what is missing, and how to install it.
    """
    try:
        from esat.gpu.toolchain.numba_cuda import NumbaCuda

        toolchain = NumbaCuda()
        assert toolchain.version, "asking for it loads all that compiles"
    except Exception as error:  # of imports, of loading libraries, and what packages make of these
        raise ModeError(f'device="cuda": kernels cannot be compiled ({error}); {ADVICE}') from error
    return toolchain
