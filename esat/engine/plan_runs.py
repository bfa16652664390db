"""The machine: runs plans, which find matches, and the actions of matches."""

from __future__ import annotations

from esat.engine.primitives import computed
from esat.engine.rules import (
    BOUND,
    CALCULATE,
    COMPARED,
    COMPUTE,
    END,
    FILL,
    INDEX,
    KEPT,
    LOOK,
    MAKE,
    SCAN,
    SEEN,
    SET,
    SUBSUME,
    UNION,
    UNSEEN,
)
from esat.engine.state.classes import find, unite
from esat.engine.state.memory import (
    ARGUMENTS,
    CONFLICT,
    COUNT,
    EVENT_WORDS,
    FLAGS,
    FULL,
    GIVE_UP_AT,
    ID_WORDS,
    INDEX_WORDS,
    INDEXES,
    INPUTS,
    ITEMS,
    LENGTH,
    MAKER,
    MATCHES,
    MATCHES_FULL,
    NEXT,
    RESULT,
    ROW,
    ROW_OF,
    ROWS,
    RULE_FOUND,
    RULE_LIMIT,
    SUBSUMED,
    TABLE_WORDS,
    UNITED,
    VISITED,
    WIDTH,
    MachineMemory,
    has_log_room,
    log_event,
)
from esat.engine.state.tables import (
    address,
    find_row,
    kill,
    latest_row,
    made_row,
    make_room,
    output,
    put,
)

_FRAME = 3
"""Words of the stack for a step that has more rows: its instruction, the next row, where rows end."""
_END = 1 << 60


def search(m: MachineMemory, pc: int, rule: int) -> None:
    """Find all matches of a plan, or as many as the limit of a rule and one more.

    It leaves when it has looked at so many rows that the plan is to be given up.
    """
    plans, registers, tables, stack, state = m.plans, m.registers, m.tables, m.stack, m.state
    depth = 0
    while state[VISITED] <= state[GIVE_UP_AT]:
        op = plans[pc]
        is_going_on = True
        if op == SCAN or op == INDEX:
            mark = m.rules[plans[pc + 3]]
            part = plans[pc + 2]
            stack[depth] = pc
            if op == SCAN:
                stack[depth + 1] = mark if part == UNSEEN else 0
                stack[depth + 2] = mark if part == SEEN else tables[plans[pc + 1] * TABLE_WORDS + COUNT]
            else:
                plans[pc + 7] += 1
                stack[depth + 1] = latest_row(m, plans[pc + 1], plans[pc + 4], registers[plans[pc + 5]])
                stack[depth + 2] = -1 - mark if part == UNSEEN else mark if part == SEEN else _END
            depth += _FRAME
            is_going_on = False
        elif op == COMPUTE:
            count = plans[pc + 7]
            for place in range(count):
                registers[ARGUMENTS + place] = registers[plans[pc + 8 + place]]
            is_going_on = computed(
                m, plans[pc + 1], ARGUMENTS, count, plans[pc + 4], plans[pc + 5], plans[pc + 6]
            )
            if state[FULL] != 0:
                return
            if plans[pc + 2] == KEPT:
                registers[plans[pc + 3]] = registers[RESULT]
            elif plans[pc + 2] == COMPARED and registers[plans[pc + 3]] != registers[RESULT]:
                is_going_on = False
            pc += 8 + count
        elif op == LOOK:
            is_going_on = _looked(m, pc)
            pc += 6 + tables[plans[pc + 1] * TABLE_WORDS + INPUTS]
        else:
            state[RULE_FOUND] += 1
            if state[RULE_FOUND] > state[RULE_LIMIT]:
                return
            _note(m, rule)
            if state[FULL] != 0:
                return
            is_going_on = False
        while not is_going_on:
            if depth == 0:
                return
            pc = stack[depth - _FRAME]
            if plans[pc] == SCAN:
                is_going_on = _scanned(m, depth - _FRAME)
                count = 5 + 3 * plans[pc + 4]
            else:
                is_going_on = _followed(m, depth - _FRAME)
                count = 9 + 3 * plans[pc + 6]
            if is_going_on:
                pc += count
            else:
                depth -= _FRAME


def _note(m: MachineMemory, rule: int) -> None:
    """Note a match: the variables that actions need come first."""
    count = m.rules[rule + BOUND]
    at = m.state[MATCHES]
    if at + count + 1 > len(m.matches):
        m.state[FULL] |= MATCHES_FULL
        return
    m.matches[at] = rule
    for place in range(count):
        m.matches[at + 1 + place] = m.registers[place]
    m.state[MATCHES] = at + count + 1


def _looked(m: MachineMemory, pc: int) -> bool:
    """Whether there is a row with the inputs of an instruction, and what it asks for."""
    plans, registers = m.plans, m.registers
    table = plans[pc + 1]
    for column in range(m.tables[table * TABLE_WORDS + INPUTS]):
        registers[ROW + column] = registers[plans[pc + 6 + column]]
    row = find_row(m, table)
    m.state[VISITED] += 1
    if row < 0 or m.cells[address(m, table, row)] & FLAGS != 0:
        return False
    part = plans[pc + 2]
    if part == SEEN and row >= m.rules[plans[pc + 3]]:
        return False
    if part == UNSEEN and row < m.rules[plans[pc + 3]]:
        return False
    if plans[pc + 4] == KEPT:
        registers[plans[pc + 5]] = output(m, table, row)
        return True
    return plans[pc + 4] != COMPARED or registers[plans[pc + 5]] == output(m, table, row)


def _agrees(m: MachineMemory, at: int, count: int, cell: int) -> bool:
    """Whether a row has what is known; what is not yet is taken from it."""
    plans, registers, cells = m.plans, m.registers, m.cells
    for place in range(at, at + 3 * count, 3):
        value = cells[cell + 1 + plans[place + 1]]
        if plans[place] == 0:
            registers[plans[place + 2]] = value
        elif registers[plans[place + 2]] != value:
            return False
    return True


def _scanned(m: MachineMemory, frame: int) -> bool:
    """Go to the next row of a table; whether there is one."""
    pc = m.stack[frame]
    row = m.stack[frame + 1]
    end = m.stack[frame + 2]
    table = m.plans[pc + 1] * TABLE_WORDS
    stride = m.tables[table + WIDTH] + 1
    cell = m.tables[table + ROWS] + row * stride
    while row < end:
        if m.cells[cell] & FLAGS == 0 and _agrees(m, pc + 5, m.plans[pc + 4], cell):
            m.stack[frame + 1] = row + 1
            m.state[VISITED] += 1
            return True
        row += 1
        cell += stride
    m.state[VISITED] += 1
    return False


def _followed(m: MachineMemory, frame: int) -> bool:
    """Go to the next row with a value in a column; whether there is one."""
    cells = m.cells
    pc = m.stack[frame]
    row = m.stack[frame + 1]
    end = m.stack[frame + 2]
    table = m.plans[pc + 1] * TABLE_WORDS
    stride = m.tables[table + WIDTH] + 1
    rows = m.tables[table + ROWS]
    before = m.tables[table + INDEXES + m.plans[pc + 4] * INDEX_WORDS + NEXT]
    least = -1 - end if end < 0 else 0
    while row >= least:
        cell = rows + row * stride
        following = cells[before + row] - 1
        if cells[cell] & FLAGS == 0 and (end < 0 or row < end) and _agrees(m, pc + 9, m.plans[pc + 6], cell):
            m.stack[frame + 1] = following
            m.plans[pc + 8] += 1
            m.state[VISITED] += 1
            return True
        row = following
    m.state[VISITED] += 1
    return False


def act(m: MachineMemory, pc: int) -> None:
    """Do what the actions of a match say."""
    rules, registers = m.rules, m.registers
    while rules[pc] != END:
        if not has_log_room(m, 2 * EVENT_WORDS):
            return
        op = rules[pc]
        table = rules[pc + 1]
        if op == CALCULATE:
            count = rules[pc + 6]
            for place in range(count):
                registers[ARGUMENTS + place] = registers[rules[pc + 7 + place]]
            if not computed(m, rules[pc + 1], ARGUMENTS, count, rules[pc + 3], rules[pc + 4], rules[pc + 5]):
                if m.state[FULL] == 0:
                    m.state[CONFLICT] = -1
                return
            registers[rules[pc + 2]] = registers[RESULT]
            pc += 7 + count
        elif op == UNION:
            unite(m, registers[rules[pc + 1]], registers[rules[pc + 2]])
            log_event(m, UNITED, registers[rules[pc + 1]], registers[rules[pc + 2]], 0)
            pc += 3
        elif op == MAKE:
            pc = _make(m, pc, table)
        elif op == SET:
            width = m.tables[table * TABLE_WORDS + WIDTH]
            for column in range(width):
                registers[ROW + column] = registers[rules[pc + 2 + column]]
            row = put(m, table, m.state[MAKER])
            if row >= 0:
                log_event(m, ROW_OF, table, row, output(m, table, row))
            pc += 2 + width
        elif op == FILL:
            _fill(m, table, registers[rules[pc + 2]])
            pc += 3
        else:
            inputs = m.tables[table * TABLE_WORDS + INPUTS]
            for column in range(inputs):
                registers[ROW + column] = registers[rules[pc + 2 + column]]
            if op == SUBSUME:
                made_row(m, table, SUBSUMED)
            else:
                row = find_row(m, table)
                if row >= 0:
                    kill(m, table, row)
            pc += 2 + inputs
        if m.state[FULL] != 0:
            return


def _make(m: MachineMemory, pc: int, table: int) -> int:
    """The class of a term, made if it is not there; where the next instruction is."""
    registers, rules = m.registers, m.rules
    inputs = m.tables[table * TABLE_WORDS + INPUTS]
    for column in range(inputs):
        registers[ROW + column] = registers[rules[pc + 3 + column]]
    row = made_row(m, table, 0)
    if row >= 0 and rules[pc + 2] >= 0:
        registers[rules[pc + 2]] = find(m, output(m, table, row))
    return pc + 3 + inputs


def _fill(m: MachineMemory, table: int, container: int) -> None:
    """A row for each element of a multiset, with how often it is there; none if they are there already."""
    cells, registers = m.cells, m.registers
    items = m.ids[container * ID_WORDS + ITEMS]
    length = m.ids[container * ID_WORDS + LENGTH]
    count = 0
    # All of them, or none: what is there already is not looked for again.
    if not make_room(m, table, length):
        return
    for place in range(items, items + length):
        count += 1
        if place + 1 == items + length or cells[place + 1] != cells[place]:
            registers[ROW] = container
            registers[ROW + 1] = cells[place]
            registers[ROW + 2] = count
            if find_row(m, table) >= 0:
                return
            put(m, table, 0)
            count = 0
