"""One thread or several: calls are timed, and the faster way is taken.

What else the machine does changes which way is faster, for milliseconds or for hours, and a single time says
little. So the way that is taken has an average of its times. The other one is tried now and then, more and
more seldom while that shows nothing new, and soon where calls come to take longer than it would.

A call in several threads after others in one wakes threads that sleep, which takes as long as a short kernel;
those that follow at once find them awake, but for some calls what they need in the caches of another core. So
a trial goes on where its first call took little more than waking does, and only calls that follow others of
the same way are compared.

On a busy machine one call in several threads may wait milliseconds for a processor that another process has.
So there is an account of what they gained and lost against one thread: in the long run no more than a small
share of the time is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from statistics import fmean
from typing import Any, Protocol

from esat.codegen.threads.thread_pool import granted_threads, pool_address

MAXIMUM_CHOICES = 128
TRIED_AFTER = 16
"""Calls before the other way is tried for the first time; twice as many after each trial that was vain."""
TRIED_AT_LEAST = 64
"""Calls between trials, in the long run, where the other way is not much slower."""
_TRIED_EVERY = 3e-2
"""Seconds of calls between trials, in the long run: the caches settle anew after each."""
_CALLS_OF_A_TRIAL = 48
"""Calls between trials for each call's time that one loses: they cost a small share of the time."""
_PATIENCE = 4
"""Calls before an average that is too slow causes a trial; twice as many after each of them that was vain."""
_GAIN = 0.95
"""Several threads are taken if their time is less than this share of one thread's: a tie is no reason."""
_WEIGHT = 0.125
"""Of the last call in the average."""
_MOST = 4.0
"""Times the average that a call counts as, at most: one that is held up for long decides nothing."""
_OVERDRAFT = 128.0
"""Calls of one thread whose time several may lose before they are given up, however fast most calls are."""
_MOST_LOST = 32.0
"""The same that one call counts as, at most."""
_SLICE = 4e-3
"""Seconds that a system lets a process compute before another one may. Several threads may lose, and what
they gained makes up for, as much at the least; one call counts as two of them: those that take microseconds
would else be worth several threads, however many of them had to wait."""
_MEAN_WEIGHT = 0.01
"""Of the last call in the mean of one thread's times, which those that are held up are part of."""
_TURNS = 2
"""Calls of either way, after one that does not count, before another way is taken."""
_WAKING = 1e-4
"""Seconds that waking the other threads may take."""
_SETTLING = 3e-4
"""Seconds of calls that do not count until the caches of the cores hold what each of them needs."""
_MOST_SETTLING = (1, 6)
"""The most such calls, in one thread and in several."""
_COLD = 4.0
"""Times a call in several threads that one after it in one thread may take though that may be faster."""
_TIMED_EVERY = 5e-4
"""Seconds between calls in one thread that are timed, and between those in several that one hears of."""
_MOST_UNTIMED = (7, 31)
"""The most calls between them, in one thread and in several, where all are timed."""
_SLOW = 2.0
"""Times the average from which a call in several threads is taken account of at once."""

_Times = tuple[list[float], list[float]]
_Called = tuple[bool, float, int]
"""Which way a call ran, its seconds, and the calls it stands for."""
_Next = tuple[bool, int, float]
"""Which way the next call runs, how many more may run before one hears of them, and seconds of a slow one."""


class ThreadingChoice:
    """Which way is faster for operands of certain sizes: in one thread, or in several.

    Parameters
    ----------
    calls_alone
        Calls in one thread before the first one in several, which may compile.

    Attributes
    ----------
    untimed
        Calls in one thread that may be made before the next one that is timed. Timing takes up to a tenth of
        a short kernel's time: large arrays leave nothing of the interpreter in the caches.
    summed, slow
        Calls in several threads whose mean time may be told in place of each one's, for the same reason; but
        one that takes so many seconds is told at once.
    """

    __slots__ = ("_lock", "_next", "_ways", "slow", "summed", "untimed")

    def __init__(self, calls_alone: int = 0) -> None:
        self._begin(calls_alone)
        self._lock = threading.Lock()

    def _begin(self, calls_alone: int = 0) -> None:
        ways = _ways(calls_alone)
        self._take(next(ways))
        self._ways = ways

    def _take(self, following: _Next) -> None:
        self._next, calls, self.slow = following
        self.untimed, self.summed = (0, calls) if self._next else (calls, 0)

    def next(self) -> bool:
        """Whether the next call runs in several threads. The first of these may compile."""
        return self._next

    def run(self, threads: int, kernel: Callable[..., None], *arguments: Any) -> None:
        """Call a kernel in so many threads or in one, and take account of its time.

        After its arguments it takes the address of a pool, 0 for one thread, and the number of threads.
        """
        together = self._next
        used = threads if together else 1
        start = time.perf_counter()
        kernel(*arguments, pool_address(used), used)
        self.add(together, time.perf_counter() - start)

    def add(self, together: bool, seconds: float, calls: int = 1) -> None:
        """Take account of a call, which may stand for several of the same way, or of the mean of several.

        A function may be called in several threads of Python's: a call that ends while another one is taken
        account of counts for nothing. Nobody waits, for a forked child might wait for ever.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._take(self._ways.send((together, seconds, calls)))
            except StopIteration:
                # Ctrl-C came while it ran, which ends a generator.
                self._begin()
            finally:
                self._lock.release()


class _Known:
    """What is known of both ways.

    Attributes
    ----------
    seconds
        Of a call in one thread, and in several.
    account
        Seconds that several threads gained, less those they lost, and a share of all time; never much more
        than what may be lost at once.
    mean
        Seconds of a call in one thread, those that were held up counted in full.
    """

    def __init__(self, times: _Times) -> None:
        # Where one of two calls had to wait for a helper, others will: that takes longer than threads gain.
        self.seconds = [min(times[False]), max(times[True])]
        self.account = _CALLS_OF_A_TRIAL * self.seconds[False]
        self.mean = self.seconds[False]

    def faster(self) -> bool:
        """Which way is taken: several threads where they gain enough, and have no debts."""
        alone, together = self.seconds
        return together < _GAIN * alone and not self.is_overdrawn()

    def is_promising(self, way: bool, seconds: float) -> bool:
        """Whether a way whose first call took so long may be the faster one."""
        alone, together = self.seconds
        return seconds - _WAKING < _GAIN * alone if way else seconds <= together / _GAIN

    def settling(self, way: bool, seconds: float) -> int:
        """Calls that do not count, after the first one of a way that is tried, which took so long."""
        if way:
            is_open = self.is_promising(way, seconds)
        else:
            is_open = self.seconds[True] / _GAIN < seconds < _COLD * self.seconds[True]
        return min(_MOST_SETTLING[way], int(_SETTLING / seconds)) if is_open and seconds else 0

    def count(self, way: bool, last: float, calls: int) -> None:
        """Take a call of the way that is taken into its average."""
        average = self.seconds[way]
        weight = 1.0 - (1.0 - _WEIGHT) ** calls if way else _WEIGHT  # all of them were timed, or one
        self.seconds[way] += weight * (min(last, _MOST * average) - average)
        self.book(way, last, calls)

    def book(self, way: bool, last: float, calls: int = 1) -> None:
        """Put what a call gained or lost to account."""
        alone = self.seconds[False]
        change = calls * last / _CALLS_OF_A_TRIAL
        if way:
            most_lost = max(calls * _MOST_LOST * alone, 2.0 * _SLICE)
            change += max(calls * (max(alone, self.mean) - last), -most_lost)
        else:
            self.mean += _MEAN_WEIGHT * (last - self.mean)
        self.account = min(self.account + change, max(_CALLS_OF_A_TRIAL * alone, _SLICE))

    def may_try(self, way: bool) -> bool:
        """Whether a trial may cost something: one thread never costs many times what several do."""
        return not way or self.account >= 0.0

    def is_overdrawn(self) -> bool:
        """Whether several threads have lost so much that one is better, whatever their average."""
        return self.account < -max(_OVERDRAFT * self.seconds[False], _SLICE)

    def until_trial(self, wait: int, is_first: bool) -> float:
        """More where the other way is much slower; but a first trial tells whether that was by chance."""
        least, most = sorted(self.seconds)
        if is_first or not least:
            return wait
        seldom = _TRIED_EVERY * wait / TRIED_AT_LEAST / least
        return max(wait, seldom, _CALLS_OF_A_TRIAL * (most / least - 1.0))


def _ways(calls_alone: int) -> Generator[_Next, _Called, None]:
    """The way of each call, for ever; sent which way it ran and how long it took."""
    if calls_alone:
        yield False, calls_alone - 1, 0.0
    yield from _call(True)  # its time counts for nothing: it may compile
    known = _Known((yield from _in_turns([True, True, False, False])))
    taken, wait, patience, is_first = known.faster(), TRIED_AFTER, _PATIENCE, True
    while True:
        calls = 0
        while calls < known.until_trial(wait, is_first) or not known.may_try(not taken):
            usual = known.seconds[taken]
            ran, last, stood_for = yield taken, _untimed(taken, usual), _SLOW * usual
            known.count(ran, last, stood_for)
            calls += stood_for
            if taken and known.is_overdrawn():
                break
            if calls >= patience and known.faster() != taken and known.may_try(not taken):
                patience = min(2 * patience, TRIED_AT_LEAST)
                break
        is_first = False
        yield from _trial(known, not taken)
        if known.faster() == taken:
            wait = min(2 * wait, TRIED_AT_LEAST)
        else:
            taken = not taken
            wait, patience, is_first = TRIED_AFTER, _PATIENCE, True


def _trial(known: _Known, way: bool) -> Generator[_Next, _Called, None]:
    """Find out what calls take that go the way that is not taken: a few of them, or several in turns."""
    seconds = yield from _call(way)
    known.book(way, seconds)
    for _ in range(known.settling(way, seconds)):
        seconds = yield from _call(way)
        known.book(way, seconds)
    known.seconds[way] = seconds
    if not known.is_promising(way, seconds):
        return
    times = yield from _in_turns([*[way] * _TURNS, *[not way] * _TURNS])
    known.seconds[way] = fmean(times[way])
    # An average that slow calls have raised by chance is no reason to change.
    known.seconds[not way] = min(known.seconds[not way], max(times[not way]))
    for seconds in times[True]:
        known.book(True, seconds)


def _untimed(way: bool, seconds: float) -> int:
    return min(_MOST_UNTIMED[way], int(_TIMED_EVERY / seconds)) if seconds else _MOST_UNTIMED[way]


def _call(way: bool) -> Generator[_Next, _Called, float]:
    """A call of one way; its seconds. Calls that others made in the meantime are passed over."""
    while True:
        ran, seconds, _ = yield way, 0, 0.0
        if ran == way:
            return seconds


def _in_turns(ways: Sequence[bool]) -> Generator[_Next, _Called, _Times]:
    """Calls of these ways, one after the other; the seconds of those in one thread and in several."""
    times: _Times = ([], [])
    for way in ways:
        times[way].append((yield from _call(way)))
    return times


class Choices:
    """Choices by sizes; the oldest are forgotten where there are too many."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, ThreadingChoice] = {}

    def of(self, sizes: Hashable) -> ThreadingChoice:
        """The choice for operands of these sizes."""
        known = self._known.get(sizes)
        if known is not None:
            return known
        while len(self._known) >= MAXIMUM_CHOICES:
            self._known.pop(next(iter(self._known)), None)
        return self._known.setdefault(sizes, ThreadingChoice())


def _nothing(*_arguments: Any, **_named: Any) -> Any:
    return NotImplemented


class Used(Protocol):
    """What notes how many threads the last call ran in."""

    used: int


class ChosenCalls:
    """A function that runs in one thread or in several, whichever calls have shown to be faster.

    Large arrays leave nothing of the interpreter in the caches: every function called on the way costs as
    much as ten do otherwise, together up to a tenth of a kernel's time. So calls in one thread are made
    directly where that is known to be faster, and those in several threads are taken account of together.

    Parameters
    ----------
    limit
        The most threads it may use; None for what :func:`default_threads` says at each call.
    alone, together
        Called with the arguments, and with a number of threads and the arguments; named ones as well. Where
        they return NotImplemented they have done nothing.
    noted
        Where the number of threads is noted.
    otherwise
        Called where they have done nothing. Without it NotImplemented is returned.
    calls_alone
        As of :class:`ThreadingChoice`.
    """

    __slots__ = (
        "_alone", "_calls", "_choice", "_limit", "_noted", "_otherwise", "_seconds", "_skipped", "_slow",
        "_summed", "_together", "_untimed",
    )  # fmt: skip

    def __init__(
        self,
        limit: int | None,
        alone: Callable[..., Any],
        together: Callable[..., Any],
        noted: Used,
        otherwise: Callable[..., Any] = _nothing,
        calls_alone: int = 0,
    ) -> None:
        self._limit = limit
        self._alone = alone
        self._together = together
        self._noted = noted
        self._otherwise = otherwise
        self._choice = ThreadingChoice(calls_alone)
        self._calls, self._seconds = 0, 0.0
        self._follow()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named:
            return self._with_named(arguments, named)
        if self._untimed > 0:
            self._untimed -= 1
            self._noted.used = 1
            done = self._alone(*arguments)
            return self._otherwise(*arguments) if done is NotImplemented else done
        threads = granted_threads(self._limit)
        together = threads > 1 and self._choice.next()
        self._noted.used = threads if together else 1
        start = time.perf_counter()
        done = self._together(threads, *arguments) if together else self._alone(*arguments)
        seconds = time.perf_counter() - start
        if done is NotImplemented:
            return self._otherwise(*arguments)
        if together and self._calls < self._summed and seconds < self._slow:
            self._calls += 1
            self._seconds += seconds
        elif threads > 1:
            self._report(together, seconds)
        return done

    def _with_named(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """A call in the way that is known to be the fastest."""
        threads = granted_threads(self._limit)
        together = threads > 1 and self._choice.next()
        self._noted.used = threads if together else 1
        done = self._together(threads, *arguments, **named) if together else self._alone(*arguments, **named)
        return self._otherwise(*arguments, **named) if done is NotImplemented else done

    def _report(self, together: bool, seconds: float) -> None:
        """Take account of a call, and of those before it."""
        choice, calls, summed = self._choice, self._calls, self._seconds
        self._calls, self._seconds = 0, 0.0
        if calls and together:
            choice.add(True, summed / calls, calls)
        choice.add(together, seconds, 1 + self._skipped)
        self._follow()

    def _follow(self) -> None:
        choice = self._choice
        self._untimed = self._skipped = choice.untimed
        self._summed, self._slow = choice.summed, choice.slow
