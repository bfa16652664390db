"""Running programs: input checks, buffers, the generated driver and the Executable around it."""

from esat.graph.calls.parameters import check_methods
from esat.runtime.executable import Executable

__all__ = ["Executable"]

# Calls have checks of their own, of what is given for each input.
check_methods(Executable, but=("__call__", "run"))
