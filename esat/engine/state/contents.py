"""What is read of an engine: its tables as they were, values, and the log of what its rules did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.engine import rules as r
from esat.engine.rule_words import RulePlace
from esat.engine.state import memory as at
from esat.engine.state.growing_arrays import GrowingArrays
from esat.engine.vocabulary import TableDeclaration, Vocabulary, float_of


class Readable(Protocol):
    """What there is to read of an engine."""

    vocabulary: Vocabulary
    arrays: GrowingArrays

    @property
    def rules(self) -> Sequence[RulePlace]: ...

    def items(self, container: int) -> list[int]: ...


class EngineRow(NamedTuple):
    """A row of a table; values are integers, floats the ones with the same bits."""

    inputs: Sequence[int]
    output: int
    subsumed: bool
    origin: str


class FrozenTable:
    """A table as it was."""

    is_let_binding = False

    def __init__(
        self, table: TableDeclaration, words: Any, values: Any, rules: Mapping[int, str] | None = None
    ) -> None:
        self.input_sorts: Sequence[str] = table.inputs
        self.output_sort = table.told_output
        self._width = len(table.inputs)
        self._words, self._values = words, values
        self._rules = rules or {}

    @cached_property
    def rows(self) -> list[EngineRow]:
        """In order."""
        width = self._width
        values = self._values.tolist()
        outputs = [row.pop() for row in values] if self._values.shape[1] > width else [0] * len(values)
        is_subsumed = (self._words & at.SUBSUMED != 0).tolist()
        origins = [self._rules.get(maker, "") for maker in (self._words // at.ORIGIN_STEP).tolist()]
        return list(map(EngineRow, values, outputs, is_subsumed, origins))


@record(frozen=True, eq=False)
class FrozenTables:
    """All tables."""

    functions: Mapping[str, FrozenTable]


class ValueConverter:
    """Converts values as egglog's e-graphs do."""

    def __init__(self, engine: Readable) -> None:
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


class LoggedRow(NamedTuple):
    """A row that an action asked for: its table, its number there, its output then."""

    table: int
    row: int
    output: int


class LoggedMatch(NamedTuple):
    """A match, and what its actions did.

    Attributes
    ----------
    number
        In the order in which actions ran.
    rule
        Of a text that was run by itself there is none.
    values
        Of the rule's variables.
    rows
        In order; of the rows of functions, those that were set.
    unions
        Pairs of ids, and how many of the rows came before.
    congruences
        Pairs of ids of rows that came to have equal inputs after it, and after others of its iteration.
    """

    number: int
    rule: RulePlace | None
    values: tuple[int, ...]
    rows: list[LoggedRow]
    unions: list[tuple[int, int, int]]
    congruences: list[tuple[int, int]]


class MatchedAtom(NamedTuple):
    """A row that a match needed: its table, and values of all its columns."""

    table: int
    values: tuple[int, ...]


class EventLog:
    """The log of an engine and the ids in it, read after everything ran.

    Attributes
    ----------
    matches
        Those that did something.
    """

    def __init__(self, engine: Readable) -> None:
        memory = engine.arrays.memory
        self._memory = memory
        self.items = engine.items
        self._rules = {rule.address: rule for rule in engine.rules}
        self.tables = {table.number: (name, table) for name, table in engine.vocabulary.tables.items()}
        self._classes = _canonical(memory.ids[at.PARENT :: at.ID_WORDS][: int(memory.state[at.ID_COUNT])])
        self.matches = [match for match in self._read() if match.rows or match.unions or match.congruences]

    def _read(self) -> Iterator[LoggedMatch]:
        words = self._memory.log[: int(self._memory.state[at.LOG])].tolist()
        place, number = 1, 0
        match = LoggedMatch(0, None, (), [], [], [])
        while place < len(words):
            if words[place] == at.MATCHED_RULE:
                yield match
                number += 1
                address, count = words[place + 1 : place + 3]
                place += 3 + count
                match = LoggedMatch(
                    number, self._rules.get(address), tuple(words[place - count : place]), [], [], []
                )
                continue
            kind, first, second, third = words[place : place + at.EVENT_WORDS]
            if kind == at.ROW_OF:
                match.rows.append(LoggedRow(first, second, third))
            elif third == at.CONGRUENT:
                match.congruences.append((first, second))
            else:
                match.unions.append((first, second, len(match.rows)))
            place += at.EVENT_WORDS
        yield match

    def find(self, member: int) -> int:
        """The class, or the container, that an id has come to be."""
        return self._classes[member]

    def row(self, table: int, number: int) -> tuple[int, ...]:
        """The values of a row as it was made."""
        words = self._memory.tables[table * at.TABLE_WORDS :]
        width = int(words[at.WIDTH])
        begin = int(words[at.ROWS]) + number * (width + 1) + 1
        return tuple(self._memory.cells[begin : begin + width].tolist())

    def atoms(self, match: LoggedMatch) -> list[MatchedAtom]:
        """The rows that a match needed, in the order of the rule's text."""
        if match.rule is None:
            return []
        rules, registers = self._memory.rules, self._memory.registers
        begin, count = (int(rules[match.rule.address + word]) for word in (r.ATOM_LIST, r.ATOMS))
        found = []
        for atom in rules[begin : begin + count].tolist():
            table = int(rules[atom + r.TABLE])
            width = int(self._memory.tables[table * at.TABLE_WORDS + at.WIDTH])
            columns = rules[atom + r.COLUMNS : atom + r.COLUMNS + width].tolist()
            values = tuple(
                int(registers[column]) if column >= at.CONSTANTS else match.values[column]
                for column in columns
            )
            found.append(MatchedAtom(table, values))
        return found


def _canonical(parents: NDArray[np.int64]) -> list[int]:
    """What stands for each id in the end."""
    found = parents
    while not np.array_equal(found[found], found):
        found = found[found]
    canonical: list[int] = found.tolist()
    return canonical
