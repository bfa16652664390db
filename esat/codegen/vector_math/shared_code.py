"""Machine code of long formulas and other functions, which the kernels of a process share.

LLVM takes a tenth of a millisecond to make machine code of one operation of a formula on two vectors: 5 ms
for an exponential, 20 for a power. Where a loop has many functions, whose values exceed the registers
anyhow, LLVM computes one vector after the other to save some, and processors wait. So there most functions
are called, and only within them vectors take turns. They are compiled once in a process; a kernel on disk
has with it what it calls. On a Zen 3 server, kernels of ten ops are compiled in three quarters of the time.
They run for 0.64 to 0.89 of that of loops in which two vectors took turns and most functions were inlined.

Numba's lock is to be held where code is made or loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

from esat.codegen.processor import vector_bytes
from esat.codegen.vector_math import variants
from esat.codegen.vector_math.builder import Float, Format
from esat.codegen.vector_math.formulas import Formula, FormulaLibrary
from esat.codegen.vector_math.passes import inline
from esat.records import record

Code: TypeAlias = Any
"""What numba keeps of a library: its name, how it is kept, and the machine code."""

_SHARED = ".shared"
_VECTOR_BYTES = 32
_LONG = 30
"""Operations from which a formula is called in loops of many functions."""
_VERY_LONG = 80
"""Operations from which it is called in all loops. There are few functions in the others, for which LLVM has
registers enough: in calls, softplus takes 1.1 of the time, erf 1.07, the logarithm of gamma 0.8."""


@record(frozen=True, slots=True)
class _Shared:
    """Machine code that is there: the library that has it, and what is kept of it on disk."""

    library: Any
    code: Code


_shared: dict[str, _Shared] = {}
"""By the names that kernels call. It stays, as do kernels that call it."""


def is_shared(formula: Formula, is_one_of_many: bool) -> bool:
    """Whether kernels call the machine code of a formula, instead of having it in them.

    Functions with a branch are never inlined. Where vectors have 64 bytes, others are: there are as many more
    registers, and on an Emerald Rapids server float32 Black-Scholes takes 1.2 of the time with calls.
    """
    if formula.is_guarded:
        return True
    return vector_bytes() == _VECTOR_BYTES and formula.length >= (_LONG if is_one_of_many else _VERY_LONG)


@functools.cache
def caller(formula: Formula) -> Any:
    """Numba's library of a function in a formula's place, to be inlined, which calls the shared code."""
    context, format_ = cpu_target.target_context, Format(formula.bits, formula.lanes)
    library = FormulaLibrary(context.codegen(), _name(formula))
    module = context.create_module(_name(formula))
    shared = variants.declare(module, _name(formula), format_, formula.arity)

    def call(*operands: Float) -> Float:
        builder = operands[0].builder
        return Float(builder, builder.call(shared, [one.value for one in operands]), format_)

    function = variants.define(module, formula.symbol, call, format_, formula.arity)
    function.attributes.add("alwaysinline")
    library.add_ir_module(module)
    return library


def share(formula: Formula) -> None:
    """Make the machine code of a formula, unless it is there."""
    name = _name(formula)
    if name in _shared:
        return
    module = formula.library._get_module_for_linking().clone()
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "internal"
    function = module.get_function(formula.symbol)
    function.name, function.linkage = name, "external"
    library = _new_library(name)
    library.add_llvm_module(module)
    _finish(name, library)


def share_function(name: str, write: Callable[[Any], None]) -> None:
    """Make the machine code of a function, unless it is there.

    Parameters
    ----------
    name
        Its name, which :func:`shared_name` made.
    write
        Puts the function into a module of llvmlite's.
    """
    if name not in _shared:
        module = cpu_target.target_context.create_module(name)
        write(module)
        library = _new_library(name)
        library.add_ir_module(module)
        _finish(name, library)


def shared_name(name: str) -> str:
    """What a shared function is called that stands for another one."""
    return name + _SHARED


def _new_library(name: str) -> Any:
    library = _LIBRARY(cpu_target.target_context.codegen(), name)
    library.enable_object_caching()
    return library


def _finish(name: str, library: Any) -> None:
    library.finalize()
    _shared[name] = _Shared(library, library.serialize_using_object_code())


def is_there(name: str) -> bool:
    """Whether a name is that of shared code which is there."""
    return name in _shared


def address_of(name: str) -> int:
    """The address of shared code that is there."""
    return int(_shared[name].library.get_pointer_to_function(name))


def codes(names: Iterable[str]) -> dict[str, Code]:
    """What is kept of shared code that is there, by name, for :func:`load`."""
    return {name: _shared[name].code for name in names}


def assembly_of(names: Iterable[str]) -> str:
    """Shared code that is there as assembly text."""
    codegen: Any = cpu_target.target_context.codegen()
    modules = [_shared[name].library._get_module_for_linking() for name in names]
    return "".join(codegen._tm.emit_assembly(module) for module in modules)


def load(codes: Mapping[str, Code]) -> None:
    """Load what :func:`codes` gave in another process; what is there already stays."""
    codegen: Any = cpu_target.target_context.codegen()
    for name, code in codes.items():
        if name not in _shared:
            _shared[name] = _Shared(codegen.unserialize_library(code), code)


def _name(formula: Formula) -> str:
    return shared_name(formula.symbol)


class _Library(JITCodeLibrary):
    """Numba's library of one function, which LLVM treats as it does formulas within kernels."""

    def _optimize_functions(self, ll_module: binding.ModuleRef) -> None:
        codegen: Any = self._codegen
        ll_module.data_layout = codegen._data_layout

    def _optimize_final_module(self) -> None:
        inline(self)


_LIBRARY: Any = _Library  # whose constructor numba does not annotate
