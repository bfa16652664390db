"""Reuse of engines that have their rules loaded.

Loading the rules takes far longer than a small graph's saturation, and an e-graph cannot be copied. So what a
use adds is deleted (:mod:`esat.egraph.clearing`): at once where it is much, else before the next use. egglog
keeps the containers and the union-find of what was deleted, a quarter of a megabyte for a small graph, so an
engine is replaced after a number of uses. Engines belong to one thread. A forked process, which does not have
egglog's threads, uses each once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from esat.egraph.clearing import clear
from esat.egraph.engine import AnyEngine, Engine, in_forked_process

USES = 50
"""Uses after which an engine is replaced."""

ENGINES_PER_THREAD = 4
"""Rule selections a thread keeps engines for; the one unused for longest goes first."""

ROWS_LEFT = 20_000
"""Rows that an idle engine may hold of its last use, some megabytes; what has more is cleared at once."""


@dataclass(slots=True)
class _Slot:
    """An engine, and how it is used.

    Attributes
    ----------
    engine
        The engine.
    uses
        How often it was used.
    busy
        Whether it is in use.
    rest
        Rows by table that belong to the rules, as it was found before the last use; None: not known.
    left
        Rows by table that the last use left; None where that was cleared away.
    """

    engine: AnyEngine
    uses: int = 0
    busy: bool = False
    rest: Mapping[str, int] | None = None
    left: Mapping[str, int] | None = None

    def at_rest(self, extend: Callable[[AnyEngine], None]) -> None:
        """Extend the engine, and take what it holds then for what belongs to the rules.

        Tables are told apart only where there are more rows than before: that takes as long as a rule set.
        """
        before = self.engine.rows() if self.rest is not None else -1
        extend(self.engine)
        if self.rest is None or self.engine.rows() != before:
            self.rest = self.engine.sizes()

    def clear(self) -> bool:
        """Delete what the last use left; whether the engine can be used again."""
        left, self.left = self.left, None
        if left is None or self.rest is None:
            return True
        if isinstance(self.engine, Engine):
            return clear(self.engine, self.rest, left)
        self.engine.reset()
        return True


class EnginePool:
    """Engines by what they hold; each thread has its own.

    Parameters
    ----------
    uses
        See :data:`USES`.
    """

    def __init__(self, uses: int = USES) -> None:
        self._uses = uses
        self._local = threading.local()

    @contextmanager
    def engine(
        self,
        key: Hashable,
        build: Callable[[], AnyEngine],
        extend: Callable[[AnyEngine], None] = lambda _: None,
        suits: Callable[[AnyEngine], bool] = lambda _: True,
    ) -> Iterator[AnyEngine]:
        """An engine with rules loaded, for the length of a ``with`` block.

        The terms that the block adds are gone when the engine is used again. One whose block raised is not.

        Parameters
        ----------
        key
            Stands for the rules; equal keys mean equal rules.
        build
            Makes an engine for them, when there is none. What it raises is raised here.
        extend
            Adds rules to the engine that stay in it after the block.
        suits
            Whether an engine that was used before can be used for this block.
        """
        slot = self._take(key, build, suits)
        try:
            slot.at_rest(extend)
            yield slot.engine
            slot.uses += 1
            usable = not in_forked_process() and slot.uses < self._uses
            if usable:
                slot.left = slot.engine.sizes()
                # The last use of a process need not be cleared away.
                if sum(slot.left.values()) > ROWS_LEFT:
                    usable = slot.clear()
        except BaseException:
            self._discard(key, slot)
            raise
        slot.busy = False
        if not usable:
            self._discard(key, slot)

    def clear(self) -> None:
        """Drop the engines of the calling thread."""
        self._slots().clear()

    def _slots(self) -> OrderedDict[Hashable, _Slot]:
        slots: OrderedDict[Hashable, _Slot] | None = getattr(self._local, "slots", None)
        if slots is None:
            slots = OrderedDict()
            self._local.slots = slots
        return slots

    def _take(
        self, key: Hashable, build: Callable[[], AnyEngine], suits: Callable[[AnyEngine], bool]
    ) -> _Slot:
        """The slot of an idle engine with these rules; a new one if there is none."""
        slots = self._slots()
        slot = slots.get(key)
        if slot is not None and not slot.busy:
            del slots[key]
            if suits(slot.engine) and slot.clear():
                slots[key] = slot
                slot.busy = True
                return slot
            slot = None
        fresh = _Slot(build(), busy=True)
        if slot is None:  # a busy one stays: this is a compilation within a compilation
            slots[key] = fresh
            while len(slots) > ENGINES_PER_THREAD:
                slots.popitem(last=False)
        return fresh

    def _discard(self, key: Hashable, slot: _Slot) -> None:
        slots = self._slots()
        if slots.get(key) is slot:
            del slots[key]


POOL = EnginePool()
"""The engines of this process."""
