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
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from esat.egraph.bindings import native_module
from esat.egraph.commands import WITH_FUEL, filled, quicker, scheduled, unfinished
from esat.egraph.memory_file import memory_file
from esat.engine.matching_engine import MatchingEngine
from esat.engine.outcome import ScheduleOutcome
from esat.errors import RuleError, SaturationError
from esat.forks import GATE
from esat.records import record

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()]')
_POSITION = re.compile(r"In (\d+):(\d+)(?:-\d+(?::\d+)?)?(?: of ([^:\n]*))?: ?", re.MULTILINE)
_FUNCTION = re.compile(r"\(function (\S+)")
_DELETED = re.compile(r"\(delete \((\S+)")
_IMPLIED = "The e-graph was discarded."

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
    modules
        Keys of the modules of a program that were loaded; kept by :mod:`esat.egraph.modules`.
    declared
        Declarations beyond those of modules, by the name of the table; kept by whoever loads them.
    functions
        Names of the tables that were loaded as functions, whose rows are set.
    emptied
        Names of the tables that rules delete rows from.
    forms
        Numbers of the forms of terms that it loads from rows; kept by :mod:`esat.egraph.term_rows`.
    cleared
        Tables that :mod:`esat.egraph.clearing` knows how to clear.
    """

    failure: BaseException | None = None
    modules: set[str] = field(default_factory=set)
    declared: dict[str, str] = field(default_factory=dict)
    forms: dict[str, int] = field(default_factory=dict)
    cleared: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    _egraph: Any = field(default=None, repr=False)
    _parsed: dict[str, list[Command]] = field(default_factory=dict, repr=False)
    _united: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict, repr=False)
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
        self.functions.update(_FUNCTION.findall(text))
        self.emptied.update(_DELETED.findall(text))
        # What egglog reads itself need not become Python objects in between, each with a copy of the source.
        try:
            with ExitStack() as stack:
                try:
                    path = stack.enter_context(memory_file(text))
                except OSError:
                    for form in split_forms(text):
                        self._load_at(" " * form.column + form.text, file, form.line)
                else:
                    self._load_at(f'(include "{path}")', file, 0)
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
            commands = [quicker(command) for command in self._egraph.parse_program(text, file or None)]
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

    def execute_again(self, text: str) -> list[Any]:
        """As :meth:`execute`, for a text that will be run often: it is parsed once."""
        return self.run(self._once_parsed(text))

    def _once_parsed(self, text: str) -> list[Command]:
        commands = self._parsed.get(text)
        if commands is None:
            commands = self._parsed[text] = self.parse(text)
        return commands

    def schedule(self, program: str, names: Mapping[str, str]) -> Command:
        """What runs a program with names of rule sets in braces.

        Parameters
        ----------
        names
            The rule sets that take the places of what stands in braces; empty for one that nothing does.
        """
        if WITH_FUEL not in program:
            return scheduled(program, tuple(names.items()))
        (command,) = self.parse(f"(run-schedule {filled(program, names)})")
        return command

    def run_schedule(
        self, command: Command, program: str, names: Mapping[str, str], most_matches: float = math.inf
    ) -> ScheduleOutcome:
        """Run what :meth:`schedule` made of a program; egglog itself knows no bound of matches."""
        (output,) = self.run([command])
        report = output.report
        matches = {name: count for name, count in report.num_matches_per_rule.items() if count}
        changes = [iteration.rule_set_report.changed for iteration in report.iterations]
        rest = unfinished(program, names, changes) if report.updated else ""
        return ScheduleOutcome(bool(report.updated), matches, changes, rest, report=report)

    def insert(self, tables: Mapping[str, Sequence[str]]) -> None:
        """Add rows of numbers, columns separated by tabs, to tables."""
        with ExitStack() as stack:
            try:
                paths = [stack.enter_context(memory_file("\n".join(lines))) for lines in tables.values()]
            except OSError:  # there is no room for a file
                for name, lines in tables.items():
                    for line in lines:
                        self.execute(_fact(name, line))
            else:
                inputs = (f'(input {name} "{path}")' for name, path in zip(tables, paths, strict=True))
                self.execute(" ".join(inputs))

    def unite(self, name: str, members: tuple[str, ...]) -> str:
        """The rule set that unites others, made on first demand and called ``name``, or like it."""
        known = self._united.setdefault(name, {})
        united = known.get(members)
        if united is None:
            united = f"{name}@{len(known)}" if known else name
            self.execute(f"(unstable-combined-ruleset {united} {' '.join(members)})")
            known[members] = united
        return united

    def sizes(self) -> dict[str, int]:
        """Rows of every table, by name; tables of egglog's own excluded."""
        return {name: rows for name, rows in self.all_sizes() if not name.startswith("@")}

    def all_sizes(self) -> list[tuple[str, int]]:
        """Names and rows of all tables, those of egglog's own included."""
        (output,) = self._told(self._once_parsed("(print-size)"))
        sizes: list[tuple[str, int]] = output.sizes
        return sizes

    def rows(self) -> int:
        """Rows of all tables together, egglog's own included; takes far less than telling them apart."""
        self._require_sound()
        native = native_module()
        try:
            _, value = self._egraph.eval_expr(native.Call(native.PanicSpan(), "get-size!", []))
            rows: int = self._egraph.value_to_i64(value)
        except BaseException as error:
            raise self._broken(error) from None
        return rows

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
