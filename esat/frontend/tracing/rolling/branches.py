"""``if`` in loops, where only a call can know the condition: both branches are traced, one after the other.

The text of a user's code is compiled with ``choice = BRANCHES(condition, ...)`` in place of the condition,
and each branch in an ``if`` of its own. Before the second branch, and after it, all that the code can see is
as it was before the first: names, lists, dicts, objects, and what arrays hold. What one of them has changed
becomes what the program chooses of the two. Where that cannot be, the function is traced anew, along one
branch at a time.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from esat.errors import UserLine
from esat.frontend.tracing.code.outside import is_users_file
from esat.frontend.tracing.path import NotChosen
from esat.frontend.tracing.raising import CALLS_TRACED
from esat.frontend.tracing.rolling.loop_state import LoopState, UnseenStateError, names_in
from esat.frontend.tracing.rolling.program_state import UNBOUND, Changes, ProgramState, fill
from esat.frontend.tracing.rolling.raised import HalfBound
from esat.frontend.tracing.rolling.written_parts import WrittenParts
from esat.frontend.tracing.trace import Trace, current_trace, is_of_numbers, truth
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol
from esat.frontend.tracing.values.layouts import MemoryLayout
from esat.frontend.tracing.values.merging import MOST_NODES, Merge, NoChoiceError, differing, is_cheap
from esat.frontend.tracing.values.mixed import note_mixed, type_of
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.tracing import Traced
from esat.graph.variables import Apply, Constant, Variable
from esat.graph.watching import noted
from esat.ops.arrays.creation import alloc
from esat.ops.control import ifelse

_LEAST_FAMILIES = (Family.ELEMENTWISE, Family.VIEW, Family.CREATION, Family.REDUCTION, Family.INDEX)
_PLAIN = (str, bytes, type(None), range)


def branches(
    condition: Any, in_loop: bool, names: tuple[str, ...], half: tuple[str, ...], loop: Any = None
) -> KnownBranch | TracedBranches:
    """What to do at an ``if``.

    Parameters
    ----------
    condition
        Of the ``if``.
    in_loop
        Whether it stands in a loop.
    names, half
        Names that its branches assign to, and those of them that code may look at where nothing was assigned.
    loop
        The loop that is left after the first branch, if it is left.
    """
    trace = current_trace()
    unknown = None if trace is None else unknown_of(condition, trace, in_loop)
    frame = sys._getframe(1)
    line = frame.f_code.co_filename, frame.f_lineno
    is_left = loop is not None and not loop.exits(condition)
    if trace is None or unknown is None or is_left or line in trace.unchosen:
        return KnownBranch(bool(condition))
    try:
        return TracedBranches(unknown, trace, frame, names, half, line, loop)
    except UnseenStateError as error:
        raise NotChosen(line, f"what they change may not be seen: {error}") from None


def unknown_of(condition: Any, trace: Trace, in_loop: bool) -> Variable | None:
    """The scalar that a condition is, where both branches are traced: in loops, of what depends on arrays."""
    path = trace.path
    if path is None or not (in_loop or trace.within or path.batching or path.choices):
        return None
    value: Any = condition.variable if type(condition) is TracedNumber else None
    if type(condition) is TracedArray:
        value = condition.value
    if not isinstance(value, Variable) or is_of_numbers(value):
        return None
    if value.ndim and all(size == 1 for size in value.tensor_type.shape):
        value = value.reshape(())
    if value.ndim or all(isinstance(one, Constant) or one in trace.skipping for one in inputs_of([value])):
        return None
    return truth(value)


class KnownBranch:
    """An ``if`` of which one branch is run.

    Attributes
    ----------
    first
        Whether the first branch is run.
    """

    __slots__ = ("first",)
    is_put = False

    def __init__(self, first: bool) -> None:
        self.first = first

    def otherwise(self) -> bool:
        """Whether the second branch is run."""
        return not self.first

    def leaves(self) -> bool:
        """Whether Python leaves the loop after the first branch."""
        return True

    def ended(self) -> bool:
        """Whether names are assigned to at the end."""
        return False

    def chosen(self, then: Any, otherwise: Any) -> Any:
        """The value of an expression with ``if``."""
        return then if self.first else otherwise


class TracedBranches:
    """An ``if`` of which both branches are run."""

    first = True

    def __init__(
        self, condition: Variable, trace: Trace, frame: types.FrameType, names: Sequence[str],
        half: Sequence[str], line: UserLine, loop: Any,
    ) -> None:  # fmt: skip
        assert trace.path is not None
        self._loop = loop
        self._condition, self._trace, self._path, self._line = condition, trace, trace.path, line
        self._nodes = noted()
        self._begin = 0 if self._nodes is None else len(self._nodes)
        self._names, self._half = names, half
        self._state = ProgramState(frame, names, trace)
        self._checks, self._failing = len(self._path.checks), self._path.failing
        self._path.choices.append(line)
        self._merge: Any = None
        self._changes: list[Changes] = []
        self._later: list[Callable[[], None]] = []
        self._values: list[Any] = []

    @property
    def values(self) -> list[Any]:
        """What names stand for now, in order: told once, since a name may stand for something else soon."""
        found, self._values = self._values, []
        return found

    @property
    def is_put(self) -> bool:
        """Whether names are assigned to before the second branch."""
        return bool(self._names)

    def otherwise(self) -> bool:
        """Put back what the first branch has changed."""
        self._end_branch(self._condition)
        self._values = list(self._state.before.values())
        if self._loop is not None:
            self._path.choices.pop()
            del self._state, self._changes
        return True

    def leaves(self) -> bool:
        """Whether Python leaves the loop after the first branch: the program does so, and not the trace."""
        self._loop.leave(self._condition)
        return False

    def ended(self) -> bool:
        """Put what is chosen in the places of what the branches have changed."""
        self._end_branches()
        found = dict[str, Any]()
        pairs = zip(*(one.names.values() for one in self._changes), strict=True)
        for name, (then, otherwise) in zip(self._names, pairs, strict=True):
            join = self._join_half if name in self._half else self._join
            try:
                join(then, otherwise, functools.partial(found.__setitem__, name))
            except NoChoiceError as error:
                self._path.half_bound.setdefault(name, NotChosen(self._line, f"{name} {error}"))
        try:
            self._join_containers()
            self._join_arrays()
        except NoChoiceError as error:
            raise NotChosen(self._line, f"a value {error}") from None
        self._build()
        self._values = [found.get(name, UNBOUND) for name in self._names]
        del self._state
        return bool(self._names)

    def chosen(self, then: Any, otherwise: Any) -> Any:
        """The value of an expression with ``if``."""
        changes = self._changes
        self.ended()
        self._changes = changes
        found: list[Any] = [None]
        self._merge = Merge(self._condition, self._is_cheap, True)
        try:
            self._join(then, otherwise, functools.partial(found.__setitem__, 0))
        except NoChoiceError as error:
            raise NotChosen(self._line, f"the value {error}") from None
        self._build()
        return found[0]

    # ---- the ends of branches

    def _end_branch(self, condition: Variable) -> None:
        try:
            self._changes.append(self._state.changes())
        except UnseenStateError as error:
            raise NotChosen(self._line, f"what one of them changes may not be seen: {error}") from None
        for check in self._path.checks[self._checks :]:
            if check.condition is not None:
                check.condition = both(condition, check.condition)
        self._checks, self._path.failing = len(self._path.checks), self._failing

    def _end_branches(self) -> None:
        self._end_branch(op_named("invert")(self._condition))
        if any(node.op.family is Family.RANDOM for node in self._own()):
            raise NotChosen(self._line, "one of them draws random numbers")
        self._path.choices.pop()
        self._merge = Merge(self._condition, self._is_cheap, True)

    def _own(self) -> list[Apply]:
        return [] if self._nodes is None else self._nodes[self._begin :]

    def _build(self) -> None:
        self._merge.build()
        for put in self._later:
            put()
        self._later.clear()
        self._merge, self._changes = None, []  # which refer to what is kept by no name

    def _is_cheap(self, variables: Sequence[Variable]) -> bool:
        """Whether what branches compute for some values may be computed in vain."""
        if self._nodes is None:
            return is_cheap(variables)
        own, found = set(self._own()), set[Apply]()
        todo = [one.owner for one in variables if one.owner in own]
        while todo:
            node = todo.pop()
            assert node is not None
            if node in found:
                continue
            found.add(node)
            if not self._is_harmless(node) or len(found) > MOST_NODES:
                return False
            todo += [one.owner for one in node.inputs if one.owner in own]
        return True

    def _is_harmless(self, node: Apply) -> bool:
        """Whether a node raises no error, and takes little time."""
        if node.op.family is Family.INDEX:
            return all(self._is_known_place(one) for one in node.inputs[1:] if one.tensor_type.kind in "iu")
        return node.op.family in _LEAST_FAMILIES

    def _is_known_place(self, place: Variable) -> bool:
        return all(isinstance(one, Constant) or one in self._trace.skipping for one in inputs_of([place]))

    # ---- what is chosen

    def _join(self, then: Any, otherwise: Any, put: Callable[[Any], None]) -> None:
        """Give a place what is chosen of two values. Raises NoChoiceError."""
        if then is otherwise:
            put(then)
        elif type(then) is tuple and type(otherwise) is tuple and len(then) == len(otherwise):
            parts: list[Any] = [None] * len(then)
            for place, pair in enumerate(zip(then, otherwise, strict=True)):
                self._join(*pair, functools.partial(parts.__setitem__, place))
            self._later.append(lambda: put(tuple(parts)))
        elif is_value(then) and is_value(otherwise):
            sides = [one for one in (then, otherwise) if type(one) is TracedArray and not one.is_scalar]
            layout = _layout(sides)

            types = type_of(then), type_of(otherwise)

            def noted(made: Any) -> None:
                note_mixed(made, self._line, types)
                if type(made) is TracedArray and not made.is_scalar:
                    for one in sides:
                        may_share(made, one, self._line)
                    if layout is not None:
                        made.lies_as(layout)
                put(made)

            self._merge.add(self._as_left(then, 0), self._as_left(otherwise, 1), noted)
        elif type(then) is type(otherwise) and type(then) in _PLAIN and then == otherwise:
            put(then)
        else:
            raise NoChoiceError(differing(then, otherwise))

    def _join_half(self, then: Any, otherwise: Any, put: Callable[[Any], None]) -> None:
        """The same for a name, which may stand for nothing. Raises NoChoiceError."""
        is_half = any(type(one) is HalfBound or one is UNBOUND for one in (then, otherwise))
        if then is otherwise or not is_half:
            self._join(then, otherwise, put)
            return
        sides = [half_of(then, otherwise), half_of(otherwise, then)]
        if any(one.value is UNBOUND for one in sides):
            raise NoChoiceError(differing(then, otherwise))
        first, second = sides
        found: list[Any] = [None, None]
        self._join(first.value, second.value, functools.partial(found.__setitem__, 0))
        self._join(first.is_bound, second.is_bound, functools.partial(found.__setitem__, 1))
        self._later.append(lambda: put(HalfBound(*found)))

    def _as_left(self, value: Any, branch: int) -> Any:
        """A value as a branch has left it: what an array holds may have been put back since."""
        held = self._changes[branch].held.get(id(value)) if type(value) is TracedArray else None
        return value if held is None else TracedArray(held, is_scalar=value.is_scalar)

    def _join_containers(self) -> None:
        first, second = (one.containers for one in self._changes)
        for place in sorted({*first, *second}):
            container, kept = self._state.containers[place]
            then, otherwise = first.get(place, kept), second.get(place, kept)
            if type(container) is set:
                if then != otherwise:
                    raise NoChoiceError("is a set that has other elements after one of them")
                fill(container, then)
                continue
            if len(then) != len(otherwise) or (type(container) is dict and list(then) != list(otherwise)):
                raise NoChoiceError("is a list or dict that has other places after one of them")
            fill(container, then)
            for key in range(len(then)) if type(container) is list else then:
                self._join(then[key], otherwise[key], functools.partial(container.__setitem__, key))

    def _join_arrays(self) -> None:
        first, second = (one.arrays for one in self._changes)
        parts = WrittenParts(self._merge, self._is_known_place)
        for place in sorted({*first, *second}):
            array, kept, _ = self._state.arrays[place]
            pair = first.get(place, kept), second.get(place, kept)
            assert kept is not None
            if not parts.add(kept, *pair, array.assign):
                self._merge.add(*map(TracedArray, pair), lambda made, array=array: array.assign(made.value))
        self._later.append(parts.build)


def is_value(value: Any) -> bool:
    """Whether a value is a number, or an array that is traced."""
    if type(value) is np.ndarray:
        return value.ndim == 0
    return isinstance(value, (Traced, np.number, np.bool_)) or type(value) in (bool, int, float, complex)


def half_of(value: Any, other: Any) -> HalfBound:
    """What a name stands for, and whether it does: anything like another value where it does not."""
    if type(value) is HalfBound:
        return value
    return HalfBound(nothing_like(other), False) if value is UNBOUND else HalfBound(value, True)


def nothing_like(value: Any) -> Any:
    """A value of a type, which nobody reads; UNBOUND where the type is not known in full."""
    value = value.value if type(value) is HalfBound else value
    variable = as_symbol(value) if is_value(value) else None
    if variable is None or None in variable.tensor_type.shape:
        return UNBOUND
    zero = np.zeros((), variable.dtype)
    if type(value) is TracedNumber:
        return value.kind(0)
    if type(value) is not TracedArray or value.is_scalar:
        return zero[()] if type(value) is TracedArray or isinstance(value, np.generic) else zero.item()
    return TracedArray(alloc(zero, *variable.tensor_type.shape))


def _layout(sides: Sequence[TracedArray]) -> MemoryLayout | None:
    """How an array lies in memory that is one of some. Raises NoChoiceError where that is not in C order."""
    found = [one.layout.found() for one in sides]
    if not all(one.contiguous for one in found):
        raise NoChoiceError("is an array that is not in C order in memory after one of them")
    assumed = [side for side, one in zip(sides, found, strict=True) if one.assumed]
    return (assumed or sides)[0].layout if sides else None


def _refuse_if_reached(line: UserLine, array: TracedArray) -> None:
    """Raise NotChosen where a user's code that runs can see an array, or a view of it."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != CALLS_TRACED:
        if is_users_file(frame.f_code.co_filename):
            try:
                seen: Iterable[Any] = LoopState(frame, names_in(frame), None, True).traced.values()
            except UnseenStateError:
                seen = [array]
            if any(type(one) is TracedArray and one.root is array for one in seen):
                raise NotChosen(line, "an array that is written to is another one after one of them")
        frame = frame.f_back


def may_share(array: Any, other: Any, line: UserLine) -> None:
    """Note that two values, if they are arrays, may be the same one."""
    if all(type(one) is TracedArray and not one.is_scalar for one in (array, other)):
        array.may_be(other, functools.partial(_refuse_if_reached, line))


def both(condition: Variable, other: Variable, is_and: bool = True) -> Variable:
    """Whether a condition and another one hold, or one of them; the other is computed where it decides."""
    if is_cheap([condition, other]):
        joined: Variable = op_named("bitwise_and" if is_and else "bitwise_or")(condition, other)
        return joined
    sides = (other, np.bool_(False)) if is_and else (np.bool_(True), other)
    chosen: Variable = ifelse(condition, *sides)
    return chosen


class Operands:
    """``a and b``, or ``a or b``, as a condition: whether ``b`` is asked for, and what they are together.

    Parameters
    ----------
    first
        The first operand.
    is_and
        Which of the two it is.
    in_loop
        Whether it stands in a loop.

    Attributes
    ----------
    goes_on
        Whether the second operand decides.
    """

    def __init__(self, first: Any, is_and: bool, in_loop: bool) -> None:
        trace = current_trace()
        self._trace, self._is_and, self._in_loop = trace, is_and, in_loop
        frame = sys._getframe(1)
        line = frame.f_code.co_filename, frame.f_lineno
        unknown = None if trace is None else unknown_of(first, trace, in_loop)
        self._first = unknown if trace is None or line not in trace.unchosen else None
        self.goes_on = True
        if self._first is None or trace is None or trace.path is None:
            self.goes_on = bool(first) is is_and
        else:
            self._checks, self._failing = len(trace.path.checks), trace.path.failing
            trace.path.choices.append(line)

    def joined(self, second: Any) -> Any:
        """The condition, where the second operand was asked for if :attr:`goes_on`."""
        if self._first is None or self._trace is None or self._trace.path is None:
            return second if self.goes_on else not self._is_and
        path, first = self._trace.path, self._first
        path.choices.pop()
        path.failing = self._failing
        way = first if self._is_and else op_named("invert")(first)
        for check in path.checks[self._checks :]:
            if check.condition is not None:
                check.condition = both(way, check.condition)
        other = unknown_of(second, self._trace, self._in_loop)
        if other is None:
            is_decided = bool(second) is not self._is_and
            return not self._is_and if is_decided else TracedNumber(first, bool)
        return TracedNumber(both(first, other, self._is_and), bool)


def opposite(value: Any, in_loop: bool) -> Any:
    """``not value``."""
    trace = current_trace()
    unknown = None if trace is None else unknown_of(value, trace, in_loop)
    return not value if unknown is None else TracedNumber(op_named("invert")(unknown), bool)
