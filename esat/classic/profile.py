"""Profiles of optimizers: what each did and how long it took, as data and in the documents' format."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

NAMED_PER_PASS = 5
"""Optimizers that the line of one pass names."""


class Laps:
    """Times parts that follow each other without a gap: each begins where the one before it ended."""

    def __init__(self) -> None:
        self._ended = time.perf_counter()

    def lap(self) -> float:
        """Seconds since the last lap, or since this was made."""
        begin, self._ended = self._ended, time.perf_counter()
        return self._ended - begin


@dataclass(slots=True)
class PassProfile:
    """One pass of an optimizer that repeats.

    Attributes
    ----------
    seconds
        Wall time; the next two are parts of it.
    global_seconds, toposort_seconds
        Time in global optimizers, and in sorting the graph.
    nodes
        Apply nodes (e-nodes for a saturation) at its end.
    applied
        Name of each optimizer that changed the graph in this pass -> how often.
    """

    seconds: float = 0.0
    global_seconds: float = 0.0
    toposort_seconds: float = 0.0
    nodes: int = 0
    applied: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class OptimizerProfile:
    """What one run of an optimizer did.

    Attributes
    ----------
    name, kind
        The optimizer's name and class.
    seconds
        Wall time, parts included.
    validate_seconds, callback_seconds, toposort_seconds
        Parts of it: checking the graph, telling features of changes, sorting the graph.
    nodes_before, nodes_after, nodes_most
        Apply nodes; for a saturation e-nodes.
    applied
        Name of each local optimizer or rule -> how often it changed the graph (matched, in an e-graph).
    created
        Name of each local optimizer -> Apply nodes it added.
    local_seconds
        Name of each local optimizer or rule -> time spent in it, whether it applied or not.
    passes
        For optimizers that repeat: one record a pass.
    parts
        Profiles of the optimizers it consists of, in order of their execution.
    note
        Why it ended, where that is worth telling.
    rounds
        Passes of which there are no records: an e-graph that was kept on disk had them in another process.
    """

    name: str
    kind: str
    seconds: float = 0.0
    validate_seconds: float = 0.0
    callback_seconds: float = 0.0
    toposort_seconds: float = 0.0
    nodes_before: int = 0
    nodes_after: int = 0
    nodes_most: int = 0
    applied: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    local_seconds: dict[str, float] = field(default_factory=dict)
    passes: list[PassProfile] = field(default_factory=list)
    parts: list[OptimizerProfile] = field(default_factory=list)
    note: str = ""
    rounds: int = 0

    @property
    def changes(self) -> int:
        """Replacements made, those of the parts included."""
        return sum(self.applied.values()) + sum(part.changes for part in self.parts)

    def end(self, seconds: float) -> None:
        """Set the wall time. What was done before the first part, or pass, and after the last one counts as
        the last one's, so that their times add up to the whole."""
        self.seconds = seconds
        for each in (self.parts, self.passes):
            if each:
                each[-1].seconds += seconds - sum(one.seconds for one in each)

    def count(self, name: str, changes: int = 1, created: int = 0) -> None:
        """Count changes made by a local optimizer."""
        self.applied[name] = self.applied.get(name, 0) + changes
        self.created[name] = self.created.get(name, 0) + created

    def spend(self, name: str, seconds: float) -> None:
        """Count time spent in a local optimizer."""
        self.local_seconds[name] = self.local_seconds.get(name, 0.0) + seconds

    def absorb(self, part: OptimizerProfile) -> None:
        """Count what another optimizer did as done here."""
        if not part.parts and not part.local_seconds:
            self.spend(part.name, part.seconds)
        for name, seconds in part.local_seconds.items():
            self.spend(name, seconds)
        for name, changes in part.applied.items():
            self.count(name, changes, part.created.get(name, 0))
        self.nodes_most = max(self.nodes_most, part.nodes_most)
        for inner in part.parts:
            self.absorb(inner)

    def all_applied(self) -> dict[str, int]:
        """Name of every optimizer that changed something -> how often, parts included, most first."""
        counts: dict[str, int] = {}
        pending = [self]
        while pending:
            profile = pending.pop()
            pending += profile.parts
            for name, count in profile.applied.items():
                counts[name] = counts.get(name, 0) + count
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, for storing and comparing."""
        return asdict(self)

    def __str__(self) -> str:
        title = "Optimizer Profile"
        return "\n".join([title, "-" * len(title), *(" " + line for line in _block(self))])


def _block(profile: OptimizerProfile) -> list[str]:
    """The lines about one optimizer, less those that its parent prints."""
    if profile.kind == "SeqOptimizer":
        return _sequence(profile)
    if profile.kind in ("EquilibriumOptimizer", "EqualitySaturation"):
        return _equilibrium(profile)
    if profile.kind == "TopoOptimizer":
        return _navigator(profile)
    return [profile.kind, f"  nb_replacement {profile.changes}"] if profile.changes else []


def _sequence(profile: OptimizerProfile) -> list[str]:
    lines = [
        f"SeqOptimizer  {profile.name}  time {profile.seconds:.3f}s for"
        f" {profile.nodes_before}/{profile.nodes_after} nodes before/after optimization",
        f"  {profile.validate_seconds:.3f}s for fgraph.validate()",
        f"  {profile.callback_seconds:.3f}s for callback",
        "  time      - (name, class, index) - validate time",
    ]
    order = sorted(range(len(profile.parts)), key=lambda index: -profile.parts[index].seconds)
    for index in order:
        part = profile.parts[index]
        key = (part.name, part.kind, index)
        lines.append(f"  {part.seconds:.6f}s - {key} - {part.validate_seconds:.3f}s")
        lines += ["    " + line for line in _block(part)]
    return lines


def _equilibrium(profile: OptimizerProfile) -> list[str]:
    saturation = profile.kind == "EqualitySaturation"
    globals = sum(one.global_seconds for one in profile.passes)
    sorting = sum(one.toposort_seconds for one in profile.passes)
    unit, rounds = ("e-nodes", "rounds") if saturation else ("nodes", "passes")
    lines = [
        f"{profile.kind}      {profile.name}",
        f"  time {profile.seconds:.3f}s for {len(profile.passes) or profile.rounds} {rounds}"
        + (" of another process" if profile.rounds else "")
        + (f", ended by: {profile.note}" if profile.note else ""),
        f"  nb {unit} (start, end,  max) {profile.nodes_before} {profile.nodes_after} {profile.nodes_most}"
        if not profile.rounds
        else f"  nb {unit} at the end {profile.nodes_after}",
    ]
    if not saturation:
        inside = sum(one.seconds for one in profile.passes) - globals - sorting
        lines += [
            f"  time io_toposort {sorting:.3f}s",
            f"  time in local optimizers {inside:.3f}s",
            f"  time in global optimizers {globals:.3f}s",
        ]
    lines += [_pass(number, one, unit) for number, one in enumerate(profile.passes)]
    lines += ["  " + line for line in _table(profile, "matches" if saturation else "times applied")]
    for part in profile.parts:
        lines += ["  " + line for line in _block(part)]
    return lines


def _pass(number: int, one: PassProfile, unit: str) -> str:
    most = sorted(one.applied.items(), key=lambda item: (-item[1], item[0]))
    named = " ".join(str(item) for item in most[:NAMED_PER_PASS])
    rest = " ..." if len(most) > NAMED_PER_PASS else ""
    text = f"  {number:2d} - {one.seconds:.3f}s {sum(one.applied.values())}"
    if unit == "nodes":
        text += f" ({one.global_seconds:.3f}s in global opts, {one.toposort_seconds:.3f}s io_toposort)"
    return f"{text} - {one.nodes} {unit} - {named}{rest}".rstrip()


def _table(profile: OptimizerProfile, counted: str) -> list[str]:
    """Used optimizers with their times, then those that were tried in vain."""
    seconds = profile.local_seconds
    used = sorted(profile.applied, key=lambda name: (-seconds.get(name, 0.0), name))
    unused = sorted(
        (name for name, spent in seconds.items() if spent > 0 and name not in profile.applied),
        key=lambda name: (-seconds[name], name),
    )
    lines: list[str] = []
    if used and profile.created:
        lines.append(f"times - {counted} - nb node created - name:")
    elif used:
        lines.append(f"times - {counted} - name:")
    for name in used:
        made = f" - {profile.created.get(name, 0)}" if profile.created else ""
        lines.append(f"{seconds.get(name, 0.0):.3f}s - {profile.applied[name]}{made} - {name}")
    return lines + _unused(unused, seconds)


def _unused(names: Sequence[str], seconds: dict[str, float]) -> list[str]:
    if not names:
        return []
    total = sum(seconds[name] for name in names)
    head = f"{total:.3f}s - in {len(names)} optimization that were not used"
    lines = [f"{head} (display only those with a runtime > 0)"]
    return lines + [f"  {seconds[name]:.3f}s - {name}" for name in names]


def _navigator(profile: OptimizerProfile) -> list[str]:
    loop = profile.seconds - profile.toposort_seconds
    return [
        "TopoOptimizer",
        f"  nb_node (start, end, changed) {(profile.nodes_before, profile.nodes_after, profile.changes)}",
        f"  init io_toposort {profile.toposort_seconds}",
        f"  loop time {loop}",
        f"  callback_time {profile.callback_seconds}",
    ]
