"""``while``, and ``break`` in loops within loops, where only a call can know the condition: as one op.

The body is run twice. The first time it tells what a step changes of all that the code can see: names, lists,
dicts, objects, and what arrays hold. The second time symbols stand there, and what the body makes of them is
the step of an op that runs as long as the condition holds. Where that cannot be, the function is traced anew,
and the condition is asked for as ever.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import EsatError
from esat.frontend.tracing.path import ErrorCheck, NotChosen, TracedInFull
from esat.frontend.tracing.rolling.branches import (
    both,
    half_of,
    is_value,
    may_share,
    nothing_like,
    unknown_of,
)
from esat.frontend.tracing.rolling.iterated import FEWEST_STEPS, rolled
from esat.frontend.tracing.rolling.loop_state import UnseenStateError
from esat.frontend.tracing.rolling.program_state import UNBOUND, Place, ProgramState, as_now
from esat.frontend.tracing.rolling.raised import HalfBound, unless_failed
from esat.frontend.tracing.rolling.skipping import MOST_TRACED
from esat.frontend.tracing.trace import current_trace
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.merging import Merge, NoChoiceError, differing, is_cheap, paired
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.loops.parts import LoopParts

MOST_KNOWN = 3
"""Steps, the first ones, in which the condition of a `break` may be known: it depends on nothing yet."""
MOST_ASKED = 2 * MOST_TRACED
"""Steps of a ``for`` that values may end, before it is traced as one op where they cannot be left out."""
_OTHER = "a step leaves values of other dtypes or shapes than it takes"


@record(frozen=True, eq=False)
class _Carry:
    """What a step hands on.

    Attributes
    ----------
    place, owner
        Where it is, and the list, dict or array.
    first
        Its value before the loop.
    symbol
        What stands for it in a step.
    made
        Makes of a Variable what stands for it.
    stand
        What stands for it in a step; UNBOUND where a step has to bind it first.
    same
        Values that it may be the same array as.
    """

    place: Place
    owner: Any
    first: Variable
    symbol: Variable
    made: Callable[[Variable], Any]
    stand: Any
    same: list[Any]


class EndedLoop:
    """A loop of a user's code that a value may end.

    Parameters
    ----------
    names, half
        Names that the loop assigns to, and those of them that code may look at where nothing was assigned.
    breaks
        Whether there is a ``break`` in it.
    target
        The name that a ``for`` assigns to.

    Attributes
    ----------
    is_put
        Whether names are assigned to now.
    """

    def __init__(
        self, names: tuple[str, ...], half: tuple[str, ...], breaks: bool, target: str | None = None
    ) -> None:
        frame = sys._getframe(1)
        self._frame, self._line = frame, (frame.f_code.co_filename, frame.f_lineno)
        self._trace, self._names, self._breaks, self._target = current_trace(), names, breaks, target
        self._half, self._is_bound = half, dict[str, Any]()
        self._first = 0 if self._trace is None else len(self._trace.first.get(self._line, ()))
        self._stage, self.is_put = "plain", False
        self._state: Any = None
        self._values: dict[str, Any] = {}
        self._carries: list[_Carry] = []
        self._exits: list[tuple[Variable, dict[Place, Any]]] = []
        self._checked: list[int] = []
        self._following: list[Variable] = []
        self._control = as_variable(np.bool_(True))
        self._count: tuple[Variable, range, int] | None = None
        self._looked = self._asked = 0

    @property
    def values(self) -> list[Any]:
        """What names stand for now, in order: told once, since a name may stand for something else soon."""
        found, self._values = self._values, {}
        for name, is_bound in self._is_bound.items():
            value = found.get(name, UNBOUND)
            if value is not UNBOUND:
                found[name] = HalfBound(value.value if type(value) is HalfBound else value, is_bound)
        wanted = self._names if self._stage == "done" else [n for n in self._names if n != self._target]
        return [found.get(name, UNBOUND) for name in wanted]

    # ---- the stages of a loop

    def passes(self) -> bool:
        """Whether the body, or at least the condition, is looked at again."""
        if self._stage == "probed":
            self._begin()
        elif self._stage == "traced":
            self._end()
        return self._stage != "done"

    def goes_on(self, condition: Any) -> bool:
        """Whether the body is run, at the beginning of which a condition holds."""
        trace = self._trace
        unknown = None if trace is None else unknown_of(condition, trace, True)
        if self._stage == "plain":
            if trace is None or trace.path is None or self._line in trace.unchosen or self._first:
                self._first = max(self._first - 1, 0)
                return bool(condition)
            if unknown is not None or (self._breaks and self._looked < MOST_KNOWN and bool(condition)):
                self._looked += 1
                self._look(trace)
            if unknown is not None:
                self._control = unknown
                self._probe()
            return unknown is not None or bool(condition)
        if unknown is None and not (type(condition) is bool and condition):
            self._refuse("the condition is known in some steps only")
        if self._stage == "begun":
            self.begin()
            return True
        self._build(unknown)
        return False

    def begin(self) -> None:
        """Note what there is at the beginning of a step of symbols."""
        if self._stage == "begun":
            self._look(self._trace)
            path = self._trace.path  # type: ignore[union-attr]
            path.failing = len(path.checks), None  # type: ignore[union-attr]
            live = (reference() for reference in self._trace.live)  # type: ignore[union-attr]
            held = [one.held for one in live if one is not None]
            self._before = set(toposort([one for one in held if isinstance(one, Variable)]))
            stands = {carry.place: carry.stand for carry in self._carries}
            self._versions = {place: one.version for place, one in stands.items() if type(one) is TracedArray}
            self._stage = "traced"

    def iterated(self, values: Any, target: str | None) -> Iterable[Any]:
        """What a ``for`` goes through."""
        trace = self._trace
        is_asked = trace is not None and trace.path is not None and (
            trace.within or trace.path.choices or not trace.may_end
        )  # fmt: skip
        if not is_asked or trace is None or self._line in trace.unchosen or type(values) is not range:
            return rolled(values, target)  # type: ignore[no-any-return]
        return self._steps(values) if len(values) >= FEWEST_STEPS else rolled(values, target)

    def _steps(self, values: range) -> Iterator[Any]:
        at, number, first = 0, TensorType("int64", shape=()).make_variable(), self._first
        while self._stage == "plain":
            if at == MOST_KNOWN + first:
                self._state = None
                yield from values[at:]
                return
            if at >= first:
                self._look(self._trace)
            yield values[at]
            at += 1
        self._count = number, values, at - 1
        self._begin()
        yield self._number(number)
        self._end()
        self._build(None)

    def _number(self, count: Variable) -> TracedNumber:
        """The value of a ``for`` in a step."""
        assert self._count is not None
        values = self._count[1]
        return TracedNumber(op_named("add")(op_named("mul")(count, values.step), values.start), int)

    def exits(self, condition: Any) -> bool:
        """Whether a ``break`` at a condition is one of the op's."""
        trace = self._trace
        if self._stage == "plain" and trace is not None and (self._state is not None or trace.may_end):
            if unknown_of(condition, trace, True) is None:
                return False
            if self._state is not None:
                self._probe()
            elif self._target is not None and trace.path is not None:
                self._asked += 1
                if self._asked > MOST_ASKED:  # its steps do not tell what further ones do
                    raise TracedInFull
        return self._stage in ("probed", "traced")

    def leave(self, condition: Variable) -> None:
        """Note that the loop is left now if a condition holds."""
        try:
            self._exits.append((condition, self._taken()))
            self._checked.append(len(self._trace.path.checks))  # type: ignore[union-attr]
        except UnseenStateError as error:
            self._refuse(str(error))

    # ---- what a step does

    def _look(self, trace: Any) -> None:
        try:
            self._state = ProgramState(self._frame, self._names, trace)
        except UnseenStateError as error:
            self._refuse(f"what a step changes may not be seen: {error}")

    def _refuse(self, reason: str, is_first: bool = False) -> None:
        raise NotChosen(self._line, reason, is_first)

    def _probe(self) -> None:
        assert self._trace is not None
        assert self._trace.path is not None
        self._stage = "probed"
        self._trace.path.choices.append(self._line)
        self._checks, self._failing = len(self._trace.path.checks), self._trace.path.failing

    def _taken(self) -> dict[Place, Any]:
        """Places that a step has changed -> what is there now, whatever is written to arrays later."""
        found: dict[Place, Any] = {}
        for place, value in self._state.taken().items():
            found[place] = value.value if type(value) is HalfBound else value
            if place[0] == "name" and place[1] in self._half and value is not UNBOUND:
                before = self._state.before[place[1]]
                if before is UNBOUND or type(before) is HalfBound:
                    found["bound", place[1]] = half_of(value, UNBOUND).is_bound
        for carry in self._carries:
            if carry.place in found:
                carry.same.append(found[carry.place])
        return {place: as_now(value) for place, value in found.items()}

    def _changed(self) -> dict[Place, Any]:
        """Places that a step has changed -> what is there; all is as before the step then."""
        try:
            now = self._taken()
            self._state.changes()
        except UnseenStateError as error:
            self._refuse(f"what a step changes may not be seen: {error}")
        return now

    def _begin(self) -> None:
        """Let symbols stand for what a step hands on."""
        path = self._trace.path  # type: ignore[union-attr]
        after = self._changed()
        del path.checks[self._checks :]  # type: ignore[union-attr]
        ends = [after, *(values for _, values in self._exits)]
        self._exits.clear()
        self._checked.clear()
        self._values = dict(self._state.before)
        for place in dict.fromkeys(one for end in ends for one in end):
            if place[0] == "name" and place[1] != self._target:
                self._begin_name(place[1], ends)
            elif place[0] not in ("name", "bound"):
                self._begin_place(place, self._state.at_first(place), ends)
        self._stage, self.is_put = "begun", True

    def _begin_name(self, name: str, ends: Sequence[Mapping[Place, Any]]) -> None:
        value, is_bound = ("name", name), ("bound", name)
        first = self._state.before[name]
        found = [end[value] for end in ends if value in end]
        is_run = first is UNBOUND and len(found) == len(ends) and isinstance(self._control, Constant)
        if is_run and all(end.get(is_bound, True) is True for end in ends):
            self._begin_place(value, nothing_like(found[0]), ends, False)  # the first step binds it
            return
        half = half_of(first, found[0])
        if not any(is_bound in end for end in ends):
            self._begin_place(value, first, ends)
        elif self._begin_place(value, half.value, ends):
            self._begin_place(is_bound, half.is_bound, ends)

    def _begin_place(
        self, place: Place, first: Any, ends: Sequence[Mapping[Place, Any]], stands: bool = True
    ) -> bool:
        """Let a symbol stand at a place, if it is one that changes; whether there is a value at all."""
        found = next((end[place] for end in ends if end.get(place, first) is not first), None)
        if found is None:
            return True
        try:
            one, two, made = _pair(first, found)
            if one.type != two.type:
                raise NoChoiceError(differing(first, found))
        except NoChoiceError as error:
            if place[0] not in ("name", "bound"):
                self._refuse(_OTHER, True)
            self._leave_unbound(place[1], f"changes its type in a step: it {error}", True)
            return False
        owner = None if place[0] in ("name", "bound") else self._state.owner(place)
        symbol = Variable(one.type)
        carry = _Carry(place, owner, one, symbol, made, made(symbol) if stands else UNBOUND, [first])
        self._carries.append(carry)
        self._put(carry, carry.stand)
        return True

    def _leave_unbound(
        self, name: str, reason: str = "is not bound before the loop", is_first: bool = False
    ) -> None:
        self._values[name] = UNBOUND
        refusal = NotChosen(self._line, f"{name} {reason}", is_first)
        self._trace.path.half_bound.setdefault(name, refusal)  # type: ignore[union-attr]

    def _put(self, carry: _Carry, value: Any) -> None:
        kind, *rest = carry.place
        if kind == "name":
            self._values[rest[0]] = value
        elif kind == "bound":
            self._is_bound[rest[0]] = value
        elif kind == "item":
            carry.owner[rest[1]] = value
        else:
            carry.owner.put_back(value.value)

    def _end(self) -> None:
        """Have what a step leaves stand where symbols stood."""
        after = self._changed()
        places = {carry.place for carry in self._carries}
        known = {name for name, value in self._state.before.items() if value is not UNBOUND}
        for end in [after, *(values for _, values in self._exits)]:
            for place in end:
                is_own = place[0] in ("name", "bound") and place[1] not in known
                if place not in places and not is_own and place != ("name", self._target):
                    self._refuse("a step changes other values than the first one did")
        self._values = dict(self._state.before)
        for name in self._names:
            if name not in known and ("name", name) in {*after} - places and name != self._target:
                self._leave_unbound(name)
        self._refuse_shared_arrays()
        stands = [carry.made(carry.symbol) for carry in self._carries]
        found = [after.get(carry.place, one) for carry, one in zip(self._carries, stands, strict=True)]
        try:
            for condition, values in reversed(self._exits):
                merge = Merge(condition, is_cheap, True)
                for at, (carry, one) in enumerate(zip(self._carries, stands, strict=True)):
                    left = values.get(carry.place, one)
                    if left is not found[at]:
                        merge.add(left, found[at], functools.partial(found.__setitem__, at))
                merge.build()
            for carry, one, value in zip(self._carries, stands, found, strict=True):
                _, following, made = _pair(one, value)
                if following.type != carry.symbol.type:
                    raise NoChoiceError
                self._following.append(following)
                self._put(carry, made(following))
        except NoChoiceError:
            self._refuse(_OTHER, True)
        self._stage = "closing"

    def _refuse_shared_arrays(self) -> None:
        """Raise NotChosen where a step writes to an array that may be known by another name, too."""
        written = [carry.owner for carry in self._carries if carry.place[0] == "array"]
        for carry in self._carries:
            if carry.place[0] == "array":
                continue
            arrays = [one for one in carry.same if type(one) is TracedArray and not one.is_scalar]
            is_written = (
                type(carry.stand) is TracedArray and carry.stand.version != self._versions[carry.place]
            )
            if is_written or any(one.root is other for one in arrays for other in written):
                self._refuse("an array that a step writes to has another name after it")

    def _build(self, unknown: Variable | None) -> None:
        """Have the results of the op stand for what the loop has changed."""
        path = self._trace.path  # type: ignore[union-attr]
        goes_on, raised = self._goes_on(unknown, path.checks[self._checks :])  # type: ignore[union-attr]
        path.failing = self._failing  # type: ignore[union-attr]
        own, path.checks[self._checks :] = path.checks[self._checks :], []  # type: ignore[union-attr]
        control = unless_failed(self._control)
        path.checks += own  # type: ignore[union-attr]
        carries = {carry.symbol: carry.first for carry in self._carries}
        following, steps = list(self._following), None
        if self._count is not None:
            number, values, first = self._count
            steps = len(values) - first
            carries[number] = as_variable(np.int64(first))
            following.append(op_named("add")(number, 1))
        # Each error is one of the last step, if it is one, since that ends the loop: it is raised afterwards.
        failed = [Variable(TensorType("bool", shape=())) for _ in raised]
        carries.update(dict.fromkeys(failed, as_variable(np.bool_(False))))
        following += raised
        texts = self._texts_of(path.checks[self._checks :])  # type: ignore[union-attr]
        carries.update((stand, as_variable(np.zeros(shape, stand.dtype))) for stand, shape in texts.values())
        following += [path.texts[text][0] for text in texts]  # type: ignore[union-attr]
        try:
            parts = LoopParts(control, carries, following, goes_on=goes_on, max_steps=steps)
            parts.close(self._before)
            made = parts.node().outputs
        except EsatError as error:
            self._refuse(str(error).splitlines()[0])
        results = dict(zip(carries, made, strict=False))
        for check, flag in zip(path.checks[self._checks :], failed, strict=True):  # type: ignore[union-attr]
            check.condition = results[flag]
        for text, (stand, _) in texts.items():
            path.texts[text] = results[stand], path.texts[text][1]  # type: ignore[union-attr]
        self._finish(made)

    def _texts_of(self, checks: Sequence[ErrorCheck]) -> dict[str, tuple[Variable, tuple[int, ...]]]:
        """What stands in messages for values of a step -> what stands for the last one, and its shape."""
        found: dict[str, tuple[Variable, tuple[int, ...]]] = {}
        for text, (value, _) in self._trace.path.texts.items():  # type: ignore[union-attr]
            if any(text in str(one.error) for one in checks):
                shape = value.tensor_type.shape
                if None in shape:
                    self._refuse("an error shows an array of a size that is not known")
                found[text] = Variable(value.type), shape  # type: ignore[assignment]
        return found

    def _goes_on(
        self, unknown: Variable | None, checks: Sequence[ErrorCheck]
    ) -> tuple[Variable, list[Variable]]:
        """Whether there is a further step after one, and which errors that one raises.

        Each ``break`` and each check counts where none before it has ended the step.
        """
        ends = [(place, 0, left) for (left, _), place in zip(self._exits, self._checked, strict=True)]
        ends += [(place, 1, check.condition) for place, check in enumerate(checks, self._checks)]  # type: ignore[misc]
        goes_on: Variable | None = None
        raised: list[Variable] = []
        for _, is_check, condition in sorted(ends, key=lambda one: one[:2]):
            ended = condition if goes_on is None else both(goes_on, condition)
            stays = op_named("invert")(ended)
            goes_on = stays if goes_on is None else op_named("bitwise_and")(goes_on, stays)
            if is_check:
                raised.append(ended)
        if goes_on is not None and unknown is not None:
            goes_on = both(goes_on, unknown)
        found = goes_on if goes_on is not None else unknown
        assert found is not None
        return found, raised

    def _finish(self, made: Sequence[Variable]) -> None:
        self._values = dict(self._state.before)  # a name may have been assigned what it stood for
        found = [carry.made(result) for carry, result in zip(self._carries, made, strict=False)]
        for carry, value in zip(self._carries, found, strict=True):
            self._put(carry, value)
        for value, carry in zip(found, self._carries, strict=True):
            for other in (*carry.same, *found):
                if other is not value:
                    may_share(value, other, self._line)
        if self._count is not None and self._target is not None:
            last = op_named("sub")(made[len(self._carries)], 1)
            self._values[self._target] = self._number(last)
        self._trace.path.choices.pop()  # type: ignore[union-attr]
        self._stage, self.is_put = "done", True
        self._state = None
        self._carries, self._exits, self._checked, self._following = [], [], [], []


def _pair(one: Any, other: Any) -> tuple[Variable, Variable, Callable[[Variable], Any]]:
    if not all(is_value(each) for each in (one, other)):
        raise NoChoiceError(differing(one, other))
    return paired(one, other)
