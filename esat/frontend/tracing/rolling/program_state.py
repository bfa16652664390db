"""What code that runs can change of Python's state: taken down, compared, and put back."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from esat.base.records import record
from esat.frontend.tracing.rolling.loop_state import LoopState, UnseenStateError, names_in
from esat.frontend.tracing.trace import Trace
from esat.frontend.tracing.values.arrays import TracedArray, Value

UNBOUND = type("Unbound", (), {"__slots__": ()})()
"""What a name stands for that nothing was assigned to."""
Place: TypeAlias = tuple[Any, ...]
"""A name; a list or dict, by its identity, and a key; an array, by its identity."""
_CHANGING = (list, dict, set)


@record(frozen=True, eq=False)
class Changes:
    """What some code has changed.

    Attributes
    ----------
    names
        Each name that it may assign to -> what it stands for, or UNBOUND.
    containers
        Place of a list, dict or set among those of the state -> a copy of it.
    arrays
        Place of a traced array among those of the state -> what it holds.
    held
        Identities of all traced arrays, and what they hold, views too.
    """

    names: Mapping[str, Any]
    containers: Mapping[int, Any]
    arrays: Mapping[int, Value]
    held: Mapping[int, Value]


class ProgramState:
    """The state that a frame's code reaches, at one moment.

    Parameters
    ----------
    frame
        Of a function.
    names
        Names of the function that code will assign to.

    Attributes
    ----------
    before
        What these stand for, or UNBOUND.
    containers
        Lists, dicts and sets that are reached, each with a copy.
    arrays
        Traced arrays that are no views, each with what it holds.

    Raises
    ------
    UnseenStateError
        Where not all of it can be seen.
    """

    def __init__(self, frame: types.FrameType, names: Sequence[str], trace: Trace) -> None:
        self._frame, self._trace = frame, trace
        self._locals = names_in(frame)
        self.before = {name: self._locals.get(name, UNBOUND) for name in names}
        self._look()
        self._first = LoopState(frame, self._locals, None)
        self._seen = LoopState(frame, self._locals, self._first).seen
        self.containers = [(one, one.copy()) for one in self._first.objects if type(one) in _CHANGING]
        live = [one for one in (reference() for reference in trace.live) if type(one) is TracedArray]
        self.arrays = [(one, one.held, one.version) for one in live if one.held is not None]

    def _look(self) -> None:
        """Have views know their values: whether they do is a part of what is seen."""
        for reference in self._trace.live:
            one = reference()
            if type(one) is TracedArray:
                one.value  # noqa: B018 - looks it up

    def taken(self) -> dict[Place, Any]:
        """Places that have changed since -> what is there.

        Raises
        ------
        UnseenStateError
            Where a list, dict or set has other places.
        """
        now = names_in(self._frame)
        found: dict[Place, Any] = {}
        for name, value in self.before.items():
            if now.get(name, UNBOUND) is not value:
                found["name", name] = now.get(name, UNBOUND)
        for one, kept in self.containers:
            if _is_same(one, kept):
                continue
            if type(one) is set or len(one) != len(kept) or (type(one) is dict and list(one) != list(kept)):
                raise UnseenStateError("a list, dict or set has other places")
            for key in one if type(one) is dict else range(len(one)):
                if one[key] is not kept[key]:
                    found["item", id(one), key] = one[key]
        for array, _, version in self.arrays:
            if array.version != version:
                found["array", id(array)] = TracedArray(array.held)
        return found

    def owner(self, place: Place) -> Any:
        """The list, dict or array of a place."""
        owners = (one for one, *_ in (*self.containers, *self.arrays))
        return next(one for one in owners if id(one) == place[1])

    def at_first(self, place: Place) -> Any:
        """What was at a place."""
        if place[0] == "name":
            return self.before[place[1]]
        if place[0] == "item":
            return next(kept for one, kept in self.containers if id(one) == place[1])[place[2]]
        return TracedArray(next(value for one, value, _ in self.arrays if id(one) == place[1]))

    def changes(self) -> Changes:
        """What has changed since, which is put back, but for names.

        Raises
        ------
        UnseenStateError
            Where something else has changed.
        """
        now = names_in(self._frame)
        names = {name: now.pop(name, UNBOUND) for name in self.before}
        others = {name: value for name, value in self._locals.items() if name not in names}
        if now.keys() != others.keys() or any(now[name] is not others[name] for name in now):
            raise UnseenStateError("a name that an inner function assigns to")
        containers = {
            place: one.copy() for place, (one, kept) in enumerate(self.containers) if not _is_same(one, kept)
        }
        for place in containers:
            fill(*self.containers[place])
        arrays: dict[int, Value] = {}
        live = (reference() for reference in self._trace.live)
        held = {id(one): one.value for one in live if type(one) is TracedArray}
        for place, (one, value, version) in enumerate(self.arrays):
            if one.version != version:
                now_held = one.held
                assert now_held is not None
                arrays[place] = now_held
                one.put_back(value)
                self.arrays[place] = one, value, one.version
        self._look()
        if LoopState(self._frame, self._locals, self._first).seen != self._seen:
            raise UnseenStateError("an object")
        return Changes(names, containers, arrays, held)


def as_now(value: Any) -> Any:
    """A value as it is now, which stays so when arrays are written to."""
    return TracedArray(value.value, is_scalar=value.is_scalar) if type(value) is TracedArray else value


def _is_same(one: Any, kept: Any) -> bool:
    if type(one) is set:
        return bool(one == kept)
    if len(one) != len(kept):
        return False
    if type(one) is list:
        return all(new is old for new, old in zip(one, kept, strict=True))
    return list(one) == list(kept) and all(one[key] is kept[key] for key in one)


def fill(container: Any, content: Any) -> None:
    """Let a list, dict or set have the content of another one."""
    if type(container) is list:
        container[:] = content
        return
    container.clear()
    container.update(content)
