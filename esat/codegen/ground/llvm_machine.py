"""LLVM's machines for targets, and numba's generator of code for them."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding
from llvmlite.binding import ffi, newpassmanagers
from numba.core import config
from numba.core.codegen import JITCPUCodegen
from numba.core.registry import cpu_target

from esat.codegen.ground.target import Target

_Codegen: Any = JITCPUCodegen  # which numba does not annotate
_CONFIG: Any = config
_STATIC = ("x86_64", "i686")
"""Architectures whose code is loaded where it is addressed."""


@functools.cache
def target_machine(target: Target) -> Any:
    """LLVM's machine for a target, which makes code that can be loaded on machines like it."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=_CONFIG.OPT,
        reloc="static" if target.triple.startswith(_STATIC) else "default",
        codemodel="jitdefault",
        jit=True,
    )


class TargetCodegen(JITCPUCodegen):
    """Numba's generator of code for a target, without its engine.

    Its managers of passes are freed with the library that asked for them.

    Parameters
    ----------
    original
        Numba's own, which is for the machine that it runs on.
    target
        What code is for.
    """

    def __init__(self, original: Any, target: Target) -> None:
        vars(self).update(vars(original))
        self.target = target
        self._tm = target_machine(target)
        self._data_layout = str(self._tm.target_data)
        self._target_data = self._tm.target_data
        self._managers: list[Any] = []

    def _create_empty_module(self, name: str) -> Any:
        module: Any = _Codegen._create_empty_module(self, name)
        module.triple = self.target.triple
        return module

    def _add_module(self, module: Any) -> None:
        """Leave a module out of numba's engine, which could never free it."""

    def _module_pass_manager(self, **options: Any) -> tuple[Any, Any]:
        return self._remembered(_Codegen._module_pass_manager(self, **options))

    def _function_pass_manager(self, **options: Any) -> tuple[Any, Any]:
        return self._remembered(_Codegen._function_pass_manager(self, **options))

    def _remembered(self, made: tuple[Any, Any]) -> tuple[Any, Any]:
        self._managers.append(made[0])
        return made

    def free(self) -> None:
        """Free the managers that were made."""
        while self._managers:
            free(self._managers.pop())


@functools.cache
def codegen_of(target: Target) -> Any:
    """Numba's generator of code for a target, which all that is shared is written with."""
    return TargetCodegen(cpu_target.target_context.codegen(), target)


def free(manager: Any) -> None:
    """Free a manager of passes, with all its passes.

    In llvmlite its method for that is hidden by one of another base, which does nothing: managers stay, some
    hundred kilobytes for each kernel.
    """
    if type(manager)._dispose is ffi.ObjectRef._dispose:
        newpassmanagers.NewPassManager._dispose(manager)
    manager.close()
