"""Numba's compiler without its engine: what it compiles is machine code of one kernel, or part of one."""

from __future__ import annotations

from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba.core.registry import cpu_target

from esat.codegen.vector_math.passes import free

_CodeLibrary: Any = JITCodeLibrary
_Context: Any = CPUContext
_Compiler: Any = compiler.Compiler
# Numba annotates itself in part; these classes are used where it does not.


class _Freeing:
    """Numba's generator of code, whose managers of passes are freed with the library that asked for them.

    Parameters
    ----------
    original
        Numba's own, which is asked for all else.
    """

    def __init__(self, original: Any) -> None:
        self._original = original
        self._managers: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def _module_pass_manager(self, **options: Any) -> tuple[Any, Any]:
        return self._remembered(self._original._module_pass_manager(**options))

    def _function_pass_manager(self, **options: Any) -> tuple[Any, Any]:
        return self._remembered(self._original._function_pass_manager(**options))

    def _remembered(self, made: tuple[Any, Any]) -> tuple[Any, Any]:
        self._managers.append(made[0])
        return made

    def free(self) -> None:
        """Free the managers that were made."""
        while self._managers:
            free(self._managers.pop())


class PrivateLibrary(JITCodeLibrary):
    """Numba's library of a module, which is optimized, and not loaded: numba could never free it."""

    def __init__(self, codegen: Any, name: str) -> None:
        _CodeLibrary.__init__(self, _Freeing(codegen), name)

    def _finalize_final_module(self) -> None:
        library: Any = self
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        self._finalized = True
        library._codegen.free()


class PrivateContext(CPUContext):
    """Numba's context of code for one function that Python does not call.

    Parameters
    ----------
    original
        Numba's own, with the options of the function.
    """

    def __init__(self, original: CPUContext) -> None:
        vars(self).update(vars(original))

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """What stands for the function in numba's tables; nobody calls it where there is no wrapper."""
        if not isinstance(library, PrivateLibrary):
            return _Context.get_executable(self, library, fndesc, env)
        unfinished: Any = library
        unfinished._ensure_finalized()
        # Numba's own would hold the globals of the function, and so itself, where the collector of cycles
        # does not look. Any built-in function will do that is none of another function's.
        return [].append


_LIBRARY: Any = PrivateLibrary  # whose constructor numba does not annotate


class PrivateCompiler(compiler.Compiler):
    """Numba's compiler for functions of a kernel whose arrays may overlap."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.targetctx = PrivateContext(state.targetctx)
        state.library = _LIBRARY(state.targetctx.codegen(), state.func_id.func_qualname)
        pipelines: list[Any] = _Compiler.define_pipelines(self)
        return pipelines


def forget(dispatcher: Any) -> None:
    """Let numba forget what it compiled of a function, and all that hangs on it.

    It has its results in a table, and in what it calls when the function is freed: which never comes then,
    for results hold the function.
    """
    for result in dispatcher.overloads.values():
        cpu_target.target_context._defns.pop(result.entry_point, None)
    dispatcher.overloads.clear()
