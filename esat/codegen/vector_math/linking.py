"""Formulas in the place of their calls, when loops are vectorised.

LLVM inlines first and vectorises then, and all its passes would go through every formula, once for scalars
and once for vectors: half of the time it takes for kernels of several functions. The vectoriser needs to know
no more than which function computes a vector. So kernels are optimized with calls in them, and only the
functions that are called in the end are linked, and inlined.
"""

from __future__ import annotations

from typing import Any

from llvmlite.binding import newpassmanagers
from numba.core.codegen import JITCodeLibrary

from esat.codegen.vector_math.formulas import formula_called, formula_library
from esat.codegen.vector_math.variants import KEPT, LANES

_DROPPING = ("add_global_dead_code_eliminate_pass", "add_strip_dead_prototype_pass")
_INLINING = ("add_always_inliner_pass", "add_instruction_combine_pass", "add_simplify_cfg_pass", _DROPPING[0])


class LinkingLibrary(JITCodeLibrary):
    """Numba's library, which links formulas when it is optimized."""

    def _optimize_final_module(self) -> None:
        optimize: Any = super()._optimize_final_module  # which numba does not annotate
        optimize()
        tables = [one for one in self._final_module.global_variables if one.name.endswith(KEPT)]
        if not tables:
            return
        for table in tables:
            table.linkage = "internal"
        self._run(_DROPPING)
        for name in [function.name for function in self._final_module.functions if function.is_declaration]:
            formula = formula_called(name)
            if formula is not None:
                self._final_module.link_in(formula.library._get_module_for_linking(), preserve=True)
                self._final_module.get_function(name).linkage = "internal"
        self._run(_INLINING)

    def _run(self, names: tuple[str, ...]) -> None:
        passes = newpassmanagers.create_new_module_pass_manager()
        for name in names:
            getattr(passes, name)()
        codegen: Any = self._codegen
        passes.run(self._final_module, codegen._pass_builder())


def link(library: Any, name: str, bits: int) -> None:
    """Make sure that a library, in which the function ``name`` is called, will have it.

    Other libraries than :class:`LinkingLibrary` are given it at once.
    """
    if not isinstance(library, LinkingLibrary):
        for lanes in (1, *LANES[bits]):
            library.add_linking_library(formula_library(name, bits, lanes))
