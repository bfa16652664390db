"""Functions that the loop vectoriser may widen.

Each is a function for scalars, and one for each width of vectors. Its calls carry LLVM's attribute
``vector-function-abi-variant``, which tells the vectoriser which function computes several of them, so that
it need not see what they do: a branch within could not stand in a loop that is to be vectorised, and long
formulas take long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from llvmlite import ir

from esat.codegen.vector_math.builder import Float, Format

PURE = ("nounwind", "readnone")
LANES = {32: (4, 8, 16, 32), 64: (2, 4, 8, 16)}
"""Widths of 128, 256, 512 and 1024 bits: the longest are for several vectors that are interleaved."""
KEPT = "_variants"
"""What names of tables of variants end with."""


class _CallAttributes(list[str]):
    """Call attributes that llvmlite does not know, printed as they are."""

    def _to_list(self, type_: Any) -> list[str]:
        return list(self)


def attributes(name: str, bits: int, arity: int) -> list[str]:
    """What a call of the function ``name`` says of it and of its variants."""
    mappings = [f"_ZGV_LLVM_N{lanes}{'v' * arity}_{name}({variant(name, lanes)})" for lanes in LANES[bits]]
    return _CallAttributes([*PURE, "willreturn", f'"vector-function-abi-variant"="{",".join(mappings)}"'])


def variant(name: str, lanes: int) -> str:
    """The name of the function of so many lanes; one is the scalar."""
    return name if lanes == 1 else f"{name}_v{lanes}"


def declare(module: Any, name: str, format_: Format, arity: int) -> Any:
    """Declare the function ``name`` of a module."""
    type_ = format_.float_type
    function = ir.Function(module, ir.FunctionType(type_, [type_] * arity), name)
    for attribute in PURE:
        function.attributes.add(attribute)
    return function


def declare_all(module: Any, name: str, format_: Format, arity: int) -> None:
    """Declare the variants of the function ``name`` of a module, which the vectoriser then may call.

    LLVM forgets what nothing refers to, so a table does, until it is dropped.
    """
    declared = [
        declare(module, variant(name, lanes), replace(format_, lanes=lanes), arity)
        for lanes in LANES[format_.bits]
    ]
    addresses = ir.Constant.literal_struct(declared)
    keep(module, name + KEPT, addresses)


def keep(module: Any, name: str, value: Any) -> None:
    """Put a constant into a module that stays, and is linked to others, though nothing refers to it."""
    constant = ir.GlobalVariable(module, value.type, name)
    constant.initializer = value
    constant.global_constant = True
    constant.linkage = "weak_odr"


def define(module: Any, name: str, formula: Callable[..., Float], format_: Format, arity: int) -> Any:
    """Define the function ``name`` of a module."""
    function = declare(module, name, format_, arity)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    result = formula(*(Float(builder, argument, format_) for argument in function.args))
    builder.ret(result.value)
    return function
