"""Modes: how a graph is compiled, as immutable values that compose."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from esat.errors import ModeError
from esat.extract.cost import MachineProfile
from esat.rules.query import Query
from esat.rules.rule import Soundness

Strategy = Literal["egraph", "greedy", "merge"]
"""How the graph is optimized: by equality saturation, by the classic greedy rewriting, or only by
merging equal nodes and folding constants."""


@dataclass(frozen=True, slots=True, init=False)
class Mode:
    """How to compile.

    ``Mode("fast_run")`` is a predefined mode; keyword arguments change single settings, and
    :meth:`including`, :meth:`requiring` and :meth:`excluding` its query.

    Attributes
    ----------
    name
        The predefined mode it started from.
    strategy
        See :data:`Strategy`.
    query
        Which rules and phases take part.
    soundness
        The loosest class of rules that may take part.
    node_limit
        E-nodes at which saturation stops.
    time_limit
        Seconds after which saturation stops.
    round_limit
        Rounds of saturation.
    extract
        ``area`` (heuristic), ``tree``, or ``optimal`` (integer programming, with a time limit).
    fuse
        Whether elementwise nodes and reductions are fused into kernels.
    debug
        Whether every stage is checked against the unoptimized graph.
    machine
        Throughputs the cost model uses.

    Raises
    ------
    ModeError
        For an unknown mode or setting.
    """

    name: str
    strategy: Strategy
    query: Query
    soundness: Soundness
    node_limit: int
    time_limit: float
    round_limit: int
    extract: Literal["area", "tree", "optimal"]
    fuse: bool
    debug: bool
    machine: MachineProfile = field(repr=False)

    def __init__(self, name: str | Mode = "fast_run", **settings: Any) -> None:
        start = _predefined(name) if isinstance(name, str) else name._settings()
        known = set(start)
        for key in settings:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                hint = f" (did you mean {close[0]!r}?)" if close else ""
                raise ModeError(f"a Mode has no setting {key!r}{hint}; it has {', '.join(sorted(known))}")
        for key, value in {**start, **settings}.items():
            object.__setattr__(self, key, value)

    def _settings(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def including(self, *tags: str) -> Mode:
        """The same mode, with what has one of the tags as well."""
        return Mode(self, query=self.query.including(*tags))

    def requiring(self, *tags: str) -> Mode:
        """The same mode, with only what has all the tags."""
        return Mode(self, query=self.query.requiring(*tags))

    def excluding(self, *tags: str) -> Mode:
        """The same mode, without what has one of the tags."""
        return Mode(self, query=self.query.excluding(*tags))


_DEFAULTS: Mapping[str, Any] = {
    "strategy": "egraph",
    "query": Query(["fast_run"]),
    "soundness": "real",
    "node_limit": 100_000,
    "time_limit": 10.0,
    "round_limit": 4,
    "extract": "area",
    "fuse": True,
    "debug": False,
    "machine": MachineProfile(),
}

_PREDEFINED: Mapping[str, Mapping[str, Any]] = {
    "fast_run": {},
    "fast_compile": {"strategy": "merge", "query": Query(["fast_compile"])},
    "greedy": {"strategy": "greedy"},
}


def mode_names() -> tuple[str, ...]:
    """Names of the predefined modes."""
    return tuple(_PREDEFINED)


def _predefined(name: str) -> dict[str, Any]:
    settings = _PREDEFINED.get(name)
    if settings is None:
        close = difflib.get_close_matches(name, _PREDEFINED, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ModeError(f"no mode is named {name!r}{hint}; there are {', '.join(_PREDEFINED)}")
    return {"name": name, **_DEFAULTS, **settings}
