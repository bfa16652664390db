"""Machine code of long formulas and other functions, which the kernels of a process share.

LLVM takes a tenth of a millisecond to make machine code of one operation of a formula on two vectors: 5 ms
for an exponential, 20 for a power. Where a loop has many functions, whose values exceed the registers
anyhow, LLVM computes one vector after the other to save some, and processors wait. So there most functions
are called, and only within them vectors are interleaved. They are compiled once in a process; a kernel on
disk has with it what it calls.

Numba's lock is to be held where code is made or loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock

from esat.base.records import record
from esat.codegen.ground.llvm_machine import codegen_of, target_machine
from esat.codegen.ground.machine_text import engine_of
from esat.codegen.ground.target import Target
from esat.codegen.vector_math import widened
from esat.codegen.vector_math.builder import Float, Format
from esat.codegen.vector_math.formulas import Formula, FormulaLibrary
from esat.codegen.vector_math.passes import inline, promote

_SHARED = ".shared"
_LONG = 30
"""Operations from which a formula is called in loops of many functions."""
_VERY_LONG = 80
"""Operations from which it is called in all loops. There are few functions in the others, for which LLVM has
registers enough."""


@record(frozen=True, slots=True)
class SharedCode:
    """Machine code of one function, and LLVM's of it, for those who look into it."""

    object_code: bytes
    bitcode: bytes


class _Loaded:
    """SharedCode that is loaded into an engine of its own, when it is first called."""

    def __init__(self, name: str, code: SharedCode) -> None:
        self.name, self.code = name, code

    @functools.cached_property
    def address(self) -> int:
        """Of the function."""
        # Whoever loads it last would free what others call.
        with global_compiler_lock:
            self._engine = engine_of(self.code.object_code)
            return int(self._engine.get_function_address(self.name))


_shared: dict[str, _Loaded] = {}
"""By the names that kernels call. It stays, as do kernels that call it."""


def is_shared(formula: Formula, is_one_of_many: bool, target: Target) -> bool:
    """Whether kernels call the machine code of a formula, instead of having it in them.

    Functions with a branch are never inlined. Where there are many registers, others are.
    """
    if formula.is_guarded:
        return True
    least = _LONG if is_one_of_many else _VERY_LONG
    return target.calls_formulas and formula.length(target) >= least


@functools.cache
def caller(formula: Formula, target: Target) -> Any:
    """Numba's library of a function in a formula's place, to be inlined, which calls the shared code."""
    codegen, format_ = codegen_of(target), Format(formula.bits, target, formula.lanes)
    name = _name(formula, target)
    library = FormulaLibrary(codegen, name)
    module = codegen._create_empty_module(name)
    shared = widened.declare(module, name, format_, formula.arity)

    def call(*operands: Float) -> Float:
        builder = operands[0].builder
        return Float(builder, builder.call(shared, [one.value for one in operands]), format_)

    function = widened.define(module, formula.symbol, call, format_, formula.arity)
    function.attributes.add("alwaysinline")
    library.add_ir_module(module)
    return library


def share(formula: Formula, target: Target) -> None:
    """Make the machine code of a formula, unless it is there."""
    name = _name(formula, target)
    if name in _shared:
        return
    module = formula.library(target)._get_module_for_linking().clone()
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "internal"
    function = module.get_function(formula.symbol)
    function.name, function.linkage = name, "external"
    library = _LIBRARY(codegen_of(target), name)
    library.add_llvm_module(module)
    _finish(name, library, target)


def share_function(name: str, target: Target, write: Callable[[Any], None]) -> None:
    """Make the machine code of a function, unless it is there.

    Parameters
    ----------
    name
        Its name, which :func:`shared_name` made.
    target
        What it is for.
    write
        Puts the function into a module of llvmlite's.
    """
    if name not in _shared:
        module = codegen_of(target)._create_empty_module(name)
        write(module)
        library = _LIBRARY(codegen_of(target), name)
        library.add_ir_module(module)
        _finish(name, library, target)


def shared_name(name: str, target: Target) -> str:
    """What a shared function is called that stands for another one."""
    return f"{name}{_SHARED}.{target.digest}"


def _finish(name: str, library: Any, target: Target) -> None:
    library.finalize()
    module = library._final_module
    object_code = bytes(target_machine(target).emit_object(module))
    _shared[name] = _Loaded(name, SharedCode(object_code, bytes(module.as_bitcode())))


def is_there(name: str) -> bool:
    """Whether a name is that of shared code which is there."""
    return name in _shared


def address_of(name: str) -> int:
    """The address of shared code that is there."""
    return _shared[name].address


def codes(names: Iterable[str]) -> dict[str, SharedCode]:
    """What is kept of shared code that is there, by name, for :func:`load`."""
    return {name: _shared[name].code for name in names}


def assembly_of(names: Iterable[str], target: Target) -> str:
    """Shared code that is there as assembly text."""
    modules = [binding.parse_bitcode(_shared[name].code.bitcode) for name in names]
    return "".join(target_machine(target).emit_assembly(module) for module in modules)


def load(codes: Mapping[str, SharedCode]) -> None:
    """Keep what :func:`codes` gave in another process; what is there already stays."""
    for name, code in codes.items():
        _shared.setdefault(name, _Loaded(name, code))


def _name(formula: Formula, target: Target) -> str:
    return shared_name(formula.symbol, target)


class _Library(JITCodeLibrary):
    """Numba's library of one function, which LLVM treats as it does formulas within kernels."""

    def _optimize_functions(self, ll_module: binding.ModuleRef) -> None:
        codegen: Any = self.codegen
        ll_module.data_layout = codegen._data_layout

    def _optimize_final_module(self) -> None:
        promote(self)
        inline(self)

    def _finalize_final_module(self) -> None:
        self._finalized = True


_LIBRARY: Any = _Library  # whose constructor numba does not annotate
