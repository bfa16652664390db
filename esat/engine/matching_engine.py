"""MatchingEngine: an e-graph driven by egglog's text, as the Engine of :mod:`esat.egraph`, on esat's machine.

It takes what rules of the package are written in; for what it does not have it raises
:class:`~esat.engine.vocabulary.UnknownFormError`. egglog takes all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.engine import rules as r
from esat.engine.iterations import EXCEEDED, GREW, NEEDS_ROOM, PAUSED
from esat.engine.machine_program import MachineProgram
from esat.engine.rule_words import RulePlace, action_words, rule_words
from esat.engine.schedules import RulesetRun, ScheduleOutcome
from esat.engine.state import memory as at
from esat.engine.state.contents import FrozenTable, FrozenTables, ValueConverter
from esat.engine.state.growing_arrays import GrowingArrays
from esat.engine.vocabulary import (
    TableDeclaration,
    UnknownFormError,
    Vocabulary,
    bits_of,
    forms_of,
)
from esat.errors import SaturationError
from esat.rules.language.reader import Sexp, show

_DECLARING = frozenset({"sort", "constructor", "relation", "function", "ruleset", "rule"})
_NO_LIMIT = 1 << 62
_FEW_TERMS = 2_000
"""Terms below which growth is no reason to come back."""
_PAUSE = 10_000_000
"""Rows that a call looks at before Python is asked whether to go on: a second, or less."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class MatchingEngine:
    """An e-graph. Not safe to share between threads.

    Attributes
    ----------
    failure
        Why it can no longer be used; None while it can.
    forms
        As of :class:`esat.egraph.engine.Engine`.
    vocabulary
        What is declared.
    arrays
        Its memory.
    """

    failure: BaseException | None = None
    forms: dict[str, int] = field(default_factory=dict)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    arrays: GrowingArrays = field(default_factory=GrowingArrays)
    _rules: list[RulePlace] = field(default_factory=list)
    _members: dict[str, list[int]] = field(default_factory=dict)
    _sets: dict[tuple[str, ...], int] = field(default_factory=dict)
    _end: int = 1
    _known_constants: int = 0
    _numbers: dict[tuple[frozenset[str], int], Any] = field(default_factory=dict)
    _counted: Any = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def begin(cls, program: MachineProgram) -> MatchingEngine:
        """An e-graph that holds a program and no terms."""
        engine = cls._holding(program)
        engine._act(program.actions)
        return engine

    @classmethod
    def _holding(cls, program: MachineProgram) -> MatchingEngine:
        engine = cls(vocabulary=program.vocabulary.copy())
        engine._rules = list(program.rules)
        engine._members = {name: list(own) for name, own in program.members.items()}
        engine._end = len(program.arrays["rules"])
        engine._known_constants = len(program.vocabulary.constants)
        for name, words in program.arrays.items():
            engine.arrays.write(name, 0, words)
        return engine

    @classmethod
    def program_of(cls, texts: Iterable[str], known: MachineProgram | None = None) -> MachineProgram:
        """The program of texts, which come to what is known; nothing is run.

        Raises
        ------
        UnknownFormError
            For what this engine does not have.
        """
        engine = cls() if known is None else cls._holding(known)
        actions = [] if known is None else [*known.actions[:-1]]
        for form in (form for text in texts for form in forms_of(text)):
            if form[0] in _DECLARING:
                engine._do(form)
            else:
                actions += action_words(engine.vocabulary, (form,))[:-1]
                engine._write_constants()
        memory = engine.arrays.memory
        tables, constants = len(engine.vocabulary.tables), len(engine.vocabulary.constants)
        arrays = {
            "tables": memory.tables[: tables * at.TABLE_WORDS],
            "sorts": memory.sorts,
            "rules": memory.rules[: engine._end],
            "registers": memory.registers[: at.CONSTANTS + constants],
        }
        return MachineProgram(engine.vocabulary, engine._rules, engine._members, [*actions, r.END], arrays)

    # ---- texts

    def load(self, text: str, file: str = "") -> None:
        """Read and run a program text.

        Raises
        ------
        UnknownFormError
            For what this engine does not have.
        """
        self.execute(text)

    def execute(self, text: str) -> list[Any]:
        """Run a short text; what its commands gave back."""
        return [result for form in forms_of(text) if (result := self._do(form)) is not None]

    def _do(self, form: Sexp) -> ScheduleOutcome | None:
        self._require_sound()
        assert not isinstance(form, str)
        match form:
            case ("sort", *_):
                self._declare_sort(form)
            case ("constructor" | "relation" | "function", *_):
                self._declare_table(form)
            case ("ruleset", str(name)):
                self._members.setdefault(str(name), [])
            case ("rule", *_):
                self._add_rule(form)
            case ("run", str(name), times):
                step = (r.RUN, self._set_of((str(name),)), 0)
                return self._finish([(r.REPEAT, 0, 0), step, (r.AGAIN, r.STEP_WORDS, int(str(times)))])
            case ("run-schedule", *steps):
                return self._finish(self._steps(steps))
            case _:
                words = action_words(self.vocabulary, (form,))
                self._write_constants()
                self._act(words)
        return None

    def _declare_sort(self, form: Sequence[Sexp]) -> None:
        self.vocabulary.declare_sort(form)
        name = str(form[1])
        if name in self.vocabulary.containers:
            self.arrays.write("sorts", self.vocabulary.containers[name], [self.vocabulary.holds(name)])

    def _declare_table(self, form: Sequence[Sexp]) -> None:
        table = self.vocabulary.declare_table(form)
        words = [0] * at.TABLE_WORDS
        words[at.INPUTS], words[at.WIDTH] = len(table.inputs), len(table.columns)
        words[at.MERGE], words[at.IS_CONSTRUCTOR] = table.merge, int(table.is_constructor)
        kinds = [self.vocabulary.kind(sort) for sort in table.columns]
        words[at.KINDS : at.KINDS + len(kinds)] = kinds
        self.arrays.write("tables", table.number * at.TABLE_WORDS, words)

    def _append(self, words: Sequence[int]) -> int:
        """Where words stand that were added to those of rules."""
        place = self._end
        self.arrays.write("rules", place, words)
        self._end += len(words)
        return place

    def _write_constants(self) -> None:
        constants = self.vocabulary.constants
        if len(constants) > self._known_constants:
            new = list(constants)[self._known_constants :]
            self.arrays.write("registers", at.CONSTANTS + self._known_constants, new)
            self._known_constants = len(constants)

    def log_events(self) -> None:
        """Log from now on what rules do, with all that they matched."""
        self.arrays.memory.state[at.LOG] = 1
        for rule in self._rules:
            self._note_all_variables(rule)

    def reveal(self) -> None:
        """Let rules that are added from now on see what others subsumed; those before are of no use then."""
        memory = self.arrays.memory
        tables = memory.tables.reshape(-1, at.TABLE_WORDS)
        for words in tables[: len(self.vocabulary.tables)]:
            begin, width = int(words[at.ROWS]), int(words[at.WIDTH]) + 1
            memory.cells[begin : begin + int(words[at.COUNT]) * width : width] &= ~at.SUBSUMED
            words[at.INDEXES :] = 0  # they are without these rows

    def _note_all_variables(self, rule: RulePlace) -> None:
        """Let matches of a rule be noted with variables that no action needs."""
        words = self.arrays.memory.rules
        words[rule.address + r.BOUND] = words[rule.address + r.VARIABLES]

    @property
    def rules(self) -> Sequence[RulePlace]:
        """The rules, in the order they were read."""
        return self._rules

    def _add_rule(self, form: Sequence[Sexp]) -> None:
        words, rule = rule_words(self.vocabulary, form, self._end)
        self._append(words)
        self._write_constants()
        members = self._members[rule.ruleset]
        if (rule.ruleset,) in self._sets:
            self._sets.clear()  # of a set that was made, the rules are those of that time
        members.append(len(self._rules))
        self._rules.append(rule)
        if self.arrays.memory.state[at.LOG]:
            self._note_all_variables(rule)

    # ---- rows

    def _act(self, words: Sequence[int]) -> None:
        """Do actions at once."""
        self.arrays.write("rules", self._end, words)
        end = int(self.arrays.memory.state[at.LOG])
        if end:
            self.arrays.write("log", end, [at.MATCHED_RULE, 0, 0])
            self.arrays.memory.state[at.LOG] = end + 3
        while True:
            memory = self.arrays.memory
            memory.state[at.ACTING] = 1
            memory.state[at.TOP] = memory.state[at.MAKER] = 0
            self.arrays.functions["act"](memory, self._end)
            self._require_consistent()
            if not memory.state[at.FULL] and self.arrays.functions["rebuild"](memory):
                break
            self.arrays.grow()
        self._require_consistent()

    def insert(self, rows: Mapping[str, Sequence[str]]) -> None:
        """Add rows of numbers, columns separated by tabs, to tables."""
        for name, lines in rows.items():
            table = self.vocabulary.tables[name]
            for line in lines:
                values = [
                    int(entry) if sort == "i64" else bits_of(float(entry))
                    for entry, sort in zip(line.split("\t"), table.columns, strict=True)
                ]
                self.put(table, values)

    def put(self, table: TableDeclaration, values: Sequence[int], flags: int = 0) -> None:
        """Add a row, or merge it with the one that has its inputs."""
        place = at.ROW
        while True:
            memory = self.arrays.memory
            memory.registers[place : place + len(values)] = values
            self.arrays.functions["put"](memory, table.number, flags)
            if not memory.state[at.FULL]:
                return
            self.arrays.grow()

    def unite_multisets(
        self, terms: str, number: int, constructor: str, sides: Sequence[Sequence[int]]
    ) -> None:
        """As of :class:`esat.egraph.engine.Engine`, for multisets of any length."""
        classes = {row.inputs[0]: row.output for row in self._frozen(self.vocabulary.tables[terms]).rows}
        table = self.vocabulary.tables[constructor]
        multisets = [
            self._multiset(sort, [classes[operand] for operand in side])
            for sort, side in zip(table.inputs, sides, strict=True)
        ]
        self.put(table, [*multisets, classes[number]])
        self._act([r.END])  # rebuilds

    def _multiset(self, sort: str, elements: Sequence[int]) -> int:
        """The multiset of classes."""
        number = self.vocabulary.containers[sort]
        self.arrays.write("scratch", 0, sorted(elements))
        while True:
            found: int = self.arrays.functions["interned"](self.arrays.memory, number, 0, len(elements))
            if found >= 0:
                return found
            self.arrays.grow()

    # ---- running

    def _set_of(self, names: tuple[str, ...]) -> int:
        """Where the list of the rules of some rule sets stands."""
        place = self._sets.get(names)
        if place is None:
            if missing := [name for name in names if name not in self._members]:
                raise SaturationError(f"there is no rule set {missing[0]}")
            rules = [self._rules[rule].address for name in names for rule in self._members[name]]
            place = self._sets[names] = self._append([len(rules), *rules])
        return place

    def _steps(self, forms: Sequence[Sexp], place: int = 0) -> Iterator[tuple[int, int, int]]:
        """A schedule of a text as steps of the machine."""
        for form in forms:
            match form:
                case ("run", str(ruleset)):
                    more = [(r.RUN, self._set_of((str(ruleset),)), 0)]
                case ("seq", *steps):
                    more = list(self._steps(steps, place))
                case ("saturate", *steps):
                    inner = list(self._steps(steps, place + r.STEP_WORDS))
                    more = [(r.REPEAT, 0, 0), *inner, (r.AGAIN, place + r.STEP_WORDS, 0)]
                case _:
                    raise UnknownFormError(f"the schedule {show(form)}")
            place += r.STEP_WORDS * len(more)
            yield from more

    def schedule(self, runs: Iterable[RulesetRun]) -> Sequence[int]:
        """What :meth:`run_schedule` runs for a schedule."""
        steps: list[int] = []
        for run in runs:
            begin = len(steps) + r.STEP_WORDS
            step = [r.RUN, self._set_of(run.rulesets), run.limit]
            steps += [r.REPEAT, 0, 0, *step, r.AGAIN, begin, 0] if run.is_saturated else step
        return steps

    def run_schedule(self, command: Sequence[int], most_matches: float = math.inf) -> ScheduleOutcome:
        """Run what :meth:`schedule` made, until it is done or has had so many matches.

        It comes back, too, when the terms have doubled and every second or so; :meth:`go_on` does the rest.
        """
        words = [*command, r.STOP]
        self.arrays.write("schedule", 0, words)
        state = self.arrays.memory.state
        state[at.PHASE : at.DEPTH + 1] = 0
        state[at.LEFT_OUT] = state[at.EXCEEDED_LIMIT] = 0
        state[at.REPEATED : at.REPEATED + 2] = 0
        return self.go_on(most_matches)

    def skip(self, rulesets: Iterable[str]) -> None:
        """Let rules take what there is for what they have seen."""
        rules, tables = self.arrays.memory.rules, self.arrays.memory.tables
        for number in (number for name in rulesets for number in self._members[name]):
            address = self._rules[number].address
            begin, count = int(rules[address + r.ATOM_LIST]), int(rules[address + r.ATOMS])
            for atom in rules[begin : begin + count].tolist():
                rules[atom + r.MARK] = tables[int(rules[atom + r.TABLE]) * at.TABLE_WORDS + at.COUNT]

    def _finish(self, steps: Iterable[Sequence[int]]) -> ScheduleOutcome:
        """Run steps to their end."""
        outcome = self.run_schedule([word for step in steps for word in step])
        while outcome.is_unfinished:
            outcome = outcome.followed_by(self.go_on())
        return outcome

    def go_on(self, most_matches: float = math.inf) -> ScheduleOutcome:
        """Run what is left of the schedule, as far as a call goes."""
        self._require_sound()
        state = self.arrays.memory.state
        state[at.FOUND] = state[at.VISITED] = 0
        state[at.MATCH_LIMIT] = max(min(most_matches, _NO_LIMIT), 0)
        state[at.TERM_LIMIT] = 2 * state[at.TERMS] + _FEW_TERMS
        state[at.PAUSE_AT] = _PAUSE
        self.arrays.memory.rules[self._counters()] = 0
        status = NEEDS_ROOM
        try:
            while status == NEEDS_ROOM:
                self.arrays.grow()
                status = self.arrays.functions["run"](self.arrays.memory)
        except BaseException as error:
            self.failure = error
            raise
        self._require_consistent()
        state = self.arrays.memory.state
        return ScheduleOutcome(
            bool(state[at.REPEATED] or state[at.LEFT_OUT]),
            self._counts(),
            status in (GREW, PAUSED),
            status == EXCEEDED,
            self._left_out() if state[at.LEFT_OUT] else frozenset(),
        )

    def _counters(self) -> Any:
        """Where rules count their matches."""
        if len(self._counted) != len(self._rules):
            self._counted = np.array([rule.address + r.MATCHED for rule in self._rules], np.int64)
        return self._counted

    def _counts(self) -> dict[str, int]:
        """Matches by name of the rules that had any."""
        counts = self.arrays.memory.rules[self._counters()]
        found: dict[str, int] = {}
        for number in np.nonzero(counts)[0].tolist():
            name = self._rules[number].name
            found[name] = found.get(name, 0) + int(counts[number])
        return found

    def _left_out(self) -> frozenset[str]:
        """Names of the rules that had too many matches."""
        words = self.arrays.memory.rules
        places = self._counters() + (r.IS_LEFT_OUT - r.MATCHED)
        found = [self._rules[number].name for number in np.nonzero(words[places])[0].tolist()]
        words[places] = 0
        return frozenset(found)

    def _require_sound(self) -> None:
        if self.failure is not None:
            raise SaturationError(f"this e-graph broke off earlier and is of no use: {self.failure}")

    def _require_consistent(self) -> None:
        conflict = int(self.arrays.memory.state[at.CONFLICT])
        if conflict:
            name = next((n for n, t in self.vocabulary.tables.items() if t.number == conflict - 1), "")
            reason = f"Illegal merge attempted for function {name}" if name else "a primitive has no value"
            self.failure = SaturationError(reason)
            raise self.failure

    # ---- reading

    def _frozen(self, table: TableDeclaration, rules: Mapping[int, str] | None = None) -> FrozenTable:
        """A table with its rows, and names for the addresses of the rules that made them."""
        memory = self.arrays.memory
        words = memory.tables[table.number * at.TABLE_WORDS :][: at.TABLE_WORDS]
        width, begin, count = int(words[at.WIDTH]) + 1, int(words[at.ROWS]), int(words[at.COUNT])
        rows = memory.cells[begin : begin + count * width].reshape(count, width)
        rows = rows[(rows[:, 0] & at.DEAD) == 0]
        return FrozenTable(table, rows[:, 0].copy(), rows[:, 1:].copy(), rules)

    def freeze(self) -> FrozenTables:
        """All tables with their rows."""
        self._require_sound()
        rules = {rule.address: rule.name for rule in self._rules}
        return FrozenTables(
            {name: self._frozen(table, rules) for name, table in self.vocabulary.tables.items()}
        )

    def sizes(self) -> dict[str, int]:
        """Rows of every table, by name."""
        self._require_sound()
        live = self.arrays.memory.tables[at.LIVE :: at.TABLE_WORDS].tolist()
        return dict(zip(self.vocabulary.tables, live, strict=False))

    def rows_of(self, tables: frozenset[str]) -> int:
        """Rows of some tables together."""
        known = self.vocabulary.tables
        numbers = self._numbers.get((tables, len(known)))
        if numbers is None:
            own = [table.number for name, table in known.items() if name in tables]
            numbers = self._numbers[tables, len(known)] = np.array(own, np.int64)
        return int(self.arrays.memory.tables[at.LIVE :: at.TABLE_WORDS][numbers].sum())

    @property
    def values(self) -> ValueConverter:
        """Converter of values."""
        return ValueConverter(self)

    def items(self, container: int) -> list[int]:
        """The elements of a container."""
        memory = self.arrays.memory
        begin = int(memory.ids[container * at.ID_WORDS + at.ITEMS])
        found: list[int] = memory.cells[
            begin : begin + int(memory.ids[container * at.ID_WORDS + at.LENGTH])
        ].tolist()
        return found
