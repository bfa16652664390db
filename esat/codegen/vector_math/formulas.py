"""Vector functions as functions of LLVM: written once in a process, and linked to the kernels that call them.

Writing a formula through Python and printing it takes longer than what LLVM does with it. Kernels hold calls
only, until their loops are vectorised (:mod:`esat.codegen.vector_math.linking`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba.core.codegen import JITCodeLibrary

from esat.base.records import record
from esat.codegen.ground.llvm_machine import codegen_of
from esat.codegen.ground.target import Target
from esat.codegen.vector_math import widened
from esat.codegen.vector_math.builder import Format
from esat.codegen.vector_math.function_table import FUNCTIONS

_SYMBOL = re.compile(r"esat_(\w+?)_float(32|64)(?:_v(\d+))?")
OF_MANY = "_of_many"
"""What names of marks of functions end with that are called in loops of many."""


class _Library(JITCodeLibrary):
    """Code to be linked to others, which is never run alone: no machine code is made of it."""

    def finalize(self) -> None:
        """Nothing is added from now on."""
        self._finalized = True
        codegen: Any = self.codegen
        codegen.free()


FormulaLibrary: Any = _Library  # whose constructor numba does not annotate


@functools.cache
def formula_library(name: str, bits: int, lanes: int, target: Target) -> Any:
    """Numba's library of the function ``name`` of vectors of so many lanes of floats of ``bits`` bits.

    Raises
    ------
    KeyError
        When there is no such function.
    """
    entry = FUNCTIONS[name]
    full_name = widened.variant(symbol(name, bits), lanes)
    library = FormulaLibrary(codegen_of(target), full_name)
    module = codegen_of(target)._create_empty_module(full_name)
    function = widened.define(module, full_name, entry.formula, Format(bits, target, lanes), entry.arity)
    # The branch of a guarded function is for rare arguments, and in most loops one function among several.
    function.attributes.add("noinline" if entry.guarded else "alwaysinline")
    library.add_ir_module(module)
    return library


@record(frozen=True, slots=True)
class Formula:
    """Which function of this module a function of LLVM is."""

    name: str
    bits: int
    lanes: int

    @property
    def symbol(self) -> str:
        """Its name in LLVM."""
        return widened.variant(symbol(self.name, self.bits), self.lanes)

    @property
    def mark(self) -> str:
        """The name of what stands in a module where it is one of many functions in a loop."""
        return symbol(self.name, self.bits) + OF_MANY

    @property
    def arity(self) -> int:
        """How many arguments it has."""
        return FUNCTIONS[self.name].arity

    @property
    def is_guarded(self) -> bool:
        """Whether rare arguments take a branch."""
        return FUNCTIONS[self.name].guarded

    def library(self, target: Target) -> Any:
        """The library that has it for a target."""
        return formula_library(self.name, self.bits, self.lanes, target)

    def length(self, target: Target) -> int:
        """Operations of LLVM that it consists of, and those of functions that it calls."""
        return _length(self, target)


@functools.cache
def _length(formula: Formula, target: Target) -> int:
    module = formula.library(target)._get_module_for_linking()
    return sum(len(list(block.instructions)) for one in module.functions for block in one.blocks)


def formula_called(symbol: str) -> Formula | None:
    """The function that is called so in LLVM; None where it is none of these."""
    found = _SYMBOL.fullmatch(symbol)
    if found is None or found[1] not in FUNCTIONS:
        return None
    return Formula(found[1], int(found[2]), int(found[3] or 1))


def mark_as_one_of_many(module: Any, formulas: Iterable[Formula]) -> None:
    """Have a module say of functions, wherever it is linked, that they are some of many in a loop."""
    for mark in sorted({formula.mark for formula in formulas} - module.globals.keys()):
        widened.keep(module, mark, ir.Constant(ir.IntType(1), 1))


def symbol(name: str, bits: int) -> str:
    """The name of the function in LLVM."""
    return f"esat_{name}_float{bits}"


def emit_call(name: str, format_: Format, builder: Any, arguments: tuple[Any, ...]) -> Any:
    """Emit a call of the function ``name``, whose library is linked later; its LLVM value."""
    bits, module, full_name = format_.bits, builder.module, symbol(name, format_.bits)
    function = module.globals.get(full_name)
    if function is None:
        function = widened.declare(module, full_name, format_, len(arguments))
        widened.declare_all(module, full_name, format_, len(arguments))
    call = builder.call(function, arguments)
    call.attributes = widened.attributes(full_name, bits, len(arguments))
    return call
