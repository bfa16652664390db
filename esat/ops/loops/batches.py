"""Loops on batches: one loop whose body takes a step of all elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.graph.constants import constant
from esat.graph.registry import function_named, op_named, register_functions
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.inference.batching import batch_size, by_element, repeated
from esat.ops.loops.parts import LoopParts, depends
from esat.ops.loops.record import LoopOp


def _batched(node: Apply, inputs: Sequence[Variable], flags: Sequence[bool]) -> tuple[Variable, ...]:
    op = node.op
    assert isinstance(op, LoopOp)
    parts = LoopParts.of(node)
    counted = flags[0] and parts.goes_on is None  # another number of steps for each
    if counted and parts.kept:
        return by_element(op, node, inputs, flags)
    given = dict(zip(parts.inputs, inputs[1:], strict=True))
    batched = {own for own, flag in zip(parts.inputs, flags[1:], strict=True) if flag}
    batched = parts.depending(batched, lambda _: True)
    decides = parts.goes_on is not None and (flags[0] or depends(parts.goes_on, batched))
    if decides or counted:
        batched |= set(parts.carries)
    size = batch_size(inputs, flags)
    batch = _Batch(parts, given, batched, {own for own, f in zip(parts.inputs, flags[1:], strict=True) if f})
    whole = batch.parts(inputs[0], size)
    if counted:
        return _as_many_as_each_has(whole, inputs[0])
    if decides:
        return _each_its_own(node, whole, inputs[0] if flags[0] else repeated(inputs[0], size))
    made = whole.node().outputs
    between = [repeated(one, size) for one in made[len(parts.carries) : parts.count_of_results()]]
    last = [
        one if own in batched else repeated(one, size) for own, one in zip(parts.carries, made, strict=False)
    ]
    rows = [
        _swapped(one) if flag else repeated(one, size)
        for one, flag in zip(made[parts.count_of_results() :], batch.rows, strict=True)
    ]
    return (*last, *between, *rows)


class _Batch:
    """A loop whose body takes some values of all elements at once.

    Attributes
    ----------
    rows
        Which traces have the batch's axis.
    """

    def __init__(
        self, loop: LoopParts, given: dict[Variable, Variable], batched: set[Variable], has: set[Variable]
    ) -> None:
        self.loop, self.given, self.batched, self.has = loop, given, batched, has
        self.rows: list[bool] = []

    def parts(self, control: Variable, size: Variable) -> LoopParts:
        """The loop, and of one with a condition whether each element goes on."""
        loop, known = self.loop, None
        for own in self.has:
            known = known or self.given[own].tensor_type.shape[0]
        fresh = {
            own: own.tensor_type.with_shape((known, *own.tensor_type.shape)).make_variable()
            for own in loop.inputs
            if own in self.batched
        }
        found = function_named("vectorize")(loop.results, fresh)
        inner = next((size_of(new, 0) for new in fresh.values()), size)

        def whole(value: Variable, flag: bool) -> Variable:
            return value if flag else repeated(value, inner)

        carries = list(loop.carries)
        following = [
            whole(*pair) if own in fresh else pair[0] for own, pair in zip(carries, found, strict=False)
        ]
        rest = found[len(carries) :]
        goes_on = None
        if loop.goes_on is not None:
            goes_on, flag = rest.pop(0)
            if set(carries) <= self.batched and carries:
                goes_on = whole(goes_on, flag)
        self.rows = [flag for _, flag in rest]

        def outer(own: Variable) -> Variable:
            value = self.given[own]
            if own in fresh and own not in self.has:
                return repeated(value, size)
            return _swapped(value) if own in fresh and own in loop.sequences else value

        pairs: list[dict[Variable, Variable]] = [
            {fresh.get(own, own): outer(own) for own in group}
            for group in (loop.carries, loop.sequences, loop.invariants)
        ]
        return LoopParts(
            control, pairs[0], following, [value for value, _ in rest], pairs[1], pairs[2], goes_on,
            loop.reverse, loop.max_steps, loop.sparing,
        )  # fmt: skip


def _each_its_own(node: Apply, loop: LoopParts, condition: Variable) -> tuple[Variable, ...]:
    """A loop that runs as long as any element goes on, in which those that have ended keep their values."""
    assert loop.goes_on is not None
    alive = condition.type.make_variable()
    count = alive.tensor_type.with_dtype("int64").make_variable()
    size = size_of(condition, 0)
    goes_on = _and(alive, loop.goes_on)
    following = [_where(alive, after, own) for own, after in zip(loop.carries, loop.following, strict=True)]
    number = len(loop.carries)
    kept = [_where(alive, one, one * 0) for one in loop.kept]
    zeros = repeated(constant(0, "int64"), size)
    both = LoopParts(
        condition.any(),
        {**loop.carries, alive: condition, count: zeros},
        [*following, goes_on, count + cast(alive, "int64")],
        kept,
        loop.sequences,
        loop.invariants,
        goes_on.any(),
        max_steps=loop.max_steps,
    )
    made = both.node().outputs
    rows = [_swapped(one) for one in made[both.count_of_results() :]]
    return (*made[:number], made[number + 1], made[number], *rows)


def _as_many_as_each_has(loop: LoopParts, steps: Variable) -> tuple[Variable, ...]:
    """A loop of as many steps as any element has, in which others keep their values meanwhile."""
    numbers = steps.type.make_variable()
    place = constant(0, "int64").type.make_variable()
    most = op_named("maximum")(steps, 0).max()
    alive = op_named("lt")(place, numbers)
    following = [_where(alive, after, own) for own, after in zip(loop.carries, loop.following, strict=True)]
    first, moved = (most - 1, place - 1) if loop.reverse else (constant(0, "int64"), place + 1)
    both = LoopParts(
        most,
        {**loop.carries, place: first},
        [*following, moved],
        [],
        loop.sequences,
        {**loop.invariants, numbers: steps},
        reverse=loop.reverse,
        sparing=loop.sparing,
    )
    return tuple(both.node().outputs[: len(loop.carries)])


def _and(left: Variable, right: Variable) -> Variable:
    both: Variable = op_named("bitwise_and")(left, right)
    return both


def _where(condition: Variable, then: Variable, otherwise: Variable) -> Variable:
    order: list[Any] = [0, *["x"] * (then.tensor_type.ndim - 1)]
    chosen: Variable = op_named("switch")(dimshuffle(condition, order), then, otherwise)
    return chosen


def _swapped(variable: Variable) -> Variable:
    """The axes of steps and of the batch in the order of the other side."""
    return dimshuffle(variable, (1, 0, *range(2, variable.tensor_type.ndim)))


register_functions({f"{name}_batch": _batched for name in ("scan", "while_loop")})
