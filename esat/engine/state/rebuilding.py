"""Rebuilding: after unions, rows and containers are called by the classes that their ids have come to be in.

Only what holds an id that lost its place is looked at: the work is that of the change.
"""

from __future__ import annotations

from esat.engine.state.classes import note_work
from esat.engine.state.containers import rebuilt
from esat.engine.state.memory import (
    DEAD,
    FULL,
    HOLDERS,
    ID_WORDS,
    NEXT_WORK,
    OCCURRENCES,
    PARENT,
    ROW,
    TABLE_WORDS,
    WIDTH,
    WORK,
    MachineMemory,
)
from esat.engine.state.tables import address, kill, made_canonical, put, room_for_row


def rebuild(m: MachineMemory) -> bool:
    """Rebuild until nothing is left to; whether there was room."""
    while m.state[WORK] != 0:
        member = m.state[WORK] - 1
        m.state[WORK] = m.ids[member * ID_WORDS + NEXT_WORK]
        if not _rebuild_containers(m, member) or not _rebuild_rows(m, member):
            note_work(m, member)
            return False
    return True


def _rebuild_containers(m: MachineMemory, member: int) -> bool:
    link = m.ids[member * ID_WORDS + HOLDERS]
    while link != 0:
        container = m.cells[link]
        if m.ids[container * ID_WORDS + PARENT] == container:
            found = rebuilt(m, container)
            if found < 0:
                return False
            if found != container:
                m.ids[container * ID_WORDS + PARENT] = found
                note_work(m, container)
        link = m.cells[link - 1]
    return True


def _rebuild_rows(m: MachineMemory, member: int) -> bool:
    cells = m.cells
    link = m.ids[member * ID_WORDS + OCCURRENCES]
    while link != 0:
        table = cells[link]
        row = cells[link + 1]
        cell = address(m, table, row)
        flags = cells[cell]
        if not flags & DEAD:
            if not room_for_row(m, table):
                return False
            width = m.tables[table * TABLE_WORDS + WIDTH]
            for column in range(width):
                m.registers[ROW + column] = cells[cell + 1 + column]
            made_canonical(m, table, width)
            kill(m, table, row)
            put(m, table, flags)
            if m.state[FULL] != 0:
                return False
        link = cells[link - 1]
    return True
