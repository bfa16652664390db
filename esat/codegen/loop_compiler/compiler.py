"""Numba's compiler with the parts of this package, for functions whose arrays do not overlap."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding
from numba.core import compiler

from esat.codegen.ground.host import library_target
from esat.codegen.ground.target import Target
from esat.codegen.llvm.interleaving import interleave
from esat.codegen.llvm.vector_width import prefer_whole_vectors
from esat.codegen.llvm.whole_vectors import is_padded, pad
from esat.codegen.loop_compiler.contexts import LoopContext, RememberingTypes
from esat.codegen.loop_compiler.passes import loop_passes
from esat.codegen.loop_compiler.private import RUN_TIME, PrivateLibrary
from esat.codegen.vector_math.linking import LinkingLibrary

_LINKED = binding.Linkage.linkonce_odr
"""The linkage of functions that numba took from other libraries."""


class _Library(LinkingLibrary):
    """Numba's library, in whose loops several vectors are interleaved where that pays.

    Functions that a kernel's entry calls are compiled in libraries of their own first, and once more with the
    entry, in which LLVM may vectorise them differently. The entry keeps to its own, as it does when it comes
    from the disk, or sums would differ by roundings between the process that compiles it and later ones.
    Those that take long are optimized with the entry alone.

    Attributes
    ----------
    joins
        Whether another library is optimized with this one in it.
    """

    joins = False

    def add_ir_module(self, ir_module: Any) -> None:
        target = library_target(self)
        pad(ir_module, target)
        interleave(ir_module, target)
        if target.forces_whole_vectors:
            prefer_whole_vectors(ir_module)
        add: Any = super().add_ir_module  # which numba does not annotate
        add(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        codegen: Any = self.codegen
        if is_padded(ll_module):
            # A single loop, of which the passes over the whole module make the same without these.
            ll_module.data_layout = codegen._data_layout
        else:
            optimize: Any = super()._optimize_functions  # which numba does not annotate
            optimize(ll_module)

    def _optimize_final_module(self) -> None:
        if self.joins:
            return
        for function in self._final_module.functions:
            if function.linkage == _LINKED and not function.name.startswith(RUN_TIME):
                function.linkage = "internal"
        super()._optimize_final_module()


class _PrivateLibrary(PrivateLibrary, _Library):
    """The same, for machine code that does not go into numba's engine."""


_LIBRARY: Any = _Library
_PRIVATE: Any = _PrivateLibrary
# Whose constructors numba does not annotate.


@functools.cache
def loop_compiler(target: Target, is_private: bool, joins: bool) -> type[compiler.CompilerBase]:
    """Numba's compiler for loops over arrays that do not overlap, which LLVM is told.

    Parameters
    ----------
    target
        What the code is for.
    is_private
        Whether the code stays out of numba's engine, which is for numba's own machine only.
    joins
        Whether the function is optimized with the one that calls it, and not alone.
    """

    class LoopCompiler(compiler.CompilerBase):
        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.flags.noalias = True
            state.typingctx = _remembering(state.typingctx)
            state.targetctx = LoopContext(state.targetctx, state.typingctx, target if is_private else None)
            library = _PRIVATE if is_private else _LIBRARY
            state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.target, state.library.joins = target, joins
            if not is_private:
                state.library.enable_object_caching()
            return [loop_passes(state)]

    return LoopCompiler


_remembering = functools.cache(RememberingTypes)
