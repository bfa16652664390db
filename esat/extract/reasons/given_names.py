"""The names that a user's lines give to values: ``p`` for what ``p = esat.sigmoid(x @ w)`` built last."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence

from esat.egraph.language.terms import TermGraph
from esat.errors import UserLine

_MAKERS = frozenset({"Graph", "FunctionGraph", "compile"})
"""What makes graphs and programs of values, which do not go by the name of these."""
_LEAVES = ("In", "K", "Array")


def names_of_classes(terms: TermGraph, term_class: Sequence[int]) -> dict[int, str]:
    """E-class -> the name that a line assigns it to.

    A line counts if it is one statement that assigns to one name, and if one term that it built is no part
    of another one of it: that is the value which the name has.
    """
    built: dict[UserLine, list[int]] = {}
    for number, term in enumerate(terms.terms):
        place = terms.place_of(number)
        if place is not None and term.constructor not in _LEAVES:
            built.setdefault(tuple(place), []).append(number)  # type: ignore[arg-type]
    names: dict[int, str] = {}
    for (file, line), numbers in built.items():
        name = _assigned(linecache.getline(file, line))
        inner = {operand for number in numbers for operand in terms.terms[number].operands}
        whole = [number for number in numbers if number not in inner]
        if name and len(whole) == 1:
            names.setdefault(int(term_class[whole[0]]), name)
    return names


def _assigned(line: str) -> str:
    """The one name that a line of Python assigns to; empty where there is none."""
    try:
        body = ast.parse(line.strip()).body
    except SyntaxError:
        return ""
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or len(body[0].targets) != 1:
        return ""
    target, value = body[0].targets[0], body[0].value
    if isinstance(value, ast.Call) and _last_name(value.func) in _MAKERS:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _last_name(function: ast.expr) -> str:
    """``compile`` of ``esat.compile``."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
