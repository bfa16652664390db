"""Functions of ``scipy.special`` as numba intrinsics, callable from kernels."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from esat.codegen.ground.scipy_functions import address, symbol
from esat.codegen.vector_math.widened import PURE
from esat.ops.elementwise.records.code import SCIPY_FUNCTIONS


@functools.cache
def scipy_function(name: str, bits: int) -> Any:
    """The intrinsic for a function of floats of ``bits`` bits (32 or 64), which is computed in float64.

    Raises
    ------
    KeyError
        Where this SciPy has no such function in machine code.
    """
    arity = SCIPY_FUNCTIONS[name]
    if not address(name, arity):
        raise KeyError(name)
    type_: Any = {32: types.float32, 64: types.float64}[bits]

    def emit(context: Any, builder: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
        double = ir.DoubleType()
        function = builder.module.globals.get(symbol(name, arity))
        if function is None:
            of = ir.FunctionType(double, [*[double] * arity, ir.IntType(32)])
            function = ir.Function(builder.module, of, symbol(name, arity))
            for attribute in PURE:
                function.attributes.add(attribute)
        wide = [context.cast(builder, one, type_, types.float64) for one in arguments]
        # SciPy's functions do not look at the last operand; polygamma, which is esat's, does.
        last = int(name == "polygamma" and bits == 32)
        result = builder.call(function, [*wide, ir.Constant(ir.IntType(32), last)])
        return context.cast(builder, result, types.float64, type_)

    def unary(typing_context: Any, a: Any) -> Any:
        return type_(type_), emit

    def binary(typing_context: Any, a: Any, b: Any) -> Any:
        return type_(type_, type_), emit

    def ternary(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        return type_(type_, type_, type_), emit

    definition: Any = {1: unary, 2: binary, 3: ternary}[arity]
    # The name tells intrinsics apart in cache keys.
    definition.__name__ = definition.__qualname__ = f"{name}_float{bits}"
    return intrinsic(definition)
