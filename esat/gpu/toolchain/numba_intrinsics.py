"""What kernel texts call beyond ``math`` and ``cuda``, as intrinsics of numba-cuda.

They are no functions, because numba-cuda compiles functions of devices only where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.extending import intrinsic

from esat.gpu.kernel_text.launches import DTYPES, LANES

_TYPES: Any = types
_WORD, _DOUBLE_WORD = ir.IntType(32), ir.IntType(64)


def _word(number: int) -> ir.Constant:
    return ir.Constant(_WORD, number)


def _vector_at(context: Any, builder: Any, kind: Any, arguments: Any, lanes: int) -> tuple[Any, int]:
    """Address of a vector at a pointer and a place, and its alignment in bytes."""
    element = context.get_data_type(kind.dtype)
    address = builder.gep(arguments[0], [arguments[1]])
    vector = builder.bitcast(address, ir.PointerType(ir.VectorType(element, lanes)))
    return vector, lanes * context.get_abi_sizeof(element)


def _load(lanes: int) -> Any:
    @intrinsic
    def load(typing, pointer, place):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address, alignment = _vector_at(context, builder, signature.args[0], arguments, lanes)
            loaded = builder.load(address)
            loaded.align = alignment
            parts = [builder.extract_element(loaded, _word(lane)) for lane in range(lanes)]
            return context.make_tuple(builder, signature.return_type, parts)

        return _TYPES.UniTuple(pointer.dtype, lanes)(pointer, place), generate

    return load


def _store(lanes: int) -> Any:
    @intrinsic
    def store(typing, pointer, place, values):  # type: ignore[no-untyped-def]
        if len(values) != lanes:
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = signature.args[0].dtype
            address, alignment = _vector_at(context, builder, signature.args[0], arguments, lanes)
            stored = ir.Constant(address.type.pointee, ir.Undefined)
            for lane in range(lanes):
                part = builder.extract_value(arguments[2], lane)
                part = context.cast(builder, part, signature.args[2][lane], element)
                stored = builder.insert_element(stored, part, _word(lane))
            builder.store(stored, address).align = alignment
            return context.get_dummy_value()

        return _TYPES.void(pointer, place, values), generate

    return store


def _shuffle(dtype: str) -> Any:
    """The value of the lane whose number differs by ``mask``: words of 32 bits, one or two."""
    kind = getattr(_TYPES, dtype)

    @intrinsic
    def shfl_xor(typing, value, mask):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = ir.LiteralStructType([_WORD, ir.IntType(1)])
            exchange = _declared(builder, "llvm.nvvm.shfl.sync.i32", ir.FunctionType(result, [_WORD] * 5))
            lane = context.cast(builder, arguments[1], signature.args[1], _TYPES.int32)

            def exchanged(word: Any) -> Any:
                given = [_word(-1), _word(3), word, lane, _word(31)]
                return builder.extract_value(builder.call(exchange, given), 0)

            value = arguments[0]
            if context.get_abi_sizeof(value.type) == 4:
                return builder.bitcast(exchanged(builder.bitcast(value, _WORD)), value.type)
            whole, half = builder.bitcast(value, _DOUBLE_WORD), ir.Constant(_DOUBLE_WORD, 32)
            low = exchanged(builder.trunc(whole, _WORD))
            high = exchanged(builder.trunc(builder.lshr(whole, half), _WORD))
            high = builder.shl(builder.zext(high, _DOUBLE_WORD), half)
            return builder.bitcast(builder.or_(builder.zext(low, _DOUBLE_WORD), high), value.type)

        return kind(kind, mask), generate

    return shfl_xor


def _declared(builder: Any, name: str, kind: ir.FunctionType) -> Any:
    """A function of LLVM, declared once a module."""
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


def _atomic(name: str) -> Any:
    """An operation on an element of memory that no other thread comes between; what was there before."""

    @intrinsic
    def atomic(typing, pointer, place, value):  # type: ignore[no-untyped-def]
        is_float = isinstance(pointer.dtype, _TYPES.Float)
        if is_float and name != "add":
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0].dtype
            address = builder.gep(arguments[0], [arguments[1]])
            given = context.cast(builder, arguments[2], signature.args[2], kind)
            if is_float:
                function = f"llvm.nvvm.atomic.load.add.f{kind.bitwidth}.p0f{kind.bitwidth}"
                type_ = ir.FunctionType(given.type, [address.type, given.type])
                return builder.call(_declared(builder, function, type_), [address, given])
            operation = name if name == "add" or kind.signed else f"u{name}"
            return builder.atomic_rmw(operation, address, given, "monotonic")

        return pointer.dtype(pointer, place, value), generate

    return atomic


@intrinsic
def _mul_rn(typing, a, b):  # type: ignore[no-untyped-def]
    """A product that is rounded whatever follows."""
    if a != b or not isinstance(a, _TYPES.Float):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = arguments[0].type
        name = f"llvm.nvvm.mul.rn.{'f' if a.bitwidth == 32 else 'd'}"
        return builder.call(_declared(builder, name, ir.FunctionType(kind, [kind, kind])), arguments)

    return a(a, b), generate


@intrinsic
def _fma(typing, a, b, c):  # type: ignore[no-untyped-def]
    """``a * b + c``, rounded once."""
    if not a == b == c or not isinstance(a, _TYPES.Float):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, b, c), generate


@intrinsic
def _from_half(typing, bits):  # type: ignore[no-untyped-def]
    """The number that 16 bits encode."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return _TYPES.float32(_TYPES.uint16), generate


@intrinsic
def _to_half(typing, number):  # type: ignore[no-untyped-def]
    """Bits of the nearest number of 16, ties to even."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return _TYPES.uint16(_TYPES.float32), generate


def _names() -> dict[str, Callable[..., Any]]:
    names: dict[str, Any] = {dtype: getattr(_TYPES, dtype) for dtype in DTYPES}
    for lanes in LANES:
        names |= {f"load{lanes}": _load(lanes), f"store{lanes}": _store(lanes)}
    names |= {f"shfl_xor_{dtype}": _shuffle(dtype) for dtype in DTYPES if dtype[-2:] in ("32", "64")}
    names |= {f"atomic_{name}": _atomic(name) for name in ("add", "min", "max")}
    return names | {"mul_rn": _mul_rn, "fma": _fma, "from_half": _from_half, "to_half": _to_half}


NAMES: Mapping[str, Any] = MappingProxyType(_names())
