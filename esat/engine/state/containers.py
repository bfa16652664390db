"""Multisets and pairs: runs of elements, hash-consed, so that equal ones are one id.

The elements of a multiset are sorted, each as often as it is in it. What is being made stands on ``scratch``.
"""

from __future__ import annotations

from esat.engine.state.classes import find, new_id
from esat.engine.state.memory import (
    CONTAINER_COUNT,
    CONTAINER_MASK,
    CONTAINER_SLOTS,
    FULL,
    HOLDERS,
    ID_COUNT,
    ID_WORDS,
    IDS_FULL,
    ITEMS,
    LENGTH,
    NUMBERS,
    PAIR,
    SCRATCH_FULL,
    SORT,
    TOP,
    MachineMemory,
    has_room,
    mixed,
    taken,
)

_FEWEST_SLOTS = 1024


def opened(m: MachineMemory, count: int) -> int:
    """Where so many elements may be written on scratch; -1 without room. Given back by setting TOP."""
    at = m.state[TOP]
    if at + count > len(m.scratch):
        m.state[FULL] |= SCRATCH_FULL
        return -1
    m.state[TOP] = at + count
    return at


def sort_elements(m: MachineMemory, at: int, count: int) -> None:
    """Sort elements on scratch: by insertion where they are few, else in heaps."""
    scratch = m.scratch
    if count > 64:
        for root in range(count // 2 - 1, -1, -1):
            _sift(m, at, root, count)
        for end in range(count - 1, 0, -1):
            value = scratch[at]
            scratch[at] = scratch[at + end]
            scratch[at + end] = value
            _sift(m, at, 0, end)
        return
    for place in range(at + 1, at + count):
        value = scratch[place]
        before = place - 1
        while before >= at and scratch[before] > value:
            scratch[before + 1] = scratch[before]
            before -= 1
        scratch[before + 1] = value


def _sift(m: MachineMemory, at: int, root: int, count: int) -> None:
    scratch = m.scratch
    value = scratch[at + root]
    child = 2 * root + 1
    while child < count:
        if child + 1 < count and scratch[at + child + 1] > scratch[at + child]:
            child += 1
        if scratch[at + child] <= value:
            break
        scratch[at + root] = scratch[at + child]
        root = child
        child = 2 * root + 1
    scratch[at + root] = value


def interned(m: MachineMemory, sort: int, at: int, count: int) -> int:
    """The container of a sort with these elements on scratch, which are sorted; -1 without room."""
    cells, ids, state, scratch = m.cells, m.ids, m.state, m.scratch
    if 2 * state[CONTAINER_COUNT] >= state[CONTAINER_MASK] and not _grown(m):
        return -1
    hash = mixed(7, sort)
    for place in range(at, at + count):
        hash = mixed(hash, scratch[place])
    mask = state[CONTAINER_MASK]
    slots = state[CONTAINER_SLOTS]
    slot = hash & mask
    entry = cells[slots + slot]
    while entry != 0:
        known = (entry - 1) * ID_WORDS
        if ids[known + SORT] == sort + 1 and ids[known + LENGTH] == count:
            items = ids[known + ITEMS]
            same = 0
            while same < count and cells[items + same] == scratch[at + same]:
                same += 1
            if same == count:
                return find(m, entry - 1)
        slot = (slot + 1) & mask
        entry = cells[slots + slot]
    holds = m.sorts[sort]
    if not has_room(m, 3 * count + 1):
        return -1
    made = new_id(m, sort + 1)
    if state[FULL] & IDS_FULL:
        return -1
    items = taken(m, count)
    for place in range(count):
        value = scratch[at + place]
        cells[items + place] = value
        if holds != NUMBERS and (place == 0 or value != scratch[at + place - 1]):
            link = taken(m, 2)
            cells[link] = ids[value * ID_WORDS + HOLDERS]
            cells[link + 1] = made
            ids[value * ID_WORDS + HOLDERS] = link + 1
    ids[made * ID_WORDS + ITEMS] = items
    ids[made * ID_WORDS + LENGTH] = count
    cells[slots + slot] = made + 1
    state[CONTAINER_COUNT] += 1
    return made


def _grown(m: MachineMemory) -> bool:
    """Twice the slots, or the first ones; whether there was room."""
    cells, ids, state = m.cells, m.ids, m.state
    size = max(_FEWEST_SLOTS, 2 * (state[CONTAINER_MASK] + 1))
    if not has_room(m, size):
        return False
    slots = taken(m, size)
    for number in range(state[ID_COUNT]):
        at = number * ID_WORDS
        if ids[at + SORT] != 0:
            hash = mixed(7, ids[at + SORT] - 1)
            for place in range(ids[at + ITEMS], ids[at + ITEMS] + ids[at + LENGTH]):
                hash = mixed(hash, cells[place])
            slot = hash & (size - 1)
            while cells[slots + slot] != 0:
                slot = (slot + 1) & (size - 1)
            cells[slots + slot] = number + 1
    state[CONTAINER_SLOTS] = slots
    state[CONTAINER_MASK] = size - 1
    return True


def rebuilt(m: MachineMemory, container: int) -> int:
    """The container that this one is once its elements are called by their classes; -1 without room."""
    at = container * ID_WORDS
    count = m.ids[at + LENGTH]
    items = m.ids[at + ITEMS]
    sort = m.ids[at + SORT] - 1
    top = opened(m, count)
    if top < 0:
        return -1
    for place in range(count):
        m.scratch[top + place] = find(m, m.cells[items + place])
    if m.sorts[sort] != PAIR:
        sort_elements(m, top, count)
    found = interned(m, sort, top, count)
    m.state[TOP] = top
    return found


def made_of(m: MachineMemory, sort: int, at: int, count: int) -> int:
    """The multiset of elements on scratch in any order, which are given back; -1 without room."""
    sort_elements(m, at, count)
    found = interned(m, sort, at, count)
    m.state[TOP] = at
    return found


def count_of(m: MachineMemory, container: int, element: int) -> int:
    """How often an element is in a container."""
    items = m.ids[container * ID_WORDS + ITEMS]
    count = 0
    for place in range(items, items + m.ids[container * ID_WORDS + LENGTH]):
        if m.cells[place] == element:
            count += 1
    return count


SUM = 0
DIFFERENCE = 1
INTERSECTION = 2


def combined(m: MachineMemory, first: int, second: int, how: int) -> int:
    """A sum, difference or intersection of multisets of one sort; -1 where there is none, or without room."""
    cells, ids = m.cells, m.ids
    left = ids[first * ID_WORDS + ITEMS]
    right = ids[second * ID_WORDS + ITEMS]
    left_end = left + ids[first * ID_WORDS + LENGTH]
    right_end = right + ids[second * ID_WORDS + LENGTH]
    top = opened(m, left_end - left + right_end - right)
    if top < 0:
        return -1
    end = top
    while left < left_end or right < right_end:
        if right >= right_end or (left < left_end and cells[left] < cells[right]):
            if how != INTERSECTION:
                m.scratch[end] = cells[left]
                end += 1
            left += 1
        elif left >= left_end or cells[right] < cells[left]:
            if how == DIFFERENCE:
                m.state[TOP] = top
                return -1
            if how == SUM:
                m.scratch[end] = cells[right]
                end += 1
            right += 1
        else:
            if how != DIFFERENCE:
                m.scratch[end] = cells[left]
                end += 1
            if how == SUM:
                m.scratch[end] = cells[left]
                end += 1
            left += 1
            right += 1
    found = interned(m, ids[first * ID_WORDS + SORT] - 1, top, end - top)
    m.state[TOP] = top
    return found
