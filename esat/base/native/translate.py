"""From Python functions of a small subset to LLVM's language.

The subset: parameters are integers, floats, truth values, arrays of integers or floats, and records of
such arrays, all annotated; results are numbers. Local variables keep the type of their first value. There are
assignments to names and elements, ``if``, ``while``, ``for`` over a ``range``, arithmetic, comparisons,
``and``, ``or``, ``not``, ``min``, ``max``, ``len``, ``int``, ``float``, constants of the module, and calls of
other functions of the subset and of primitives. Integers have 64 bits, ``//`` and ``%`` are for integers that
are not negative. Indices are not negative, either, and are not checked: what runs here has to run as Python,
too, where tests check it. ``**`` is for floats, as NumPy has it.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from llvmlite import ir

from esat.base.native.annotations import (
    ArrayType,
    CallSignature,
    Parameter,
    Record,
    Scalar,
    name_of,
    signature_of,
)
from esat.base.native.expression_text import BIT, IR, WORD, Bound, Expressions, Number, Vector, Vectors


def translated(exported: Sequence[Callable[..., Any]]) -> str:
    """LLVM's text for functions and all they call.

    Each of the exported ones, under its own name, takes the address of a table of 64-bit words: numbers as
    they are, of each array its address and length, of each record the address of a table of these. Results
    replace the first words.

    Raises
    ------
    CompileError
        For what is not of the subset.
    """
    program = _Program()
    for function in exported:
        program.export(function)
    return str(program.module)


class _Program:
    """The functions translated so far."""

    def __init__(self) -> None:
        self.module = ir.Module("native")
        self._known: dict[object, tuple[Any, CallSignature]] = {}
        self._trees: dict[str, dict[str, ast.FunctionDef]] = {}

    def function(self, function: Callable[..., Any]) -> tuple[Any, CallSignature]:
        """A function in LLVM's language, and its types."""
        if function not in self._known:
            assert isinstance(function, FunctionType)
            signature = signature_of(function)
            types = [part for parameter in signature.parameters.values() for part in _parts(parameter)]
            type = ir.FunctionType(_result_type(signature), types)
            made = ir.Function(self.module, type, name_of(function))
            made.linkage = "internal"
            self._known[function] = made, signature
            build = ir.IRBuilder(made.append_basic_block("entry"))
            statements = _Statements(Expressions(function, build, self.function), signature, iter(made.args))
            statements.write(self._tree(function).body)
        return self._known[function]

    def _tree(self, function: FunctionType) -> ast.FunctionDef:
        name = function.__module__
        if name not in self._trees:
            module = inspect.getmodule(function)
            assert module is not None
            tree = ast.parse(inspect.getsource(module))
            self._trees[name] = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        return self._trees[name][function.__name__]

    def export(self, function: Callable[..., Any]) -> None:
        """The function that takes arguments from a table of words, and leaves results there."""
        inner, signature = self.function(function)
        inner.linkage = "external"
        type = ir.FunctionType(ir.VoidType(), [ir.PointerType(WORD)])
        outer = ir.Function(self.module, type, function.__name__)
        build = ir.IRBuilder(outer.append_basic_block("entry"))
        table = outer.args[0]
        arguments: list[Any] = []
        for parameter in signature.parameters.values():
            for type in _parts(parameter):
                word = build.load(build.gep(table, [WORD(len(arguments))]))
                if isinstance(type, ir.PointerType):
                    word = build.inttoptr(word, type)
                elif type == IR["float"]:
                    word = build.bitcast(word, type)
                arguments.append(build.trunc(word, BIT) if type == BIT else word)
        result = build.call(inner, arguments)
        several = len(signature.results) > 1
        for number, kind in enumerate(signature.results):
            value = build.extract_value(result, number) if several else result
            if kind != "int":
                value = build.bitcast(value, WORD) if kind == "float" else build.zext(value, WORD)
            build.store(value, build.gep(table, [WORD(number)]))
        build.ret_void()


def _parts(parameter: Parameter) -> list[Any]:
    """LLVM's types of a parameter."""
    if isinstance(parameter, Record):
        return [ir.PointerType(WORD)]
    if isinstance(parameter, ArrayType):
        return [ir.PointerType(IR[parameter.element]), WORD]
    return [IR[parameter]]


def _result_type(signature: CallSignature) -> Any:
    types = [IR[result] for result in signature.results]
    if len(types) > 1:
        return ir.LiteralStructType(types)
    return types[0] if types else ir.VoidType()


class _Statements:
    """Writes the statements of one function."""

    def __init__(self, expressions: Expressions, signature: CallSignature, arguments: Iterator[Any]) -> None:
        self._expressions, self._signature = expressions, signature
        self._build = expressions.build
        self._loops: list[tuple[Any, Any]] = []
        for name, parameter in signature.parameters.items():
            if isinstance(parameter, Record):
                expressions.bound[name] = self._record(parameter, next(arguments))
            elif isinstance(parameter, ArrayType):
                expressions.bound[name] = Vector(parameter, next(arguments), next(arguments))
            else:
                self._set(name, Number(parameter, next(arguments)))

    def write(self, body: Sequence[ast.stmt]) -> None:
        """All of the function."""
        self._block(body)
        if not self._build.block.is_terminated:
            if self._signature.results:
                self._build.unreachable()
            else:
                self._build.ret_void()

    def _record(self, record: Record, table: Any) -> Vectors:
        build, fields = self._build, {}
        for number, (name, array) in enumerate(record.fields):
            address, length = (build.load(build.gep(table, [WORD(2 * number + place)])) for place in (0, 1))
            pointer = build.inttoptr(address, ir.PointerType(IR[array.element]))
            fields[name] = Vector(array, pointer, length)
        return Vectors(record, table, fields)

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._build.block.is_terminated:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                self._assign(target, value)
            case ast.AugAssign():
                self._augment(node)
            case ast.If():
                self._if(node)
            case ast.While(orelse=[]):
                self._loop(lambda: self._expressions.truth(node.test), lambda: self._block(node.body))
            case ast.For(target=ast.Name(name), iter=ast.Call(ast.Name("range"), bounds), orelse=[]):
                self._for(name, bounds, node.body)
            case ast.Break():
                self._build.branch(self._loops[-1][1])
            case ast.Continue():
                self._build.branch(self._loops[-1][0])
            case ast.Return():
                self._return(node)
            case ast.Expr(ast.Constant(str())) | ast.Pass():
                pass
            case ast.Expr(ast.Call() as call):
                self._expressions.results(call)
            case _:
                self._expressions.refuse(node)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Tuple):
            self._store(target, self._expressions.value(value))
            return
        if isinstance(value, ast.Tuple):
            found: list[Number | Bound] = [self._expressions.value(element) for element in value.elts]
        else:
            found = list(self._expressions.results(value))
        for part, one in zip(target.elts, found, strict=True):
            self._store(part, one)

    def _store(self, target: ast.expr, value: Number | Bound) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript) and isinstance(value, Number):
            vector, address = self._expressions.element(target)
            self._build.store(self._expressions.as_type(vector.type.element, value), address)
        else:
            self._expressions.refuse(target)

    def _set(self, name: str, value: Number | Bound) -> None:
        if isinstance(value, Number):
            type, address = self._variable(name, value.type)
            self._build.store(self._expressions.as_type(type, value), address)
        else:
            self._expressions.bound[name] = value

    def _variable(self, name: str, type: Scalar) -> tuple[Scalar, Any]:
        """The type and the address of a variable, which is of this type if it is new."""
        variables = self._expressions.variables
        if name not in variables:
            variables[name] = type, self._room(type)
        return variables[name]

    def _room(self, type: Scalar) -> Any:
        with self._build.goto_entry_block():
            return self._build.alloca(IR[type])

    def _augment(self, node: ast.AugAssign) -> None:
        expressions = self._expressions
        if isinstance(node.target, ast.Subscript):
            vector, address = expressions.element(node.target)
            type = vector.type.element
        elif isinstance(node.target, ast.Name) and node.target.id in expressions.variables:
            type, address = expressions.variables[node.target.id]
        else:
            expressions.refuse(node)
        old = Number(type, self._build.load(address))
        new = expressions.binary(node, node.op, old, expressions.number(node.value))
        self._build.store(expressions.as_type(type, new), address)

    def _if(self, node: ast.If) -> None:
        truth = self._expressions.truth(node.test)
        then, end = map(self._build.append_basic_block, ("then", "end"))
        other = self._build.append_basic_block("else") if node.orelse else end
        self._build.cbranch(truth, then, other)
        for block, body in ((then, node.body), (other, node.orelse)):
            if block is not end:
                self._build.position_at_end(block)
                self._block(body)
                self._go(end)
        self._build.position_at_end(end)

    def _go(self, block: Any) -> None:
        if not self._build.block.is_terminated:
            self._build.branch(block)

    def _loop(
        self, test: Callable[[], Any], body: Callable[[], None], step: Callable[[], None] = lambda: None
    ) -> None:
        head, inside, following, end = map(self._build.append_basic_block, ("head", "body", "next", "end"))
        self._build.branch(head)
        self._build.position_at_end(head)
        self._build.cbranch(test(), inside, end)
        self._build.position_at_end(inside)
        self._loops.append((following, end))
        body()
        self._loops.pop()
        self._go(following)
        self._build.position_at_end(following)
        step()
        self._build.branch(head)
        self._build.position_at_end(end)

    def _for(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        build, step = self._build, ast.literal_eval(bounds[2]) if len(bounds) > 2 else 1
        numbers = [self._expressions.as_type("int", self._expressions.number(bound)) for bound in bounds[:2]]
        # What the variable is set to within the loop, and its value afterwards, are not those of the counter.
        counter, (_type, variable) = self._room("int"), self._variable(name, "int")
        build.store(numbers[0] if len(numbers) > 1 else WORD(0), counter)

        def round() -> None:
            build.store(build.load(counter), variable)
            self._block(body)

        self._loop(
            lambda: build.icmp_signed("<" if step > 0 else ">", build.load(counter), numbers[-1]),
            round,
            lambda: build.store(build.add(build.load(counter), WORD(step)), counter),
        )

    def _return(self, node: ast.Return) -> None:
        elements = (
            node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] if node.value else []
        )
        values = [
            self._expressions.as_type(type, self._expressions.number(element))
            for type, element in zip(self._signature.results, elements, strict=True)
        ]
        if not values:
            self._build.ret_void()
        elif len(values) == 1:
            self._build.ret(values[0])
        else:
            whole = ir.Constant(_result_type(self._signature), ir.Undefined)
            for number, value in enumerate(values):
                whole = self._build.insert_value(whole, value, number)
            self._build.ret(whole)
