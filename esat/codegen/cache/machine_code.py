"""The machine code of one kernel, in memory of its own that goes with it.

Numba puts all it compiles into one engine of LLVM, which frees nothing while the process lives. So kernels
are taken from numba as object code, and each is loaded into an engine of its own: dropping the last function
that holds the engine frees code and tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import binding
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from esat.codegen.ground import scipy_functions
from esat.codegen.ground.llvm_machine import target_machine
from esat.codegen.ground.machine_text import engine_of
from esat.codegen.ground.target import Target
from esat.codegen.loop_compiler.private import RUN_TIME
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
    bitcode, target
        LLVM's code of the module, and what it is for; empty where that was not kept.

    Raises
    ------
    CompileError
        Where a name cannot be found.
    """

    def __init__(
        self,
        object_code: bytes,
        symbol: str,
        imported: tuple[str, ...],
        bitcode: bytes = b"",
        target: Target | None = None,
    ) -> None:
        self.object_code, self.symbol, self.imported = object_code, symbol, imported
        self.bitcode, self._target = bitcode, target
        _provide(imported)
        self._engine = engine_of(object_code)
        self.address = int(self._engine.get_function_address(symbol))

    @classmethod
    def of(cls, library: Any, symbol: str, target: Target) -> MachineCode:
        """That of a finished library of numba's that is in no engine."""
        module, declared = finished(library)
        declared = _without_run_time(module, declared)
        object_code = bytes(target_machine(target).emit_object(module))
        return cls(object_code, symbol, declared, bytes(module.as_bitcode()), target)

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
        module = self._module()
        assert self._target is not None, "it is kept with the LLVM code"
        return assembly_of(module, self.shared, self._target)

    def _module(self) -> Any:
        if not self.bitcode:
            raise CompileError(f"the LLVM code of {self.symbol} was not kept")
        return binding.parse_bitcode(self.bitcode)


def finished(library: Any) -> tuple[Any, tuple[str, ...]]:
    """The module of a finished library of numba's, and the names that it finds elsewhere."""
    drop(library)  # what is declared and not called would be looked for in vain
    module = library._final_module
    declared = [
        one.name
        for one in (*module.functions, *module.global_variables)
        if one.is_declaration and not one.name.startswith("llvm.")
    ]
    return module, tuple(declared)


_DESTRUCTOR = f"{RUN_TIME}MemInfo_call_dtor"
_TRAP = f"""
declare void @llvm.trap()

define void @{_DESTRUCTOR}(ptr %nothing) {{
  call void @llvm.trap()
  unreachable
}}
"""


def _without_run_time(module: Any, declared: tuple[str, ...]) -> tuple[str, ...]:
    """Names that a module finds elsewhere, without numba's run-time library where it allocates nothing.

    Numba counts references to the memory of arrays, of which those that a kernel is given have none: what
    would free it is never called, but named. Loading the library takes as long as several kernels.
    """
    wanted = {one.name for one in module.functions if one.name.startswith(RUN_TIME)}
    if _DESTRUCTOR not in declared or not wanted <= {_DESTRUCTOR, f"{RUN_TIME}incref", f"{RUN_TIME}decref"}:
        return declared
    trap = binding.parse_assembly(_TRAP)
    trap.triple, trap.data_layout = module.triple, module.data_layout
    module.link_in(trap)
    module.get_function(_DESTRUCTOR).linkage = "internal"
    return tuple(name for name in declared if name != _DESTRUCTOR)


def assembly_of(module: Any, names: Iterable[str], target: Target) -> str:
    """A module as assembly text, with the shared code among the names that it finds elsewhere."""
    text = str(target_machine(target).emit_assembly(module))
    return text + shared_code.assembly_of(filter(shared_code.is_there, names), target)


def _provide(names: Iterable[str]) -> None:
    """Make names known to all engines: of themselves they see those of the process only."""
    for name in names:
        if binding.address_of_symbol(name) is None:
            address = scipy_functions.address_named(name) or _address_in_numba(name)
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
