"""Primitives: their arguments stand in registers one after the other, the result in ``RESULT``.

A primitive that has no value (an overflow, a division by zero, an element that is not there), or a comparison
that is false, is no match.
"""

from __future__ import annotations

from esat.engine.arithmetic import FLOAT, of_floats, of_integers
from esat.engine.state.containers import (
    DIFFERENCE,
    INTERSECTION,
    SUM,
    combined,
    count_of,
    interned,
    made_of,
    opened,
)
from esat.engine.state.memory import (
    ACTING,
    FULL,
    ID_WORDS,
    INNER_ARGUMENTS,
    IS_CONSTRUCTOR,
    ITEMS,
    LENGTH,
    RESULT,
    ROW,
    SORT,
    TABLE_WORDS,
    TOP,
    MachineMemory,
)
from esat.engine.state.tables import find_row, made_row, output

# ---- of multisets and pairs
CONTAINERS = 64
LENGTH_OF = 64
REMOVE = 65
INSERT = 66
SUM_OF = 67
DIFFERENCE_OF = 68
INTERSECTION_OF = 69
MULTISET_OF = 70
SINGLE = 71
COUNT_OF = 72
RESET_COUNTS = 73
PICK_MAX = 74
SUM_MULTISETS = 75
PAIR_OF = 76
FIRST = 77
SECOND = 78
CONTAINS = 79
CONTAINS_NOT = 80
CONTAINS_SWAPPED = 81
MAP = 82
FILTER = 83
FILTER_NOT = 84
REDUCE = 85

# ---- functions that are arguments
TABLE = 0
PRIMITIVE = 1


def computed(m: MachineMemory, op: int, base: int, count: int, function: int, target: int, sort: int) -> bool:
    """Compute a primitive; whether it has a value.

    Parameters
    ----------
    op, base, count
        Which, and where its arguments stand.
    function, target
        Of a primitive that takes a function, whose bound arguments come first: ``TABLE`` or ``PRIMITIVE``,
        and its number.
    sort
        Of the container that is made.
    """
    if op < FLOAT:
        return of_integers(m, op, base)
    if op < CONTAINERS:
        return of_floats(m, op - FLOAT, base)
    if op >= MAP:
        if op == REDUCE:
            return _reduced(m, base, function, target)
        if op == MAP:
            return _mapped(m, base, count, function, target, sort)
        return _filtered(m, op, base, count, function, target)
    return _of_containers(m, op, base, count, sort)


def _of_containers(m: MachineMemory, op: int, base: int, count: int, sort: int) -> bool:
    registers, ids, cells = m.registers, m.ids, m.cells
    if op == MULTISET_OF or op == PAIR_OF:
        top = opened(m, count)
        if top < 0:
            return False
        for place in range(count):
            m.scratch[top + place] = registers[base + place]
        if op == PAIR_OF:
            registers[RESULT] = interned(m, sort, top, 2)
            m.state[TOP] = top
            return registers[RESULT] >= 0
        registers[RESULT] = made_of(m, sort, top, count)
        return registers[RESULT] >= 0
    if op == SINGLE:
        times = registers[base + 1]
        if times < 0:
            return False
        top = opened(m, times)
        if top < 0:
            return False
        for place in range(top, top + times):
            m.scratch[place] = registers[base]
        registers[RESULT] = made_of(m, sort, top, times)
        return registers[RESULT] >= 0
    container = registers[base]
    if op == CONTAINS_SWAPPED:
        container = registers[base + 1]
    items = ids[container * ID_WORDS + ITEMS]
    length = ids[container * ID_WORDS + LENGTH]
    if op == LENGTH_OF:
        registers[RESULT] = length
        return True
    if op == FIRST:
        registers[RESULT] = cells[items]
        return True
    if op == SECOND:
        registers[RESULT] = cells[items + 1]
        return True
    if op == COUNT_OF:
        registers[RESULT] = count_of(m, container, registers[base + 1])
        return True
    if op == CONTAINS:
        return count_of(m, container, registers[base + 1]) > 0
    if op == CONTAINS_NOT:
        return count_of(m, container, registers[base + 1]) == 0
    if op == CONTAINS_SWAPPED:
        registers[RESULT] = 0
        return count_of(m, container, registers[base]) > 0
    if op == SUM_OF or op == DIFFERENCE_OF or op == INTERSECTION_OF:
        how = SUM if op == SUM_OF else DIFFERENCE if op == DIFFERENCE_OF else INTERSECTION
        registers[RESULT] = combined(m, container, registers[base + 1], how)
        return registers[RESULT] >= 0
    if op == PICK_MAX:
        return _picked(m, items, length)
    if op == SUM_MULTISETS:
        return _summed(m, items, length, sort)
    return _changed(m, op, base, container)


def _picked(m: MachineMemory, items: int, length: int) -> bool:
    """The most frequent element, and of several the one with the highest number."""
    most = 0
    run = 0
    for place in range(items, items + length):
        if place > items and m.cells[place] != m.cells[place - 1]:
            run = 0
        run += 1
        if run >= most:
            most = run
            m.registers[RESULT] = m.cells[place]
    return length > 0


def _summed(m: MachineMemory, items: int, length: int, sort: int) -> bool:
    """The sum of the multisets in a multiset."""
    total = 0
    for place in range(items, items + length):
        total += m.ids[m.cells[place] * ID_WORDS + LENGTH]
    top = opened(m, total)
    if top < 0:
        return False
    end = top
    for place in range(items, items + length):
        inner = m.cells[place] * ID_WORDS
        for element in range(m.ids[inner + ITEMS], m.ids[inner + ITEMS] + m.ids[inner + LENGTH]):
            m.scratch[end] = m.cells[element]
            end += 1
    m.registers[RESULT] = made_of(m, sort, top, total)
    return m.registers[RESULT] >= 0


def _changed(m: MachineMemory, op: int, base: int, container: int) -> bool:
    """A multiset with an element more, or less, or with each element once."""
    items = m.ids[container * ID_WORDS + ITEMS]
    length = m.ids[container * ID_WORDS + LENGTH]
    element = m.registers[base + 1]
    top = opened(m, length + 1)
    if top < 0:
        return False
    end = top
    is_left_out = False
    if op == INSERT:
        m.scratch[end] = element
        end += 1
    for place in range(items, items + length):
        value = m.cells[place]
        if op == REMOVE and value == element and not is_left_out:
            is_left_out = True
        elif op != RESET_COUNTS or place == items or value != m.cells[place - 1]:
            m.scratch[end] = value
            end += 1
    m.state[TOP] = top
    if op == REMOVE and not is_left_out:
        return False
    if op == INSERT:
        _sort_first(m, top, end - top)
    m.registers[RESULT] = interned(m, m.ids[container * ID_WORDS + SORT] - 1, top, end - top)
    return m.registers[RESULT] >= 0


def _sort_first(m: MachineMemory, at: int, count: int) -> None:
    """Bring the first element to its place among the others, which are sorted."""
    value = m.scratch[at]
    place = at
    while place + 1 < at + count and m.scratch[place + 1] < value:
        m.scratch[place] = m.scratch[place + 1]
        place += 1
    m.scratch[place] = value


def _applied(m: MachineMemory, base: int, bound: int, function: int, target: int, element: int) -> bool:
    """Apply a function with its bound arguments to one more; whether it has a value there."""
    registers = m.registers
    if function == PRIMITIVE:
        for place in range(bound):
            registers[INNER_ARGUMENTS + place] = registers[base + place]
        registers[INNER_ARGUMENTS + bound] = element
        if target < FLOAT:
            return of_integers(m, target, INNER_ARGUMENTS)
        if target < CONTAINERS:
            return of_floats(m, target - FLOAT, INNER_ARGUMENTS)
        return _of_containers(m, target, INNER_ARGUMENTS, bound + 1, 0)
    for place in range(bound):
        registers[ROW + place] = registers[base + place]
    registers[ROW + bound] = element
    if m.state[ACTING] and m.tables[target * TABLE_WORDS + IS_CONSTRUCTOR]:
        row = made_row(m, target, 0)
    else:
        row = find_row(m, target)
    if row < 0:
        return False
    registers[RESULT] = output(m, target, row)
    return True


def _mapped(m: MachineMemory, base: int, count: int, function: int, target: int, sort: int) -> bool:
    """A multiset of what a function makes of elements, but for those where it has no value."""
    container = m.registers[base + count - 1] * ID_WORDS
    items = m.ids[container + ITEMS]
    length = m.ids[container + LENGTH]
    top = opened(m, length)
    if top < 0:
        return False
    end = top
    has_value = False
    for place in range(items, items + length):
        if place == items or m.cells[place] != m.cells[place - 1]:
            has_value = _applied(m, base, count - 1, function, target, m.cells[place])
            if m.state[FULL] != 0:
                m.state[TOP] = top
                return False
        if has_value:
            m.scratch[end] = m.registers[RESULT]
            end += 1
    m.registers[RESULT] = made_of(m, sort, top, end - top)
    return m.registers[RESULT] >= 0


def _filtered(m: MachineMemory, op: int, base: int, count: int, function: int, target: int) -> bool:
    """The elements for which a function has a value, or those for which it has none."""
    container = m.registers[base + count - 1]
    items = m.ids[container * ID_WORDS + ITEMS]
    length = m.ids[container * ID_WORDS + LENGTH]
    top = opened(m, length)
    if top < 0:
        return False
    end = top
    has_value = False
    for place in range(items, items + length):
        if place == items or m.cells[place] != m.cells[place - 1]:
            has_value = _applied(m, base, count - 1, function, target, m.cells[place])
        if has_value == (op == FILTER):
            m.scratch[end] = m.cells[place]
            end += 1
    m.state[TOP] = top
    m.registers[RESULT] = interned(m, m.ids[container * ID_WORDS + SORT] - 1, top, end - top)
    return m.registers[RESULT] >= 0


def _reduced(m: MachineMemory, base: int, function: int, target: int) -> bool:
    """Elements put together two by two; of none the initial value."""
    container = m.registers[base + 1] * ID_WORDS
    items = m.ids[container + ITEMS]
    length = m.ids[container + LENGTH]
    if length == 0:
        m.registers[RESULT] = m.registers[base]
        return True
    m.registers[RESULT] = m.cells[items]
    for place in range(items + 1, items + length):
        m.registers[base] = m.registers[RESULT]
        if not _applied(m, base, 1, function, target, m.cells[place]):
            return False
    return True
