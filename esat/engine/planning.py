"""Plans: in which order a rule looks at its atoms, where one of them has rows that it has not seen.

The atoms before that one are asked for rows that were seen, so that a match is found once; those after it
for all. The next atom is the one with the fewest rows to be expected, from the sizes of tables at this time.
Arithmetic and comparisons are done as soon as their arguments are known; what makes multisets is put off
until an atom would multiply the rows. A search may begin with an atom of a smaller table than the one with
news.

Averages say little where some values are in most rows, as an exponential in the products of a long density.
So a search that has looked at more rows than it may notes how many it found by each atom, gives up, and
begins again by the plan that follows from that, with twice the rows.
"""

from __future__ import annotations

from esat.engine.rules import (
    ALL,
    ARGUMENTS,
    ATOM_LIST,
    ATOMS,
    COLUMNS,
    COMPARED,
    COMPUTE,
    COUNT,
    FUNCTION,
    IGNORED,
    INDEX,
    IS_CHEAP,
    IS_PLACED,
    KEPT,
    LOOK,
    MARK,
    MATCH,
    OPERATION,
    OUTPUT,
    PRIMITIVE_LIST,
    PRIMITIVES,
    SCAN,
    SEEN,
    SORT,
    TABLE,
    TARGET,
    UNSEEN,
    VARIABLES,
)
from esat.engine.state.containers import opened
from esat.engine.state.memory import (
    CONSTANTS,
    CONTAINER,
    FULL,
    HEADS,
    ID_COUNT,
    INDEX_WORDS,
    INDEXES,
    INPUTS,
    IS_CONSTRUCTOR,
    KEYS,
    KINDS,
    LIVE,
    NUMBER,
    PLANS,
    PLANS_FULL,
    TABLE_WORDS,
    TOP,
    WIDTH,
    MachineMemory,
    has_room,
)
from esat.engine.state.tables import indexed, room_for_index

_UNRELATED = 1e6
"""Rows of an atom that nothing known is part of: any other comes first."""
_NEW = 0.1
"""Of the rows of an atom, those that are new: there are few as a rule."""
_NUMBERED = 1e3
"""Rows of one that shares numbers only, such as a dtype."""
_FEW_ROWS = 1_000
"""Rows that the search of a new plan may look at: some 30 microseconds."""
_PARTS = 64
"""Measured rows are counted in such parts."""


def planned(m: MachineMemory, rule: int, news: int, first: int) -> int:
    """Where the plan is that begins with one atom and finds what is new by another; 0 without room.

    The word before it tells how many rows its search may look at.
    """
    rules = m.rules
    atoms = rules[rule + ATOMS]
    words, cells = 3, 0
    for number in range(atoms):
        table = _table(m, rule, number)
        words += 10 + 3 * m.tables[table + WIDTH]
        # For an index: a plan that is made anew, for want of room, is to be the same.
        cells += room_for_index(m, table // TABLE_WORDS)
    for number in range(rules[rule + PRIMITIVES]):
        words += 9 + rules[rules[rules[rule + PRIMITIVE_LIST] + number] + COUNT]
    if m.state[PLANS] + words > len(m.plans):
        m.state[FULL] |= PLANS_FULL
        return 0
    if not has_room(m, cells):
        return 0
    known = opened(m, rules[rule + VARIABLES] + atoms)
    if known < 0:
        return 0
    for place in range(known, m.state[TOP]):
        m.scratch[place] = 0
    for number in range(rules[rule + PRIMITIVES]):
        rules[rules[rules[rule + PRIMITIVE_LIST] + number] + IS_PLACED] = 0
    begin = m.state[PLANS]
    _emit(m, _FEW_ROWS)
    placed = known + rules[rule + VARIABLES]
    number = first
    for _ in range(atoms):
        _place(m, rule, number, news, number == first, known)
        m.scratch[placed + number] = 1
        _settle(m, rule, known, False)
        number = _next(m, rule, news, known)
    while _settle(m, rule, known, True):
        pass
    _emit(m, MATCH)
    m.state[TOP] = known
    if m.state[FULL] != 0:
        m.state[PLANS] = begin
        return 0
    return begin + 1


def measured(m: MachineMemory, plan: int) -> None:
    """Note how many rows a plan found by the columns that it joined its atoms by."""
    pc = plan
    while m.plans[pc] != MATCH:
        op = m.plans[pc]
        if op == COMPUTE:
            pc += 8 + m.plans[pc + 7]
        elif op == LOOK:
            pc += 6 + m.tables[m.plans[pc + 1] * TABLE_WORDS + INPUTS]
        elif op == SCAN:
            pc += 5 + 3 * m.plans[pc + 4]
        else:
            width = m.tables[m.plans[pc + 1] * TABLE_WORDS + WIDTH]
            if m.plans[pc + 7] > 0 and m.plans[pc + 2] != UNSEEN:
                atom = m.plans[pc + 3] - MARK
                rows = (m.plans[pc + 8] * _PARTS) // m.plans[pc + 7]
                m.rules[atom + COLUMNS + width + m.plans[pc + 4]] = 1 + rows
            pc += 9 + 3 * m.plans[pc + 6]


def _table(m: MachineMemory, rule: int, number: int) -> int:
    """Where the table of an atom is described."""
    return m.rules[m.rules[m.rules[rule + ATOM_LIST] + number] + TABLE] * TABLE_WORDS


def _emit(m: MachineMemory, word: int) -> None:
    m.plans[m.state[PLANS]] = word
    m.state[PLANS] += 1


def _is_known(m: MachineMemory, known: int, register: int) -> bool:
    return register >= CONSTANTS or m.scratch[known + register] != 0


def _next(m: MachineMemory, rule: int, news: int, known: int) -> int:
    """The atom to come next; primitives that leave matches out come before one that multiplies them."""
    while True:
        best = -1
        least = 0.0
        for number in range(m.rules[rule + ATOMS]):
            if not m.scratch[known + m.rules[rule + VARIABLES] + number]:
                rows = _expected(m, rule, number, known)
                if number == news:
                    rows = rows * _NEW
                if best < 0 or rows < least:
                    best = number
                    least = rows
        if best < 0 or least < 1.0 or not _settle(m, rule, known, True):
            return best


def _expected(m: MachineMemory, rule: int, number: int, known: int) -> float:
    """Rows of an atom for what is known; less than one leaves matches out."""
    atom = m.rules[m.rules[rule + ATOM_LIST] + number]
    table = _table(m, rule, number)
    size = float(m.tables[table + LIVE])
    ids = float(m.state[ID_COUNT] + 1)
    inputs = m.tables[table + INPUTS]
    width = m.tables[table + WIDTH]
    unknown = 0
    related = 0
    joined = _joined(m, atom, table, known)
    found = m.rules[atom + COLUMNS + width + joined] if joined >= 0 else 0
    least = _UNRELATED + size
    for column in range(width):
        is_known = _is_known(m, known, m.rules[atom + COLUMNS + column])
        if column < inputs and not is_known:
            unknown += 1
        if is_known:
            if m.tables[table + KINDS + column] != NUMBER:
                related += 1
                rows = size / ids
                if m.tables[table + INDEXES + column * INDEX_WORDS + HEADS] != 0:
                    keys = m.tables[table + INDEXES + column * INDEX_WORDS + KEYS]
                    rows = rows + size / float(keys + 1)
                    rows = rows - min(1.0, size / float(keys + 1))
                elif column < inputs and inputs > 1:
                    rows = rows + 0.5
                least = min(least, rows)
            else:
                least = min(least, _NUMBERED + size)
    if unknown > 0 and found > 0:
        return float(found - 1) / _PARTS
    if unknown == 0:
        is_output_known = width == inputs or _is_known(m, known, m.rules[atom + COLUMNS + inputs])
        selective = not is_output_known and not m.tables[table + IS_CONSTRUCTOR] and size >= 0.5 * ids
        if related > 0 and not selective:
            return min(1.0, size / ids)
        return 0.95
    return least


def _settle(m: MachineMemory, rule: int, known: int, is_any: bool) -> bool:
    """Compute what can be computed: all that is cheap, or one of the others; whether there was anything."""
    rules = m.rules
    found = False
    is_done = False
    while not is_done:
        is_done = True
        for number in range(rules[rule + PRIMITIVES]):
            primitive = rules[rules[rule + PRIMITIVE_LIST] + number]
            if rules[primitive + IS_PLACED] == 0 and (is_any or rules[primitive + IS_CHEAP] != 0):
                count = rules[primitive + COUNT]
                place = 0
                while place < count and _is_known(m, known, rules[primitive + ARGUMENTS + place]):
                    place += 1
                if place == count:
                    _compute(m, primitive, known)
                    is_done = False
                    found = True
                    is_any = False
    return found


def _compute(m: MachineMemory, primitive: int, known: int) -> None:
    rules = m.rules
    rules[primitive + IS_PLACED] = 1
    register = rules[primitive + OUTPUT]
    use = IGNORED
    if register >= 0:
        use = COMPARED if _is_known(m, known, register) else KEPT
        if use == KEPT:
            m.scratch[known + register] = 1
    _emit(m, COMPUTE)
    _emit(m, rules[primitive + OPERATION])
    _emit(m, use)
    _emit(m, register)
    _emit(m, rules[primitive + FUNCTION])
    _emit(m, rules[primitive + TARGET])
    _emit(m, rules[primitive + SORT])
    count = rules[primitive + COUNT]
    _emit(m, count)
    for place in range(count):
        _emit(m, rules[primitive + ARGUMENTS + place])


def _place(m: MachineMemory, rule: int, number: int, news: int, is_first: bool, known: int) -> None:
    """The instruction that finds rows of an atom."""
    rules = m.rules
    atom = rules[rules[rule + ATOM_LIST] + number]
    at = _table(m, rule, number)
    inputs = m.tables[at + INPUTS]
    width = m.tables[at + WIDTH]
    unknown = 0
    for column in range(inputs):
        if not _is_known(m, known, rules[atom + COLUMNS + column]):
            unknown += 1
    joined = -1 if is_first else _joined(m, atom, at, known)
    op = INDEX if joined >= 0 else SCAN
    if unknown == 0 and not is_first:
        op = LOOK
    elif joined >= 0:
        indexed(m, rules[atom + TABLE], joined)
    _emit(m, op)
    _emit(m, rules[atom + TABLE])
    _emit(m, UNSEEN if number == news else SEEN if number < news else ALL)
    _emit(m, atom + MARK)
    if op == LOOK:
        _look(m, atom, inputs, width, known)
        return
    if op == INDEX:
        _emit(m, joined)
        _emit(m, rules[atom + COLUMNS + joined])
        _emit(m, width - 1)
        _emit(m, 0)
        _emit(m, 0)
    else:
        _emit(m, width)
    for column in range(width):
        if column != joined or op == SCAN:
            register = rules[atom + COLUMNS + column]
            is_known = _is_known(m, known, register)
            _emit(m, int(is_known))
            _emit(m, column)
            _emit(m, register)
            if not is_known:
                m.scratch[known + register] = 1


def _look(m: MachineMemory, atom: int, inputs: int, width: int, known: int) -> None:
    use = IGNORED
    register = 0
    if width > inputs:
        register = m.rules[atom + COLUMNS + inputs]
        use = COMPARED if _is_known(m, known, register) else KEPT
        if use == KEPT:
            m.scratch[known + register] = 1
    _emit(m, use)
    _emit(m, register)
    for column in range(inputs):
        _emit(m, m.rules[atom + COLUMNS + column])


def _joined(m: MachineMemory, atom: int, at: int, known: int) -> int:
    """The known column to join by: containers say most, numbers least; -1 if none is known."""
    best = -1
    least = 0
    inputs = m.tables[at + INPUTS]
    for column in range(m.tables[at + WIDTH]):
        if _is_known(m, known, m.rules[atom + COLUMNS + column]):
            kind = m.tables[at + KINDS + column]
            score = 2
            if kind == CONTAINER:
                score = 0
            elif kind == NUMBER:
                score = 5
            elif column == inputs and m.tables[at + IS_CONSTRUCTOR]:
                score = 1
            if best < 0 or score < least:
                best = column
                least = score
    return best
