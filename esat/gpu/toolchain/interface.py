"""What a toolchain is, and what it makes of a kernel."""

from __future__ import annotations

from typing import Protocol

from esat.base.records import record
from esat.gpu.kernel_text.launches import Launch

LEAST_CAPABILITY = (8, 0)
"""The oldest devices that kernels are compiled for."""


@record(frozen=True)
class Cubin:
    """Machine code of one kernel for one kind of device, and what a thread of it takes, or None if not known.

    Attributes
    ----------
    code
        An ELF file, as drivers load it.
    entry
        Name of the kernel in it.
    registers
        Of 32 bits, a thread.
    spilled
        Bytes of registers that a thread stores for want of more, and loads again.
    local
        Bytes of memory of its own a thread has.
    shared
        Bytes that the threads of a block share, with those that the system keeps for itself.
    """

    code: bytes
    entry: str
    registers: int | None = None
    spilled: int | None = None
    local: int | None = None
    shared: int | None = None


class Toolchain(Protocol):
    """Compiles printed kernels."""

    @property
    def version(self) -> str:
        """Its name and the versions of all that has a part in the code: cached code is of the same."""

    def compile(self, launch: Launch, capability: tuple[int, int], *, contract: bool = True) -> Cubin:
        """The machine code of a kernel.

        Parameters
        ----------
        capability
            Of the device: (9, 0) for an H100.
        contract
            Whether a product and a sum may be rounded once instead of twice.

        Raises
        ------
        CompileError
            A text that cannot be compiled, or a device older than :data:`LEAST_CAPABILITY`.
        """
