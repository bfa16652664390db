"""The loops, compiled or as Python, in which they are for tests: the results are the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from esat.base.native import Library
from esat.base.records import record
from esat.egraph.algebra.axes import forest
from esat.egraph.algebra.equal_forms import promise, smallest_trees
from esat.egraph.algebra.finite_fields import field_values

_LOOPS: tuple[Callable[..., Any], ...] = (
    smallest_trees.choose,
    field_values.evaluate,
    field_values.mark_exponents,
    field_values.condense,
    forest.unite,
    forest.unite_pairs,
    forest.find_all,
    field_values.small_fractions,
    promise.promising,
)


@record(frozen=True)
class AlgebraBackend:
    """The loops in one form, on vectors of int64 and float64."""

    choose: Callable[..., int]
    evaluate: Callable[..., None]
    mark_exponents: Callable[..., None]
    condense: Callable[..., None]
    unite: Callable[..., None]
    unite_pairs: Callable[..., None]
    find_all: Callable[..., None]
    small_fractions: Callable[..., None]
    promising: Callable[..., None]


PYTHON = AlgebraBackend(*_LOOPS)


@cache
def compiled() -> AlgebraBackend:
    """The loops as machine code, from disk or made at once."""
    library = Library(_LOOPS)
    return AlgebraBackend(*(library.function(loop) for loop in _LOOPS))
