"""What LLVM does with formulas in the modules that they are linked to."""

from __future__ import annotations

from typing import Any

from llvmlite.binding import newpassmanagers

from esat.codegen.ground.host import library_target
from esat.codegen.ground.llvm_machine import free, target_machine

_DROPPING = ("add_global_dead_code_eliminate_pass", "add_strip_dead_prototype_pass")
_INLINING = ("add_always_inliner_pass", "add_instruction_combine_pass", "add_simplify_cfg_pass", _DROPPING[0])


def drop(library: Any) -> None:
    """Drop what nothing refers to from the module of a library of numba's."""
    _run(library, _DROPPING)


def inline(library: Any) -> None:
    """Put functions that are marked so into the places where a library's module calls them."""
    _run(library, _INLINING)


def promote(library: Any) -> None:
    """Keep in registers what a library's module only loads and stores."""
    _run(library, ("add_sroa_pass",))


def _run(library: Any, names: tuple[str, ...]) -> None:
    passes = newpassmanagers.create_new_module_pass_manager()
    for name in names:
        getattr(passes, name)()
    machine = target_machine(library_target(library))
    builder = newpassmanagers.create_pass_builder(machine, newpassmanagers.create_pipeline_tuning_options())
    passes.run(library._final_module, builder)
    free(passes)
