"""Dtypes to try a rule with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from esat.graph.types import DTYPES
from esat.rules.language.reader import is_number
from esat.tools.soundness.statement import Statement

DtypePlan = Mapping[str, str]
"""Dtype of every leaf, and of every literal that stands for a dtype."""

COMBINATIONS = 24
"""Dtype plans tried beyond equal dtypes, for rules that mix dtypes."""


def dtype_plans(statement: Statement, random: Random) -> Iterator[DtypePlan]:
    """Every dtype for rules of one dtype; for others equal ones, then random combinations."""
    nodes = [*statement.leaves, *_dtype_literals(statement)]
    groups: list[list[str]] = []
    for node in nodes:
        known = next((group for group in groups if statement.dtypes.are_equal(group[0], node)), None)
        if known is None:
            groups.append([node])
        else:
            known.append(node)
    fixed: dict[str, str] = {}
    for group in groups:
        known_number = statement.dtypes.expression(group[0])
        if is_number(known_number):
            number = int(str(known_number))
            if not 0 <= number < len(DTYPES):
                return
            fixed.update(dict.fromkeys(group, DTYPES[number]))
    free = [group for group in groups if group[0] not in fixed]
    plans = [tuple(dtype for _ in free) for dtype in DTYPES] if free else [()]
    if len(free) > 1:
        plans += [tuple(random.choice(DTYPES) for _ in free) for _ in range(COMBINATIONS)]
    for plan in plans:
        yield fixed | {node: dtype for group, dtype in zip(free, plan, strict=True) for node in group}


def _dtype_literals(statement: Statement) -> list[str]:
    return [name for name, place in statement.literals.items() if place in (("Cast", 1), ("K", 1))]
