"""Values of many classes as stacks: those of one shape and dtype lie in one array.

So one call of NumPy evaluates all e-nodes of an operation that are ready at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.operations import Operation, operation_of
from esat.accuracy.units import LEAVES, Places, Unit
from esat.records import record

Array = NDArray[Any]
IntArray = NDArray[np.int64]


@record(frozen=True, eq=False)
class Numbering:
    """Where the values of each class lie.

    Attributes
    ----------
    stack, row
        Of each class; -1 where it has none.
    shapes, dtypes, counts
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
    """Stacks for the classes that are used."""
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


@record(frozen=True, eq=False)
class Group:
    """Units that one call evaluates.

    Attributes
    ----------
    units
        Their numbers.
    example
        One of them.
    operation
        What they do; None for leaves.
    result
        Stack of their classes, and ``rows`` theirs in it.
    operands
        Stack of each operand, and the rows in it.
    """

    units: IntArray
    example: Unit
    operation: Operation | None
    result: int
    rows: IntArray
    operands: tuple[tuple[int, IntArray], ...]

    def part(self, mask: NDArray[np.bool_]) -> Group:
        """Some of its units."""
        operands = tuple((stack, rows[mask]) for stack, rows in self.operands)
        return Group(self.units[mask], self.example, self.operation, self.result, self.rows[mask], operands)


class Grouping:
    """Puts units together that one call can evaluate.

    Parameters
    ----------
    units
        All of them.
    places, numbering
        Of their classes.
    """

    def __init__(self, units: Sequence[Unit], places: Places, numbering: Numbering) -> None:
        self._units, self._numbering = units, numbering
        self._groups: dict[tuple[int, ...], list[Group]] = {}
        kinds: dict[object, int] = {}
        self._operations: list[Operation | None] = []
        self._kind = []
        stack = numbering.stack
        for unit in units:
            sizes = places.sizes[unit.operands[0]] if unit.operands and unit.attributes else ()
            key = (
                unit.name, unit.attributes, unit.steps, stack[unit.result],
                tuple([stack[operand] for operand in unit.operands]), sizes,
            )  # fmt: skip
            kind = kinds.get(key)
            if kind is None:
                kind = kinds[key] = len(self._operations)
                is_leaf = unit.name in (*LEAVES, "Size")
                self._operations.append(None if is_leaf or not unit.operands else operation_of(unit, places))
            self._kind.append(kind)

    def can_evaluate(self, number: int) -> bool:
        """Whether a unit is a leaf, or an operation that is known."""
        return self._operations[self._kind[number]] is not None or self._units[number].name in (
            *LEAVES,
            "Size",
        )

    def groups(self, numbers: Sequence[int]) -> Sequence[Group]:
        """The units of these numbers in groups, no class twice in one."""
        key = tuple(numbers)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = list(self._grouped(key))
        return found

    def _grouped(self, numbers: Sequence[int]) -> Iterator[Group]:
        waiting: Sequence[int] = numbers
        while waiting:
            found: dict[int, list[int]] = {}
            taken: set[int] = set()
            later = []
            for number in waiting:
                klass = self._units[number].result
                if klass in taken:
                    later.append(number)
                else:
                    taken.add(klass)
                    found.setdefault(self._kind[number], []).append(number)
            for kind, members in found.items():
                yield self._group(self._operations[kind], members)
            waiting = later

    def _group(self, operation: Operation | None, members: list[int]) -> Group:
        numbering, units = self._numbering, self._units
        example = units[members[0]]
        row = numbering.row
        operands = tuple(
            (numbering.stack[operand], row[[units[number].operands[place] for number in members]])
            for place, operand in enumerate(example.operands)
        )
        rows = row[[units[number].result for number in members]]
        return Group(
            np.array(members, np.int64), example, operation, numbering.stack[example.result], rows, operands
        )


class Schedule:
    """Which units are evaluated when: operands first, and again those whose operands became better.

    Parameters
    ----------
    units
        All units.
    levels
        Level of each; -1 for one that is not evaluated.
    """

    MOST_PASSES = 6

    def __init__(self, units: Sequence[Unit], levels: Sequence[int]) -> None:
        self._levels = levels
        self._users: dict[int, list[int]] = {}
        for number, unit in enumerate(units):
            if levels[number] >= 0:
                for operand in set(unit.operands):
                    self._users.setdefault(operand, []).append(number)
        self._waiting: dict[int, set[int]] = {}
        self._runs = [0] * len(units)
        for number, level in enumerate(levels):
            if level >= 0:
                self._waiting.setdefault(level, set()).add(number)

    def __iter__(self) -> Iterator[list[int]]:
        """Units that are to be evaluated next; those of one level together."""
        while self._waiting:
            level = min(self._waiting)
            numbers = sorted(self._waiting.pop(level))
            for number in numbers:
                self._runs[number] += 1
            yield numbers

    def changed(self, klass: int) -> None:
        """Note that a class has better values than before."""
        for number in self._users.get(klass, ()):
            if self._runs[number] < self.MOST_PASSES:
                self._waiting.setdefault(self._levels[number], set()).add(number)
