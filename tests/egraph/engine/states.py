"""States of e-graphs, compared up to the names of classes.

Rows are coloured by what their classes are made of and stand in, round by round; two states are equal where
each table has the same coloured rows. Classes that no row tells apart count as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from esat.egraph.engine import Engine
from esat.engine.matching_engine import MatchingEngine
from esat.engine.state.memory import MINIMUM, NEW, NUMBER, OLD
from esat.engine.vocabulary import Vocabulary, bits_of

ROUNDS = 4

Cell = int | tuple[str, int]
"""A number, or the sort and the name of a class or container."""


@dataclass
class State:
    """All rows: inputs and output, and whether it is subsumed; elements of containers by sort and name."""

    rows: dict[str, list[tuple[tuple[Cell, ...], bool]]] = field(default_factory=dict)
    items: dict[tuple[str, int], tuple[Cell, ...]] = field(default_factory=dict)

    def content(self, cell: Cell) -> Any:
        """A cell, or what a container holds."""
        items = None if isinstance(cell, int) else self.items.get(cell)
        return cell if items is None else (cell, *map(self.content, items))


def state_of(engine: Engine | MatchingEngine, vocabulary: Vocabulary) -> State:
    """The rows of an engine; what the vocabulary does not declare is left out."""
    if isinstance(engine, Engine):
        engine.execute(f"(run {_PARTS} 1)") if _PARTS in engine.forms else _tell_parts(engine, vocabulary)
    state, values, tables = State(), engine.values, engine.freeze().functions
    is_own = isinstance(engine, MatchingEngine)
    pairs: dict[int, tuple[Any, ...]] = {}
    if not is_own:
        pairs = {
            _raw(r.inputs[0]): r.inputs[1:] for n, t in tables.items() if n.startswith(_PARTS) for r in t.rows
        }

    def cell(value: Any, sort: str) -> Cell:
        if sort == "i64":
            return values.value_to_i64(value)
        if sort == "f64":
            return bits_of(values.value_to_f64(value))
        name = value if is_own else _raw(value)
        if sort in vocabulary.containers and (sort, name) not in state.items:
            sorts = vocabulary.elements[sort]
            if len(sorts) == 2:
                parts = engine.items(value) if is_own else pairs[name]
            else:
                parts = values.value_to_multiset(value)
                sorts = sorts * len(parts)
            state.items[sort, name] = tuple(map(cell, parts, sorts))
        return sort, name

    for name, table in tables.items():
        known = vocabulary.tables.get(name)
        if known is None or name.startswith("Loaded"):
            continue
        rows = []
        for row in table.rows:
            columns = [*row.inputs, row.output] if known.output else row.inputs
            rows.append((tuple(map(cell, columns, known.columns)), row.subsumed))
        state.rows[name] = rows
    return state


def _raw(value: Any) -> int:
    """The number of a value of egglog."""
    return int(str(value)[6:-1])


_PARTS = "parts-of-pairs"


def _tell_parts(engine: Engine, vocabulary: Vocabulary) -> None:
    """egglog's bindings do not tell the parts of pairs: rules do."""
    engine.execute(f"(ruleset {_PARTS})")
    engine.forms[_PARTS] = -1
    for sort, sorts in vocabulary.elements.items():
        if len(sorts) == 2:
            engine.execute(f"(relation {_PARTS}-{sort} ({sort} {' '.join(sorts)}))")
            for name, table in vocabulary.tables.items():
                if table.output == sort:
                    row = f"({name} {' '.join(f'x{place}' for place in range(len(table.inputs)))})"
                    action = f"({_PARTS}-{sort} f (pair-first f) (pair-second f))"
                    engine.execute(f'(rule ((= f {row})) ({action}) :ruleset {_PARTS} :name "parts-{name}")')
    engine.execute(f"(run {_PARTS} 1)")


def choices(vocabulary: Vocabulary) -> set[str]:
    """Functions that keep the first, last or older of several values: the order of matches decides."""
    return {
        name
        for name, table in vocabulary.tables.items()
        if table.output
        and not table.is_constructor
        and (
            table.merge in (OLD, NEW) or (table.merge == MINIMUM and vocabulary.kind(table.output) != NUMBER)
        )
    }


def without(state: State, names: Collection[str]) -> State:
    """A state without some tables, and without containers that are in no other."""
    rows = {name: own for name, own in state.rows.items() if name not in names}
    items: dict[tuple[str, int], tuple[Cell, ...]] = {}
    waiting = [cell for own in rows.values() for cells, _ in own for cell in cells]
    while waiting:
        cell = waiting.pop()
        if cell in state.items and cell not in items:
            items[cell] = state.items[cell]
            waiting += state.items[cell]
    return State(rows, items)


def differences(first: State, second: State) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
    """Coloured rows that one state has and the other has not, by table."""
    one, other = _coloured(first), _coloured(second)
    return {
        name: (left - right, right - left)
        for name in one | other
        if (left := one.get(name, Counter())) != (right := other.get(name, Counter()))
    }


def _coloured(state: State) -> dict[str, Counter[Any]]:
    colours: dict[Cell, int] = {}
    kept: dict[Cell, int] = {}

    def colour(cell: Cell) -> Any:
        if isinstance(cell, int):
            return cell
        if cell in state.items:
            if cell not in kept:
                kept[cell] = hash(("items", *sorted(hash(colour(item)) for item in state.items[cell])))
            return kept[cell]
        return colours.get(cell, 0)

    for _ in range(ROUNDS):
        seen: dict[Cell, list[int]] = {}
        kept.clear()
        for name, rows in state.rows.items():
            for cells, subsumed in rows:
                row = hash((name, subsumed, *map(colour, cells)))
                for place, cell in enumerate(cells):
                    if not isinstance(cell, int):
                        seen.setdefault(cell, []).append(hash((row, place)))
        parts: dict[Cell, list[int]] = {}
        for container, items in state.items.items():
            mark = hash(tuple(sorted(seen.get(container, ()))))
            for item in items:
                if not isinstance(item, int):
                    parts.setdefault(item, []).append(hash((mark, colour(container))))
        colours = {
            cell: hash((*sorted(seen.get(cell, ())), "in", *sorted(parts.get(cell, ()))))
            for cell in {*seen, *parts}
        }
    kept.clear()
    return {
        name: Counter((subsumed, *map(colour, cells)) for cells, subsumed in rows)
        for name, rows in state.rows.items()
    }
