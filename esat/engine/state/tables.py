"""Tables: rows of integers, a hash index over the inputs, and indexes by columns that plans ask for.

Rows are only ever added. One that is deleted, or that a union or a merge changes, is marked as dead, and what
it became is added at the end: what is new to a rule are the rows from a number on.
"""

from __future__ import annotations

from esat.engine.state.classes import find, new_id, unite
from esat.engine.state.memory import (
    CAPACITY,
    CELLS,
    CHANGED,
    CONFLICT,
    CONFLICTING,
    CONGRUENT,
    COUNT,
    DEAD,
    EVENT_WORDS,
    FLAGS,
    FULL,
    HEADS,
    ID_WORDS,
    IDS_FULL,
    INDEX_WORDS,
    INDEXES,
    INPUTS,
    INTERSECTION_OF_BITS,
    IS_CONSTRUCTOR,
    KEYS,
    KINDS,
    LIVE,
    LOG,
    MAKER,
    MAXIMUM,
    MERGE,
    MINIMUM,
    NEW,
    NEXT,
    NUMBER,
    OCCURRENCES,
    ROW,
    ROW_OF,
    ROWS,
    SLOT,
    SLOTS,
    SUBSUMED,
    TABLE_WORDS,
    TERMS,
    UNION_OF_BITS,
    UNITE,
    UNITED,
    WIDTH,
    MachineMemory,
    has_log_room,
    has_room,
    log_event,
    mixed,
    taken,
)

_FEWEST_ROWS = 8


def find_row(m: MachineMemory, table: int) -> int:
    """The row with the inputs that stand in the registers of a row; -1 if there is none."""
    cells, registers = m.cells, m.registers
    at = table * TABLE_WORDS
    capacity = m.tables[at + CAPACITY]
    if capacity == 0:
        m.state[SLOT] = -1
        return -1
    inputs = m.tables[at + INPUTS]
    hash = 7
    for column in range(inputs):
        hash = mixed(hash, registers[ROW + column])
    mask = 2 * capacity - 1
    slots = m.tables[at + SLOTS]
    rows = m.tables[at + ROWS]
    stride = m.tables[at + WIDTH] + 1
    slot = hash & mask
    free = -1
    entry = cells[slots + slot]
    while entry != 0:
        row = rows + (entry - 1) * stride
        if cells[row] & DEAD:
            if free < 0:
                free = slot
        else:
            column = 0
            while column < inputs and cells[row + 1 + column] == registers[ROW + column]:
                column += 1
            if column == inputs:
                m.state[SLOT] = slot
                return entry - 1
        slot = (slot + 1) & mask
        entry = cells[slots + slot]
    m.state[SLOT] = free if free >= 0 else slot
    return -1


def address(m: MachineMemory, table: int, row: int) -> int:
    """The cell of a row's flags; its values follow."""
    at = table * TABLE_WORDS
    return m.tables[at + ROWS] + row * (m.tables[at + WIDTH] + 1)


def output(m: MachineMemory, table: int, row: int) -> int:
    """The output of a row; 0 where the table has none."""
    at = table * TABLE_WORDS
    inputs = m.tables[at + INPUTS]
    if m.tables[at + WIDTH] == inputs:
        return 0
    return m.cells[address(m, table, row) + 1 + inputs]


def _hash_of(m: MachineMemory, row: int, inputs: int) -> int:
    hash = 7
    for column in range(row + 1, row + 1 + inputs):
        hash = mixed(hash, m.cells[column])
    return hash


def _enlarged(m: MachineMemory, table: int) -> bool:
    """Twice the rows, with their indexes; whether there was room."""
    cells, tables = m.cells, m.tables
    at = table * TABLE_WORDS
    width, count = tables[at + WIDTH], tables[at + COUNT]
    capacity = max(_FEWEST_ROWS, 2 * tables[at + CAPACITY])
    indexes = 0
    for column in range(width):
        if tables[at + INDEXES + column * INDEX_WORDS + HEADS] != 0:
            indexes += 1
    if not has_room(m, capacity * (width + 3 + 5 * indexes)):
        return False
    rows = taken(m, capacity * (width + 1))
    before = tables[at + ROWS]
    for cell in range(count * (width + 1)):
        cells[rows + cell] = cells[before + cell]
    slots = taken(m, 2 * capacity)
    mask = 2 * capacity - 1
    for row in range(count):
        cell = rows + row * (width + 1)
        if not cells[cell] & DEAD:
            slot = _hash_of(m, cell, tables[at + INPUTS]) & mask
            while cells[slots + slot] != 0:
                slot = (slot + 1) & mask
            cells[slots + slot] = row + 1
    tables[at + ROWS] = rows
    tables[at + SLOTS] = slots
    tables[at + CAPACITY] = capacity
    for column in range(width):
        if tables[at + INDEXES + column * INDEX_WORDS + HEADS] != 0:
            _index_anew(m, table, column)
    return True


def _index_anew(m: MachineMemory, table: int, column: int) -> None:
    """An index of the size of its table; there must be room."""
    at = table * TABLE_WORDS
    index = at + INDEXES + column * INDEX_WORDS
    m.tables[index + HEADS] = taken(m, 4 * m.tables[at + CAPACITY])
    m.tables[index + NEXT] = taken(m, m.tables[at + CAPACITY])
    m.tables[index + KEYS] = 0
    for row in range(m.tables[at + COUNT]):
        if m.cells[address(m, table, row)] & FLAGS == 0:
            _link(m, table, column, row)


def room_for_index(m: MachineMemory, table: int) -> int:
    """Cells that one more index of a table takes at most."""
    capacity = m.tables[table * TABLE_WORDS + CAPACITY]
    if capacity == 0:
        return _FEWEST_ROWS * (m.tables[table * TABLE_WORDS + WIDTH] + 8)
    return 5 * capacity


def indexed(m: MachineMemory, table: int, column: int) -> bool:
    """See to it that a table has an index by a column; whether there was room."""
    at = table * TABLE_WORDS
    if m.tables[at + INDEXES + column * INDEX_WORDS + HEADS] != 0:
        return True
    if m.tables[at + CAPACITY] == 0 and not _enlarged(m, table):
        return False
    if not has_room(m, 5 * m.tables[at + CAPACITY]):
        return False
    _index_anew(m, table, column)
    return True


def _place(m: MachineMemory, table: int, column: int, value: int) -> int:
    """The cell of a value's pair in an index, or of the free pair where it belongs."""
    at = table * TABLE_WORDS
    mask = 2 * m.tables[at + CAPACITY] - 1
    heads = m.tables[at + INDEXES + column * INDEX_WORDS + HEADS]
    slot = mixed(3, value) & mask
    pair = heads + 2 * slot
    while m.cells[pair + 1] != 0 and m.cells[pair] != value:
        slot = (slot + 1) & mask
        pair = heads + 2 * slot
    return pair


def _link(m: MachineMemory, table: int, column: int, row: int) -> None:
    index = table * TABLE_WORDS + INDEXES + column * INDEX_WORDS
    value = m.cells[address(m, table, row) + 1 + column]
    pair = _place(m, table, column, value)
    if m.cells[pair + 1] == 0:
        m.tables[index + KEYS] += 1
    m.cells[pair] = value
    m.cells[m.tables[index + NEXT] + row] = m.cells[pair + 1]
    m.cells[pair + 1] = row + 1


def latest_row(m: MachineMemory, table: int, column: int, value: int) -> int:
    """The latest row with a value in a column that has an index; -1 if there is none."""
    return m.cells[_place(m, table, column, value) + 1] - 1


def _add(m: MachineMemory, table: int, flag: int) -> int:
    """Add the row in the registers, whose inputs are not there: its number; -1 without room."""
    cells, tables, registers = m.cells, m.tables, m.registers
    at = table * TABLE_WORDS
    if tables[at + COUNT] == tables[at + CAPACITY]:
        if not _enlarged(m, table):
            return -1
        find_row(m, table)
    width = tables[at + WIDTH]
    if not has_room(m, 3 * width):
        return -1
    row = tables[at + COUNT]
    tables[at + COUNT] = row + 1
    tables[at + LIVE] += 1
    cells[tables[at + SLOTS] + m.state[SLOT]] = row + 1
    cell = tables[at + ROWS] + row * (width + 1)
    cells[cell] = flag
    for column in range(width):
        value = registers[ROW + column]
        cells[cell + 1 + column] = value
        if tables[at + KINDS + column] != NUMBER:
            link = m.state[CELLS]
            m.state[CELLS] = link + 3
            cells[link] = m.ids[value * ID_WORDS + OCCURRENCES]
            cells[link + 1] = table
            cells[link + 2] = row
            m.ids[value * ID_WORDS + OCCURRENCES] = link + 1
        if tables[at + INDEXES + column * INDEX_WORDS + HEADS] != 0:
            _link(m, table, column, row)
    m.state[TERMS] += tables[at + IS_CONSTRUCTOR]
    m.state[CHANGED] = 1
    return row


def kill(m: MachineMemory, table: int, row: int) -> None:
    """Take a row out."""
    m.cells[address(m, table, row)] |= DEAD
    m.tables[table * TABLE_WORDS + LIVE] -= 1
    m.state[TERMS] -= m.tables[table * TABLE_WORDS + IS_CONSTRUCTOR]
    m.state[CHANGED] = 1


def room_for_row(m: MachineMemory, table: int) -> bool:
    """Whether a row can be put for certain."""
    at = table * TABLE_WORDS
    width = m.tables[at + WIDTH]
    cells = 3 * width
    if m.tables[at + COUNT] == m.tables[at + CAPACITY]:
        cells += max(_FEWEST_ROWS, 2 * m.tables[at + CAPACITY]) * (width + 3 + 5 * width)
    return has_room(m, cells) and has_log_room(m, EVENT_WORDS)


def make_room(m: MachineMemory, table: int, rows: int) -> bool:
    """See to it that so many rows can be put for certain; whether there was room."""
    at = table * TABLE_WORDS
    while m.tables[at + COUNT] + rows > m.tables[at + CAPACITY]:
        if not _enlarged(m, table):
            return False
    return has_room(m, 3 * m.tables[at + WIDTH] * rows)


def made_canonical(m: MachineMemory, table: int, columns: int) -> None:
    """Call the ids in the registers of a row by their classes."""
    kinds = table * TABLE_WORDS + KINDS
    for column in range(columns):
        if m.tables[kinds + column] != NUMBER:
            m.registers[ROW + column] = find(m, m.registers[ROW + column])


def put(m: MachineMemory, table: int, flag: int) -> int:
    """Add the row in the registers, or merge it with the one that has its inputs; the row there is then."""
    tables, registers = m.tables, m.registers
    at = table * TABLE_WORDS
    if not has_log_room(m, EVENT_WORDS):
        return -1
    row = find_row(m, table)
    if row < 0:
        return _add(m, table, flag)
    cell = address(m, table, row)
    if flag & SUBSUMED and not m.cells[cell] & SUBSUMED:
        m.cells[cell] |= SUBSUMED
        m.state[CHANGED] = 1
    inputs = tables[at + INPUTS]
    if tables[at + WIDTH] == inputs:
        return row
    old = m.cells[cell + 1 + inputs]
    new = registers[ROW + inputs]
    if tables[at + KINDS + inputs] != NUMBER:
        old = find(m, old)
        new = find(m, new)
    if old == new:
        return row
    value = _merged(m, table, old, new)
    if value != old:
        if not room_for_row(m, table):
            return -1
        flags = m.cells[cell]
        kill(m, table, row)
        registers[ROW + inputs] = value
        return _add(m, table, flags)
    return row


def _merged(m: MachineMemory, table: int, old: int, new: int) -> int:
    """What a function has where two values meet."""
    how = m.tables[table * TABLE_WORDS + MERGE]
    if how == NEW:
        return new
    if how == MAXIMUM:
        return max(old, new)
    if how == MINIMUM:
        return min(old, new)
    if how == UNION_OF_BITS:
        return old | new
    if how == INTERSECTION_OF_BITS:
        return old & new
    if how == UNITE:
        unite(m, old, new)
        log_event(m, UNITED, old, new, CONGRUENT)
    elif how == CONFLICTING:
        m.state[CONFLICT] = table + 1
    return old


def made_row(m: MachineMemory, table: int, flag: int) -> int:
    """The row with the inputs in the registers, made if it is not there; -1 without room.

    The table has no output, or is a constructor, which makes a new class for it.
    """
    at = table * TABLE_WORDS
    inputs = m.tables[at + INPUTS]
    if not has_log_room(m, EVENT_WORDS):
        return -1
    row = find_row(m, table)
    if row >= 0:
        if flag & SUBSUMED:
            cell = address(m, table, row)
            if not m.cells[cell] & SUBSUMED:
                m.cells[cell] |= SUBSUMED
                m.state[CHANGED] = 1
        _log_row(m, table, row)
        return row
    if m.tables[at + IS_CONSTRUCTOR]:
        if not room_for_row(m, table):
            return -1
        slot = m.state[SLOT]
        m.registers[ROW + inputs] = new_id(m, 0)
        if m.state[FULL] & IDS_FULL:
            return -1
        m.state[SLOT] = slot
    row = _add(m, table, flag + m.state[MAKER])
    if row >= 0:
        _log_row(m, table, row)
    return row


def _log_row(m: MachineMemory, table: int, row: int) -> None:
    if m.state[LOG] != 0:
        value = output(m, table, row)
        log_event(
            m, ROW_OF, table, row, find(m, value) if m.tables[table * TABLE_WORDS + IS_CONSTRUCTOR] else value
        )
