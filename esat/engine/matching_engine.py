"""MatchingEngine: an e-graph driven by egglog's text, as the Engine of :mod:`esat.egraph`, on esat's machine.

It takes what rules of the package are written in; for what it does not have it raises
:class:`~esat.engine.vocabulary.UnknownFormError`. egglog takes all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from esat.engine import memory as at
from esat.engine import rules as r
from esat.engine.growing_arrays import GrowingArrays
from esat.engine.iterations import EXCEEDED, GREW, NEEDS_ROOM, PAUSED
from esat.engine.nested_forms import forms_of
from esat.engine.outcome import ScheduleOutcome
from esat.engine.rule_words import RulePlaces, action_words, rule_words
from esat.engine.vocabulary import TableDeclaration, UnknownFormError, Vocabulary, bits_of, float_of
from esat.errors import SaturationError
from esat.records import record
from esat.rules.reader import Sexp

_NOTHING = "esat-nothing"
"""A rule set without rules."""
_REST = "(rest)"
"""A program: what is left of the one that ran."""
_NO_LIMIT = 1 << 62
_FEW_TERMS = 2_000
"""Terms below which growth is no reason to come back."""
_PAUSE = 10_000_000
"""Rows that a call looks at before Python is asked whether to go on: a second, or less."""


class EngineRow(NamedTuple):
    """A row of a table; values are integers, floats the ones with the same bits."""

    inputs: Sequence[int]
    output: int
    subsumed: bool


class FrozenTable:
    """A table as it was."""

    is_let_binding = False

    def __init__(self, table: TableDeclaration, flags: Any, values: Any) -> None:
        self.input_sorts: Sequence[str] = table.inputs
        self.output_sort = table.told_output
        self._width = len(table.inputs)
        self._flags, self._values = flags, values

    @cached_property
    def rows(self) -> list[EngineRow]:
        """In order."""
        width = self._width
        if self._values.shape[1] == width:
            return [
                EngineRow(row, 0, flag) for row, flag in zip(self._values.tolist(), self._flags, strict=True)
            ]
        return [
            EngineRow(row[:width], row[width], flag)
            for row, flag in zip(self._values.tolist(), self._flags, strict=True)
        ]


@record(frozen=True, eq=False)
class FrozenTables:
    """All tables."""

    functions: Mapping[str, FrozenTable]


class ValueConverter:
    """Converts values as egglog's e-graphs do."""

    def __init__(self, engine: MatchingEngine) -> None:
        self._engine = engine

    def value_to_i64(self, value: Any, /) -> int:
        """An integer."""
        return int(value)

    def value_to_f64(self, value: Any, /) -> float:
        """A float."""
        return float_of(value)

    def value_to_bool(self, value: Any, /) -> bool:
        """A truth value; no table holds any."""
        return bool(value)

    def value_to_vec(self, value: Any, /) -> list[int]:
        """Elements of a vector; no table holds any."""
        return self._engine.items(value)

    def value_to_multiset(self, value: Any, /) -> list[int]:
        """Elements, each as often as it is there."""
        return self._engine.items(value)


@dataclass(slots=True, eq=False, weakref_slot=True)
class MatchingEngine:
    """An e-graph. Not safe to share between threads.

    Attributes
    ----------
    failure, modules, declared, forms, functions
        As of :class:`esat.egraph.engine.Engine`.
    """

    failure: BaseException | None = None
    modules: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    arrays: GrowingArrays = field(default_factory=GrowingArrays)
    _rules: list[RulePlaces] = field(default_factory=list)
    _members: dict[str, list[int]] = field(default_factory=dict)
    _sets: dict[tuple[str, ...], int] = field(default_factory=dict)
    _united: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _end: int = 1
    _first: list[list[int]] = field(default_factory=list)
    _parsed: dict[str, Sequence[Sexp]] = field(default_factory=dict)
    _known_constants: int = 0
    _begin: int = 0
    _counted: Any = field(default_factory=lambda: np.zeros(0, np.int64))

    # ---- texts

    def load(self, text: str, file: str = "") -> None:
        """Read and run a program text.

        Raises
        ------
        UnknownFormError
            For what this engine does not have.
        """
        for form in forms_of(text):
            self._do(form, is_kept=True)

    def execute(self, text: str) -> list[Any]:
        """Run a short text; what its commands gave back."""
        return [result for form in forms_of(text) if (result := self._do(form)) is not None]

    def execute_again(self, text: str) -> list[Any]:
        """As :meth:`execute`, for a text that will be run often."""
        forms = self._parsed.get(text)
        if forms is None:
            forms = self._parsed[text] = forms_of(text)
        return [result for form in forms if (result := self._do(form)) is not None]

    def _do(self, form: Sexp, is_kept: bool = False) -> ScheduleOutcome | None:
        self._require_sound()
        assert not isinstance(form, str)
        match form:
            case ("sort", *_):
                self._declare_sort(form)
            case ("constructor" | "relation" | "function", *_):
                self._declare_table(form)
            case ("ruleset", str(name)):
                self._members.setdefault(str(name), [])
            case ("unstable-combined-ruleset", str(name), *members):
                self._united[str(name)] = tuple(map(str, members))
            case ("rule", *_):
                self._add_rule(form)
            case ("run", str(name), times):
                step = (r.RUN, self._set_of((str(name),)), 0)
                return self._finish([(r.REPEAT, 0, 0), step, (r.AGAIN, r.STEP_WORDS, int(str(times)))])
            case ("run-schedule", *steps):
                return self._finish(list(self._steps(steps, {})))
            case _:
                words = action_words(self.vocabulary, (form,))
                self._write_constants()
                if is_kept:
                    self._first.append(words)
                self._act(words)
        return None

    def _declare_sort(self, form: Sequence[Sexp]) -> None:
        self.vocabulary.declare_sort(form)
        name = str(form[1])
        if name in self.vocabulary.containers:
            self.arrays.write("sorts", self.vocabulary.containers[name], [self.vocabulary.holds(name)])

    def _declare_table(self, form: Sequence[Sexp]) -> None:
        table = self.vocabulary.declare_table(form)
        if form[0] == "function":
            self.functions.add(str(form[1]))
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

    def _add_rule(self, form: Sequence[Sexp]) -> None:
        words, rule = rule_words(self.vocabulary, form, self._end)
        self._append(words)
        self._write_constants()
        members = self._members[rule.ruleset]
        if (rule.ruleset,) in self._sets:
            self._sets.clear()  # of a set that was made, the rules are those of that time
        members.append(len(self._rules))
        self._rules.append(rule)

    # ---- rows

    def _act(self, words: Sequence[int]) -> None:
        """Do actions at once."""
        self.arrays.write("rules", self._end, words)
        while True:
            memory = self.arrays.memory
            memory.state[at.ACTING] = 1
            memory.state[at.TOP] = 0
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

    # ---- running

    def unite(self, name: str, members: tuple[str, ...]) -> str:
        """The rule set that unites others, made on first demand and called ``name``, or like it."""
        united = name
        number = 0
        while self._united.get(united, members) != members or united in self._members:
            number += 1
            united = f"{name}@{number}"
        self._united[united] = members
        return united

    def _set_of(self, names: tuple[str, ...]) -> int:
        """Where the list of the rules of some rule sets stands."""
        place = self._sets.get(names)
        if place is None:
            rules = [rule for name in names for rule in self._rules_in(name)]
            words = [len(rules), *(self._rules[rule].rule for rule in rules)]
            place = self._sets[names] = self._append(words)
        return place

    def _rules_in(self, name: str) -> Iterator[int]:
        if name in self._united:
            for member in self._united[name]:
                yield from self._rules_in(member)
        elif name in self._members:
            yield from self._members[name]
        else:
            raise SaturationError(f"there is no rule set {name}")

    def _steps(
        self, forms: Sequence[Sexp], limits: dict[str, int], place: int = 0
    ) -> Iterator[tuple[int, int, int]]:
        """A schedule as steps of the machine."""
        for form in forms:
            assert not isinstance(form, str)
            more: list[tuple[int, int, int]] = []
            match form:
                case ("let-scheduler", str(name), ("back-off", ":match-limit", limit, ":ban-length", "1")):
                    limits[str(name)] = int(str(limit))
                case ("run", str(ruleset)):
                    more = [(r.RUN, self._set_of((str(ruleset),)), 0)]
                case ("run-with", str(scheduler), str(ruleset)) if scheduler in limits:
                    more = [(r.RUN, self._set_of((str(ruleset),)), limits[str(scheduler)])]
                case ("seq", *steps):
                    more = list(self._steps(steps, limits, place))
                case ("saturate", *steps):
                    inner = list(self._steps(steps, limits, place + r.STEP_WORDS))
                    more = [(r.REPEAT, 0, 0), *inner, (r.AGAIN, place + r.STEP_WORDS, 0)]
                case _:
                    raise UnknownFormError(f"the schedule {form[0]}")
            place += r.STEP_WORDS * len(more)
            yield from more

    def schedule(self, program: str, names: Mapping[str, str]) -> list[tuple[int, int, int]]:
        """Steps of a program with names of rule sets in braces; what takes their places may be nothing.

        None for the rest of a program that is running.
        """
        if program == _REST:
            return []
        for name, instead in names.items():
            program = program.replace(f" {{{name}}})", f" {instead or _NOTHING})")
        self._members.setdefault(_NOTHING, [])
        forms = self._parsed.get(program)
        if forms is None:
            forms = self._parsed[program] = forms_of(program)
        return list(self._steps(forms, {}))

    def run_schedule(
        self,
        command: Sequence[tuple[int, int, int]],
        program: str,
        names: Mapping[str, str],
        most_matches: float = math.inf,
    ) -> ScheduleOutcome:
        """Run what :meth:`schedule` made of a program, until it is done or has had so many matches.

        It comes back, too, when the terms have doubled and every second or so, with the rest of the program.
        """
        return self._run(command, most_matches) if command else self._go_on(most_matches)

    def _run(self, steps: Sequence[tuple[int, int, int]], most_matches: float = math.inf) -> ScheduleOutcome:
        """Run steps from the first one."""
        words = [word for step in steps for word in step] + [r.STOP]
        self.arrays.write("schedule", 0, words)
        state = self.arrays.memory.state
        state[at.PHASE : at.DEPTH + 1] = 0
        state[at.LEFT_OUT] = state[at.EXCEEDED_LIMIT] = 0
        self._begin = state[at.LOG] = len(words)
        state[at.REPEATED : at.REPEATED + 2] = 0
        return self._go_on(most_matches)

    def _finish(self, steps: Sequence[tuple[int, int, int]]) -> ScheduleOutcome:
        """Run steps to their end."""
        outcome = self._run(steps)
        while outcome.rest:
            more = self._go_on(math.inf)
            matches = {name: outcome.matches.get(name, 0) for name in {*outcome.matches, *more.matches}}
            for name, count in more.matches.items():
                matches[name] += count
            outcome = more._replace(matches=matches)
        return outcome

    def _go_on(self, most_matches: float) -> ScheduleOutcome:
        """Run what is left of the steps, as far as a call goes."""
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
        memory = self.arrays.memory
        return ScheduleOutcome(
            bool(memory.state[at.REPEATED] or memory.state[at.LEFT_OUT]),
            self._counts(),
            [bool(change) for change in memory.schedule[self._begin : memory.state[at.LOG]].tolist()],
            rest=_REST if status in (GREW, PAUSED) else "",
            exceeded=status == EXCEEDED,
        )

    def _counters(self) -> Any:
        """Where rules count their matches."""
        if len(self._counted) != len(self._rules):
            self._counted = np.array([rule.rule + r.MATCHED for rule in self._rules], np.int64)
        return self._counted

    def _counts(self) -> dict[str, int]:
        """Matches by name of the rules that had any."""
        counts = self.arrays.memory.rules[self._counters()]
        found: dict[str, int] = {}
        for number in np.nonzero(counts)[0].tolist():
            name = self._rules[number].name
            found[name] = found.get(name, 0) + int(counts[number])
        return found

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

    def reset(self) -> None:
        """Forget all rows but those of the rules' own actions, and what rules have seen of them."""
        self.arrays.clear()
        memory = self.arrays.memory
        tables = (
            memory.tables.reshape(-1, at.TABLE_WORDS) if len(memory.tables) % at.TABLE_WORDS == 0 else None
        )
        assert tables is not None
        for word in (at.ROWS, at.COUNT, at.CAPACITY, at.LIVE, at.SLOTS):
            tables[:, word] = 0
        tables[:, at.INDEXES :] = 0
        notes = [place for rule in self._rules for place in (*rule.marks, *rule.starts)]
        memory.rules[np.array(notes, np.int64)] = 0
        for words in self._first:
            self._act(words)

    # ---- reading

    def _live(self, table: TableDeclaration) -> tuple[Any, Any]:
        """Flags and values of the rows of a table."""
        memory = self.arrays.memory
        words = memory.tables[table.number * at.TABLE_WORDS :][: at.TABLE_WORDS]
        if not words[at.LIVE]:
            return [], np.zeros((0, len(table.columns)), np.int64)
        width, begin, count = int(words[at.WIDTH]) + 1, int(words[at.ROWS]), int(words[at.COUNT])
        rows = memory.cells[begin : begin + count * width].reshape(count, width)
        rows = rows[(rows[:, 0] & at.DEAD) == 0]
        return (rows[:, 0] != 0).tolist(), rows[:, 1:].copy()

    def freeze(self) -> FrozenTables:
        """All tables with their rows."""
        return FrozenTables(
            {name: FrozenTable(table, *self._live(table)) for name, table in self.vocabulary.tables.items()}
        )

    def all_sizes(self) -> list[tuple[str, int]]:
        """Names and rows of all tables."""
        live = self.arrays.memory.tables[at.LIVE :: at.TABLE_WORDS]
        return [(name, int(live[table.number])) for name, table in self.vocabulary.tables.items()]

    def sizes(self) -> dict[str, int]:
        """Rows of every table, by name."""
        return dict(self.all_sizes())

    def rows(self) -> int:
        """Rows of all tables together."""
        return int(self.arrays.memory.tables[at.LIVE :: at.TABLE_WORDS].sum())

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
