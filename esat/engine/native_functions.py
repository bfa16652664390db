"""The machine as machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from esat.engine.classes import find, unite
from esat.engine.containers import interned
from esat.engine.iterations import run
from esat.engine.plan_runs import act
from esat.engine.rebuilding import rebuild
from esat.engine.tables import put
from esat.native import Library

_EXPORTED: Sequence[Callable[..., Any]] = (run, act, rebuild, put, interned, find, unite)


@cache
def compiled() -> dict[str, Callable[..., Any]]:
    """The functions that Python calls, by name, as machine code."""
    library = Library(_EXPORTED)
    return {function.__name__: library.function(function) for function in _EXPORTED}


@cache
def interpreted() -> dict[str, Callable[..., Any]]:
    """The same as Python: some thousand times slower, for tests."""
    return {function.__name__: function for function in _EXPORTED}
