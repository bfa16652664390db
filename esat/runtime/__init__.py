"""Running programs: input checks, buffers, the generated driver and the Executable around it."""

from esat.runtime.executable import Executable

__all__ = ["Executable"]
