r"""Kernel texts as CUDA C++, with the types that numba gives to what they compute.

>>> from esat.gpu.launches import Argument
>>> text = "def kernel(o0, n0):\n    i0 = int64(cuda.threadIdx.x)\n    if i0 < n0: o0[i0] = i0 / n0\n"
>>> launch = Launch("flat", text, (Argument("o0", "float32"), Argument("n0")), 32, "1")
>>> print(cpp_of(launch).removeprefix(PRELUDE))
extern "C" __global__ void __launch_bounds__(32) kernel(float* o0, long long n0) {
    long long i0;
    i0 = (long long)(((int)threadIdx.x));
    if ((i0 < n0)) {
        o0[i0] = ((double)(i0) / (double)(n0));
    }
}
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from esat.errors import CompileError
from esat.gpu.launches import DTYPES, LANES, STORED_AS, Launch
from esat.records import record

PRELUDE = r"""template <class T, int N> struct alignas(N * sizeof(T)) Vector { T at[N]; };
template <class T> __device__ T floor_divided(T a, T b) {
    T quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <class T> __device__ T floor_remainder(T a, T b) {
    T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
__device__ float from_half(unsigned short bits) {
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}
__device__ unsigned short to_half(float number) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number));
    return bits;
}
__device__ long long atomicAdd(long long* place, long long value) {
    return (long long)atomicAdd((unsigned long long*)place, (unsigned long long)value);
}
"""
"""What all kernels begin with; quotients of integers are rounded down, as Python has them."""
_C_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "bool": "bool",
        "int8": "signed char",
        "int16": "short",
        "int32": "int",
        "int64": "long long",
        **{f"uint{bits}": f"unsigned {name}" for bits, name in ((8, "char"), (16, "short"), (32, "int"))},
        "uint64": "unsigned long long",
        "float32": "float",
        "float64": "double",
    }
)
_FUNCTIONS = frozenset(
    [
        *("exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "pow", "copysign", "fmod", "fabs", "fma"),
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
        *("atan2", "erf", "erfc", "lgamma"),
    ]
)
"""Functions of floats, of the same names in C; those of ``float`` end in f."""
_TESTS = frozenset(["isnan", "isinf", "isfinite"])
_NUMBERS: Mapping[str, str] = MappingProxyType(
    {"inf": "__longlong_as_double(0x7ff0000000000000LL)", "nan": "__longlong_as_double(0x7ff8000000000000LL)"}
)
_OPERATORS: Mapping[type[ast.AST], str] = MappingProxyType(
    {
        ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
        ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
        ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
        ast.And: "&&", ast.Or: "||", ast.USub: "-", ast.Not: "!", ast.Invert: "~",
    }
)  # fmt: skip


@record(frozen=True)
class _Typed:
    """An expression in C++."""

    text: str
    dtype: str

    def cast(self, dtype: str) -> str:
        """Its text as a value of another dtype."""
        return self.text if dtype == self.dtype else f"({_C_TYPES[dtype]})({self.text})"


def cpp_of(launch: Launch) -> str:
    """The kernel of a launch as CUDA C++ that names nothing of any header.

    Raises
    ------
    CompileError
        A text with what kernels do not say, or integers whose common type differs from language to language.
    """
    (function,) = ast.parse(launch.text).body
    if not isinstance(function, ast.FunctionDef):
        raise CompileError(f"kernel {launch.family}: the text is not one function\n{launch.text}")
    types: dict[str, str] = {}
    while True:
        # Variables have the common type of all that is assigned to them: known after some rounds.
        writer = _Writer(launch, types)
        writer.block(function.body, 1)
        if writer.types == types:
            return PRELUDE + writer.function()
        types = writer.types


class _Writer:
    """One pass over the text.

    Parameters
    ----------
    types
        Of variables, as far as an earlier pass found them.
    """

    def __init__(self, launch: Launch, types: Mapping[str, str]) -> None:
        self.launch = launch
        self.types = dict(types)
        self.arrays = {one.name: STORED_AS.get(one.dtype, one.dtype) for one in launch.arguments if one.dtype}
        self.numbers = {one.name for one in launch.arguments if not one.dtype}
        self.declared: list[str] = []
        self.lines: list[str] = []
        self.counters = 0

    def function(self) -> str:
        """The lines as a function."""
        parameters = ", ".join(
            f"{_C_TYPES[self.arrays[one.name]]}* {one.name}" if one.dtype else f"long long {one.name}"
            for one in self.launch.arguments
        )
        head = f'extern "C" __global__ void __launch_bounds__({self.launch.block}) kernel({parameters}) {{'
        variables = [f"    {_C_TYPES[dtype]} {name};" for name, dtype in self.types.items()]
        return "\n".join([head, *self.declared, *variables, *self.lines, "}"])

    # ---- statements

    def line(self, text: str, depth: int) -> None:
        self.lines.append("    " * depth + text)

    def block(self, statements: Sequence[ast.stmt], depth: int) -> None:
        for one in statements:
            self.statement(one, depth)

    def statement(self, one: ast.stmt, depth: int) -> None:
        """Lines of one statement."""
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)) if ast.unparse(
                function
            ) in ("cuda.shared.array", "cuda.local.array"):
                self.declaration(name, one.value)
            case ast.Assign(targets=[ast.Tuple(elts=places)], value=ast.Call() as call):
                self.loaded(places, call, depth)
            case ast.Assign(targets=[ast.Tuple(elts=places)], value=ast.Tuple(elts=values)):
                self.together(places, values, depth)
            case ast.Assign(targets=[target]):
                self.assign(target, self.value(one.value), depth)
            case ast.AugAssign(target=target):
                value = self.value(ast.BinOp(_read(target), one.op, one.value))
                self.assign(target, value, depth)
            case ast.If():
                self.line(f"if ({self.truth(one.test)}) {{", depth)
                self.block(one.body, depth + 1)
                if one.orelse:
                    self.line("} else {", depth)
                    self.block(one.orelse, depth + 1)
                self.line("}", depth)
            case ast.While(orelse=[]):
                self.line(f"while ({self.truth(one.test)}) {{", depth)
                self.block(one.body, depth + 1)
                self.line("}", depth)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range")), orelse=[]):
                self.loop(name, one, depth)
            case ast.Expr(value=ast.Call() as call):
                self.called(call, depth)
            case ast.Return(value=None):
                self.line("return;", depth)
            case ast.Pass():
                self.line(";", depth)
            case _:
                raise self.error(one)

    def declaration(self, name: str, call: ast.expr) -> None:
        assert isinstance(call, ast.Call), "the pattern says so"
        size, dtype = map(ast.unparse, call.args)
        self.arrays[name] = dtype
        shared = "__shared__ " if ast.unparse(call.func) == "cuda.shared.array" else ""
        self.declared.append(f"    {shared}{_C_TYPES[dtype]} {name}[{size}];")

    def assign(self, target: ast.expr, value: _Typed, depth: int) -> None:
        """A variable takes a value, or an element of an array does."""
        if isinstance(target, ast.Name):
            known = self.types.get(target.id)
            dtype = value.dtype if known is None else self.common([_Typed("", known), value], target)
            self.types[target.id] = dtype
            self.line(f"{target.id} = {value.cast(dtype)};", depth)
        else:
            self.line(f"{self.value(_read(target)).text} = {value.text};", depth)

    def loaded(self, places: Sequence[ast.expr], call: ast.Call, depth: int) -> None:
        """A vector is loaded, and its elements assigned one by one."""
        name = ast.unparse(call.func)
        if name not in [f"load{lanes}" for lanes in LANES] or name != f"load{len(places)}":
            raise self.error(call)
        kind, address = self.vector(call, len(places))
        self.counters += 1
        vector = f"vector{self.counters}"
        self.line(f"{kind} {vector} = *(const {kind}*)({address});", depth)
        dtype = self.arrays[ast.unparse(call.args[0])]
        for lane, place in enumerate(places):
            self.assign(place, _Typed(f"{vector}.at[{lane}]", dtype), depth)

    def together(self, places: Sequence[ast.expr], values: Sequence[ast.expr], depth: int) -> None:
        """Values that are all computed before the first is assigned."""
        named = []
        for one in map(self.value, values):
            self.counters += 1
            name = f"given{self.counters}"
            self.line(f"{_C_TYPES[one.dtype]} {name} = {one.text};", depth)
            named.append(_Typed(name, one.dtype))
        for place, value in zip(places, named, strict=True):
            self.assign(place, value, depth)

    def vector(self, call: ast.Call, lanes: int) -> tuple[str, str]:
        """The C type of a vector, and where it begins."""
        array, place = call.args[:2]
        name = ast.unparse(array)
        return f"Vector<{_C_TYPES[self.arrays[name]]}, {lanes}>", f"{name} + {self.value(place).text}"

    def loop(self, name: str, one: ast.For, depth: int) -> None:
        """A range, whose counter is apart from the variable, as in Python."""
        assert isinstance(one.iter, ast.Call), "the pattern says so"
        bounds = [self.value(part).cast("int64") for part in one.iter.args]
        start, stop, step = ("0LL", *bounds, "1LL") if len(bounds) == 1 else (*bounds, "1LL")[:3]
        if step.startswith("-"):
            raise self.error(one)
        self.types[name] = "int64"
        self.counters += 1
        counter, end = f"counter{self.counters}", f"end{self.counters}"
        if all(isinstance(part, ast.Constant) for part in one.iter.args):
            self.line("#pragma unroll", depth)
        begin = f"long long {counter} = {start}, {end} = {stop}"
        self.line(f"for ({begin}; {counter} < {end}; {counter} += {step}) {{", depth)
        self.line(f"{name} = {counter};", depth + 1)
        self.block(one.body, depth + 1)
        self.line("}", depth)

    def called(self, call: ast.Call, depth: int) -> None:
        """A call for what it does."""
        name = ast.unparse(call.func)
        if name in ("cuda.syncthreads", "cuda.syncwarp"):
            self.line(f"__{name.removeprefix('cuda.')}();", depth)
        elif name in [f"store{lanes}" for lanes in LANES] and isinstance(call.args[2], ast.Tuple):
            values = call.args[2].elts
            if name != f"store{len(values)}":
                raise self.error(call)
            kind, address = self.vector(call, len(values))
            dtype = self.arrays[ast.unparse(call.args[0])]
            given = ", ".join(self.value(one).cast(dtype) for one in values)
            self.line(f"*({kind}*)({address}) = {kind}{{{{{given}}}}};", depth)
        else:
            self.line(f"{self.value(call).text};", depth)

    # ---- expressions

    def truth(self, node: ast.expr) -> str:
        """A condition."""
        value = self.value(node)
        return value.text if value.dtype == "bool" else f"({value.text} != 0)"

    def value(self, node: ast.expr) -> _Typed:
        """An expression, with the dtype that numba gives it."""
        leaf = self.leaf(node)
        if leaf is not None:
            return leaf
        match node:
            case ast.IfExp():
                parts = [self.value(node.body), self.value(node.orelse)]
                dtype = self.common(parts, node)
                first, second = (part.cast(dtype) for part in parts)
                return _Typed(f"({self.truth(node.test)} ? {first} : {second})", dtype)
            case ast.BoolOp():
                joined = f" {_OPERATORS[type(node.op)]} ".join(map(self.truth, node.values))
                return _Typed(f"({joined})", "bool")
            case ast.Compare(ops=[operator], comparators=[right]):
                return self.comparison(node, operator, right)
            case ast.UnaryOp():
                return self.unary(node)
            case ast.BinOp():
                return self.binary(node)
            case ast.Call():
                return self.call(node)
            case _:
                raise self.error(node)

    def leaf(self, node: ast.expr) -> _Typed | None:
        """A name, a number, an element of an array, or where a thread is; None for other expressions."""
        match node:
            case ast.Name(id=name) if name in self.types or name in self.numbers:
                return _Typed(name, self.types.get(name, "int64"))
            case ast.Constant(value=bool(value)):
                return _Typed(str(value).lower(), "bool")
            case ast.Constant(value=int(value)):
                return _Typed(f"{value}LL", "int64") if value < 2**63 else _Typed(f"{value}ULL", "uint64")
            case ast.Constant(value=float(value)):
                return _Typed(repr(value), "float64")
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name in _NUMBERS:
                return _Typed(_NUMBERS[name], "float64")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="cuda"), attr=what), attr=axis):
                return _Typed(f"((int){what}.{axis})", "int32")
            case ast.Subscript(value=ast.Name(id=name)) if name in self.arrays:
                return _Typed(f"{name}[{self.value(node.slice).text}]", self.arrays[name])
            case _:
                return None

    def comparison(self, node: ast.Compare, operator: ast.cmpop, right: ast.expr) -> _Typed:
        parts = [self.value(node.left), self.value(right)]
        dtype = self.common(parts, node)
        first, second = (part.cast(dtype) for part in parts)
        return _Typed(f"({first} {_OPERATORS[type(operator)]} {second})", "bool")

    def unary(self, node: ast.UnaryOp) -> _Typed:
        if isinstance(node.op, ast.Not):
            return _Typed(f"(!{self.truth(node.operand)})", "bool")
        operand = self.value(node.operand)
        dtype = _wide(operand.dtype)
        return _Typed(f"({_OPERATORS[type(node.op)]}{operand.cast(dtype)})", dtype)

    def binary(self, node: ast.BinOp) -> _Typed:
        """An operation on two numbers: integers are computed with 64 bits."""
        parts, operator = [self.value(node.left), self.value(node.right)], _OPERATORS.get(type(node.op), "")
        dtype = self.common(parts, node)
        if operator in ("&", "|", "^") and dtype == "bool":
            return _Typed(f"({parts[0].text} {operator} {parts[1].text})", "bool")
        dtype = _wide(dtype)
        if operator == "/" and "int" in dtype:
            dtype = "float64"
        elif not operator or (operator in ("//", "%", "&", "|", "^", "<<", ">>") and "int" not in dtype):
            raise self.error(node)
        first, second = (part.cast(dtype) for part in parts)
        if operator in ("//", "%"):
            function = "floor_divided" if operator == "//" else "floor_remainder"
            return _Typed(f"{function}<{_C_TYPES[dtype]}>({first}, {second})", dtype)
        return _Typed(f"({first} {operator} {second})", dtype)

    def call(self, node: ast.Call) -> _Typed:
        """A conversion, a function of floats, or what only kernels have."""
        name = ast.unparse(node.func).removeprefix("math.")
        if name.startswith("atomic_"):
            return self.atomic(node, name.removeprefix("atomic_"))
        values = [self.value(one) for one in node.args]
        if name in DTYPES:
            return _Typed(f"({_C_TYPES[name]})({values[0].text})", name)
        if name == "bool":
            return _Typed(f"({values[0].text} != 0)", "bool")
        if name.startswith("shfl_xor_") and (dtype := name.removeprefix("shfl_xor_")) in _C_TYPES:
            given, mask = values[0].cast(dtype), values[1].cast("int32")
            return _Typed(f"__shfl_xor_sync(0xffffffffu, {given}, {mask})", dtype)
        if name in ("from_half", "to_half"):
            return _Typed(f"{name}({values[0].text})", "float32" if name == "from_half" else "uint16")
        dtype = self.common(values, node) if values else ""
        written = _BUILT_IN.get(name)
        if written is not None and (name != "mul_rn" or dtype.startswith("float")):
            dtype = _wide(dtype)
            return _Typed(written(dtype, [one.cast(dtype) for one in values]), dtype)
        if name not in _FUNCTIONS | _TESTS:
            raise self.error(node)
        dtype = dtype if dtype.startswith("float") else "float64"
        given = ", ".join(one.cast(dtype) for one in values)
        if name in _TESTS:
            return _Typed(f"({name}({given}) != 0)", "bool")
        return _Typed(f"{name}{'f' if dtype == 'float32' else ''}({given})", dtype)

    def atomic(self, node: ast.Call, operation: str) -> _Typed:
        array, place, value = node.args
        name = ast.unparse(array)
        dtype = self.arrays.get(name, "")
        if dtype not in ("int32", "int64", "uint32", "uint64") and (
            operation != "add" or dtype not in ("float32", "float64")
        ):
            raise self.error(node)
        given = self.value(value).cast(dtype)
        text = f"atomic{operation.capitalize()}({name} + {self.value(place).text}, {given})"
        return _Typed(text, dtype)

    def common(self, parts: Sequence[_Typed], node: ast.expr) -> str:
        """The dtype that numbers meet in: NumPy's, which is numba's."""
        dtypes = {one.dtype for one in parts}
        dtype = np.result_type(*dtypes).name
        if dtype == "float64" and all("int" in one for one in dtypes):
            raise self.error(node)  # uint64 with signed integers
        return dtype

    def error(self, node: ast.AST) -> CompileError:
        """What is said of a part that has no C++."""
        return CompileError(
            f"kernel {self.launch.family}, line {getattr(node, 'lineno', '?')}: no CUDA C++ for"
            f" `{ast.unparse(node)}`\n{self.launch.text}"
        )


def _read(target: ast.expr) -> ast.expr:
    """A target as the expression that reads it."""
    return ast.parse(ast.unparse(target), mode="eval").body


def _wide(dtype: str) -> str:
    """What numba computes with where it is given numbers of a dtype."""
    if dtype.startswith("uint"):
        return "uint64"
    return "int64" if dtype == "bool" or "int" in dtype else dtype


_BUILT_IN: Mapping[str, Callable[[str, list[str]], str]] = MappingProxyType(
    {
        "min": lambda _, given: f"({given[0]} < {given[1]} ? {given[0]} : {given[1]})",
        "max": lambda _, given: f"({given[0]} > {given[1]} ? {given[0]} : {given[1]})",
        "abs": lambda _, given: f"({given[0]} < 0 ? -{given[0]} : {given[0]})",
        "mul_rn": lambda dtype, given: f"__{'f' if dtype == 'float32' else 'd'}mul_rn({', '.join(given)})",
    }
)
"""Functions of numbers of one dtype -> the text, of their dtype and operands."""
