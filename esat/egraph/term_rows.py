"""Terms as rows of numbers, which egglog reads from a file.

egglog compiles each expression that it is told, types and all, in 40 to 110 us. A row of numbers takes less
than a microsecond (by its command ``input``), and a rule that makes a term of the row as little. So each form
of term, a constructor with its number of operands, has a rule. An engine is told of it when it first meets
the form, and keeps it.
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
_FORMLESS = -1
_CONSTANT_ROW = "LoadedConstant n v d"
_CONSTANT = "(union (N n) (K v d))"
_TABLES = f"""
(relation LoadedRow ({" ".join(["i64"] * (4 + COLUMNS))}))   ; term, dtype, broadcast word, form, its numbers
(relation LoadedValue (i64 f64))
(relation LoadedConstant (i64 f64 i64))
(ruleset {_CLASSES})
(ruleset {_VALUES})
(rule (({_ROW})) ((set (dt (N n)) d) (set (bp (N n)) b)) :ruleset {_CLASSES} :name "load-class")
(rule (({_ROW})) ((delete ({_ROW}))) :ruleset {_VALUES} :name "loaded")
(rule ((LoadedValue n v)) ((set (val (N n)) v) (delete (LoadedValue n v)))
      :ruleset {_VALUES} :name "load-value")
(run {_CLASSES} 1)
(run {_VALUES} 1)
"""


@dataclass(slots=True)
class TermRows:
    """Rows to load; text, because that is what egglog reads.

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

    def texts(self) -> Iterator[str]:
        """All there is to load, as text."""
        yield from self.forms
        yield "\n".join(f"{head}\t{form}\t{tail}" for head, form, tail in self.rows)
        yield "\n".join(self.values)
        yield "\n".join(self.constants)

    def load(self, engine: AnyEngine) -> None:
        """Fill the tables of an engine, and make terms of them."""
        rulesets = [_VALUES, *_rulesets(engine, [*self.forms, *([_CONSTANT] if self.constants else [])])]
        codes = [*(engine.forms[action] for action in self.forms), _FORMLESS]  # the last one is number -1
        rows = [f"{head}\t{codes[form]}\t{tail}" for head, form, tail in self.rows]
        tables = {"LoadedRow": rows, "LoadedValue": self.values, "LoadedConstant": self.constants}
        filled = {name: lines for name, lines in tables.items() if lines}
        engine.insert(filled)
        engine.execute_again(f"(run {_CLASSES} 1)")
        engine.execute_again(f"(run {engine.unite('esat-load-rows', tuple(rulesets))} 1)")


def _rulesets(engine: AnyEngine, actions: Sequence[str]) -> list[str]:
    """The rule set of each action. The engine is told of those it does not know.

    A rule's first run takes rows in another order than later runs do, so no graph is to see one.
    """
    new = [action for action in actions if action not in engine.forms]
    texts = []
    if not engine.forms:
        texts.append(_TABLES)
        engine.forms[""] = _FORMLESS
    for action in new:
        code = engine.forms[action] = len(engine.forms)
        texts.append(f"(ruleset {_ruleset(code)}) {_rule(code, action)}")
    if texts:
        engine.load("\n".join(texts))
    rulesets = [_ruleset(engine.forms[action]) for action in new]
    if rulesets:
        engine.execute(f"(run {engine.unite('esat-first', tuple(rulesets))} 1)")
    return [_ruleset(engine.forms[action]) for action in actions]


def _rule(code: int, action: str) -> str:
    """The rule of a form; rows are deleted by another one."""
    tail = f':ruleset {_ruleset(code)} :name "load-row-{code}"'
    if action == _CONSTANT:
        return f"(rule (({_CONSTANT_ROW})) ({action} (delete ({_CONSTANT_ROW}))) {tail})"
    numbers = " ".join(name if name in action else "_" for name in VARIABLES)
    return f"(rule ((LoadedRow n _ _ {code} {numbers})) ({action}) {tail})"


def _ruleset(code: int) -> str:
    return f"esat-load-row-{code}"
