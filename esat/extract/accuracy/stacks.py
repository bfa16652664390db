"""Values of many classes as stacks: those of one shape and dtype lie in one array.

So one call of NumPy evaluates all e-nodes of an operation that are ready at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.extract.accuracy.units import Places, Unit
from esat.extract.accuracy.wide_format.operations import Operation

Array = NDArray[Any]
IntArray = NDArray[np.int64]
Rows = slice | IntArray
"""Rows of a stack; those that lie side by side as a slice, which NumPy reads without a copy."""


@record(frozen=True, eq=False)
class Numbering:
    """Where the values of each class lie.

    Attributes
    ----------
    stack, row
        Of each class; -1 where it has none.
    shapes, dtypes
        Of each stack.
    members
        Classes of each stack, by row.
    """

    stack: tuple[int, ...]
    row: IntArray
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    members: tuple[IntArray, ...]

    @property
    def counts(self) -> list[int]:
        """Number of classes of each stack."""
        return [len(classes) for classes in self.members]


def numbered(places: Places, used: Iterable[int]) -> Numbering:
    """Stacks for the classes that are used, in their order."""
    keys: dict[tuple[tuple[int, ...], np.dtype[Any]], int] = {}
    stack, row = [-1] * len(places), np.full(len(places), -1, np.int64)
    members: list[list[int]] = []
    for klass in used:
        shape, dtype = places.shapes[klass], places.dtypes[klass]
        if shape is None or dtype is None or stack[klass] >= 0:
            continue
        number = keys.setdefault((shape, dtype), len(keys))
        if number == len(members):
            members.append([])
        stack[klass], row[klass] = number, len(members[number])
        members[number].append(klass)
    return Numbering(
        tuple(stack),
        row,
        tuple(shape for shape, _ in keys),
        tuple(dtype for _, dtype in keys),
        tuple(np.array(classes, np.int64) for classes in members),
    )


def narrowed(rows: IntArray) -> Rows:
    """Rows as a slice where they lie side by side."""
    count = len(rows)
    if not count or int(rows[-1]) - int(rows[0]) != count - 1:
        return rows
    return slice(int(rows[0]), int(rows[-1]) + 1) if count < 3 or (np.diff(rows) == 1).all() else rows


@record(frozen=True, eq=False)
class UnitGroup:
    """Units that one call evaluates.

    Attributes
    ----------
    units
        Their numbers.
    members
        The units themselves.
    operation
        What they do; None for leaves.
    result
        Stack of their classes, and ``rows`` theirs in it.
    operands
        Stack of each operand, and the rows in it.
    repeats
        Whether several of them compute one class.
    """

    units: IntArray
    members: Sequence[Unit]
    operation: Operation | None
    result: int
    rows: Rows
    operands: tuple[tuple[int, Rows], ...]
    repeats: bool = False

    @property
    def example(self) -> Unit:
        """One of them."""
        return self.members[0]

    def part(self, places: IntArray) -> UnitGroup:
        """Those of its units at some places."""

        def some(rows: Rows) -> Rows:
            every = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            return narrowed(every[places])

        return UnitGroup(
            self.units[places],
            [self.members[place] for place in places.tolist()],
            self.operation,
            self.result,
            some(self.rows),
            tuple((stack, some(rows)) for stack, rows in self.operands),
            self.repeats,
        )

    def rounds(self) -> Iterator[IntArray]:
        """Places of its units, no class twice in one round."""
        waiting = list(range(len(self.units)))
        while waiting:
            taken: set[int] = set()
            now: list[int] = []
            later: list[int] = []
            for place in waiting:
                klass = self.members[place].result
                (later if klass in taken else now).append(place)
                taken.add(klass)
            yield np.array(now, np.int64)
            waiting = later


def group_of(
    numbers: Sequence[int], units: Sequence[Unit], operation: Operation | None, numbering: Numbering
) -> UnitGroup:
    """The units of these numbers, which are of one kind, as a group."""
    members = [units[number] for number in numbers]
    row, example = numbering.row, members[0]
    operands = tuple(
        (numbering.stack[operand], narrowed(row[[unit.operands[place] for unit in members]]))
        for place, operand in enumerate(example.operands)
    )
    results = [unit.result for unit in members]
    return UnitGroup(
        np.array(numbers, np.int64),
        members,
        operation,
        numbering.stack[example.result],
        narrowed(row[results]),
        operands,
        len(set(results)) < len(results),
    )
