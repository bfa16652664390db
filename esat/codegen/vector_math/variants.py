"""Calls that the loop vectoriser may widen.

A function with a branch cannot stand in a loop that is to be vectorised. It is emitted as a function
instead, once for scalars and once for each width of vector, and its calls carry LLVM's attribute
``vector-function-abi-variant``, which tells the vectoriser which function computes several of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from esat.codegen.vector_math.builder import Float, Format

_LANES = {32: (4, 8, 16), 64: (2, 4, 8)}
"""Widths of 128, 256 and 512 bits."""


class _CallAttributes(list[str]):
    """Call attributes that llvmlite does not know, printed as they are."""

    def _to_list(self, type_: Any) -> list[str]:
        return list(self)


def emit_call(
    name: str, formula: Callable[..., Float], bits: int, builder: Any, arguments: tuple[Any, ...]
) -> Any:
    """Emit a call of ``formula`` as a function called ``name``, with its vector variants."""
    module = builder.module
    scalar = _define(module, name, formula, Format(bits), len(arguments))
    mappings = []
    for lanes in _LANES[bits]:
        variant = _define(module, f"{name}_v{lanes}", formula, Format(bits, lanes), len(arguments))
        mappings.append(f"_ZGV_LLVM_N{lanes}{'v' * len(arguments)}_{name}({variant.name})")
    call = builder.call(scalar, arguments)
    variants = f'"vector-function-abi-variant"="{",".join(mappings)}"'
    call.attributes = _CallAttributes(["nounwind", "readnone", variants])
    return call


def _define(module: Any, name: str, formula: Callable[..., Float], format_: Format, arity: int) -> Any:
    """The function ``name`` of the module, defined on first use."""
    function = module.globals.get(name)
    if function is not None:
        return function
    type_ = format_.float_type
    function = ir.Function(module, ir.FunctionType(type_, [type_] * arity), name)
    # Weak, because LLVM drops other unused functions before the vectoriser could use them.
    function.linkage = "weak_odr"
    # Inlined before the loop is vectorised, the branch would be back in the loop.
    for attribute in ("noinline", "nounwind", "readnone"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    result = formula(*(Float(builder, argument, format_) for argument in function.args))
    builder.ret(result.value)
    return function
