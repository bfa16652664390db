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
from weakref import WeakKeyDictionary, WeakSet

LONGEST_WAIT = 60.0
"""Seconds after which a fork goes on regardless: two threads that fork within compilations wait in vain."""
_LOOKED_AGAIN = 0.1
"""Seconds after which who waits looks again by itself: a block whose end was cut off tells nobody."""


class _Block:
    """Stands for a block while it runs: only the block's own frame keeps it."""

    __slots__ = ("__weakref__",)


class ForkGate:
    """Keeps forks and what must not be cut off by one apart. A thread never waits for itself."""

    def __init__(self) -> None:
        self._inside: WeakKeyDictionary[_Block, int] = WeakKeyDictionary()
        self._forks = 0
        self._begin_anew()
        self._locks: WeakSet[threading.RLock] = WeakSet()
        self._held: dict[int, list[threading.RLock]] = {}
        self._last: list[tuple[Callable[[], object], Callable[[], object]]] = []

    def _begin_anew(self) -> None:
        # Entered by itself, not through the condition: that takes the lock in a function of Python's, in
        # which the exception of a signal may come when it is taken and nobody is there to release it.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

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
        """For the length of the block, other threads do not fork.

        The exception of a signal may come at any place, also at the end: what is remembered of a block is
        gone with its frame.
        """
        thread, block = threading.get_ident(), _Block()
        try:
            with self._lock:
                if thread not in set(self._inside.values()):
                    self._wait_for(lambda: not self._forks)
                self._inside[block] = thread
            yield
        finally:
            with self._lock:
                self._inside.pop(block, None)
                self._changed.notify_all()

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        last = time.monotonic() + LONGEST_WAIT
        while not condition() and time.monotonic() < last:
            self._changed.wait(_LOOKED_AGAIN)

    def before(self) -> None:
        """Before a fork: wait until no other thread is inside or holds a lock, and let none in.

        Locks come first, for who holds one may be about to go inside.
        """
        thread = threading.get_ident()
        self._held[thread] = _take_all(list(self._locks))
        self._lock.acquire()
        self._forks += 1
        own = {thread}
        self._wait_for(lambda: own.issuperset(self._inside.values()))
        for before, _ in self._last:
            before()

    def after_in_parent(self) -> None:
        """After a fork: others may go on."""
        for _, after in self._last:
            after()
        self._forks -= 1
        self._changed.notify_all()
        self._lock.release()
        self._release_held()

    def after_in_child(self) -> None:
        """In the child, where there is no thread but this one."""
        own = threading.get_ident()
        self._begin_anew()
        # Frames of other threads are there still, and nobody ends them.
        blocks = {block: thread for block, thread in self._inside.items() if thread == own}
        self._inside = WeakKeyDictionary(blocks)
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
