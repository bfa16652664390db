"""Schedules of rule sets, and what a run of one did, on whichever engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RulesetRun(NamedTuple):
    """A step of a schedule.

    Attributes
    ----------
    rulesets
        What runs as one.
    is_saturated
        Whether it is repeated until nothing changes.
    limit
        New matches that a rule may have; one that has more is left out. 0: any number.
    """

    rulesets: tuple[str, ...]
    is_saturated: bool = False
    limit: int = 0


class ScheduleOutcome(NamedTuple):
    """What the run of a schedule did.

    Attributes
    ----------
    updated
        Whether it changed anything, or left rules out for their matches.
    matches
        Of each rule that matched.
    is_unfinished
        Whether there is more to run: the engine came back to be asked whether it may go on.
    exceeded
        Whether it ended before it was done, for more matches than it was allowed.
    left_out
        Names of rules that had too many matches; with egglog, of their rule sets.
    """

    updated: bool
    matches: Mapping[str, int]
    is_unfinished: bool = False
    exceeded: bool = False
    left_out: frozenset[str] = frozenset()

    def followed_by(self, other: ScheduleOutcome) -> ScheduleOutcome:
        """What this run and the one that went on with it did."""
        names = {*self.matches, *other.matches}
        return ScheduleOutcome(
            self.updated or other.updated,
            {name: self.matches.get(name, 0) + other.matches.get(name, 0) for name in names},
            other.is_unfinished,
            other.exceeded,
            self.left_out | other.left_out,
        )
