"""A user's code in which what is called, and what objects do by operators, is asked for by a function first.

Names of a function can be exchanged by giving it other globals. What it reaches by attributes, in containers
or as results of calls cannot; so the text of the function is compiled anew, with ``CALLED(f)(x)`` in place
of ``f(x)``, ``READ(x, "name")`` in place of ``x.name``, ``STORE(value, x, "name")`` where that is assigned
to, ``ITEM(x, i)`` in place of ``x[i]``, and in the same way for operators and loops, behind which may be
methods of a user's. Lines and columns stay, and the user's module is not touched. Where the text is not
there, as of code that is typed into ``python -c``, code stays as it is.
"""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import types
from collections.abc import Iterator
from typing import TypeGuard

from esat.frontend.tracing.code.assigned import assigned_names, half_bound_names
from esat.frontend.tracing.code.branching import (
    BOUND,
    OPPOSITE,
    OWN_NAMES,
    apart,
    as_choice,
    call,
    chosen_expression,
    chosen_statements,
    condition,
    ended_loop,
    globals_of,
    leaves_loop,
    leaving_statements,
    loop_token,
    may_choose,
    may_end,
    placed,
    put_errors_in_place,
    raised_by,
    without_continue,
)

CALLED = "__esat_called__"
READ = "__esat_read__"
STORE = "__esat_store__"
ITEM = "__esat_item__"
SLICE = "__esat_slice__"
MAY_FAIL = "__esat_may_fail__"
FAILS = "__esat_fails__"
OPERATION = "__esat_operation__"
ITERATED = "__esat_iterated__"

_KEPT_CALLS = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
"""Functions that look at the frame that calls them by their names."""
_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
_REWRITTEN_ASSERT = "@pytest_ar"
"""A name in code whose assertions pytest has rewritten."""


class _Asking(ast.NodeTransformer):
    """Puts the questions into calls and attributes."""

    def __init__(self) -> None:
        self._is_function = self._in_loop = self._is_nested = False
        self._globals: frozenset[str] = frozenset()
        self._half: frozenset[str] = frozenset()
        self._left: dict[ast.stmt, str] = {}

    def _within(self, node: ast.AST, **changed: object) -> ast.AST:
        """Visit what stands within a node, where something else is known."""
        before = {name: getattr(self, name) for name in changed}
        vars(self).update(changed)
        self.generic_visit(node)
        vars(self).update(before)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        body = ast.Module(node.body, [])
        node.body = []
        self._within(node, _is_nested=True)  # what is computed where it stands
        put_errors_in_place(body)
        named = globals_of(body)
        half = half_bound_names(node.args, body.body) - named
        self._within(body, _is_function=True, _in_loop=False, _is_nested=False, _globals=named, _half=half)
        node.body = body.body
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._within(node, _is_function=False)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._within(node, _is_function=False, _in_loop=False)

    def _visit_nested(self, node: ast.AST) -> ast.AST:
        return self._within(node, _is_nested=True)

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_nested  # noqa: N815

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        return self._loop(node, True)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        return self._loop(node, any(map(leaves_loop, without_continue(node.body))))

    def _loop(self, node: ast.While | ast.For, may_be_left: bool) -> ast.AST | list[ast.stmt]:
        """A loop; one that a value may end is looked at in each step."""
        node.body = without_continue(node.body)
        names = assigned_names([node])
        is_ended = may_be_left and self._is_function and may_end(node) and self._globals.isdisjoint(names)
        left = [one for one in node.body if is_ended and leaves_loop(one)]
        self._left.update((one, loop_token(node)) for one in left)
        if isinstance(node, ast.While) and is_ended:
            node.test = condition(node.test, True)
        self._within(node, _in_loop=True)
        if isinstance(node, ast.For):
            target = ast.Constant(node.target.id if isinstance(node.target, ast.Name) else None)
            token: list[ast.expr] = [ast.Name(loop_token(node), ast.Load())] if is_ended else []
            node.iter = call(ITERATED, node.iter, [node.iter, target, *token])
        return ended_loop(node, names, self._half, bool(left)) if is_ended else node

    def _may_choose(self, node: ast.expr) -> bool:
        """Whether both ways to a value may be gone: they assign to no names of the user's."""
        named = (one for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
        if any(not one.target.id.startswith(OWN_NAMES) for one in named) or any(
            isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in ast.walk(node)
        ):
            return False
        return self._is_function and not self._is_nested

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        may_choose = self._may_choose(node)
        if may_choose:
            node.test = condition(node.test, self._in_loop)
        self.generic_visit(node)
        return chosen_expression(node, node.test, self._in_loop) if may_choose else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self._may_choose(node):
            return self.visit_IfExp(as_choice(node))
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_half = node.id in self._half and isinstance(node.ctx, ast.Load)
        return call(BOUND, node, [node, ast.Constant(node.id)]) if is_half else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _KEPT_CALLS:
            return node
        node.func = call(CALLED, node.func, [node.func])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or _is_mangled(node.attr):
            return node
        return call(READ, node, [node.value, ast.copy_location(ast.Constant(node.attr), node)])

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not any(_is_stored(part) for target in node.targets for part in _parts(target)):
            return node
        stores: list[ast.stmt] = []
        node.targets = [_stored(one, stores) for one in node.targets]
        return [node, *stores]

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if not isinstance(node.ctx, ast.Load) or any(isinstance(one, ast.Starred) for one in parts):
            return node
        places = [_as_call(one) if isinstance(one, ast.Slice) else one for one in parts]
        whole = ast.Tuple(places, ast.Load()) if isinstance(node.slice, ast.Tuple) else places[0]
        return call(ITEM, node, [node.value, ast.copy_location(whole, node.slice)])

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _operation(node, BINARY[type(node.op)], node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return call(OPPOSITE, node, [node.operand, ast.Constant(self._in_loop)])
        name = _UNARY.get(type(node.op))
        is_number = isinstance(node.operand, ast.Constant)
        return node if name is None or is_number else _operation(node, name, node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) > 1 and self._may_choose(node):
            return self.visit_BoolOp(apart(node))
        self.generic_visit(node)
        name = _COMPARISONS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        return node if name is None else _operation(node, name, node.left, node.comparators[0])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        value = self.visit_Name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        made = _operation(node, f"i{BINARY[type(node.op)]}", value, node.value)
        return ast.copy_location(ast.Assign([node.target], made), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = call(ITERATED, node.iter, [node.iter])
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        raised = raised_by(node)
        loop = self._left.get(node)
        is_chosen = raised is None and self._is_function and may_choose(node, self._globals)
        names = assigned_names([*node.body, *node.orelse])
        if is_chosen or loop is not None:
            node.test = condition(node.test, self._in_loop)
        self.generic_visit(node)
        if raised is not None:
            return [_checked(node, node.test, True, raised), *node.orelse]
        if loop is not None:
            return leaving_statements(node, node.test, names, self._in_loop, loop)
        return chosen_statements(node, node.test, names, self._half, self._in_loop) if is_chosen else node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        if not __debug__:
            return node
        error: ast.expr = ast.Name("AssertionError", ast.Load())
        if node.msg is not None:
            error = ast.Call(error, [node.msg], [])
        raised = ast.fix_missing_locations(ast.copy_location(ast.Raise(error, None), node))
        return _checked(node, node.test, False, raised)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        """Patterns name classes and values, and are no expressions."""
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = None if case.guard is None else self.visit(case.guard)
            case.body = [self.visit(one) for one in case.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.value = None if node.value is None else self.visit(node.value)
        return node


BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or",
    ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip


def _checked(node: ast.stmt, test: ast.expr, wanted: bool, raised: ast.Raise) -> ast.stmt:
    """``if MAY_FAIL(test, wanted)``, and an error that is raised if ``FAILS()``."""
    asked = call(MAY_FAIL, node, [test, ast.Constant(wanted)])
    again = ast.If(call(FAILS, raised, []), [ast.Raise(None, None)], [])
    handler = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [again])
    made: ast.stmt = ast.If(asked, [ast.Try([raised], [handler], [], [])], [])
    placed(ast.copy_location(made, node), raised)
    return made


def _parts(target: ast.expr) -> list[ast.expr]:
    """What a target consists of."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [part for one in target.elts for part in _parts(one)]
    return _parts(target.value) if isinstance(target, ast.Starred) else [target]


def _is_stored(target: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(target, ast.Attribute) and not _is_mangled(target.attr)


def _stored(target: ast.expr, stores: list[ast.stmt]) -> ast.expr:
    """A target of names of its own, from which statements then assign to its parts, in their order."""
    if isinstance(target, (ast.Tuple, ast.List)):
        target.elts = [_stored(one, stores) for one in target.elts]
        return target
    if isinstance(target, ast.Starred):
        target.value = _stored(target.value, stores)
        return target
    token = f"__esat_stored_{target.lineno}_{target.col_offset}__"
    value = ast.copy_location(ast.Name(token, ast.Load()), target)
    if _is_stored(target):
        store: ast.stmt = ast.Expr(call(STORE, target, [value, target.value, ast.Constant(target.attr)]))
    else:
        store = ast.Assign([target], value)
    stores += [ast.copy_location(store, target), placed(ast.Delete([ast.Name(token, ast.Del())]), target)]  # type: ignore[list-item]
    return ast.copy_location(ast.Name(token, ast.Store()), target)


def _is_mangled(name: str) -> bool:
    """Whether a class has an attribute of its own under another name."""
    return name.startswith("__") and not name.endswith("__")


def _as_call(node: ast.Slice) -> ast.expr:
    """A slice as the call that makes one."""
    bounds = [
        ast.copy_location(ast.Constant(None), node) if one is None else one
        for one in (node.lower, node.upper, node.step)
    ]
    return call(SLICE, node, bounds)


def _operation(node: ast.expr | ast.stmt, name: str, *operands: ast.expr) -> ast.expr:
    return call(OPERATION, node, [ast.copy_location(ast.Constant(name), node), *operands])


def asking(code: types.CodeType) -> types.CodeType | None:
    """The code of a function with the questions in it; None where its text is not there, or another one."""
    return _asking(code, code.co_filename)


@functools.lru_cache(maxsize=4096)
def _asking(code: types.CodeType, file: str) -> types.CodeType | None:
    """Code is equal to other code of the same text in another file, so that this takes part in the key."""
    linecache.checkcache(file)  # a module may have been changed, and loaded again
    text = "".join(linecache.getlines(file))
    if not text:
        return None
    statement = _statement_at(file, text, code.co_firstlineno)
    if statement is None:
        return None
    for plain, changed in _compiled(file, text, statement, code.co_flags & _FUTURE):
        if _is_same(plain, code) and set(changed.co_freevars) == set(code.co_freevars):
            return changed
    return None


def _is_same(plain: types.CodeType, code: types.CodeType) -> bool:
    if (plain.co_qualname, plain.co_firstlineno) != (code.co_qualname, code.co_firstlineno):
        return False
    if any(name.startswith(_REWRITTEN_ASSERT) for name in code.co_names):
        return plain.co_name != "<lambda>"
    return plain.co_code == code.co_code and [*plain.co_positions()] == [*code.co_positions()]


@functools.lru_cache(maxsize=64)
def _statements(file: str, text: str) -> tuple[list[tuple[int, int]], list[str]]:
    """First and last lines of the statements of a module, and the names that it imports."""
    try:
        body = ast.parse(text, file).body
    except (SyntaxError, ValueError):  # a magic of a notebook; another encoding
        return [], []
    lines = [(_first_line(node), node.end_lineno or 0) for node in body]
    return lines, [name for node in body for name in _imported(node)]


def _imported(node: ast.AST) -> Iterator[str]:
    """Names that a statement of a module imports into it: attributes of these are compiled to other code."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = ((one.asname or one.name).partition(".")[0] for one in node.names)
        yield from (name for name in names if name != "*")
    elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        for part in ast.iter_child_nodes(node):
            yield from _imported(part)


def _first_line(node: ast.stmt) -> int:
    lines: list[int] = [one.lineno for one in getattr(node, "decorator_list", ())]
    return min([node.lineno, *lines])


def _statement_at(file: str, text: str, line: int) -> int | None:
    lines, _ = _statements(file, text)
    return next((number for number, (first, last) in enumerate(lines) if first <= line <= last), None)


@functools.lru_cache(maxsize=1024)
def _compiled(
    file: str, text: str, statement: int, flags: int
) -> list[tuple[types.CodeType, types.CodeType]]:
    """All code in a statement of a module, as it is and with the questions.

    IPython compiles each statement of a cell without what others import, and so both ways are tried.
    """
    lines, imported = _statements(file, text)
    first, last = lines[statement]
    chosen = "".join(text.splitlines(keepends=True)[first - 1 : last])
    pairs: list[tuple[types.CodeType, types.CodeType]] = []
    for names in (imported, []) if imported else ([],):
        node = ast.increment_lineno(ast.parse(chosen, file), first - 1)
        imports: ast.stmt = ast.Import([ast.alias(name) for name in names], lineno=1, col_offset=0)
        node.body[:0] = [ast.fix_missing_locations(imports)] if names else []
        plain = compile(node, file, "exec", flags, dont_inherit=True)
        changed = compile(_Asking().visit(node), file, "exec", flags, dont_inherit=True)
        pairs += zip(_codes(plain), _codes(changed), strict=True)
    return pairs


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)
