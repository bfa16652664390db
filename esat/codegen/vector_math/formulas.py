"""Vector functions as functions of LLVM: written once in a process, and linked to the kernels that call them.

Writing a formula through Python and printing it takes longer than what LLVM does with it. Kernels hold calls
only, and LLVM puts the formula in their place when it has linked it.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

from esat.codegen.vector_math import variants
from esat.codegen.vector_math.builder import Format
from esat.codegen.vector_math.functions import FUNCTIONS


class _Library(JITCodeLibrary):
    """Code to be linked to others, which is never run alone: no machine code is made of it."""

    def finalize(self) -> None:
        """Nothing is added from now on."""
        self._finalized = True


_LIBRARY: Any = _Library  # whose constructor numba does not annotate


@functools.cache
def formula_library(name: str, bits: int) -> Any:
    """Numba's library of the function ``name`` of floats of ``bits`` bits, and of its vector variants.

    Raises
    ------
    KeyError
        When there is no such function.
    """
    entry = FUNCTIONS[name]
    library = _LIBRARY(cpu_target.target_context.codegen(), symbol(name, bits))
    module = cpu_target.target_context.create_module(library.name)
    if entry.guarded:
        variants.define_all(module, library.name, entry.formula, bits, entry.arity)
    else:
        function = variants.define(module, library.name, entry.formula, Format(bits), entry.arity)
        function.attributes.add("alwaysinline")
    library.add_ir_module(module)
    return library


def symbol(name: str, bits: int) -> str:
    """The name of the function in LLVM."""
    return f"esat_{name}_float{bits}"


def emit_call(name: str, bits: int, builder: Any, arguments: tuple[Any, ...]) -> Any:
    """Emit a call of the function ``name``, whose library is linked later; its LLVM value."""
    type_ = Format(bits).float_type
    module, full_name = builder.module, symbol(name, bits)
    function = module.globals.get(full_name)
    if function is None:
        function = ir.Function(module, ir.FunctionType(type_, [type_] * len(arguments)), full_name)
        for attribute in variants.PURE:
            function.attributes.add(attribute)
    call = builder.call(function, arguments)
    if FUNCTIONS[name].guarded:
        call.attributes = variants.attributes(full_name, bits, len(arguments))
    return call
