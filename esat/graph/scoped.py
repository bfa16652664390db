"""Values that hold within a ``with`` block, for all that the block calls, and end with it."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Scoped(Generic[T]):
    """A value for the time of a block: ``with SCOPED.set(value):``; blocks may be nested.

    An exception that a signal raises may come between any two steps, also between those that begin and end a
    block. So what is remembered is a weak reference to the block, which only the ``with`` statement keeps:
    where that is gone, its value is gone as well, whether its end was reached or not. The end may also be
    reached in another thread, as that of a generator which is dropped there.

    >>> line = Scoped[int]("line")
    >>> with line.set(3):
    ...     print(line.get())
    3
    >>> print(line.get())
    None
    """

    __slots__ = ("_innermost",)

    def __init__(self, name: str) -> None:
        self._innermost: ContextVar[_Reference[T] | None] = ContextVar(name, default=None)

    def set(self, value: T) -> Block[T]:
        """The block to enter: within it, in this thread, :meth:`get` gives the value."""
        return Block(value, self._innermost)

    def get(self) -> T | None:
        """The value of the innermost block; None outside of all."""
        reference = self._innermost.get()
        while reference is not None:
            block = reference()
            if block is not None and block.is_open:
                return block.value
            reference = reference.outer
            self._innermost.set(reference)
        return None


class Block(Generic[T]):
    """The block in which a value holds; see :class:`Scoped`."""

    __slots__ = ("__weakref__", "_innermost", "_reference", "is_open", "value")

    def __init__(self, value: T, innermost: ContextVar[_Reference[T] | None]) -> None:
        self.value = value
        self.is_open = False
        self._innermost = innermost

    def __enter__(self) -> None:
        self.is_open = True
        self._reference = _Reference(self)
        self._reference.outer = self._innermost.get()
        self._innermost.set(self._reference)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_open = False
        if self._innermost.get() is self._reference:
            self._innermost.set(self._reference.outer)


class _Reference(weakref.ref[Block[T]]):
    """A reference to a block, which knows that of the block around it."""

    __slots__ = ("outer",)
    outer: _Reference[T] | None
