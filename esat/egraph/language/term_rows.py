"""Terms as rows of numbers.

egglog compiles each expression that it is told, types and all, in 40 to 110 us. So each form of term, a
constructor with its number of operands, has a rule, which makes a term of a row. An engine is told of it when
it first meets the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from esat.egraph.engine import AnyEngine

COLUMNS = 12
"""Numbers that a row has for its form."""

VARIABLES = tuple(f"x{place}" for place in range(COLUMNS))
"""How actions call them. They call the number of the term ``n``."""

_ROW = f"LoadedRow n d b f {' '.join(VARIABLES)}"
_CLASSES = "esat-load-classes"
_VALUES = "esat-load-values"
_TERMS = "esat-load-terms"
_FORMLESS = -1
_CONSTANT_ROW = "LoadedConstant n v d"
_CONSTANT = "(union (N n) (K v d))"
ROW_TABLES = f"""
(relation LoadedRow ({" ".join(["i64"] * (4 + COLUMNS))}))   ; term, dtype, broadcast word, form, its numbers
(relation LoadedValue (i64 f64))
(relation LoadedConstant (i64 f64 i64))
(ruleset {_CLASSES})
(ruleset {_VALUES})
(ruleset {_TERMS})
(rule (({_ROW})) ((set (dt (N n)) d) (set (bp (N n)) b)) :ruleset {_CLASSES} :name "load-class")
(rule (({_ROW})) ((delete ({_ROW}))) :ruleset {_VALUES} :name "loaded")
(rule ((LoadedValue n v)) ((set (val (N n)) v) (delete (LoadedValue n v)))
      :ruleset {_VALUES} :name "load-value")
(rule (({_CONSTANT_ROW})) ({_CONSTANT} (delete ({_CONSTANT_ROW}))) :ruleset {_TERMS} :name "load-constant")
"""
"""What loads rows, but for the rules of their forms."""


@dataclass(slots=True)
class TermRows:
    """Rows to load, as text.

    Attributes
    ----------
    forms
        Action -> its number among these: what is done for a row, with ``n`` and ``x0 x1 ...`` in it.
    rows
        What comes before the form, the number of the form, what comes after it.
    values, constants
        Rows of terms with a known value, and of terms that are nothing but one.
    """

    forms: dict[str, int] = field(default_factory=dict)
    rows: list[tuple[str, int, str]] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    def add(
        self, number: int, dtype: int, broadcast: int, action: str = "", numbers: Sequence[int] = ()
    ) -> None:
        """A row of a term that makes its class, and does what the action says."""
        form = self.forms.setdefault(action, len(self.forms)) if action else _FORMLESS
        tail = "\t".join([*map(str, numbers), *["0"] * (COLUMNS - len(numbers))])
        self.rows.append((f"{number}\t{dtype}\t{broadcast}", form, tail))

    def beyond(self, known: TermRows) -> TermRows:
        """The rows that are not among others."""
        actions, known_actions = [*self.forms, ""], [*known.forms, ""]  # the last one is number -1
        loaded = {(head, known_actions[form], tail) for head, form, tail in known.rows}
        rows = [row for row in self.rows if (row[0], actions[row[1]], row[2]) not in loaded]
        values, constants = set(known.values), set(known.constants)
        return TermRows(
            self.forms,
            rows,
            [row for row in self.values if row not in values],
            [row for row in self.constants if row not in constants],
        )

    def texts(self) -> Iterator[str]:
        """All there is to load, as text."""
        yield from self.forms
        yield "\n".join(f"{head}\t{form}\t{tail}" for head, form, tail in self.rows)
        yield "\n".join(self.values)
        yield "\n".join(self.constants)

    def load(self, engine: AnyEngine) -> None:
        """Fill the tables of an engine, which holds :data:`ROW_TABLES`, and make terms of them."""
        new = [action for action in self.forms if action not in engine.forms]
        for action in new:
            engine.forms[action] = len(engine.forms)
        engine.load("\n".join(_rule(engine.forms[action], action) for action in new))
        codes = [*(engine.forms[action] for action in self.forms), _FORMLESS]  # the last one is number -1
        rows = [f"{head}\t{codes[form]}\t{tail}" for head, form, tail in self.rows]
        tables = {"LoadedRow": rows, "LoadedValue": self.values, "LoadedConstant": self.constants}
        engine.insert({name: lines for name, lines in tables.items() if lines})
        for ruleset in (_CLASSES, _TERMS, _VALUES):
            engine.execute(f"(run {ruleset} 1)")


def _rule(form: int, action: str) -> str:
    """The rule of a form; rows are deleted by another one."""
    numbers = " ".join(name if name in action else "_" for name in VARIABLES)
    return f'(rule ((LoadedRow n _ _ {form} {numbers})) ({action}) :ruleset {_TERMS} :name "load-row-{form}")'
