"""Expressions of the subset in LLVM's language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from llvmlite import ir

from esat.base.native.annotations import ArrayType, CallSignature, Record, Scalar
from esat.base.records import record
from esat.errors import CompileError

WORD, BIT = ir.IntType(64), ir.IntType(1)
IR: dict[Scalar, Any] = {"int": WORD, "float": ir.DoubleType(), "bool": BIT}


@record(frozen=True)
class Number:
    """A number in LLVM's language."""

    type: Scalar
    value: Any


@record(frozen=True)
class Vector:
    """An array: where it is, and how many elements it has."""

    type: ArrayType
    address: Any
    length: Any


@record(frozen=True)
class Vectors:
    """A record: the address of a table of their addresses and lengths; the arrays."""

    type: Record
    address: Any
    fields: dict[str, Vector]


@record(frozen=True, eq=False)
class Primitive:
    """What LLVM does with integers and the subset has no words for: atomic memory, calls of addresses.

    Attributes
    ----------
    operands
        How many integers it takes.
    write
        Writes it with a builder for operands in LLVM's language; gives an integer, or None.
    """

    operands: int
    write: Callable[[Any, Sequence[Any]], Any]

    def __call__(self, *operands: int) -> int:
        """For type checkers: only compiled functions have it.

        Raises
        ------
        CompileError
            Always.
        """
        raise CompileError("a primitive of compiled functions does not run as Python")


Bound = Vector | Vectors
"""What a name stands for that is never assigned to again: an array, or a record."""
Functions = Callable[[Callable[..., Any]], tuple[Any, CallSignature]]
"""Gives a function of the subset in LLVM's language, and its types."""

_ON_INTEGERS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "sdiv",
    ast.Mod: "srem",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "ashr",
}
_ON_FLOATS: dict[type[ast.operator], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


class Expressions:
    """Writes expressions where a builder stands.

    Parameters
    ----------
    function
        Whose they are: names that are no variables are looked up in its module.
    build
        LLVM's builder.
    functions
        The other functions of the subset.
    """

    def __init__(self, function: FunctionType, build: Any, functions: Functions) -> None:
        self.function, self.build, self.functions = function, build, functions
        self.variables: dict[str, tuple[Scalar, Any]] = {}
        self.bound: dict[str, Bound] = {}

    def refuse(self, node: ast.AST, reason: str = "is not of the subset") -> NoReturn:
        """Raise CompileError for a part of the function."""
        place = (
            f"{self.function.__qualname__}, line {getattr(node, 'lineno', '?')} of {self.function.__module__}"
        )
        raise CompileError(f"{place}: {ast.unparse(node)!r} {reason}")

    def value(self, node: ast.expr) -> Number | Bound:
        """What an expression stands for."""
        match node:
            case ast.Name(name) if name in self.variables:
                type, address = self.variables[name]
                return Number(type, self.build.load(address))
            case ast.Name(name) if name in self.bound:
                return self.bound[name]
            case ast.Attribute(ast.Name(name), field) if name in self.bound:
                record = self.bound[name]
                return record.fields[field] if isinstance(record, Vectors) else self.refuse(node)
            case ast.Constant() | ast.Name() | ast.Attribute():
                return self._constant(node)
            case ast.Subscript():
                vector, address = self.element(node)
                return Number(vector.type.element, self.build.load(address))
            case ast.Call():
                return self._called(node)
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> Number:
        match node:
            case ast.BinOp():
                return self.binary(node, node.op, self.number(node.left), self.number(node.right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._negative(self.number(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Number("bool", self.build.not_(self.truth(operand)))
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return Number("int", self.build.not_(self.as_type("int", self.number(operand))))
            case ast.BoolOp():
                return Number("bool", self._connected(node))
            case ast.Compare():
                return Number("bool", self._compared(node))
            case ast.IfExp():
                return self._either(node)
            case _:
                return self.refuse(node)

    def number(self, node: ast.expr) -> Number:
        """The number that an expression stands for."""
        value = self.value(node)
        return value if isinstance(value, Number) else self.refuse(node, "is no number")

    def truth(self, node: ast.expr) -> Any:
        """The truth value of an expression."""
        return self.as_type("bool", self.number(node))

    def as_type(self, type: Scalar, number: Number) -> Any:
        """A number as one of another type; a float becomes an integer by leaving its fraction out."""
        build, value = self.build, number.value
        match number.type, type:
            case ("int", "float"):
                return build.sitofp(value, IR["float"])
            case ("bool", "float"):
                return build.uitofp(value, IR["float"])
            case ("bool", "int"):
                return build.zext(value, WORD)
            case ("float", "int"):
                return build.fptosi(value, WORD)
            case ("int", "bool"):
                return build.icmp_signed("!=", value, WORD(0))
            case ("float", "bool"):
                return build.fcmp_unordered("!=", value, IR["float"](0.0))
        return value

    def element(self, node: ast.Subscript) -> tuple[Vector, Any]:
        """An array, and the address of one of its elements."""
        vector = self.value(node.value)
        if not isinstance(vector, Vector):
            self.refuse(node, "is no element of an array")
        index = self.as_type("int", self.number(node.slice))
        return vector, self.build.gep(vector.address, [index], inbounds=True)

    def binary(self, node: ast.AST, op: ast.operator, left: Number, right: Number) -> Number:
        """The result of an operator."""
        is_float = "float" in (left.type, right.type) or isinstance(op, ast.Div)
        if isinstance(op, ast.Pow) and is_float:
            power = self.build.module.declare_intrinsic("llvm.pow", [IR["float"]])
            return Number("float", self.build.call(power, [self.as_type("float", n) for n in (left, right)]))
        type: Scalar = "float" if is_float else "int"
        name = (_ON_FLOATS if is_float else _ON_INTEGERS).get(op.__class__)
        if name is None:
            self.refuse(node)
        operands = self.as_type(type, left), self.as_type(type, right)
        return Number(type, getattr(self.build, name)(*operands))

    def results(self, node: ast.expr) -> list[Number]:
        """The results of a call of a function that has several."""
        callee = self._global(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(callee, Primitive):
            result = self._primitive(callee, node)
            return [] if result is None else [Number("int", result)]
        if not isinstance(node, ast.Call) or not isinstance(callee, FunctionType):
            self.refuse(node)
        types, whole = self.call(callee, node)
        if len(types) == 1:
            return [Number(types[0], whole)]
        return [Number(type, self.build.extract_value(whole, place)) for place, type in enumerate(types)]

    def call(self, callee: FunctionType, node: ast.Call) -> tuple[tuple[Scalar, ...], Any]:
        """A call of another function of the subset: the types of its results, and these."""
        function, signature = self.functions(callee)
        arguments: list[Any] = []
        for parameter, argument in zip(signature.parameters.values(), node.args, strict=True):
            value = self.value(argument)
            if isinstance(value, Number) and isinstance(parameter, str):
                arguments.append(self.as_type(parameter, value))
            elif isinstance(value, Vectors) and parameter == value.type:
                arguments.append(value.address)
            elif isinstance(value, Vector) and parameter == value.type:
                arguments += [value.address, value.length]
            else:
                self.refuse(argument, f"is no {parameter}")
        return signature.results, self.build.call(function, arguments)

    def _primitive(self, primitive: Primitive, node: ast.Call) -> Any:
        if len(node.args) != primitive.operands:
            self.refuse(node, f"is to have {primitive.operands} operands")
        operands = [self.as_type("int", self.number(operand)) for operand in node.args]
        return primitive.write(self.build, operands)

    def _constant(self, node: ast.expr) -> Number:
        value = node.value if isinstance(node, ast.Constant) else self._global(node)
        if isinstance(value, bool):
            return Number("bool", BIT(int(value)))
        if isinstance(value, int):
            return Number("int", WORD(value))
        if isinstance(value, float):
            return Number("float", IR["float"](value))
        return self.refuse(node)

    def _global(self, node: ast.expr) -> object:
        """What a name means outside the function, or None."""
        if isinstance(node, ast.Attribute):
            module = self._global(node.value)
            return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
        return self.function.__globals__.get(node.id) if isinstance(node, ast.Name) else None

    def _negative(self, number: Number) -> Number:
        if number.type == "float":
            return Number("float", self.build.fneg(number.value))
        return Number("int", self.build.neg(self.as_type("int", number)))

    def _connected(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``: operands after the one that decides are not looked at."""
        build, decides = self.build, BIT(int(isinstance(node.op, ast.Or)))
        end = build.append_basic_block("known")
        result = ir.Constant(BIT, ir.Undefined)
        incoming = []
        for operand in node.values[:-1]:
            truth = self.truth(operand)
            following = build.append_basic_block("more")
            incoming.append(build.block)
            build.cbranch(truth, *((end, following) if isinstance(node.op, ast.Or) else (following, end)))
            build.position_at_end(following)
        last = self.truth(node.values[-1])
        last_block = build.block
        build.branch(end)
        build.position_at_end(end)
        result = build.phi(BIT)
        for block in incoming:
            result.add_incoming(decides, block)
        result.add_incoming(last, last_block)
        return result

    def _compared(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            self.refuse(node, "compares more than two numbers")
        name = _COMPARISONS.get(type(node.ops[0]))
        left, right = self.number(node.left), self.number(node.comparators[0])
        if name is None:
            self.refuse(node)
        if "float" in (left.type, right.type):
            compare = self.build.fcmp_unordered if name == "!=" else self.build.fcmp_ordered
            return compare(name, self.as_type("float", left), self.as_type("float", right))
        return self.build.icmp_signed(name, self.as_type("int", left), self.as_type("int", right))

    def _either(self, node: ast.IfExp) -> Number:
        build, truth = self.build, self.truth(node.test)
        then, other, end = map(build.append_basic_block, ("then", "else", "end"))
        build.cbranch(truth, then, other)
        found = []
        for block, branch in ((then, node.body), (other, node.orelse)):
            build.position_at_end(block)
            found.append((self.number(branch), build.block))
        type = self._common([number for number, _block in found])
        incoming = []
        for number, block in found:
            build.position_at_end(block)
            incoming.append((self.as_type(type, number), block))
            build.branch(end)
        build.position_at_end(end)
        result = build.phi(IR[type])
        for value, block in incoming:
            result.add_incoming(value, block)
        return Number(type, result)

    def _common(self, numbers: Sequence[Number]) -> Scalar:
        types = {number.type for number in numbers}
        return "float" if "float" in types else "bool" if types == {"bool"} else "int"

    def _called(self, node: ast.Call) -> Number:
        callee = self._global(node.func)
        if isinstance(callee, FunctionType):
            types, value = self.call(callee, node)
            return Number(types[0], value) if len(types) == 1 else self.refuse(node, "is not one number")
        if isinstance(callee, Primitive):
            results = self.results(node)
            return results[0] if results else self.refuse(node, "is not one number")
        match node:
            case ast.Call(ast.Name("len"), [vector]):
                found = self.value(vector)
                return Number("int", found.length) if isinstance(found, Vector) else self.refuse(node)
            case ast.Call(ast.Name("int" | "float" | "bool" as type), [operand]):
                return Number(type, self.as_type(type, self.number(operand)))
            case ast.Call(ast.Name("min" | "max" as name), [first, *rest]) if rest:
                result = self.number(first)
                for operand in rest:
                    result = self._extreme("<" if name == "min" else ">", result, self.number(operand))
                return result
            case _:
                return self.refuse(node)

    def _extreme(self, sign: str, first: Number, second: Number) -> Number:
        """As Python has it: the second if it is less (or more), else the first."""
        type = self._common([first, second])
        left, right = self.as_type(type, first), self.as_type(type, second)
        compare = self.build.fcmp_ordered if type == "float" else self.build.icmp_signed
        return Number(type, self.build.select(compare(sign, right, left), right, left))
