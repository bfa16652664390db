"""Classes of equal terms: a union-find, and a list of the ids whose rows have to be rebuilt."""

from __future__ import annotations

from esat.engine.state.memory import (
    CHANGED,
    FULL,
    ID_COUNT,
    ID_WORDS,
    IDS_FULL,
    NEXT_WORK,
    PARENT,
    SORT,
    UNIONS,
    WORK,
    MachineMemory,
)


def new_id(m: MachineMemory, sort: int) -> int:
    """A new class, or a new container of a sort."""
    number = m.state[ID_COUNT]
    at = number * ID_WORDS
    if at + ID_WORDS > len(m.ids):
        m.state[FULL] |= IDS_FULL
        return 0
    m.state[ID_COUNT] = number + 1
    for word in range(at, at + ID_WORDS):
        m.ids[word] = 0
    m.ids[at + PARENT] = number
    m.ids[at + SORT] = sort
    return number


def find(m: MachineMemory, member: int) -> int:
    """The id that stands for all that are equal to this one."""
    ids = m.ids
    parent = ids[member * ID_WORDS + PARENT]
    while parent != member:
        above = ids[parent * ID_WORDS + PARENT]
        ids[member * ID_WORDS + PARENT] = above
        member = parent
        parent = above
    return member


def note_work(m: MachineMemory, member: int) -> None:
    """Rows with this id have to be rebuilt."""
    m.ids[member * ID_WORDS + NEXT_WORK] = m.state[WORK]
    m.state[WORK] = member + 1


def unite(m: MachineMemory, first: int, second: int) -> None:
    """Two classes are one, called by the older id."""
    older = find(m, first)
    younger = find(m, second)
    if older == younger:
        return
    if older > younger:
        older, younger = younger, older
    m.ids[younger * ID_WORDS + PARENT] = older
    note_work(m, younger)
    m.state[CHANGED] = 1
    m.state[UNIONS] += 1
