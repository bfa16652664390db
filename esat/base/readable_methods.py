"""Methods that can be read as well as called: ``print(f.explain)`` is ``print(f.explain())``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


class BoundReadable(Generic[P, R]):
    """A method of an object. Read, it is what a call without arguments returns, made anew each time."""

    def __init__(self, method: Callable[P, R]) -> None:
        functools.update_wrapper(self, method)
        self._method = method

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        return self._method(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._method(), name)  # type: ignore[call-arg]

    def __str__(self) -> str:
        return str(self._method())  # type: ignore[call-arg]

    __repr__ = __str__


class readable(Generic[S, P, R]):  # noqa: N801 - a decorator
    """Let a method whose parameters all have defaults be read as well as called.

    Examples
    --------
    >>> class Square:
    ...     @readable
    ...     def area(self, side: float = 2.0) -> float:
    ...         return side * side
    >>> Square().area, Square().area()
    (4.0, 4.0)
    """

    def __init__(self, method: Callable[Concatenate[S, P], R]) -> None:
        self.__doc__, self._method = method.__doc__, method

    @overload
    def __get__(self, instance: None, owner: type) -> readable[S, P, R]: ...
    @overload
    def __get__(self, instance: S, owner: type | None = None) -> BoundReadable[P, R]: ...
    def __get__(self, instance: S | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return BoundReadable(self._method.__get__(instance))
