"""Rules of users that could have millions of matches, which is foreseen from the rows of their tables.

egglog cannot be interrupted while it finds them. There are two kinds. Where patterns have unrelated parts,
every match of one part goes with every match of the others: three patterns over a few hundred terms each.
And rules that read relations and functions of the user's own may feed themselves: such tables can grow
without end while e-nodes stay as many as they were. What these match is foreseen from what they matched
before, as if every row had partners in proportion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from esat.egraph.modules import Module
from esat.rules.reader import Sexp, head_of, is_variable, read_forms

_FEW_VALUES = frozenset({"dt", "bp", "val"})
"""Functions that have one value on many terms: a variable bound to it does not relate these terms."""


@dataclass(frozen=True, slots=True)
class Join:
    """A rule that may have too many matches.

    Attributes
    ----------
    name
        Of the compiled rule, which may be one of several that stand for one rule of a file.
    member
        The rule set that holds it alone.
    parts
        The tables of each part, where no term relates its patterns to each other; else empty.
    facts
        Tables of the user's own, once for every pattern that reads them.
    """

    name: str
    member: str
    parts: tuple[frozenset[str], ...]
    facts: tuple[str, ...] = ()

    def matches(self, rows: Mapping[str, int]) -> int:
        """Matches to expect where tables have so many rows: every part has as many as its largest table.

        0 for a rule without parts.
        """
        if not self.parts:
            return 0
        return math.prod(max(rows.get(table, 0) for table in part) for part in self.parts)

    def growth(self, before: Mapping[str, int], rows: Mapping[str, int]) -> float:
        """How many times as many matches as when tables had the rows of ``before``."""
        return math.prod(rows.get(table, 0) / max(before.get(table, 0), 1) for table in self.facts)


def join_of(module: Module, tables: Collection[str], own: Collection[str] = ()) -> Join | None:
    """What to foresee of a rule over these tables, ``own`` being the user's; None where there is nothing."""
    ((_, body, *_),) = read_forms(module.text[module.text.index("(rule ") :])
    facts = [fact for fact in body if not isinstance(fact, str)]
    unrelating = {fact[1] for fact in facts if _reads_few_values(fact)}
    parts: list[tuple[set[str], set[str]]] = []
    for fact in facts:
        names = {atom for atom in _atoms(fact) if is_variable(atom)} - unrelating
        found = {atom for atom in _heads(fact) if atom in tables or atom in own}
        if not names and not found:
            continue
        touching = [part for part in parts if part[0] & names]
        parts = [part for part in parts if not part[0] & names]
        parts.append((names.union(*(p[0] for p in touching)), found.union(*(p[1] for p in touching))))
    joined = tuple(frozenset(found) for _, found in parts if found)
    name = re.search(r':name "([^"]*)"', module.text)
    read = tuple(atom for fact in facts for atom in _heads(fact) if atom in own)
    if len(joined) < 2 and not read:
        return None
    return Join(name.group(1) if name else "", module.member, joined if len(joined) > 1 else (), read)


def _reads_few_values(fact: Sexp) -> bool:
    return head_of(fact) == "=" and len(fact) == 3 and head_of(fact[2]) in _FEW_VALUES


def _atoms(form: Sexp) -> Iterator[str]:
    """Atoms of a form that are operands."""
    if isinstance(form, str):
        yield form
    else:
        for part in form[1:]:
            yield from _atoms(part)


def _heads(form: Sexp) -> Iterator[str]:
    if not isinstance(form, str):
        yield head_of(form)
        for part in form[1:]:
            yield from _heads(part)
