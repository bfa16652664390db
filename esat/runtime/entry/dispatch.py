"""Which code runs a call: one table, from the shapes of a call to its way, and candidates asked in turn.

Every way is right for every legal call; which one runs decides only how fast. What is decided for a
combination of shapes stands in their record (:mod:`esat.runtime.entry.signatures`), which the driver looks up
anyway: a later call pays one test. Candidates are, in this order, the programs of other rules
(:mod:`esat.runtime.entry.variants`), the program with layers over rows in blocks
(:mod:`esat.runtime.program_in_blocks`), and a native function of the program
(:mod:`esat.runtime.native.direct`). Each says what runs, or after how many calls it wants to be asked again,
or that it has nothing for these shapes. Where none has, the driver's own steps run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from esat.base.forks import GATE
from esat.base.interrupts import handlers_reach_the_caller

Key: TypeAlias = tuple[tuple[int, ...], ...]
"""The shapes of inputs and shared variables."""
Run: TypeAlias = Callable[..., Any]


class CallsLeft:
    """Calls until a candidate is asked again; calls of several combinations of shapes may count it down.

    Attributes
    ----------
    calls
        How many.
    native_calls
        Calls of a native function that cost as much as one of these.
    """

    __slots__ = ("calls", "native_calls")

    def __init__(self, calls: int = 0) -> None:
        self.calls, self.native_calls = calls, 1.0

    def until(self, cost: float, call: float, driver: float = 0.0) -> None:
        """Wait until calls have taken as many seconds as something would cost.

        Parameters
        ----------
        cost, call
            Seconds, of it and of a call.
        driver
            Seconds that a call takes longer in the driver than in a native function.
        """
        self.calls, self.native_calls = int(cost / (call + driver)), 1.0 + driver / call


class Offering(Protocol):
    """A kind of code that may run in place of the driver's steps."""

    def offer(self, way: Way, /) -> Run | CallsLeft | None:
        """What runs calls of these shapes, when to ask again, or None for nothing."""


class Way:
    """The way of the calls of one combination of shapes.

    Attributes
    ----------
    key
        The shapes.
    run
        Called in place of the driver's steps; None for these.
    wait
        Counts calls down until ``decide`` is called; None where nothing will be decided.
    is_native
        Whether there is a native function of the driver's steps.
    left
        Candidates that were not asked, or wait.
    """

    __slots__ = ("decide", "is_native", "key", "left", "run", "wait")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.run: Run | None = None
        self.wait: CallsLeft | None = None
        self.decide: Callable[[Way], Run | None] = _nothing
        self.is_native = False
        self.left: tuple[Offering, ...] = ()

    def count(self) -> Run | None:
        """Count a call, and decide again once there were enough; what runs the call."""
        wait = self.wait
        if wait is None:  # another thread has decided
            return self.run
        wait.calls -= 1
        return self.decide(self) if wait.calls <= 0 else None


def _nothing(_way: Way) -> Run | None:
    """There is nothing to decide."""
    return None


class Dispatch:
    """Decides about the ways of one program's calls.

    Parameters
    ----------
    candidates
        What may run calls, in the order in which they are asked.
    native
        That of them which is tried before the driver; None where there is none.
    """

    def __init__(self, candidates: Iterable[Offering | None] = (), native: Offering | None = None) -> None:
        self.candidates = tuple(one for one in candidates if one is not None)
        self._native = native
        self._lock = threading.RLock()

    def __bool__(self) -> bool:
        return bool(self.candidates)

    def begin(self, way: Way) -> None:
        """Decide for shapes that are seen for the first time."""
        way.left, way.decide = self.candidates, self._settle
        self._settle(way)

    def _settle(self, way: Way) -> Run | None:
        """Ask the candidates that are left, until one has something to run, or wants to wait; what runs the
        call. A native function is tried before the driver from then on: its way stays the driver's steps."""
        with handlers_reach_the_caller(), GATE.busy(), self._lock:
            run = way.run
            while way.left:
                candidate, *left = way.left
                offer = candidate.offer(way)
                if isinstance(offer, CallsLeft):
                    way.wait = offer
                    return None
                way.left, run = () if offer is not None else tuple(left), offer
                if candidate is not self._native:
                    way.run = offer
            way.wait = None
            return run

    def calls_to_wait(self, way: Way) -> int | None:
        """Calls of a native function after which another program is looked for; 0 for never, None where
        another one runs."""
        if way.wait is not None:
            left = int(way.wait.calls * way.wait.native_calls)
            return 0 if way.left[0] is self._native else max(left, 1)
        return 0 if way.run is None else None
