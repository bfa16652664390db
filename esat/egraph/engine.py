"""Engine: one EGraph of egglog, driven by text, with egglog's failures turned into ours.

egglog reports most mistakes as ``EggSmolError``, and panics as ``PanicException``, a
``BaseException``. After a panic the e-graph may be in any state, so an Engine that failed is
broken for good: every later call raises. KeyboardInterrupt passes through, and breaks it too.

egglog asks its threads for help when an e-graph is freed. A forked process has no such threads, and would
wait for ever; there no e-graph is freed.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from esat.base.forks import GATE
from esat.base.records import record
from esat.egraph.bindings import native_module
from esat.engine.matching_engine import MatchingEngine
from esat.engine.schedules import RulesetRun, ScheduleOutcome
from esat.errors import RuleError, SaturationError

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()]')
_POSITION = re.compile(r"In (\d+):(\d+)(?:-\d+(?::\d+)?)?(?: of ([^:\n]*))?: ?", re.MULTILINE)
_IMPLIED = "The e-graph was discarded."
REPETITIONS = 8
"""Times that ``saturate`` repeats in one command: a rule without end may double the e-graph each time."""

Command = Any
"""A parsed command of egglog; opaque here."""


@record(frozen=True, slots=True)
class TextForm:
    """A top-level form of a program text, and the line and column (from 0) it begins at."""

    line: int
    column: int
    text: str


def split_forms(text: str) -> list[TextForm]:
    """The top-level forms of ``text``, comments between them left out.

    Raises
    ------
    RuleError
        For unbalanced parentheses, with the line of the form they are in.
    """
    forms: list[TextForm] = []
    depth = start = line = counted = 0
    for token in _TOKEN.finditer(text):
        if token.group() == "(":
            if depth == 0:
                start = token.start()
                line += text.count("\n", counted, start)
                counted = start
            depth += 1
        elif token.group() == ")":
            depth -= 1
            if depth < 0:
                raise RuleError("a closing parenthesis without an opening one", line=line + 1)
            if depth == 0:
                column = start - text.rfind("\n", 0, start) - 1
                forms.append(TextForm(line, column, text[start : token.end()]))
    if depth:
        raise RuleError("a parenthesis is never closed", line=line + 1)
    return forms


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
"""Of this process, and of those that it was forked from."""
_home: list[int] = []
"""The process that has egglog's threads, once there is one."""
_held: list[Any] = []


def in_forked_process() -> bool:
    """Whether egglog's threads are those of another process, so that no e-graph can be freed."""
    return bool(_home) and _home[0] != os.getpid()


def _keep_for_good(egraph: Any) -> None:
    """Count a reference that nothing gives up, the end of the interpreter included."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(egraph))


def _hold_all() -> None:
    """Before a fork: the child drops what belonged to other threads before any Python code of it runs."""
    _held[:] = [engine._egraph for engine in _engines]
    for egraph in _held:
        _keep_for_good(egraph)


def _release_all() -> None:
    """After a fork, in the parent."""
    for egraph in _held:
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(egraph))
    _held.clear()


# Once compilations of other threads have ended: their e-graphs are among those that must be held.
GATE.at_last(_hold_all, _release_all)


@record(frozen=True, eq=False)
class Snapshot:
    """The tables of an e-graph at one time.

    Attributes
    ----------
    functions
        By name (egglog's FrozenFunction); each makes a new list of its rows whenever it is asked for them.
    """

    functions: Mapping[str, Any]


@dataclass(slots=True, weakref_slot=True, eq=False)
class Engine:
    """An e-graph. Not safe to share between threads.

    Attributes
    ----------
    failure
        Why it can no longer be used; None while it can.
    forms
        Numbers of the forms of terms that it loads from rows; kept by :mod:`esat.egraph.language.term_rows`.
    """

    failure: BaseException | None = None
    forms: dict[str, int] = field(default_factory=dict)
    _egraph: Any = field(default=None, repr=False)
    _united: dict[tuple[str, ...], str] = field(default_factory=dict, repr=False)
    _rest: Sequence[RulesetRun] = field(default=(), repr=False)
    _snapshot: Snapshot | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._egraph = native_module().EGraph()
        if not _home:
            _home.append(os.getpid())
        if in_forked_process():
            _keep_for_good(self._egraph)
        _engines.add(self)

    def load(self, text: str, file: str = "") -> None:
        """Parse and run a program text of any length.

        Parameters
        ----------
        text
            Top-level forms.
        file
            What errors call the text.

        Raises
        ------
        RuleError
            For text egglog refuses, with file, line and column. The Engine is broken then.
        SaturationError
            When egglog panics, or the Engine is broken.
        """
        try:
            for form in split_forms(text):
                self._load_at(" " * form.column + form.text, file, form.line)
        except RuleError as error:
            self.failure = error
            raise

    def _load_at(self, text: str, file: str, line: int) -> None:
        """Run a text that begins so many lines below the first one of a file."""
        try:
            self.run(self.parse(text, file))
        except RuleError as error:
            place = error.line + line if error.line else 0
            raise RuleError(error.reason, file, place, error.column) from None

    def parse(self, text: str, file: str = "") -> list[Command]:
        """Commands of a short text, to be run any number of times by :meth:`run`."""
        self._require_sound()
        native = native_module()
        try:
            commands: list[Command] = self._egraph.parse_program(text, file or None)
        except native.EggSmolError as error:
            raise _rule_error(error, file) from None
        except BaseException as error:
            raise self._broken(error) from None
        return commands

    def run(self, commands: Sequence[Command]) -> list[Any]:
        """Run parsed commands; returns egglog's outputs, one for each command that has one.

        Raises
        ------
        RuleError, SaturationError
            As :meth:`load`.
        KeyboardInterrupt
            As it came; the Engine is broken then.
        """
        self._snapshot = None
        return self._told(commands)

    def _told(self, commands: Sequence[Command]) -> list[Any]:
        """Run commands, whatever was read before."""
        self._require_sound()
        native = native_module()
        try:
            outputs: list[Any] = self._egraph.run_program(*commands)
        except native.EggSmolError as error:
            self.failure = error
            raise _rule_error(error, "") from None
        except BaseException as error:
            raise self._broken(error) from None
        return outputs

    def execute(self, text: str) -> list[Any]:
        """Parse and run a short text."""
        return self.run(self.parse(text))

    def schedule(self, runs: Sequence[RulesetRun]) -> Sequence[RulesetRun]:
        """What :meth:`run_schedule` runs for a schedule."""
        return runs

    def run_schedule(self, command: Sequence[RulesetRun], most_matches: float = math.inf) -> ScheduleOutcome:
        """Run a schedule.

        What is saturated is repeated :data:`REPETITIONS` times at most, so that no rule keeps egglog for
        ever: :meth:`go_on` does the rest. egglog knows no bound of the matches of all rules.
        """
        self._rest = command
        outcome = ScheduleOutcome(False, {})
        while self._rest and not outcome.is_unfinished:
            outcome = outcome.followed_by(self._step())
        return outcome

    def go_on(self, most_matches: float = math.inf) -> ScheduleOutcome:
        """Run what is left of the schedule, as far as a call goes."""
        return self.run_schedule(self._rest, most_matches)

    def _step(self) -> ScheduleOutcome:
        """Run the first step that is left."""
        run, *rest = self._rest
        name = self._united_set(run.rulesets)
        if run.limit:
            fuel = f"(let-scheduler fuel (back-off :match-limit {run.limit} :ban-length 1))"
            text = f"{fuel} (run-with fuel {name})"
        else:
            text = f"(repeat {REPETITIONS if run.is_saturated else 1} (run {name}))"
        before = self.sizes() if run.limit else {}
        (output,) = self.execute(f"(run-schedule {text})")
        changes = [one.rule_set_report.changed for one in output.report.iterations]
        is_unfinished = run.is_saturated and len(changes) == REPETITIONS and all(changes)
        self._rest = self._rest if is_unfinished else rest
        # With a limit, egglog finds all matches anew, and says that it changed something where it left
        # rules out, or did again what had been done. What really changes is seen in the tables.
        is_left_out = run.limit and output.report.updated and not any(changes)
        left_out = frozenset(run.rulesets if is_left_out else ())
        updated = output.report.updated and (not run.limit or left_out or self.sizes() != before)
        matches = {rule: count for rule, count in output.report.num_matches_per_rule.items() if count}
        return ScheduleOutcome(bool(updated), matches, is_unfinished, left_out=left_out)

    def _united_set(self, names: tuple[str, ...]) -> str:
        """The rule set that unites others, made on first demand."""
        if len(names) == 1:
            return names[0]
        united = self._united.get(names)
        if united is None:
            united = self._united[names] = f"esat-united-{len(self._united)}"
            self.execute(f"(unstable-combined-ruleset {united} {' '.join(names)})")
        return united

    def insert(self, tables: Mapping[str, Sequence[str]]) -> None:
        """Add rows of numbers, columns separated by tabs, to tables."""
        self.execute(" ".join(_fact(name, line) for name, lines in tables.items() for line in lines))

    def unite_multisets(
        self, terms: str, number: int, constructor: str, sides: Sequence[Sequence[int]]
    ) -> None:
        """Make a term equal to a constructor of multisets of others; ``terms`` has them by number."""
        operands = (" ".join(f"({terms} {operand})" for operand in side) for side in sides)
        multisets = " ".join(f"(multiset-of {side})" for side in operands)
        self.execute(f"(union ({terms} {number}) ({constructor} {multisets}))")

    def sizes(self) -> dict[str, int]:
        """Rows of every table, by name; tables of egglog's own excluded."""
        (output,) = self._told(self.parse("(print-size)"))
        return {name: rows for name, rows in output.sizes if not name.startswith("@")}

    def rows_of(self, tables: frozenset[str]) -> int:
        """Rows of some tables together."""
        return sum([rows for name, rows in self.sizes().items() if name in tables])

    def freeze(self) -> Snapshot:
        """All tables with their rows; taken anew only after something ran."""
        self._require_sound()
        if self._snapshot is None:
            try:
                self._snapshot = Snapshot(self._egraph.freeze().functions)
            except BaseException as error:
                raise self._broken(error) from None
        return self._snapshot

    @property
    def values(self) -> Any:
        """Converter of egglog's values: ``value_to_i64``, ``value_to_f64``, ``value_to_multiset``, ..."""
        self._require_sound()
        return self._egraph

    def _require_sound(self) -> None:
        if self.failure is not None:
            raise SaturationError(f"this e-graph broke off earlier and is of no use: {self.failure}")

    def _broken(self, error: BaseException) -> BaseException:
        """Mark the Engine as broken; returns what to raise."""
        self.failure = error
        if _is_egglogs(error):
            return SaturationError(f"egglog stopped: {error}. {_IMPLIED}")
        return error


def _is_egglogs(error: BaseException) -> bool:
    """Whether egglog has raised an exception, or what stands for a panic of it; others come from outside."""
    kind = type(error)
    return isinstance(error, native_module().EggSmolError) or kind.__module__.startswith("pyo3")


AnyEngine = Engine | MatchingEngine
"""egglog, or esat's own engine, which take the same texts."""


def _fact(table: str, line: str) -> str:
    """A row as programs say it."""
    return f"({table} {' '.join('NaN' if entry == 'nan' else entry for entry in line.split())})"


def _rule_error(error: Exception, file: str) -> RuleError:
    """The message of egglog with its position taken apart."""
    text = str(getattr(error, "context", "") or error).strip()
    position = _POSITION.search(text)
    if position is None:
        return RuleError(text, file)
    reason = text[position.end() :].strip() or text
    return RuleError(reason, position.group(3) or file, int(position.group(1)), int(position.group(2)))
