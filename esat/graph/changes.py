"""What users change of the compiler while a process runs: rules and optimizers, which they add and remove.

Functions that are compiled when they are called are compiled anew after a change. They are told of it, so
that a call does not have to ask.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

from esat.base.forks import GATE
from esat.graph.scoped import Block, Scoped


class Concerned(Protocol):
    """Something that holds programs."""

    def forget_programs(self) -> None:
        """Compile anew from now on."""


_concerned: weakref.WeakSet[Concerned] = weakref.WeakSet()
_lock = threading.Lock()
_silent = Scoped[bool]("silent")


def tell_of_changes(one: Concerned) -> None:
    """Call ``one.forget_programs()`` after each change from now on, as long as it is there."""
    with GATE.busy(), _lock:
        _concerned.add(one)


def note_change() -> None:
    """The compiler makes other programs from now on."""
    if _silent.get():
        return
    with GATE.busy(), _lock:
        concerned = list(_concerned)
    for one in concerned:
        one.forget_programs()


def before_use() -> Block[bool]:
    """A block in which nothing is a change: the package fills its own databases, from which nothing was
    compiled yet."""
    return _silent.set(True)
