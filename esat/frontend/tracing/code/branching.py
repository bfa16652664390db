"""The text of ``if`` and ``continue``, where both branches of an ``if`` may be traced.

``if a: A`` with ``else: B`` becomes, with ``n`` for the names that are assigned to in ``A`` and ``B``::

    choice = BRANCHES(a, in_loop, ("n",), ())
    if choice.first:
        A
    if choice.otherwise():
        if choice.is_put:
            (n,) = choice.values
            if n is UNBOUND: del n
        B
    if choice.ended():
        (n,) = choice.values
        if n is UNBOUND: del n

which does what the ``if`` does where its condition is known. A name that nothing may have been assigned to is
looked at by ``BOUND(n, "n")``. ``a and b`` in the condition becomes
``(both := OPERANDS(a, True)).joined(b if both.goes_on else None)``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy

from esat.frontend.tracing.code.assigned import COMPREHENSIONS, SCOPES, assigned_names

OWN_NAMES = "__esat_"
"""How names begin that a user's code is given."""
BRANCHES = "__esat_branches__"
OPERANDS = "__esat_operands__"
ENDED_LOOP = "__esat_ended_loop__"
OPPOSITE = "__esat_opposite__"
UNBOUND = "__esat_unbound__"
BOUND = "__esat_bound__"

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVING = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal,
            ast.Try, ast.TryStar, ast.AsyncFor, ast.AsyncWith)  # fmt: skip


def raised_by(node: ast.If) -> ast.Raise | None:
    """The ``raise`` that is all that an ``if`` does where its condition holds."""
    raised = node.body[0] if len(node.body) == 1 else None
    return raised if isinstance(raised, ast.Raise) and raised.exc is not None else None


def put_errors_in_place(body: ast.AST) -> None:
    """Let ``if a: text = b; raise E(text)`` in a function be ``if a: raise E(b)``.

    Nothing else may look at the name, but what assigns to it first in the same way.
    """
    lists = [getattr(node, name, None) for node in ast.walk(body) for name in ("body", "orelse")]
    blocks = [one for one in lists if isinstance(one, list) and _values_for_error(one)]
    own = {part for block in blocks for one in block for part in ast.walk(one)}
    looked_at = set[str]()
    for part in ast.walk(body):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store) and part not in own:
            looked_at.add(part.id)
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            looked_at.update(part.names)
    found = [node for node in ast.walk(body) if isinstance(node, ast.If) and _values_for_error(node.body)]
    for node in found:
        values = _values_for_error(node.body)
        if looked_at.isdisjoint(values):
            node.body = [_InPlace(values).visit(node.body[-1])]


def _values_for_error(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """What stands in names for a ``raise`` that follows; nothing where more is done, or code is made."""
    values: dict[str, ast.expr] = {}
    for one in body[:-1] if body and isinstance(body[-1], ast.Raise) else ():
        target = one.targets[0] if isinstance(one, ast.Assign) else None
        if not isinstance(one, ast.Assign) or len(one.targets) > 1 or not isinstance(target, ast.Name):
            return {}
        if any(isinstance(part, (ast.Lambda, *COMPREHENSIONS)) for part in ast.walk(one)):
            return {}
        values[target.id] = _InPlace(values).visit(deepcopy(one.value))
    return values


class _InPlace(ast.NodeTransformer):
    """Expressions in place of names."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = dict(values)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self._values.get(node.id, node))


def may_choose(node: ast.If, named: frozenset[str]) -> bool:
    """Whether both branches of an ``if`` may be run: they do not leave it, nor assign to names of modules.

    Parameters
    ----------
    named
        Names of modules, which the function says are global.
    """
    if any(_leaves(one, False) for one in (*node.body, *node.orelse)):
        return False
    return all(
        name not in named and not (name.startswith("__") and not name.endswith("__"))
        for name in assigned_names([*node.body, *node.orelse])
    )


def _leaves(node: ast.AST, in_loop: bool) -> bool:
    if isinstance(node, ast.If) and raised_by(node) is not None:
        return any(_leaves(part, in_loop) for part in (*ast.walk(node.test), *node.orelse))
    if isinstance(node, _LEAVING) or (isinstance(node, (ast.Break, ast.Continue)) and not in_loop):
        return True
    if isinstance(node, (*SCOPES, *COMPREHENSIONS)):
        return False
    within = in_loop or isinstance(node, _LOOPS)
    return any(_leaves(part, within) for part in ast.iter_child_nodes(node))


def globals_of(node: ast.AST) -> frozenset[str]:
    """The names that a function says are global."""
    return frozenset(name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names)


def without_continue(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A loop's body in which what follows ``if c: continue`` is the other branch, and the other branch of
    ``if c: break`` and ``if c: raise`` is what follows."""
    for place, node in enumerate(body):
        if not isinstance(node, ast.If):
            continue
        rest = list(body[place + 1 :])
        if node.orelse and (isinstance(node.body[-1], ast.Break) or raised_by(node) is not None):
            left = ast.copy_location(ast.If(node.test, node.body, []), node)
            return [*body[:place], left, *without_continue([*node.orelse, *rest])]
        if node.orelse and isinstance(node.orelse[-1], ast.Break):
            test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
            left = ast.copy_location(ast.If(test, node.orelse, []), node)
            return [*body[:place], left, *without_continue([*node.body, *rest])]
        sides = [node.body, node.orelse]
        ends = [bool(side) and isinstance(side[-1], ast.Continue) for side in sides]
        if not any(ends):
            continue
        made = [
            without_continue(side[:-1] if is_end else [*side, *rest])
            for side, is_end in zip(sides, ends, strict=True)
        ]
        changed = ast.If(node.test, made[0] or [ast.copy_location(ast.Pass(), node)], made[1])
        return [*body[:place], ast.copy_location(changed, node)]
    return list(body)


def chosen_statements(
    node: ast.If, test: ast.expr, names: Sequence[str], half: Collection[str], in_loop: bool
) -> list[ast.stmt]:
    """An ``if`` whose branches are both run where only a call can know its condition."""
    token = f"__esat_if_{node.lineno}_{node.col_offset}__"
    arguments = [test, ast.Constant(in_loop), _names(names), _names([one for one in names if one in half])]
    begin = ast.Assign([ast.Name(token, ast.Store())], call(BRANCHES, node.test, arguments))
    second = ast.If(
        ast.Call(_of(token, "otherwise"), [], []), [*_put(token, names), *node.orelse, ast.Pass()], []
    )
    end: ast.stmt = ast.Expr(ast.Call(_of(token, "ended"), [], []))
    if names:
        end = ast.If(end.value, _assignments(token, names), [])  # type: ignore[attr-defined]
    made: list[ast.stmt] = [begin, ast.If(_of(token, "first"), node.body, []), second, end]
    for one in made:
        placed(one, node.test)
    return made


def leaves_loop(node: ast.stmt) -> bool:
    """Whether a statement is an ``if`` that leaves the loop, and does nothing else that leaves it."""
    if not isinstance(node, ast.If) or not isinstance(node.body[-1], ast.Break):
        return False
    return not any(_leaves(one, False) for one in (*node.body[:-1], *node.orelse))


def leaving_statements(
    node: ast.If, test: ast.expr, names: Sequence[str], in_loop: bool, loop: str
) -> list[ast.stmt]:
    """``if c: A; break`` with ``else: B``, where the program may leave the loop, and not the trace."""
    token = f"__esat_if_{node.lineno}_{node.col_offset}__"
    arguments = [test, ast.Constant(in_loop), _names(names), _names(()), ast.Name(loop, ast.Load())]
    begin = ast.Assign([ast.Name(token, ast.Store())], call(BRANCHES, node.test, arguments))
    left = ast.If(ast.Call(_of(token, "leaves"), [], []), [node.body[-1]], [])
    second = ast.If(
        ast.Call(_of(token, "otherwise"), [], []), [*_put(token, names), *node.orelse, ast.Pass()], []
    )
    made: list[ast.stmt] = [begin, ast.If(_of(token, "first"), [*node.body[:-1], left], []), second]
    for one in made:
        placed(one, node.test)
    return made


def may_end(node: ast.While | ast.For) -> bool:
    """Whether a loop may be one that a value ends."""
    if node.orelse or any(_leaves(one, True) for one in node.body):
        return False
    if isinstance(node, ast.For) and not isinstance(node.target, ast.Name):
        return False
    return not any(name.startswith("__") and not name.endswith("__") for name in assigned_names([node]))


def loop_token(node: ast.While | ast.For) -> str:
    """The name of what a loop is told by."""
    return f"__esat_loop_{node.lineno}_{node.col_offset}__"


def ended_loop(
    node: ast.While | ast.For, names: Sequence[str], half: Collection[str], breaks: bool
) -> list[ast.stmt]:
    """A loop that may become an op which runs as long as a value says."""
    token = loop_token(node)
    target = node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else None
    place = node.iter if isinstance(node, ast.For) else node.test
    own = _names([one for one in names if one in half])
    arguments: list[ast.expr] = [_names(names), own, ast.Constant(breaks), ast.Constant(target)]
    begin = ast.Assign([ast.Name(token, ast.Store())], call(ENDED_LOOP, place, arguments))
    put = _put(token, [one for one in names if one != target])
    if isinstance(node, ast.For):
        node.body = [*put, ast.Expr(ast.Call(_of(token, "begin"), [], [])), *node.body]
    else:
        asked = ast.Call(_of(token, "goes_on"), [node.test], [])
        stop = ast.If(ast.UnaryOp(ast.Not(), asked), [ast.Break()], [])
        node.body = [*put, stop, *node.body]
        node.test = ast.Call(_of(token, "passes"), [], [])
    made: list[ast.stmt] = [begin, node, *_put(token, names)]
    for one in made:
        placed(one, place)
    return made


def _names(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(one) for one in names], ast.Load())


def _put(token: str, names: Sequence[str]) -> list[ast.stmt]:
    """The names assigned to, where they are put back."""
    return [ast.If(_of(token, "is_put"), _assignments(token, names), [])] if names else []


def _assignments(token: str, names: Sequence[str]) -> list[ast.stmt]:
    stored: list[ast.expr] = [ast.Name(one, ast.Store()) for one in names]
    found: list[ast.stmt] = [ast.Assign([ast.Tuple(stored, ast.Store())], _of(token, "values"))]
    for one in names:
        is_unbound = ast.Compare(ast.Name(one, ast.Load()), [ast.Is()], [ast.Name(UNBOUND, ast.Load())])
        found.append(ast.If(is_unbound, [ast.Delete([ast.Name(one, ast.Del())])], []))
    return found


def chosen_expression(node: ast.IfExp, test: ast.expr, in_loop: bool) -> ast.expr:
    """``a if c else b``, of which both are computed where only a call can know the condition."""
    token = f"__esat_if_{node.lineno}_{node.col_offset}_{node.end_lineno}_{node.end_col_offset}__"
    arguments = [test, ast.Constant(in_loop), _names(()), _names(())]
    begin = ast.NamedExpr(ast.Name(token, ast.Store()), call(BRANCHES, node.test, arguments))
    first = ast.IfExp(_of(token, "first"), node.body, ast.Constant(None))
    second = ast.IfExp(ast.Call(_of(token, "otherwise"), [], []), node.orelse, ast.Constant(None))
    chosen = ast.Call(ast.Attribute(begin, "chosen", ast.Load()), [first, second], [])
    return placed(chosen, node)


def condition(test: ast.expr, in_loop: bool) -> ast.expr:
    """A condition whose ``and``, ``or`` and ``not`` ask for no value that only a call can know."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test.operand = condition(test.operand, in_loop)
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        test = apart(test)
    if not isinstance(test, ast.BoolOp):
        return test
    first, other = _in_two(test)
    token = f"__esat_and_{other.lineno}_{other.col_offset}_{len(test.values)}__"
    is_and = ast.Constant(isinstance(test.op, ast.And))
    arguments = [condition(first, in_loop), is_and, ast.Constant(in_loop)]
    begin = ast.NamedExpr(ast.Name(token, ast.Store()), call(OPERANDS, test, arguments))
    second = ast.IfExp(_of(token, "goes_on"), condition(other, in_loop), ast.Constant(None))
    return placed(ast.Call(ast.Attribute(begin, "joined", ast.Load()), [second], []), test)


def as_choice(node: ast.BoolOp) -> ast.IfExp:
    """``a and b``, as a value, as ``b if (first := a) else first``; and ``a or b``."""
    first, other = _in_two(node)
    token = f"__esat_first_{other.lineno}_{other.col_offset}_{len(node.values)}__"
    kept: ast.expr = ast.Name(token, ast.Load())
    sides = (other, kept) if isinstance(node.op, ast.And) else (kept, other)
    made = ast.IfExp(ast.NamedExpr(ast.Name(token, ast.Store()), first), *sides)
    return placed(ast.copy_location(made, node), first)  # type: ignore[return-value]


def _in_two(node: ast.BoolOp) -> tuple[ast.expr, ast.expr]:
    """The first operand of ``a and b and c``, and all others together."""
    first, *rest = node.values
    return first, rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])


def apart(test: ast.Compare) -> ast.BoolOp:
    """``a < b < c`` as ``a < (middle := b) and middle < c``."""
    parts: list[ast.expr] = []
    left = test.left
    for place, (op, right) in enumerate(zip(test.ops, test.comparators, strict=True)):
        token = f"__esat_middle_{right.lineno}_{right.col_offset}__"
        is_last = place == len(test.ops) - 1
        middle = right if is_last else ast.NamedExpr(ast.Name(token, ast.Store()), right)
        parts.append(placed(ast.copy_location(ast.Compare(left, [op], [middle]), right), right))
        left = ast.copy_location(ast.Name(token, ast.Load()), right)
    return ast.copy_location(ast.BoolOp(ast.And(), parts), test)


def _of(token: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(token, ast.Load()), name, ast.Load())


def call(name: str, node: ast.AST, arguments: Sequence[ast.expr]) -> ast.expr:
    """A call of a function that is given to a user's code, where a node stands."""
    return placed(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), node)


def placed(made: ast.expr | ast.stmt, node: ast.AST) -> ast.expr:
    """Give what has no place in a text that of a node."""
    for part in ast.walk(made):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made  # type: ignore[return-value]
