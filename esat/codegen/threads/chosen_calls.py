"""Calls that run in one thread or in several, whichever is faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from esat.codegen.threads.choice import ThreadingChoice
from esat.codegen.threads.thread_pool import granted_threads


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
    ) -> None:
        self._limit = limit
        self._alone = alone
        self._together = together
        self._noted = noted
        self._otherwise = otherwise
        self._choice = ThreadingChoice()
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
