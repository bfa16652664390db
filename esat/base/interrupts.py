"""Exceptions that come from outside, by the handlers of signals, at any moment of a compilation.

A handler raises wherever Python's interpreter happens to be: Ctrl-C, and timeouts of test runners and job
systems. Numba's modules and tables are whole only before and after what it does, so that handlers wait there.
Elsewhere such an exception may be raised within a block that catches others, to say what it means or to go on
without what failed. So those of a compilation are remembered, and raised at its end, whatever became of them.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]

_SIGNALS = tuple(map(int, signal.valid_signals()))  # to ask takes longer than all else here


def _handlers() -> Mapping[int, Handler]:
    """The handlers in Python, by signal; Python runs them in its main thread only."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    found = {number: signal.getsignal(number) for number in _SIGNALS}
    return {number: handler for number, handler in found.items() if callable(handler)}


@contextmanager
def _exchanged(handlers: Mapping[int, Handler], others: Mapping[int, Handler]) -> Iterator[None]:
    """Let other handlers run for the length of a block; what others have put in their place stays."""
    left, error = dict(handlers), None
    try:
        for number, other in others.items():
            signal.signal(number, other)
        yield
    finally:
        while left:
            try:
                while left:
                    number = next(iter(left))
                    if signal.getsignal(number) is others[number]:
                        signal.signal(number, handlers[number])
                    del left[number]
            except BaseException as found:  # of a handler that is back in its place
                error = found
        if error is not None:
            raise error


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Signals within the block are handled at its end, some tenths of a second later.

    An exception at any place leaves numba with generators that have ended, or with modules that import each
    other and are there in part, so that it compiles nothing more.
    """
    handlers = _handlers()
    arrived: dict[int, FrameType | None] = {}

    def delay(number: int, frame: FrameType | None) -> None:
        arrived[number] = frame

    try:
        with _exchanged(handlers, dict.fromkeys(handlers, delay)):
            yield
    finally:
        _handle(handlers, arrived)


def _handle(handlers: Mapping[int, Handler], arrived: dict[int, FrameType | None]) -> None:
    """Run the handlers of all signals, also where some raise."""
    while arrived:
        number, frame = arrived.popitem()
        try:
            handlers[number](number, frame)
        finally:
            _handle(handlers, arrived)


class _Raised:
    """What handlers have raised during a compilation, in order."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def through(self, handler: Handler) -> Handler:
        """A handler that remembers what another one raises."""

        def remember(number: int, frame: FrameType | None) -> Any:
            try:
                return handler(number, frame)
            except BaseException as error:
                self.errors.append(error)
                raise

        return remember

    def deliver(self, caught: BaseException | None = None) -> None:
        """Raise the first exception of a handler, unless it is what was caught."""
        if self.errors and self.errors[0] is not caught:
            raise self.errors[0]


_compilations: weakref.WeakSet[_Raised] = weakref.WeakSet()
"""That which runs in the main thread, if any: gone with its frame, whether its end was reached or not."""


def _of_compilation() -> _Raised | None:
    return next(iter(_compilations), None)


@contextmanager
def handlers_reach_the_caller() -> Iterator[None]:
    """What a handler raises within the block is raised by it, whoever has caught it there."""
    handlers = _handlers() if _of_compilation() is None else {}
    if not handlers:
        yield
        return
    raised = _Raised()
    _compilations.add(raised)
    try:
        with _exchanged(handlers, {number: raised.through(one) for number, one in handlers.items()}):
            yield
    except BaseException as error:
        raised.deliver(error)
        raise
    finally:
        _compilations.discard(raised)
    raised.deliver()


def deliver_now(caught: BaseException | None = None) -> None:
    """Between two stages of a compilation: raise what a handler has raised and somebody has caught."""
    raised = _of_compilation()
    if raised is not None and threading.current_thread() is threading.main_thread():
        raised.deliver(caught)


def is_from_handler(error: BaseException) -> bool:
    """Whether an exception is what a handler has raised, during this compilation or just now."""
    raised = _of_compilation()
    if raised is not None and any(one is error for one in raised.errors):
        return True
    codes = {getattr(handler, "__code__", None) for handler in _handlers().values()}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


_RAISED_WITHIN = frozenset(
    {"builtins", "esat", "llvmlite", "numba", "numpy", "scipy", *sys.stdlib_module_names}
)
_WITHOUT_WORDS = (AssertionError, NotImplementedError, StopIteration)


def is_from_outside(error: BaseException) -> bool:
    """Whether an exception is none that the package, or what it calls, has raised itself.

    Timeouts without signals raise from other threads, by ``PyThreadState_SetAsyncExc``: a class of a user's,
    or one of Python's without a word.
    """
    kind = type(error)
    is_users = kind.__module__.partition(".")[0] not in _RAISED_WITHIN
    if is_users or isinstance(error, MemoryError) or is_from_handler(error):
        return True
    if isinstance(error, TimeoutError):
        return error.errno is None  # which the system's have
    return not error.args and kind.__module__ == "builtins" and not isinstance(error, _WITHOUT_WORDS)


def raise_from_outside(error: BaseException) -> None:
    """Raise an exception, or what it was made of, if that comes from outside."""
    if is_from_outside(error):
        raise error
    running = {frame for frame, _ in traceback.walk_stack(sys._getframe())}
    part = error.__cause__ or error.__context__
    # Beyond those is what callers handle just now, who called from there.
    while part is not None and part.__traceback__ is not None and part.__traceback__.tb_frame not in running:
        if is_from_outside(part):
            raise part
        part = part.__cause__ or part.__context__
