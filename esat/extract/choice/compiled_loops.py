"""The loops of extraction, compiled or as Python.

Compiled they take a fiftieth of what they take as Python, in which they are for tests: the
results are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from esat.base.native import Library
from esat.base.records import record
from esat.extract.choice import choices, inner_loops, moves, thinning

_LOOPS: tuple[Callable[..., Any], ...] = (
    inner_loops.settle,
    inner_loops.keep_live,
    inner_loops.drop_open,
    inner_loops.spread_force,
    choices.prepare,
    choices.flow,
    moves.descend,
    moves.shake,
    moves.price_changes,
    choices.mark_dependents,
    choices.count_dependents,
    thinning.thin_out,
)


@record(frozen=True)
class ExtractionBackend:
    """The loops in one form, on vectors of int64 and float64."""

    name: str
    settle: Callable[..., int]
    keep_live: Callable[..., int]
    drop_open: Callable[..., None]
    spread_force: Callable[..., None]
    prepare: Callable[..., int]
    flow: Callable[..., int]
    descend: Callable[..., int]
    shake: Callable[..., int]
    price_changes: Callable[..., None]
    mark_dependents: Callable[..., int]
    count_dependents: Callable[..., None]
    thin_out: Callable[..., None]


PYTHON = ExtractionBackend("python", *_LOOPS)


@cache
def compiled() -> ExtractionBackend:
    """The loops as machine code, from disk or made at once."""
    library = Library(_LOOPS)
    return ExtractionBackend("native", *(library.function(loop) for loop in _LOOPS))
