"""One thread or several: calls are timed, and the faster way is taken.

What else the machine does changes which way is faster, for milliseconds or for hours, and a single time says
little. So the way that is taken has an average of its times. The other one is tried by one call now and then,
more and more seldom while that shows nothing new, and soon where calls come to take longer than it would.
Only where that call was faster are both ways called in turns, and it is taken if it is faster there, too.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Hashable, Sequence
from statistics import median

MAXIMUM_CHOICES = 128
TRIED_AFTER = 16
"""Calls before the other way is tried for the first time; twice as many after each trial that was vain."""
TRIED_AT_LEAST = 64
"""Calls between trials, in the long run, where the other way is not much slower."""
_CALLS_OF_A_TRIAL = 32
"""Calls between trials for each call's time that one loses: they cost a thirty-second of the time."""
_PATIENCE = 4
"""Calls before an average that is too slow causes a trial; twice as many after each of them that was vain."""
_GAIN = 0.95
"""Several threads are taken if their time is less than this share of one thread's: a tie is no reason."""
_WEIGHT = 0.125
"""Of the last call in the average."""
_MOST = 4.0
"""Times the average that a call counts as, at most: one that is held up for long decides nothing."""
_TURNS = 2
"""Calls of either way before one is taken that was faster in a single call."""

_Times = tuple[list[float], list[float]]
_Called = tuple[bool, float]
"""Which way a call ran, and its seconds."""


class Choice:
    """Which way is faster for operands of certain sizes: in one thread, or in several."""

    __slots__ = ("_lock", "_next", "_ways")

    def __init__(self) -> None:
        self._begin()
        self._lock = threading.Lock()

    def _begin(self) -> None:
        ways = _ways()
        first = next(ways)
        self._ways, self._next = ways, first

    def next(self) -> bool:
        """Whether the next call runs in several threads. The first one, which may compile, does."""
        return self._next

    def add(self, together: bool, seconds: float) -> None:
        """Take account of a call.

        A function may be called in several threads of Python's: a call that ends while another one is taken
        account of counts for nothing. Nobody waits, for a forked child might wait for ever.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._next = self._ways.send((together, seconds))
            except StopIteration:
                # Ctrl-C came while it ran, which ends a generator.
                self._begin()
            finally:
                self._lock.release()


def _ways() -> Generator[bool, _Called, None]:
    """The way of each call, for ever; sent which way it ran and how long it took."""
    yield from _call(True)  # its time counts for nothing: it may compile
    times = yield from _in_turns([True, False, False, True])
    # Where one of two calls had to wait for a helper, others will: that takes many times what threads gain.
    seconds = [min(times[False]), max(times[True])]
    taken = _faster(seconds)
    wait, patience, is_first = TRIED_AFTER, _PATIENCE, True
    while True:
        calls = 0
        while calls < _until_trial(seconds, wait, is_first):
            ran, last = yield taken
            seconds[ran] += _WEIGHT * (min(last, _MOST * seconds[ran]) - seconds[ran])
            calls += 1
            if calls >= patience and _faster(seconds) != taken:
                patience = min(2 * patience, TRIED_AT_LEAST)
                break
        other, is_first = not taken, False
        seconds[other] = yield from _call(other)
        if _faster(seconds) != taken:
            times = yield from _in_turns([taken, other] * _TURNS)
            seconds[other] = median([seconds[other], *times[other]])
            for last in times[taken]:
                seconds[taken] += _WEIGHT * (min(last, _MOST * seconds[taken]) - seconds[taken])
        if _faster(seconds) == taken:
            wait = min(2 * wait, TRIED_AT_LEAST)
        else:
            taken = other
            wait, patience, is_first = TRIED_AFTER, _PATIENCE, True


def _call(way: bool) -> Generator[bool, _Called, float]:
    """A call of one way; its seconds. Calls that others made in the meantime are passed over."""
    while True:
        ran, seconds = yield way
        if ran == way:
            return seconds


def _in_turns(ways: Sequence[bool]) -> Generator[bool, _Called, _Times]:
    """Calls of these ways, one after the other; the seconds of those in one thread and in several."""
    times: _Times = ([], [])
    for way in ways:
        times[way].append((yield from _call(way)))
    return times


def _faster(seconds: Sequence[float]) -> bool:
    alone, together = seconds
    return together < _GAIN * alone


def _until_trial(seconds: Sequence[float], wait: int, is_first: bool) -> float:
    """More where the other way is much slower; but a first trial tells whether that was by chance."""
    least, most = sorted(seconds)
    return wait if is_first or not least else max(wait, _CALLS_OF_A_TRIAL * (most / least - 1.0))


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
