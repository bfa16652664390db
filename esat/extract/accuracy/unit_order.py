"""In which order units are evaluated, and which of them together.

First one unit of each class, operands before users: the units of one kind wait for each other as long as
nothing else waits for them (list scheduling; R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM
Journal on Applied Mathematics 17, 1969). Then all other units, by kind alone, for their operands have values
by then; and last the users of classes that have become better by that, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from esat.base.records import record
from esat.extract.accuracy.stacks import Numbering, UnitGroup, group_of, numbered
from esat.extract.accuracy.units import LEAVES, Levels, Places, Unit
from esat.extract.accuracy.wide_format.operations import Operation, operation_of

MOST_PASSES = 6
"""Times that one unit is evaluated."""
MOST_UNITS = 256
"""Units of one group: the values of more have no place in the processor's caches."""
Classes = Iterable[int]


class Kinds:
    """Which units one call can evaluate, by the number of a kind.

    Sums and products are of one kind whatever their steps.

    Parameters
    ----------
    units
        All units.
    places
        Of their classes.
    """

    def __init__(self, units: Sequence[Unit], places: Places) -> None:
        numbers: dict[object, int] = {}
        forms: dict[object, int] = {}
        place = [
            forms.setdefault(pair, len(forms)) for pair in zip(places.shapes, places.dtypes, strict=True)
        ]
        self.of: list[int] = []
        self.operations: list[Operation | None] = []
        self._is_leaf: list[bool] = []
        for unit in units:
            is_leaf = not unit.operands
            sizes = places.sizes[unit.operands[0]] if unit.operands and unit.attributes else ()
            key: object = (
                (unit.name in (*LEAVES, "Size"), place[unit.result])
                if is_leaf
                else (
                    unit.name, unit.attributes, place[unit.result],
                    tuple([place[operand] for operand in unit.operands]), sizes,
                )
            )  # fmt: skip
            kind = numbers.get(key)
            if kind is None:
                kind = numbers[key] = len(self.operations)
                self.operations.append(None if is_leaf else operation_of(unit, places))
                self._is_leaf.append(is_leaf and unit.name in (*LEAVES, "Size"))
            self.of.append(kind)

    def can_evaluate(self, number: int) -> bool:
        """Whether a unit is a leaf, or an operation that is known."""
        kind = self.of[number]
        return self._is_leaf[kind] or self.operations[kind] is not None


@record(frozen=True, eq=False)
class Order:
    """What is evaluated when.

    Attributes
    ----------
    units, kinds, levels
        All units, their kinds, and how far they are above leaves; -1 for those that are not evaluated.
    numbering
        Where values lie.
    given
        Classes with values that no unit can compute.
    first
        Groups that compute each class once, operands first.
    rest
        Groups of all other units.
    """

    units: Sequence[Unit]
    kinds: Kinds
    levels: Sequence[int]
    numbering: Numbering
    given: frozenset[int]
    first: tuple[UnitGroup, ...]
    rest: tuple[UnitGroup, ...]

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """The units that each class is an operand of."""
        found: dict[int, list[int]] = {}
        for number, unit in enumerate(self.units):
            if self.levels[number] >= 0:
                for operand in set(unit.operands):
                    found.setdefault(operand, []).append(number)
        return found

    def run(self, evaluate: Callable[[UnitGroup], Classes]) -> None:
        """Evaluate all units, and those again whose operands become better.

        Parameters
        ----------
        evaluate
            Evaluates a group; the classes that have become better by it.
        """
        for group in self.first:
            evaluate(group)
        changed: set[int] = set()
        for group in self.rest:
            changed.update(evaluate(group))
        if changed:
            self.run_again(evaluate, {user for klass in changed for user in self.users.get(klass, ())})

    def run_again(self, evaluate: Callable[[UnitGroup], Classes], numbers: Iterable[int]) -> None:
        """Evaluate some units again, and those whose operands become better by it."""
        runs = [1] * len(self.units)
        pending: dict[int, set[int]] = {}

        def add(numbers: Iterable[int]) -> None:
            for number in numbers:
                if runs[number] < MOST_PASSES:
                    pending.setdefault(self.levels[number], set()).add(number)

        add(numbers)
        while pending:
            waiting = sorted(pending.pop(min(pending)))
            for number in waiting:
                runs[number] += 1
            for group in self._groups(waiting):
                for klass in evaluate(group):
                    add(self.users.get(klass, ()))

    def _groups(self, numbers: Iterable[int]) -> Iterator[UnitGroup]:
        yield from _groups(numbers, self.units, self.kinds, self.numbering)


def order_of(
    units: Sequence[Unit],
    places: Places,
    given: Iterable[int],
    others: Iterable[int],
    selected: Sequence[int] = (),
) -> Order:
    """The order for units.

    Parameters
    ----------
    places
        Of their classes.
    given
        Classes that have values; beside them those are given that no unit computes.
    others
        Classes that have no unit perhaps, and are to be numbered.
    selected
        Classes, operands first, that are given too where units compute them from their own values alone: what
        is gathered, which rules wrote as the logarithm of its exponential.
    """
    kinds = Kinds(units, places)
    computed = {unit.result for number, unit in enumerate(units) if kinds.can_evaluate(number)}
    used = dict.fromkeys([*(operand for unit in units for operand in unit.operands), *others])
    named = {klass for klass in used if places.shapes[klass] is not None}
    named.update(unit.result for unit in units)
    known = frozenset(given) | (named - computed)
    found = Levels(units, [klass in known for klass in range(len(places))], kinds.can_evaluate)
    known |= frozenset(found.give(klass for klass in selected if klass in named))
    levels = found.of
    chosen: dict[int, int] = {}
    for number in sorted(range(len(units)), key=levels.__getitem__):
        if levels[number] >= 0 and units[number].result not in known:
            chosen.setdefault(units[number].result, number)
    first = list(_scheduled(sorted(chosen.values()), units, kinds.of, levels, known))
    rows = [*sorted(known), *(units[number].result for numbers in first for number in numbers), *used]
    numbering = numbered(places, [*rows, *(unit.result for unit in units)])
    taken = set(chosen.values())
    rest = [number for number, level in enumerate(levels) if level >= 0 and number not in taken]
    return Order(
        units,
        kinds,
        levels,
        numbering,
        known,
        tuple(
            group_of(numbers, units, kinds.operations[kinds.of[numbers[0]]], numbering) for numbers in first
        ),
        tuple(_groups(sorted(rest, key=levels.__getitem__), units, kinds, numbering)),
    )


def _groups(
    numbers: Iterable[int], units: Sequence[Unit], kinds: Kinds, numbering: Numbering
) -> Iterator[UnitGroup]:
    by_kind: dict[int, list[int]] = {}
    for number in numbers:
        by_kind.setdefault(kinds.of[number], []).append(number)
    for kind, members in by_kind.items():
        for start in range(0, len(members), MOST_UNITS):
            part = members[start : start + MOST_UNITS]
            yield group_of(part, units, kinds.operations[kind], numbering)


def _scheduled(
    numbers: Sequence[int],
    units: Sequence[Unit],
    kind_of: Sequence[int],
    levels: Sequence[int],
    known: frozenset[int],
) -> Iterator[list[int]]:
    """Units in an order in which operands come first, those of one kind together as far as that goes."""
    users: dict[int, list[int]] = {}
    missing: dict[int, int] = {}
    remaining: dict[int, int] = {}
    for number in numbers:
        needed = set(units[number].operands) - known
        missing[number] = len(needed)
        for operand in needed:
            users.setdefault(operand, []).append(number)
        remaining[kind_of[number]] = remaining.get(kind_of[number], 0) + 1
    latest: dict[int, int] = {}
    for number in sorted(numbers, key=levels.__getitem__, reverse=True):
        following = [latest[user] for user in users.get(units[number].result, ()) if user in latest]
        latest[number] = min(following, default=len(numbers)) - 1
    ready: dict[int, list[int]] = {}
    urgency: dict[int, int] = {}

    def add(number: int) -> None:
        kind = kind_of[number]
        ready.setdefault(kind, []).append(number)
        urgency[kind] = min(urgency.get(kind, len(numbers)), latest[number])

    for number in numbers:
        if not missing[number]:
            add(number)
    while ready:
        complete = (kind for kind, members in ready.items() if len(members) == remaining[kind])
        kind = next(complete, None)
        if kind is None:
            kind = min(ready, key=urgency.__getitem__)
        members = ready.pop(kind)
        del urgency[kind]
        remaining[kind] -= len(members)
        yield members
        for number in members:
            for user in users.get(units[number].result, ()):
                missing[user] -= 1
                if not missing[user]:
                    add(user)
