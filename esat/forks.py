"""Forks wait for compilations, and for updates of variables, in other threads.

A forked child has a copy of every lock, and none of the threads that would release them: those of this
package, of numba and LLVM, and the hidden one of each ``functools.cached_property`` before Python 3.12. So
what takes such locks announces itself, and a fork lets it finish first. What guards values in memory is a
lock that the fork itself takes: the child sees no variable that is half updated.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakSet

LONGEST_WAIT = 60.0
"""Seconds after which a fork goes on regardless: two threads that fork within compilations wait in vain."""


class ForkGate:
    """Keeps forks and what must not be cut off by one apart. A thread never waits for itself."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forks = 0
        self._locks: WeakSet[threading.RLock] = WeakSet()
        self._held: dict[int, list[threading.RLock]] = {}
        self._last: list[tuple[Callable[[], object], Callable[[], object]]] = []

    def at_last(self, before: Callable[[], object], after_in_parent: Callable[[], object]) -> None:
        """Call functions right before each fork, no other thread being inside, and in the parent after it."""
        self._last.append((before, after_in_parent))

    def lock(self) -> threading.RLock:
        """A lock that forks take before and release after: in a child, no thread that is gone holds it.

        Holding it costs what any lock does, so that calls of microseconds can.
        """
        made = threading.RLock()
        self._locks.add(made)
        return made

    @contextmanager
    def busy(self) -> Iterator[None]:
        """For the length of the block, other threads do not fork."""
        thread = threading.get_ident()
        with self._changed:
            if thread not in self._inside:
                self._changed.wait_for(lambda: not self._forks, LONGEST_WAIT)
            self._inside[thread] = self._inside.get(thread, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[thread] -= 1
                if not self._inside[thread]:
                    del self._inside[thread]
                    self._changed.notify_all()

    def before(self) -> None:
        """Before a fork: wait until no other thread is inside or holds a lock, and let none in.

        Locks come first, for who holds one may be about to go inside.
        """
        thread = threading.get_ident()
        self._held[thread] = _take_all(list(self._locks))
        self._changed.acquire()
        self._forks += 1
        own = {thread}
        self._changed.wait_for(lambda: self._inside.keys() <= own, LONGEST_WAIT)
        for before, _ in self._last:
            before()

    def after_in_parent(self) -> None:
        """After a fork: others may go on."""
        for _, after in self._last:
            after()
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()
        self._release_held()

    def after_in_child(self) -> None:
        """In the child, where there is no thread but this one."""
        own = threading.get_ident()
        self._changed = threading.Condition()
        self._inside = {thread: depth for thread, depth in self._inside.items() if thread == own}
        self._forks = 0
        self._release_held()
        self._held = {}

    def _release_held(self) -> None:
        for lock in self._held.pop(threading.get_ident(), ()):
            lock.release()


def _take_all(locks: list[threading.RLock]) -> list[threading.RLock]:
    """Take locks, and return those taken: all of them, unless that takes too long.

    One is waited for only while no other is held: who holds it may want any of the others.
    """
    last = time.monotonic() + LONGEST_WAIT
    while True:
        taken: list[threading.RLock] = []
        for place, lock in enumerate(locks):
            if lock.acquire(timeout=0 if taken else max(0.0, last - time.monotonic())):
                taken.append(lock)
            elif time.monotonic() < last:
                locks.insert(0, locks.pop(place))
                break
        else:
            return taken
        for lock in taken:
            lock.release()


GATE = ForkGate()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before, after_in_parent=GATE.after_in_parent, after_in_child=GATE.after_in_child
    )
