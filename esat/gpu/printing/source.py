"""Text of one kernel function as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_INDENT = "    "


class UnprintableError(Exception):
    """A kernel has no device form; the message says why. Its group runs elsewhere."""


class DeviceSource:
    """Lines of a function, and the arrays that it declares."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._declared: dict[str, str] = {}
        self._depth = 1
        self._temporaries = 0

    def line(self, text: str) -> None:
        """Add a line at the present depth, or several."""
        self._lines += [_INDENT * self._depth + one for one in text.splitlines()]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is added inside is the body of ``head``."""
        self.line(f"{head}:")
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def block_if(self, needed: bool, head: str) -> AbstractContextManager[None]:
        """The block of ``head`` if it is needed, else no block."""
        return self.block(head) if needed else nullcontext()

    def temporaries(self) -> Iterator[str]:
        """New names without end."""
        while True:
            self._temporaries += 1
            yield f"t{self._temporaries}"

    def local(self, name: str, size: int, dtype: str) -> str:
        """Declare an array of a thread's own, in registers where all its places are constants; its name."""
        self._declared[name] = f"{name} = cuda.local.array({size}, {stored(dtype)})"
        return name

    def shared(self, name: str, size: int, dtype: str) -> str:
        """Declare an array that the threads of a block share; its name."""
        self._declared[name] = f"{name} = cuda.shared.array({size}, {stored(dtype)})"
        return name

    def body(self) -> str:
        """Everything so far."""
        return "\n".join([*(f"{_INDENT}{line}" for line in self._declared.values()), *self._lines])


def stored(dtype: str) -> str:
    """The dtype by which numbers of ``dtype`` lie in memory: truth values as bytes."""
    return "uint8" if dtype == "bool" else dtype


def to_memory(value: str, dtype: str) -> str:
    """The text of a value as it is written to memory."""
    return f"uint8({value})" if dtype == "bool" else value


def from_memory(element: str, dtype: str) -> str:
    """The text of a value that is read from memory."""
    return f"({element} != 0)" if dtype == "bool" else element
