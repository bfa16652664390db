"""esat in the mode ``greedy``: the same rules, one set after the other, each of which leaves one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.peers.cases import Case
from benchmarks.peers.esat_contender import VERSION, differentiated, executable
from benchmarks.peers.model_cases import Model

__all__ = ["VERSION", "prepare"]


def prepare(case: Case | Model, dtype: str) -> Callable[..., Any]:
    compiled = differentiated if isinstance(case, Model) else executable
    return compiled(case, dtype, mode="greedy")
