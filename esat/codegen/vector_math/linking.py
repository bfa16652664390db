"""Formulas in the place of their calls, when loops are vectorised.

LLVM inlines first and vectorises then, and all its passes would go through every formula, once for scalars
and once for vectors: half of the time it takes for kernels of several functions. The vectoriser needs to know
no more than which function computes a vector. So kernels are optimized with calls in them, and only the
functions that are called in the end are linked, and inlined; long ones stay calls, of machine code that is
there already (:mod:`esat.codegen.vector_math.shared_code`).
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

from esat.codegen.ground.host import library_target
from esat.codegen.ground.target import Target
from esat.codegen.vector_math.formulas import OF_MANY, Formula, formula_called, formula_library
from esat.codegen.vector_math.passes import drop, inline
from esat.codegen.vector_math.shared_code import caller, is_shared, share
from esat.codegen.vector_math.widened import KEPT, LANES


class LinkingLibrary(JITCodeLibrary):
    """Numba's library, which links formulas when it is optimized."""

    def _optimize_final_module(self) -> None:
        optimize: Any = super()._optimize_final_module  # which numba does not annotate
        optimize()
        tables = [one for one in self._final_module.global_variables if one.name.endswith(KEPT)]
        if not tables:
            return
        marks = [one for one in self._final_module.global_variables if one.name.endswith(OF_MANY)]
        of_many = {mark.name for mark in marks}
        for remembered in (*tables, *marks):
            remembered.linkage = "internal"
        drop(self)
        for name in [function.name for function in self._final_module.functions if function.is_declaration]:
            formula = formula_called(name)
            if formula is not None:
                found = _library(formula, formula.mark in of_many, library_target(self))
                self._final_module.link_in(found._get_module_for_linking(), preserve=True)
                self._final_module.get_function(name).linkage = "internal"
        inline(self)


def _library(formula: Formula, is_one_of_many: bool, target: Target) -> Any:
    """Numba's library of what stands for a formula in a kernel: itself, or a call of its machine code."""
    if not is_shared(formula, is_one_of_many, target):
        return formula.library(target)
    share(formula, target)
    return caller(formula, target)


def link(library: Any, name: str, bits: int) -> None:
    """Make sure that a library, in which the function ``name`` is called, will have it.

    Other libraries than :class:`LinkingLibrary` are given it at once.
    """
    if not isinstance(library, LinkingLibrary):
        for lanes in (1, *LANES[bits]):
            library.add_linking_library(formula_library(name, bits, lanes, library_target(library)))
