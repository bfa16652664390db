"""Templates of scalar code that users write, checked when their op is made."""

from __future__ import annotations

import ast
import string
from dataclasses import astuple

from esat.base.spelling import suggestion
from esat.errors import GraphError
from esat.ops.elementwise.records.code import CODE_DTYPES, SCIPY_FUNCTIONS, TEMPLATE_NAMES, Code

_NUMBERS = ("inf", "nan")
_OF_TWO = frozenset(
    [
        "arctan2", "copysign", "floor_divide", "fmax", "fmin", "fmod", "integer_power", "logaddexp",
        "maximum", "minimum", "pow", "remainder", "shift_left", "shift_right", "wrapping_add",
        "wrapping_mul", "wrapping_sub",
    ]
)  # fmt: skip
"""Functions of two operands; ``select`` takes three, the others one."""
_OPERATORS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Load, ast.Expression,
)  # fmt: skip


def check_code(name: str, code: Code | None, arity: int) -> None:
    """See that the templates of an op are expressions of its operands and of names that templates may use.

    Raises
    ------
    GraphError
        When one is not: it names the op, the template, and what is wrong there.
    """
    for template in dict.fromkeys(() if code is None else astuple(code)):
        if template is None:
            continue
        reason = _fault(template, arity)
        if reason:
            raise GraphError(f"{name}: the code {template!r} {reason}")


def _fault(template: object, arity: int) -> str:
    """What is wrong with a template, as it follows its text; empty where nothing is."""
    if not isinstance(template, str):
        return "is not text"
    try:
        parts = list(string.Formatter().parse(template))
        operands = [part[1] for part in parts if part[1] is not None]
        for operand in operands:
            if not operand.isdecimal() or int(operand) >= arity:
                known = ", ".join(f"{{{place}}}" for place in range(arity))
                return f"names an operand {{{operand}}}; it has {known}"
        if any(part[2] or part[3] for part in parts):
            return "formats an operand; write {0}, {1}, ... alone"
        tree = ast.parse(
            template.format(*(f"({_operand(place)})" for place in range(arity))).strip(), mode="eval"
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"is no expression: {getattr(error, 'msg', None) or error}"
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        reason = _fault_of_node(node, arity, id(node) in called)
        if reason:
            return reason
    return ""


def _operand(place: int) -> str:
    return f"operand_{place}"


def _fault_of_node(node: ast.AST, arity: int, is_called: bool) -> str:
    match node:
        case ast.Call(func=ast.Name(id="const"), args=[argument], keywords=[]):
            return "" if _is_number(argument) else "has const(...) of what is no number"
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            wanted = 3 if function == "select" else 2 if function in _OF_TWO else 1
            wanted = SCIPY_FUNCTIONS.get(function, wanted)
            if function in TEMPLATE_NAMES and len(arguments) != wanted:
                return f"gives {function} {len(arguments)} operands, not {wanted}"
            return ""
        case ast.Name(id=name) if is_called:
            return "" if name in (*TEMPLATE_NAMES, "const") else _unknown(name, sorted(TEMPLATE_NAMES))
        case ast.Name(id=name):
            known = [*map(_operand, range(arity)), *_NUMBERS]
            return "" if name in known else _unknown(name, [*CODE_DTYPES, *_NUMBERS])
        case ast.Constant(value=bool() | int() | float()):
            return ""
    return "" if isinstance(node, _OPERATORS) else f"has {ast.unparse(node)!r}, which templates do not have"


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is a number, or the negative of one."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    if isinstance(node, ast.Name):
        return node.id in _NUMBERS
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _unknown(name: str, known: list[str]) -> str:
    return f"names {name}, which templates do not have{suggestion(name, known)}"
