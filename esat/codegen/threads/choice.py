"""One thread or several: calls are timed, and the faster way is taken."""

from __future__ import annotations

from collections.abc import Hashable

MAXIMUM_CHOICES = 128
RETRIED_AFTER = 50
"""Calls after which the way that was slower is tried again."""
_CALLS_OF_A_TRIAL = 16
"""Calls between later trials for each call's time that one loses: trials cost a sixteenth at most."""
_GAIN = 0.95
"""Several threads are taken if their time is less than this share of one thread's: a tie is no reason."""
_WEIGHT = 0.125
"""Of the last call in the average of the way that is taken."""


class Choice:
    """Which way is faster for operands of certain sizes: in one thread, or in several."""

    __slots__ = ("_calls", "_confirmed", "_faster", "_seconds", "_tried")

    def __init__(self) -> None:
        self._calls = 0
        self._seconds = [0.0, 0.0]
        self._faster = False
        self._tried = 0
        self._confirmed = False

    def next(self) -> bool:
        """Whether the next call runs in several threads. The first one, which may compile, does."""
        self._calls += 1
        if self._calls <= 3:
            return self._calls < 3
        alone, together = self._seconds
        faster = together < _GAIN * alone
        if faster != self._faster:
            self._faster, self._tried, self._confirmed = faster, self._calls - 1, False
        if self._calls - self._tried < self._calls_between_trials():
            return faster
        self._tried, self._confirmed = self._calls, True
        return not faster

    def _calls_between_trials(self) -> float:
        """More where the other way is much slower; but a first trial tells whether that was by chance."""
        least, most = sorted(self._seconds)
        if not self._confirmed or not least:
            return RETRIED_AFTER
        return max(RETRIED_AFTER, _CALLS_OF_A_TRIAL * (most / least - 1.0))

    def add(self, together: bool, seconds: float) -> None:
        """Take account of a call. One that is slow by chance shall not decide for long."""
        known = self._seconds[together]
        if self._calls > 1:
            self._seconds[together] = min(seconds, known + _WEIGHT * (seconds - known)) if known else seconds


class Choices:
    """Choices by sizes; the oldest are forgotten where there are too many."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Choice] = {}

    def of(self, sizes: Hashable) -> Choice:
        """The choice for operands of these sizes."""
        known = self._known.get(sizes)
        if known is not None:
            return known
        while len(self._known) >= MAXIMUM_CHOICES:
            self._known.pop(next(iter(self._known)), None)
        return self._known.setdefault(sizes, Choice())
