"""Functions of vector mathematics for modules of LLVM's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from llvmlite import binding
from numba.core.compiler_lock import global_compiler_lock

from esat.codegen.ground.host import host_target
from esat.codegen.vector_math import shared_code
from esat.codegen.vector_math.formulas import Formula


def formula_modules(formulas: Iterable[tuple[str, int]]) -> Iterator[Any]:
    """A module of each function of single numbers, by its name and the bits of floats."""
    target = host_target()
    with global_compiler_lock:
        for name, bits in formulas:
            formula = Formula(name, bits, 1)
            shared_code.share(formula, target)
            shared = shared_code.shared_name(formula.symbol, target)
            module = binding.parse_bitcode(shared_code.codes([shared])[shared].bitcode)
            module.get_function(shared).name = formula.symbol
            yield module
