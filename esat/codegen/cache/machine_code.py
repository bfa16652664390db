"""The machine code of one kernel, in memory of its own that goes with it.

Numba puts all it compiles into one engine of LLVM, which frees nothing while the process lives. So kernels
are taken from numba as object code, and each is loaded into an engine of its own: dropping the last function
that holds the engine frees code and tables.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from llvmlite import binding
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from esat.codegen.loop_compiler.contexts import RUN_TIME
from esat.codegen.vector_math import shared_code
from esat.codegen.vector_math.passes import drop
from esat.errors import CompileError


class MachineCode:
    """Machine code that is loaded, and freed with this object.

    Parameters
    ----------
    object_code
        What LLVM made of a module.
    symbol
        The function of it that is called from outside.
    imported
        Names that it finds elsewhere: in shared code, numba's run-time library, or the process.
    bitcode
        LLVM's code of the module, for those who look into it; empty where that was not kept.

    Raises
    ------
    CompileError
        Where a name cannot be found.
    """

    def __init__(
        self, object_code: bytes, symbol: str, imported: tuple[str, ...], bitcode: bytes = b""
    ) -> None:
        self.object_code, self.symbol, self.imported, self.bitcode = object_code, symbol, imported, bitcode
        _provide(imported)
        self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine())
        self._engine.add_object_file(binding.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()
        self.address = int(self._engine.get_function_address(symbol))

    @classmethod
    def of(cls, library: Any, symbol: str) -> MachineCode:
        """That of a finished library of numba's that is in no engine."""
        drop(library)  # what is declared and not called would be looked for in vain
        module = library._final_module
        declared = [
            one.name
            for one in (*module.functions, *module.global_variables)
            if one.is_declaration and not one.name.startswith("llvm.")
        ]
        object_code = bytes(library._codegen._tm.emit_object(module))
        return cls(object_code, symbol, tuple(declared), bytes(module.as_bitcode()))

    @property
    def shared(self) -> tuple[str, ...]:
        """Names of the shared code that it calls."""
        return tuple(name for name in self.imported if shared_code.is_there(name))

    @property
    def llvm(self) -> str:
        """LLVM's code as text."""
        return str(self._module())

    @property
    def assembly(self) -> str:
        """The machine code as assembly text, with the shared code that it calls."""
        codegen: Any = cpu_target.target_context.codegen()
        text = str(codegen._tm.emit_assembly(self._module()))
        return text + shared_code.assembly_of(self.shared)

    def _module(self) -> Any:
        if not self.bitcode:
            raise CompileError(f"the LLVM code of {self.symbol} was not kept")
        return binding.parse_bitcode(self.bitcode)


def _provide(names: Iterable[str]) -> None:
    """Make names known to all engines: of themselves they see those of the process only."""
    for name in names:
        if binding.address_of_symbol(name) is None:
            address = _address_in_numba(name)
            if not address:
                raise CompileError(f"the machine code of a kernel calls {name}, which is nowhere")
            binding.add_symbol(name, address)


def _address_in_numba(name: str) -> int:
    """The address of a function of shared code or of numba's run-time library; zero if it is neither."""
    if name.startswith(RUN_TIME):
        rtsys.initialize(cpu_target.target_context)
        # Parts of it are compiled C, which numba makes known to all engines when it initializes the rest.
        known = binding.address_of_symbol(name)
        return int(known or rtsys.library.get_pointer_to_function(name))
    return shared_code.address_of(name) if shared_code.is_there(name) else 0


@functools.cache
def _features() -> tuple[str, str]:
    codegen: Any = cpu_target.target_context.codegen()
    return codegen._get_host_cpu_name(), codegen._tm_features


def _target_machine() -> Any:
    """A machine of its own for each engine, which frees it; it compiles nothing."""
    processor, features = _features()
    target = binding.Target.from_default_triple()
    return target.create_target_machine(
        cpu=processor, features=features, opt=0, reloc="static", codemodel="jitdefault", jit=True
    )
