"""Exceptions at any place where Python runs the handler of a signal."""

import sys
from collections.abc import Callable, Iterator
from inspect import CO_GENERATOR
from types import FrameType, TracebackType


class Interrupted(BaseException):
    """What is raised in place of a KeyboardInterrupt."""


class _Interruption:
    """Raises at the begin or end of a function that is called in the block: the so many-th of these."""

    def __init__(self, place: int) -> None:
        self.left = place

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setprofile(self._before)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        # A generator that gives a value is not ended, as it would be by an exception raised here.
        events = {"call", "c_return"} if code.co_flags & CO_GENERATOR else {"call", "c_return", "return"}
        if event in events and code not in _OWN:
            self.left -= 1
            if not self.left:
                sys.setprofile(self._before)
                raise Interrupted


_OWN = {_Interruption.__enter__.__code__, _Interruption.__exit__.__code__}


def interrupted_everywhere(action: Callable[[], object], most: int = 1000) -> Iterator[int]:
    """Run an action again and again, each time cut off one step later; yields after each, until one ends."""
    for place in range(1, most):
        if not _is_interrupted(action, place):
            return
        yield place  # the exception, which keeps the frames that it came through, is gone
    raise AssertionError(f"an action of more than {most} steps")


def _is_interrupted(action: Callable[[], object], place: int) -> bool:
    try:
        with _Interruption(place):
            action()
    except Interrupted:
        return True
    return False
