"""Numba's compiler without its engine: what it compiles is machine code of one kernel, or part of one."""

from __future__ import annotations

import functools
from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from esat.codegen.ground.llvm_machine import TargetCodegen
from esat.codegen.ground.target import Target
from esat.codegen.vector_math.linking import LinkingLibrary

RUN_TIME = "NRT_"
"""What names of functions of numba's run-time library begin with."""

_CodeLibrary: Any = JITCodeLibrary
_Context: Any = CPUContext
_Compiler: Any = compiler.Compiler
# Numba annotates itself in part; these classes are used where it does not.


class PrivateLibrary(JITCodeLibrary):
    """Numba's library of a module, which is optimized, and not loaded: numba could never free it."""

    def __init__(self, codegen: Any, name: str) -> None:
        _CodeLibrary.__init__(self, codegen, name)
        self.target: Target = codegen.target

    def _finalize_final_module(self) -> None:
        # What is declared, and nowhere, is found when the machine code is loaded.
        self._finalized = True
        codegen: Any = self.codegen
        codegen.free()


class PrivateContext(CPUContext):
    """Numba's context of code for one function that Python does not call.

    Parameters
    ----------
    original
        Numba's own, with the options of the function.
    target
        What the code is for; None for what numba's own is for.
    """

    def __init__(self, original: CPUContext, target: Target | None) -> None:
        vars(self).update(vars(original))
        if target is not None:
            known: Any = original  # which numba does not annotate
            self._internal_codegen = TargetCodegen(known.codegen(), target)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """What stands for the function in numba's tables; nobody calls it where there is no wrapper."""
        if not isinstance(library, PrivateLibrary):
            return _Context.get_executable(self, library, fndesc, env)
        if not library._finalized:
            finalize: Any = library.finalize  # which numba does not annotate
            finalize()
        # Numba's own would hold the globals of the function, and so itself, where the collector of cycles
        # does not look. Any built-in function will do that is none of another function's.
        return [].append

    def post_lowering(self, module: Any, library: Any) -> None:
        """Change what is to be changed in a module; link numba's run-time library only where it is called."""
        if any(name.startswith(RUN_TIME) for name in module.globals):
            rtsys.initialize(cpu_target.target_context)
            _Context.post_lowering(self, module, library)


class _LinkingPrivateLibrary(PrivateLibrary, LinkingLibrary):
    """The same, which links the formulas that the functions it calls need."""


_LIBRARY: Any = _LinkingPrivateLibrary  # whose constructor numba does not annotate


@functools.cache
def private_compiler(compiled_for: Target) -> type[compiler.CompilerBase]:
    """Numba's compiler for functions of a kernel for a target, whose arrays may overlap."""

    class PrivateCompiler(compiler.Compiler):
        def define_pipelines(self) -> list[Any]:
            state = self.state
            state.targetctx = PrivateContext(state.targetctx, compiled_for)
            state.library = _LIBRARY(state.targetctx.codegen(), state.func_id.func_qualname)
            pipelines: list[Any] = _Compiler.define_pipelines(self)
            return pipelines

    return PrivateCompiler


def forget(dispatcher: Any) -> None:
    """Let numba forget what it compiled of a function, and all that hangs on it.

    It has its results in a table, and in what it calls when the function is freed: which never comes then,
    for results hold the function.
    """
    for result in dispatcher.overloads.values():
        cpu_target.target_context._defns.pop(result.entry_point, None)
    dispatcher.overloads.clear()
