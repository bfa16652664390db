"""Forks wait for compilations of other threads.

A forked child has a copy of every lock, and none of the threads that would release them: those of this
package, of numba and LLVM, and the hidden one of each ``functools.cached_property`` before Python 3.12. So
what takes such locks announces itself, and a fork lets it finish first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT = 60.0
"""Seconds after which a fork goes on regardless: two threads that fork within compilations wait in vain."""


class ForkGate:
    """Keeps forks and what must not be cut off by one apart. A thread never waits for itself."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}
        self._forks = 0

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
        """Before a fork: wait until no other thread is inside, and let none in."""
        self._changed.acquire()
        self._forks += 1
        own = {threading.get_ident()}
        self._changed.wait_for(lambda: self._inside.keys() <= own, LONGEST_WAIT)

    def after_in_parent(self) -> None:
        """After a fork: others may go on."""
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()

    def after_in_child(self) -> None:
        """In the child, where there is no thread but this one."""
        own = threading.get_ident()
        self._changed = threading.Condition()
        self._inside = {thread: depth for thread, depth in self._inside.items() if thread == own}
        self._forks = 0


GATE = ForkGate()
"""That of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before, after_in_parent=GATE.after_in_parent, after_in_child=GATE.after_in_child
    )
