"""Numba's compiler without its engine: what it compiles is machine code of one kernel, or part of one."""

from __future__ import annotations

import ctypes
from typing import Any

from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.cpu import CPUContext
from numba import _dynfunc
from numba.core.registry import cpu_target

_MAKE: Any = _dynfunc  # which numba does not annotate
_NO_MEMORY = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value


class PrivateLibrary(JITCodeLibrary):
    """Numba's library of a module, which is optimized, and not loaded: numba could never free it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


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
            return super().get_executable(library, fndesc, env)
        library._ensure_finalized()
        name = fndesc.qualname.split(".")[-1]
        return _MAKE.make_function(fndesc.lookup_module(), name, "", _NO_MEMORY, env, (library,))


_LIBRARY: Any = PrivateLibrary  # whose constructor numba does not annotate


class PrivateCompiler(compiler.Compiler):
    """Numba's compiler for functions of a kernel whose arrays may overlap."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.targetctx = PrivateContext(state.targetctx)
        state.library = _LIBRARY(state.targetctx.codegen(), state.func_id.func_qualname)
        pipelines: list[Any] = super().define_pipelines()
        return pipelines


def forget(entry_point: Any) -> None:
    """Let numba forget what stands for a function in its tables, with all that hangs on it."""
    cpu_target.target_context._defns.pop(entry_point, None)
