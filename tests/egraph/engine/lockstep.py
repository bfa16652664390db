"""Both engines run the same commands on the same rows; after each, their tables are compared.

Where they differ, the difference is noted, and esat's engine goes on from egglog's state: so each command is
judged by itself. Rows keep their age, so that what a rule has seen is new to it on neither side.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from esat.egraph.preparation.prepare import prepared
from esat.egraph.saturation.runner import Runner
from esat.engine import rules as r
from esat.engine.machine_program import MachineProgram
from esat.engine.matching_engine import MatchingEngine
from esat.engine.rule_words import RulePlace
from esat.engine.schedules import RulesetRun, ScheduleOutcome
from esat.engine.state import memory as at
from esat.optimize.equality.saturating import LiveEGraph
from esat.optimize.equality.told import Told
from tests.egraph.engine.states import Cell, State, choices, differences, state_of, without

_ALGEBRA = "(function algebra-found (T) i64 :merge (min old new))"
"""What the algebra declares."""


@cache
def _program_of(texts: tuple[str, ...]) -> MachineProgram:
    return MatchingEngine.program_of(texts)


@dataclass
class Difference:
    """Tables that differ after a command; those that do where tables of choices are left out."""

    command: int
    run: RulesetRun
    tables: frozenset[str]
    elsewhere: frozenset[str]


@dataclass
class Lockstep:
    """Runs the commands of one saturation on both engines."""

    differences: list[Difference] = field(default_factory=list)
    commands: int = 0
    rows: int = 0
    other: MatchingEngine | None = None
    runner: Runner | None = None
    modules: Any = ()
    declarations: Any = ()
    details: Any = None
    _ages: dict[str, dict[tuple[Cell, ...], int]] = field(default_factory=dict)
    _contents: dict[str, dict[Any, int]] = field(default_factory=dict)
    _last: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def begin(self, runner: Runner, modules: Any, declarations: Any) -> None:
        self.other = MatchingEngine.begin(_program_of(tuple(module.text for module in modules)))
        self.commands, self._ages, self._contents, self._last = 0, {}, {}, {}
        for text in declarations:
            self.other.load(text)
        self.resume(runner.engine)

    def resume(self, engine: Any) -> None:
        """Take over egglog's rows."""
        assert self.other is not None
        state = state_of(engine, self.other.vocabulary)
        self._note_ages(state)
        transfer(state, self.other, self._ages)
        for rule in self.other._rules:
            seen = self._last.get(rule.ruleset)
            if seen is not None:
                self._mark(rule, *seen)

    def _mark(self, rule: RulePlace, command: int, saturated: bool) -> None:
        rules = self.other.arrays.memory.rules
        names = {table.number: name for name, table in self.other.vocabulary.tables.items()}
        atoms = rules[rules[rule.address + r.ATOM_LIST] :][: rules[rule.address + r.ATOMS]]
        for atom in atoms.tolist():
            ages = self._ages.get(names[int(rules[atom + r.TABLE])], {})
            rules[atom + r.MARK] = sum(
                1 for age in ages.values() if age < command or (saturated and age == command)
            )

    def _note_ages(self, state: State) -> None:
        """A row is new also where a container in it is another one, which keeps its name in egglog."""
        for name, rows in state.rows.items():
            known = self._contents.get(name, {})
            contents = {cells: tuple(map(state.content, cells)) for cells, _ in rows}
            self._contents[name] = {held: known.get(held, self.commands) for held in contents.values()}
            self._ages[name] = {cells: self._contents[name][held] for cells, held in contents.items()}

    def after(self, runner: Runner, run: RulesetRun, updated: bool) -> None:
        """Run on esat's engine what egglog has run, and compare."""
        assert self.other is not None
        self.commands += 1
        other = self.other
        known = run._replace(rulesets=tuple(name for name in run.rulesets if name in other._members))
        self._last |= dict.fromkeys(known.rulesets, (self.commands, run.is_saturated))
        outcome = other._finish([other.schedule([known])])
        if not outcome.updated and not updated:
            return
        state = state_of(runner.engine, other.vocabulary)
        self.rows += sum(map(len, state.rows.values()))
        mine = state_of(other, other.vocabulary)
        found = differences(state, mine)
        if found:
            left_out = choices(other.vocabulary)
            more = differences(without(state, left_out), without(mine, left_out))
            self.differences.append(Difference(self.commands, run, frozenset(found), frozenset(more)))
            if self.details is not None:
                self.details(self, state, run)
            self.resume(runner.engine)
            return
        self._note_ages(state)


def transfer(state: State, engine: MatchingEngine, ages: dict[str, dict[tuple[Cell, ...], int]]) -> None:
    """Give an engine the rows of a state: classes in the order of their names, old rows first."""
    words = engine.arrays.memory.rules
    for rule in engine._rules:
        atoms = int(words[rule.address + r.ATOMS])
        for atom in words[words[rule.address + r.ATOM_LIST] :][:atoms].tolist():
            words[atom + r.MARK] = 0
            words[words[atom + r.STARTS] :][:atoms] = 0
    engine.arrays.clear()
    tables = engine.arrays.memory.tables.reshape(-1, at.TABLE_WORDS)
    for word in (at.ROWS, at.COUNT, at.CAPACITY, at.LIVE, at.SLOTS):
        tables[:, word] = 0
    tables[:, at.INDEXES :] = 0
    vocabulary = engine.vocabulary
    numbers: dict[Cell, int] = {}
    cells = {c for rows in state.rows.values() for row, _ in rows for c in row if not isinstance(c, int)}
    cells |= {*state.items} | {c for items in state.items.values() for c in items if not isinstance(c, int)}
    classes = sorted((c for c in cells if c not in state.items), key=lambda c: c[1])
    arrays = engine.arrays
    arrays.require("ids", (len(cells) + 8) * at.ID_WORDS)
    for number, cell in enumerate(classes):
        numbers[cell] = number
        begin = number * at.ID_WORDS
        arrays.memory.ids[begin : begin + at.ID_WORDS] = 0
        arrays.memory.ids[begin + at.PARENT] = number
    arrays.memory.state[at.ID_COUNT] = len(classes)

    def depth(cell: Cell) -> int:
        items = state.items.get(cell, ())
        return (
            1 + max((depth(i) for i in items if not isinstance(i, int)), default=0)
            if cell in state.items
            else 0
        )

    for cell in sorted(state.items, key=lambda c: (depth(c), c[1])):
        sort = vocabulary.containers[cell[0]]
        items = [i if isinstance(i, int) else numbers[i] for i in state.items[cell]]
        if vocabulary.holds(cell[0]) != at.PAIR:
            items.sort()
        arrays.write("scratch", 0, items)
        while True:
            found = arrays.functions["interned"](arrays.memory, sort, 0, len(items))
            if found >= 0:
                break
            arrays.grow()
        numbers[cell] = found
    for name, rows in state.rows.items():
        own = ages.get(name, {})
        for row, subsumed in sorted(rows, key=lambda r: own.get(r[0], 0)):
            values = [c if isinstance(c, int) else numbers[c] for c in row]
            engine.put(vocabulary.tables[name], values, at.SUBSUMED if subsumed else 0)
    arrays.memory.state[at.WORK] = 0


@contextmanager
def in_lockstep(details: Any = None) -> Iterator[Lockstep]:
    """Compilations within are run on both engines."""
    found = Lockstep(details=details)
    original, tell = Runner._execute, LiveEGraph.tell

    def told(self: LiveEGraph, terms: Told) -> Any:
        found.modules = prepared(self.program).modules
        found.declarations = [one.declaration for one in terms.undeclared]
        found.runner = None
        return tell(self, terms)

    def execute(self: Runner, runs: Any, rulesets: Any, **options: Any) -> Any:
        if found.runner is not self:
            found.runner = self
            found.begin(self, found.modules, [*found.declarations, _ALGEBRA])
        total = ScheduleOutcome(False, {})
        for run in runs:
            done = original(self, (run,), rulesets)
            while done.is_unfinished:
                done = done.followed_by(original(self, (run,), rulesets, is_begun=True))
            found.after(self, run, done.updated)
            total = total.followed_by(done)
        return total

    def note_additions(self: Runner) -> None:
        noted(self)
        found.commands += 1
        found.resume(self.engine)

    noted = Runner.note_additions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Runner, "_execute", execute)
        patch.setattr(Runner, "note_additions", note_additions)
        patch.setattr(LiveEGraph, "tell", told)
        yield found
