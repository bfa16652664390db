"""Iterations of a loop of Python's, compared node by node: what is the same in all, and what is not.

Each iteration was traced. They are equal up to what a loop has for each step: values of earlier steps,
elements of an array, and numbers. That is a proof, by induction over the steps: a node of equal op on equal
operands is of equal value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from esat.errors import UserLine
from esat.graph.op import Family
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Slice, Slot

MOST_BACK = 4
"""Steps that a value may be taken from back; a loop hands on so many."""
MOST_BEFORE = 3
"""First iterations that may differ, and stay as they are."""

Entries: TypeAlias = tuple[type, tuple[Slice | Slot | None, ...]]
Key: TypeAlias = tuple[int, int]
"""A result of an iteration: the place of its node, and its own among the node's results."""


class NotEqualError(Exception):
    """Iterations that are not shown to be steps of one loop.

    Attributes
    ----------
    where
        The user's line of the first node that differs.
    """

    def __init__(self, reason: str, where: UserLine | None = None) -> None:
        super().__init__(reason)
        self.reason, self.where = reason, where


@dataclass(slots=True)
class StepOperand:
    """What an operand is in all iterations.

    Attributes
    ----------
    kind
        ``step``: a value of an iteration so many steps back; ``outside``: a Variable from before the loop;
        ``each``: another such Variable for each iteration; ``number``: a Constant, in each iteration one of
        its own.
    back, key
        Of a value of an iteration: how many steps back, and which.
    variable
        The Variable from before the loop.
    values, each
        The constants or Variables, one for each iteration that was traced.
    rows
        Constants of all iterations, where some were not traced.
    """

    kind: str
    back: int = 0
    key: Key = (0, 0)
    variable: Variable | None = None
    values: list[Constant] = field(default_factory=list)
    each: list[Variable] = field(default_factory=list)
    rows: np.ndarray[Any, np.dtype[Any]] | None = None


@dataclass(slots=True)
class StepNode:
    """A node in all iterations.

    Attributes
    ----------
    node
        That of the last iteration.
    operands
        What its operands are.
    places
        Of a part chosen by integers and fixed slices: the integers of each iteration, a row for each.
    """

    node: Apply
    operands: list[StepOperand]
    places: np.ndarray[Any, np.dtype[np.int64]] | None

    @property
    def axis(self) -> int | None:
        """The axis along which a part is chosen that is all of the others."""
        entries: Sequence[Any] = getattr(self.node.op, "entries", ())
        axes = [axis for axis, one in enumerate(entries) if not (isinstance(one, Slice) and one.is_full)]
        is_row = self.places is not None and len(axes) == 1 and type(entries[axes[0]]) is int
        return axes[0] if is_row else None

    @property
    def asks(self) -> bool:
        """Whether the part is chosen by computed integers, too."""
        return self.places is not None and OPERAND in getattr(self.node.op, "entries", ())

    @property
    def rows(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """The places along that axis."""
        return None if self.places is None or self.axis is None else self.places[:, 0]

    @property
    def varies(self) -> bool:
        """Whether the part is another one in each step."""
        return self.places is not None and bool((self.places != self.places[:1]).any())


class Iterations:
    """The iterations of a loop from the first one on that is equal to those after it.

    Attributes
    ----------
    first
        How many iterations come before.
    steps
        The nodes.
    initial
        A result, and how many steps before the first one -> the value that stands for it there.

    Parameters
    ----------
    nodes
        Those of each iteration that something reads, in order.

    Raises
    ------
    NotEqualError
        Where iterations are not equal.
    """

    def __init__(self, nodes: Sequence[Sequence[Apply]]) -> None:
        self._nodes = nodes
        self._total = len(nodes)
        self._last: dict[Variable, Key] = {}
        self._moved: frozenset[Variable] = frozenset()
        self._where = {
            output: (number, place, index)
            for number, iteration in enumerate(nodes)
            for place, node in enumerate(iteration)
            for index, output in enumerate(node.outputs)
        }
        for first in range(min(MOST_BEFORE, len(nodes) - 1)):
            with suppress(NotEqualError):
                self._compare(first)
                return
        self._compare(min(MOST_BEFORE, len(nodes) - 1))

    @property
    def count(self) -> int:
        """How many iterations are equal."""
        return self._total - self.first

    def place(self, variable: Variable) -> tuple[int, Key] | None:
        """The step, counted from the first equal one, and the key of a value of one; None of others."""
        found = self._where.get(variable)
        if found is not None and variable in self._moved:
            at = self.count - 1 - (len(self._nodes) - found[0])
            return None if at < 0 else (at, (found[1], found[2]))
        if variable in self._last:
            return self.count - 1, self._last[variable]
        if found is None or found[0] < self.first:
            return None
        return found[0] - self.first, (found[1], found[2])

    def is_back(self, variable: Variable, back: int, key: Key) -> bool:
        """Whether a value is one of so many iterations before the one after those that were traced."""
        return self._where.get(variable) == (len(self._nodes) - back, *key)

    def extend(self, total: int, last: dict[Variable, Key], moved: Collection[Variable] = ()) -> None:
        """Say that there are more iterations, the last of which has these values, and moved ones of the
        iterations before it."""
        self._total, self._last, self._moved = total, last, frozenset(moved)

    def _compare(self, first: int) -> None:
        self.first = first
        self.initial: dict[tuple[Key, int], Variable] = {}
        last = self._nodes[-1]
        for iteration in self._nodes[first:]:
            if len(iteration) != len(last):
                longer, shorter = (iteration, last) if len(iteration) > len(last) else (last, iteration)
                node = longer[len(shorter)]
                raise NotEqualError(
                    f"iterations have {len(shorter)} and {len(longer)} operations", node.where
                )
        self.steps = [self._step(place, node) for place, node in enumerate(last)]

    def _step(self, place: int, model: Apply) -> StepNode:
        """A node in all iterations. Raises NotEqualError where it differs."""
        if model.op.family is Family.RANDOM:
            raise NotEqualError("it draws random numbers", model.where)
        if not all(isinstance(one.type, TensorType) for one in (*model.inputs, *model.outputs)):
            raise NotEqualError(f"{model.op.name} takes or gives what is no array", model.where)
        shape = chosen_places(model)
        places: list[tuple[int, ...]] = []
        same = [iteration[place] for iteration in self._nodes[self.first :]]
        for number, node in enumerate(same):
            own = chosen_places(node)
            is_like = node.op == model.op if shape is None or own is None else own[0] == shape[0]
            types = [one.type for one in node.outputs] == [one.type for one in model.outputs]
            if not is_like or not types or len(node.inputs) != len(model.inputs):
                reason = f"step {self.first + number} computes {node.op}, and the last one {model.op}"
                raise NotEqualError(reason, node.where)
            if own is not None:
                places.append(own[1])
        operands = [self._operand(position, model, same) for position in range(len(model.inputs))]
        return StepNode(model, operands, None if shape is None else np.array(places, np.int64))

    def _operand(self, position: int, model: Apply, same: Sequence[Apply]) -> StepOperand:
        variable, last = model.inputs[position], len(self._nodes) - 1
        if isinstance(variable, Constant):
            return self._numbers(position, model, same)
        found = self._where.get(variable)
        if found is None or found[0] < self.first:
            return self._outside(position, model, same)
        back, key = last - found[0], (found[1], found[2])
        if not 0 <= back <= MOST_BACK:
            raise NotEqualError(f"a value of {back} steps back is used", model.where)
        for number, node in enumerate(same):
            operand = node.inputs[position]
            if number < back:
                self.set_initial(key, back - number, operand, node.where)
            elif self._where.get(operand) != (self.first + number - back, *key):
                raise NotEqualError(f"{model.op.name} takes another operand in each step", node.where)
        return StepOperand("step", back, key)

    def _outside(self, position: int, model: Apply, same: Sequence[Apply]) -> StepOperand:
        each = [node.inputs[position] for node in same]
        if all(one is each[-1] for one in each):
            return StepOperand("outside", variable=each[-1])
        for node, one in zip(same, each, strict=True):
            if self._where.get(one, (-1,))[0] >= self.first or one.type != each[-1].type:
                raise NotEqualError(f"{model.op.name} takes another operand in each step", node.where)
        return StepOperand("each", each=each)

    def set_initial(self, key: Key, before: int, value: Variable, where: UserLine | None) -> None:
        """Say what stands for a result so many steps before the first one. Raises NotEqualError."""
        node = self._nodes[-1][key[0]]
        if value.type != node.outputs[key[1]].type:
            raise NotEqualError(f"a value has type {value.type} before the first step, and "
                                f"{node.outputs[key[1]].type} after it", where)  # fmt: skip
        known = self.initial.setdefault((key, before), value)
        if known is not value and not _is_equal(known, value):
            raise NotEqualError("a value has two first values", where)

    def _numbers(self, position: int, model: Apply, same: Sequence[Apply]) -> StepOperand:
        values: list[Constant] = []
        for node in same:
            value = node.inputs[position]
            if not isinstance(value, Constant) or value.type != model.inputs[position].type:
                raise NotEqualError(f"{model.op.name} takes a number in some steps only", node.where)
            values.append(value)
        return StepOperand("number", values=values)


def chosen_places(node: Apply) -> tuple[Entries, tuple[int, ...]] | None:
    """Of a part that known and computed integers and fixed slices choose: the entries but for the known
    integers, and these."""
    op = node.op
    if type(op) not in (Subtensor, SetSubtensor):
        return None
    assert isinstance(op, Subtensor | SetSubtensor)
    shape = node.inputs[0].tensor_type.shape
    kept: list[Slice | Slot | None] = []
    places: list[int] = []
    for entry, size in zip(op.entries, shape, strict=False):
        if entry is OPERAND or (isinstance(entry, Slice) and entry.is_static):
            kept.append(entry)
        elif type(entry) is int and (entry >= 0 or size is not None):
            kept.append(None)
            places.append(entry if entry >= 0 else entry + (size or 0))
        else:
            return None
    return ((type(op), tuple(kept)), tuple(places)) if places else None


def needed(nodes: Sequence[Sequence[Apply]], read: set[Variable]) -> list[list[Apply]]:
    """The nodes of iterations whose results something reads, itself at last, or ``read`` has."""
    used, kept = set(read), list[list[Apply]]()
    for iteration in reversed(nodes):
        own: list[Apply] = []
        for node in reversed(iteration):
            if not used.isdisjoint(node.outputs):
                used.update(node.inputs)
                own.append(node)
        kept.append(own[::-1])
    return kept[::-1]


def _is_equal(one: Variable, other: Variable) -> bool:
    return (
        isinstance(one, Constant)
        and isinstance(other, Constant)
        and one.type == other.type
        and one.data.tobytes() == other.data.tobytes()
    )


def rows_of(operand: StepOperand) -> np.ndarray[Any, np.dtype[Any]] | None:
    """Constants as an array with one for each step; None where all are equal."""
    if operand.rows is not None:
        first = operand.rows[:1]
        return None if operand.rows.tobytes() == first.tobytes() * len(operand.rows) else operand.rows
    values = operand.values
    if all(_is_equal(values[0], one) for one in values[1:]):
        return None
    return np.stack([one.data for one in values])
