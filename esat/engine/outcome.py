"""What the run of a schedule did, on whichever engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ScheduleOutcome(NamedTuple):
    """What the run of a schedule did.

    Attributes
    ----------
    updated
        Whether it changed anything, or left rules out for their matches.
    matches
        Of each rule that matched.
    changes
        Whether each iteration changed anything, in order.
    rest
        The program that is left to run, where something was repeated as often as one command may.
    exceeded
        Whether it ended before it was done, for more matches than it was allowed.
    report
        egglog's, if there is one.
    """

    updated: bool
    matches: Mapping[str, int]
    changes: Sequence[bool]
    rest: str = ""
    exceeded: bool = False
    report: Any = None
