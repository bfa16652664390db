"""Loops that are left in the step in which a value says so, as one op that runs as long as it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.frontend.tracing.rolling.iterations import Iterations, NotEqualError, needed
from esat.frontend.tracing.rolling.rolled_loop import RolledLoop
from esat.frontend.tracing.rolling.skipping import Skipped
from esat.frontend.tracing.trace import Trace
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.copying import clone
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.join import Join
from esat.ops.index.write import PartWrite


class LeftLoop:
    """A loop that is left in some step.

    Parameters
    ----------
    nodes
        Those of each iteration that was traced.
    own
        Those of one that stands for all that are left, in which the loop goes on.
    ending
        Those of one in which it is left.
    numbers
        The numbers of these two.
    values
        Those of all iterations.
    moved
        The identities of the values that iterations hand on.
    """

    def __init__(
        self,
        nodes: Sequence[Sequence[Apply]],
        own: Sequence[Apply],
        ending: Sequence[Apply],
        trace: Trace,
        numbers: tuple[Variable, Variable],
        values: range,
        moved: set[int],
    ) -> None:
        self._nodes, self._own, self._ending = nodes, own, ending
        self._number, self._last = numbers
        self._values, self._moved = values, moved
        self._trace = trace
        self._live = [one for one in (reference() for reference in trace.live) if one is not None]

    def exchanged(self, condition: Variable) -> Variable:
        """Whether it was left; what refers to values of the last iterations is exchanged.

        Raises
        ------
        NotEqualError
            Where that is not possible.
        """
        ending, own = self._ending, self._own
        if len(ending) > len(own) or any(one.op != other.op for one, other in zip(ending, own, strict=False)):
            raise NotEqualError("the step that leaves it is another one")
        pairs = zip(ending, own, strict=False)
        same = {
            one: other for each in pairs for one, other in zip(each[0].outputs, each[1].outputs, strict=True)
        }
        same[self._last] = self._number
        back = {
            output: distance
            for distance, step in enumerate([own, *reversed(self._nodes)], 1)
            for node in step
            for output in node.outputs
        }
        for one in self._live:
            value = held_by(one)
            if value is not None and back.get(value, 0) > 1 and id(one) not in self._moved:
                raise NotEqualError("a value of one of the first steps is kept")
        held = {value for value in map(held_by, self._live) if value in same or value in back}
        read = {same.get(value, value) for value in held if value is not None} | {condition}
        kept = needed([*self._nodes, own], read | in_all_steps(self._nodes, own, self._number, read))
        iterations = Iterations(kept[:-1])
        skipped = Skipped(iterations, kept[-1], self._number, self._values)
        after = set(own[len(ending) :])
        raising = {
            place
            for place, node in enumerate(kept[-1])
            if node in after and may_raise(node, skipped.of_number)
        }
        wanted = {
            value: (same[value], 0) if value in same else (value, back[value])
            for value in held
            if value is not None and same.get(value, value) not in skipped.of_number
        }
        lost = {value for value, place in wanted.items() if not _is_known_at_first(iterations, *place)}
        wanted = {value: place for value, place in wanted.items() if value not in lost}
        found, count, left = RolledLoop(iterations).left(condition, wanted, raising)
        steps = op_named("mul")(op_named("sub")(count, 1), self._values.step)
        at = op_named("add")(steps, self._values.start)
        for one in self._live:
            value = held_by(one)
            if value in lost:
                # Nothing stands for it where the loop is left in its first step: no name is bound to it then.
                one.exchange(self._trace.lose(value))
            elif value is not None and value in held:
                one.exchange(found[value] if value in found else clone([value], {self._last: at})[0][0])
        for one in self._live:
            if type(one) is TracedArray:
                if type(one.key) is TracedNumber and one.base is not None:
                    raise NotEqualError("a part of an array moves on")
                one.look_again()
        return left


def _is_known_at_first(iterations: Iterations, value: Variable, back: int) -> bool:
    """Whether a value so many steps before the last one is known where that is the first one."""
    found = iterations.place(value)
    return found is not None and all((found[1], one) in iterations.initial for one in range(1, back + 1))


def may_raise(node: Apply, of_number: set[Variable]) -> bool:
    """Whether a node may raise an error for some values; places that a loop's number tells are known."""
    if node.op.family in (Family.LIBRARY, Family.CONTROL):
        return True
    places = node.inputs[2 if isinstance(node.op, PartWrite) else 1 :]
    return node.op.family is Family.INDEX and not all(
        isinstance(one, Constant) or one in of_number for one in places if not isinstance(node.op, Join)
    )


def in_all_steps(
    nodes: Sequence[Sequence[Apply]], model: Sequence[Apply], number: Variable | None, read: set[Variable]
) -> set[Variable]:
    """Values of iterations at the places of those of one that are read: there something may be read of the
    last iteration only.

    Parameters
    ----------
    nodes
        Those of each iteration.
    model
        Those of the one that is read.
    number
        Its number, where that is not known: other iterations have nothing that is computed of it alone.
    """
    of_number, left = {number}, list[Apply]()
    for node in model:
        is_of_number = all(one in of_number or isinstance(one, Constant) for one in node.inputs)
        if is_of_number and not of_number.isdisjoint(node.inputs):
            of_number.update(node.outputs)
        else:
            left.append(node)
    found = set[Variable]()
    for step in nodes:
        for node, other in _side_by_side(step, left):
            pairs = zip(node.outputs, other.outputs, strict=False)
            found.update(one for one, output in pairs if output in read)
    return found


def _side_by_side(step: Sequence[Apply], model: Sequence[Apply]) -> list[tuple[Apply, Apply]]:
    """The nodes of an iteration, each with the one of the model that computes the same as far as can be told:
    a first one may have fewer, of what was known before the loop."""
    pairs = list[tuple[Apply, Apply]]()
    remaining = iter(step)
    node = next(remaining, None)
    for other in model:
        if node is not None and node.op.name == other.op.name:
            pairs.append((node, other))
            node = next(remaining, None)
    return pairs if node is None else []


def held_by(one: Any) -> Variable | None:
    """The Variable behind a traced object, where it is no view of another one."""
    value = one.held
    return value if isinstance(value, Variable) and not isinstance(value, Constant) else None
