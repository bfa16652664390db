"""Schedules: iterations of rule sets, each searched on the tables as they were, and saturation.

An iteration finds the matches of all its rules, deletes what they delete, does their other actions, and
rebuilds. It may be left when an array is full, or when a call has taken long; the next call goes on with it.
"""

from __future__ import annotations

from esat.engine.plan_runs import act, search
from esat.engine.planning import measured, planned
from esat.engine.rules import (
    ACTIONS,
    ATOM_LIST,
    ATOMS,
    BOUND,
    DELETIONS,
    IS_LEFT_OUT,
    MARK,
    MATCHED,
    REPEAT,
    RUN,
    STARTS,
    STEP_WORDS,
    STOP,
    TABLE,
)
from esat.engine.state.memory import (
    ACTING,
    AT_MATCH,
    AT_RULE,
    AT_STEP,
    CHANGED,
    CONFLICT,
    COUNT,
    DEPTH,
    EXCEEDED_LIMIT,
    FOUND,
    FULL,
    GIVE_UP_AT,
    ITERATIONS,
    LEFT_OUT,
    LIVE,
    LOG,
    MAKER,
    MATCH_LIMIT,
    MATCHED_RULE,
    MATCHES,
    ORIGIN_STEP,
    PAUSE_AT,
    PHASE,
    REPEATED,
    RULE_FOUND,
    RULE_LIMIT,
    SEARCHED,
    TABLE_WORDS,
    TERM_LIMIT,
    TERMS,
    TOP,
    VISITED,
    MachineMemory,
    has_log_room,
)
from esat.engine.state.rebuilding import rebuild

# ---- why a call returned
FINISHED = 0
NEEDS_ROOM = 1
CONFLICTED = 2
EXCEEDED = 3  # more matches than allowed
GREW = 4  # more terms than at which to come back
PAUSED = 5  # it has looked at as many rows

_FEWER = 8
"""Times the rows that a table must have less for a search to begin there, and not with what is new.

Of 1, 4, 8, 16 and 32 it looked at the fewest rows, in a network and a hierarchical model of 100 nodes."""

# ---- phases of an iteration
_SEARCHING = 0
_DELETING = 1
_DOING = 2
_REBUILDING = 3


def run(m: MachineMemory) -> int:
    """Run a schedule from the step it is at; why that ended."""
    state, schedule = m.state, m.schedule
    while True:
        at = state[AT_STEP]
        op = schedule[at]
        if op == STOP:
            return FINISHED
        depth = state[DEPTH]
        if op == RUN:
            status = _iteration(m, schedule[at + 1], schedule[at + 2])
            if status != FINISHED and status != EXCEEDED:
                return status
            if state[CHANGED] != 0:
                state[REPEATED + 2 * depth] = 1
            if status == EXCEEDED:
                return status
            at += STEP_WORDS
        elif op == REPEAT:
            state[DEPTH] = depth + 1
            state[REPEATED + 2 * depth + 2] = 0
            state[REPEATED + 2 * depth + 3] = 0
            at += STEP_WORDS
        else:
            at = _repeated(m, at, depth)
        state[AT_STEP] = at
        if state[TERMS] > state[TERM_LIMIT]:
            return GREW


def _repeated(m: MachineMemory, at: int, depth: int) -> int:
    """The step after one that may be repeated: where that begins, or what follows."""
    state = m.state
    level = REPEATED + 2 * depth
    state[level + 1] += 1
    if state[level] != 0:
        state[level - 2] = 1
        times = m.schedule[at + 2]
        if times == 0 or state[level + 1] < times:
            state[level] = 0
            return m.schedule[at + 1]
    state[DEPTH] = depth - 1
    return at + STEP_WORDS


def _iteration(m: MachineMemory, rules: int, limit: int) -> int:
    """Run a rule set once, or what is left of that; why that ended."""
    state = m.state
    if state[PHASE] == _SEARCHING:
        if state[AT_RULE] == 0:
            state[CHANGED] = 0
            state[MATCHES] = 0
            state[ITERATIONS] += 1
        state[ACTING] = 0
        while state[AT_RULE] < m.rules[rules]:
            state[TOP] = 0
            status = _search_rule(m, m.rules[rules + 1 + state[AT_RULE]], limit)
            if status == EXCEEDED:
                state[EXCEEDED_LIMIT] = 1
                break
            if status != FINISHED:
                return status
            state[AT_RULE] += 1
            if state[VISITED] > state[PAUSE_AT]:
                return PAUSED
        state[AT_RULE] = 0
        state[AT_MATCH] = 0
        state[PHASE] = _DELETING
    state[ACTING] = 1
    state[TOP] = 0
    while state[PHASE] < _REBUILDING:
        if not _act_on_matches(m, DELETIONS if state[PHASE] == _DELETING else ACTIONS):
            return CONFLICTED if state[CONFLICT] != 0 else NEEDS_ROOM
        state[AT_MATCH] = 0
        state[PHASE] += 1
    if not rebuild(m):
        return NEEDS_ROOM
    if state[CONFLICT] != 0:
        return CONFLICTED
    state[PHASE] = _SEARCHING
    # What was found before is done: the rules have seen it.
    return EXCEEDED if state[EXCEEDED_LIMIT] != 0 else FINISHED


def _act_on_matches(m: MachineMemory, part: int) -> bool:
    """Do the actions of all matches from the one that is next; whether there was room.

    Classes go by the names that they had when matches were found: an element is still in its multiset, and a
    term in its row. Rebuilding comes after all of them.
    """
    state = m.state
    while state[AT_MATCH] < state[MATCHES]:
        at = state[AT_MATCH]
        rule = m.matches[at]
        count = m.rules[rule + BOUND]
        code = m.rules[rule + part]
        if code != 0:
            for place in range(count):
                m.registers[place] = m.matches[at + 1 + place]
            state[MAKER] = rule * ORIGIN_STEP
            if not _log_match(m, at, count):
                return False
            act(m, code)
            if state[FULL] != 0 or state[CONFLICT] != 0:
                return False
        state[AT_MATCH] = at + count + 1
    return True


def _log_match(m: MachineMemory, at: int, count: int) -> bool:
    """Log a match, if any are; whether there was room."""
    if not has_log_room(m, count + 3):
        return False
    end = m.state[LOG]
    if end != 0:
        m.log[end] = MATCHED_RULE
        m.log[end + 1] = m.matches[at]
        m.log[end + 2] = count
        for place in range(count):
            m.log[end + 3 + place] = m.matches[at + 1 + place]
        m.state[LOG] = end + 3 + count
    return True


def _search_rule(m: MachineMemory, rule: int, limit: int) -> int:
    """Find the matches of a rule that are new; one that has more than the limit is left out."""
    state, rules = m.state, m.rules
    begin = state[MATCHES]
    has_news = False
    atoms = rules[rule + ATOM_LIST]
    end = atoms + rules[rule + ATOMS]
    for place in range(atoms, end):
        table = rules[rules[place] + TABLE] * TABLE_WORDS
        if m.tables[table + LIVE] == 0:
            return FINISHED
        if m.tables[table + COUNT] > rules[rules[place] + MARK]:
            has_news = True
    if not has_news:
        return FINISHED
    allowed = state[MATCH_LIMIT] - state[FOUND]
    state[RULE_FOUND] = 0
    state[RULE_LIMIT] = min(limit, allowed) if limit > 0 else allowed
    status = FINISHED
    number = 0
    while status == FINISHED and number < end - atoms:
        status = _search_news(m, rule, number)
        # The atoms that follow are joined with rows that this one has seen: there are none yet.
        number = end - atoms if rules[rules[atoms + number] + MARK] == 0 else number + 1
    if status != FINISHED:
        state[MATCHES] = begin
        return status
    if state[RULE_FOUND] > state[RULE_LIMIT]:
        state[MATCHES] = begin
        if state[RULE_FOUND] > allowed:
            return EXCEEDED
        state[LEFT_OUT] += 1
        rules[rule + IS_LEFT_OUT] = 1
        return FINISHED
    state[FOUND] += state[RULE_FOUND]
    rules[rule + MATCHED] += state[RULE_FOUND]
    for place in range(atoms, end):
        rules[rules[place] + MARK] = m.tables[rules[rules[place] + TABLE] * TABLE_WORDS + COUNT]
    return FINISHED


def _search_news(m: MachineMemory, rule: int, number: int) -> int:
    """Find the matches of a rule with rows of one atom that it has not seen."""
    state, rules = m.state, m.rules
    atoms = rules[rule + ATOM_LIST]
    atom = rules[atoms + number]
    least = m.tables[rules[atom + TABLE] * TABLE_WORDS + COUNT] - rules[atom + MARK]
    if least <= 0:
        return FINISHED
    first = number
    for other in range(rules[rule + ATOMS]):
        live = m.tables[rules[rules[atoms + other] + TABLE] * TABLE_WORDS + LIVE]
        if other != number and live * _FEWER < least:
            first = other
            least = live * _FEWER
    start = rules[atom + STARTS] + first
    matches, found = state[MATCHES], state[RULE_FOUND]
    plan = rules[start] if rules[start] != 0 else planned(m, rule, number, first)
    while plan != 0:
        rules[start] = plan
        state[SEARCHED] += 1
        state[GIVE_UP_AT] = state[VISITED] + m.plans[plan - 1]
        search(m, plan, rule)
        if state[FULL] != 0:
            return NEEDS_ROOM
        if state[VISITED] <= state[GIVE_UP_AT]:
            return FINISHED
        state[MATCHES], state[RULE_FOUND] = matches, found
        measured(m, plan)
        plan = planned(m, rule, number, first)
        if plan != 0:
            m.plans[plan - 1] = 2 * m.plans[rules[start] - 1]
    return NEEDS_ROOM
