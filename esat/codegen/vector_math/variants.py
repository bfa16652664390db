"""Functions that the loop vectoriser may widen.

A function with a branch cannot stand in a loop that is to be vectorised. It stays a function instead, once
for scalars and once for each width of vector, and its calls carry LLVM's attribute
``vector-function-abi-variant``, which tells the vectoriser which function computes several of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from llvmlite.binding import newpassmanagers

from esat.codegen.vector_math.builder import Float, Format

PURE = ("nounwind", "readnone")
_WEAK = binding.Linkage.weak_odr
_DROP = "add_global_dead_code_eliminate_pass"
_LANES = {32: (4, 8, 16), 64: (2, 4, 8)}
"""Widths of 128, 256 and 512 bits."""


class _CallAttributes(list[str]):
    """Call attributes that llvmlite does not know, printed as they are."""

    def _to_list(self, type_: Any) -> list[str]:
        return list(self)


def attributes(name: str, bits: int, arity: int) -> list[str]:
    """What a call of the function ``name`` says of it and of its variants."""
    mappings = [f"_ZGV_LLVM_N{lanes}{'v' * arity}_{name}({_variant(name, lanes)})" for lanes in _LANES[bits]]
    return _CallAttributes([*PURE, f'"vector-function-abi-variant"="{",".join(mappings)}"'])


def define_all(module: Any, name: str, formula: Callable[..., Float], bits: int, arity: int) -> None:
    """Define a function and its variants in a module."""
    names = {1: name, **{lanes: _variant(name, lanes) for lanes in _LANES[bits]}}
    for lanes, full_name in names.items():
        function = define(module, full_name, formula, Format(bits, lanes), arity)
        # Weak, because LLVM drops other unused functions before the vectoriser could use them.
        function.linkage = "weak_odr"
        # Inlined before the loop is vectorised, the branch would be back in the loop.
        function.attributes.add("noinline")


def define(module: Any, name: str, formula: Callable[..., Float], format_: Format, arity: int) -> Any:
    """Define the function ``name`` of a module."""
    type_ = format_.float_type
    function = ir.Function(module, ir.FunctionType(type_, [type_] * arity), name)
    for attribute in PURE:
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    result = formula(*(Float(builder, argument, format_) for argument in function.args))
    builder.ret(result.value)
    return function


def drop_unused_variants(module: Any, codegen: Any) -> None:
    """Drop what no loop of an optimized module calls: making machine code of it would take long."""
    passes = newpassmanagers.create_new_module_pass_manager()
    weak = [function for function in module.functions if function.linkage == _WEAK]
    if weak and hasattr(passes, _DROP):  # older releases of llvmlite do not have it
        for function in weak:
            function.linkage = "internal"
        getattr(passes, _DROP)()
        passes.run(module, codegen._pass_builder())


def _variant(name: str, lanes: int) -> str:
    return f"{name}_v{lanes}"
