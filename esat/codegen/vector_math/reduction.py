"""Steps of reductions that the loop vectoriser may turn into SIMD code, and steps of polynomials.

Fast-math flags stand on these single additions alone, never on a function: they let partial sums be
kept per lane, and must not reach the arithmetic around them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_REORDER = ("reassoc", "nsz")
_CONTRACT = ("contract",)


def _common_float(*arguments: Any) -> Any:
    """The type of all the arguments if they are one type of floats, else None."""
    first = arguments[0]
    same = all(argument == first for argument in arguments)
    return first if same and isinstance(first, types.Float) else None


@intrinsic
def reassociating_add(typing_context: Any, accumulator: Any, x: Any) -> Any:
    """``accumulator + x``, in any order over a loop: one rounding error per addition as ever."""
    type_ = _common_float(accumulator, x)

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        return builder.fadd(*arguments, flags=_REORDER)

    return None if type_ is None else (type_(type_, type_), emit)


@intrinsic
def reassociating_multiply_add(typing_context: Any, accumulator: Any, a: Any, b: Any) -> Any:
    """``accumulator + a * b``, in any order over a loop, with or without rounding the product."""
    type_ = _common_float(accumulator, a, b)

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        product = builder.fmul(arguments[1], arguments[2], flags=_CONTRACT)
        return builder.fadd(arguments[0], product, flags=_REORDER + _CONTRACT)

    return None if type_ is None else (type_(type_, type_, type_), emit)


@intrinsic
def multiply_add(typing_context: Any, a: Any, b: Any, added: Any) -> Any:
    """``a * b + added``, the product rounded only where processors do not multiply and add at once."""
    return _contracted("fadd", a, b, added)


@intrinsic
def multiply_subtract(typing_context: Any, a: Any, b: Any, subtracted: Any) -> Any:
    """``a * b - subtracted``, as :func:`multiply_add`."""
    return _contracted("fsub", a, b, subtracted)


def _contracted(name: str, *operands: Any) -> Any:
    type_ = _common_float(*operands)

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        product = builder.fmul(*arguments[:2], flags=_CONTRACT)
        return getattr(builder, name)(product, arguments[2], flags=_CONTRACT)

    return None if type_ is None else (type_(type_, type_, type_), emit)


def _extremum(llvm_name: str) -> Any:
    """Generator of calls to ``llvm.maximum`` or ``llvm.minimum``, which hand NaN on as NumPy does."""

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        type_ = arguments[0].type
        function_type = ir.FunctionType(type_, [type_, type_])
        function = builder.module.declare_intrinsic(llvm_name, [type_], function_type)
        return builder.call(function, arguments)

    return emit


@intrinsic
def maximum(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger of two floats; NaN if either is."""
    type_ = _common_float(a, b)
    return None if type_ is None else (type_(type_, type_), _extremum("llvm.maximum"))


@intrinsic
def minimum(typing_context: Any, a: Any, b: Any) -> Any:
    """The smaller of two floats; NaN if either is."""
    type_ = _common_float(a, b)
    return None if type_ is None else (type_(type_, type_), _extremum("llvm.minimum"))
