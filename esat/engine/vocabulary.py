"""What a program declares: sorts, tables, and the constants of its rules, all numbered."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields

from esat.base.records import record
from esat.engine.state.memory import (
    CLASS,
    CONFLICTING,
    CONSTANTS,
    CONTAINER,
    IDS,
    INTERSECTION_OF_BITS,
    MAXIMUM,
    MINIMUM,
    NEW,
    NUMBER,
    NUMBERS,
    OLD,
    PAIR,
    UNION_OF_BITS,
    UNITE,
    WIDEST,
)
from esat.rules.language.reader import Sexp, is_number, show

_MERGES = {
    "old": OLD,
    "new": NEW,
    "(max old new)": MAXIMUM,
    "(min old new)": MINIMUM,
    "(| old new)": UNION_OF_BITS,
    "(& old new)": INTERSECTION_OF_BITS,
    "(ordering-max old new)": MAXIMUM,
    "(ordering-min old new)": MINIMUM,
}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()]|[^\s()";]+')
_NUMERIC = frozenset({"i64", "f64"})
_FLOAT, _WORD = struct.Struct("d"), struct.Struct("q")


class UnknownFormError(Exception):
    """A text uses a part of egglog's language that this engine does not have."""


@record(frozen=True, slots=True)
class TableDeclaration:
    """A constructor, function or relation.

    Attributes
    ----------
    number
        Of the table.
    inputs, output
        Sorts; a relation, and a function to Unit, have no output.
    merge
        What a function does where two values meet.
    is_constructor
        Whether a row that is asked for is made.
    told_output
        The sort of the output as egglog tells it.
    """

    number: int
    inputs: tuple[str, ...]
    output: str
    merge: int
    is_constructor: bool
    told_output: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Sorts of all columns."""
        return (*self.inputs, self.output) if self.output else self.inputs


def bits_of(value: float) -> int:
    """A float as the integer that registers hold; zero has one sign, and NaN one form."""
    if math.isnan(value):
        return 0x7FF8000000000000
    word: int = _WORD.unpack(_FLOAT.pack(value + 0.0 if value else 0.0))[0]
    return word


def float_of(word: int) -> float:
    """The float that a register holds."""
    value: float = _FLOAT.unpack(_WORD.pack(word))[0]
    return value


@dataclass(slots=True)
class Vocabulary:
    """The declarations of a program.

    Attributes
    ----------
    tables
        By name.
    containers
        Numbers of the sorts of multisets and pairs.
    elements
        What these hold.
    classes
        Sorts of classes.
    constants
        Registers of constants, by what registers hold.
    """

    tables: dict[str, TableDeclaration] = field(default_factory=dict)
    containers: dict[str, int] = field(default_factory=dict)
    elements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=lambda: {"Unit", "String", "bool"})
    constants: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Vocabulary:
        """The same declarations, to which others can be added."""
        return Vocabulary(*(copy(getattr(self, own.name)) for own in fields(self)))

    def declare_sort(self, form: Sequence[Sexp]) -> None:
        """``(sort name)``, or one of multisets, pairs, functions or vectors."""
        name = str(form[1])
        if len(form) == 2:
            self.classes.add(name)
            return
        assert not isinstance(form[2], str)
        kind, *parts = form[2]
        if kind in ("MultiSet", "Pair"):
            self.containers[name] = len(self.containers)
            self.elements[name] = tuple(map(str, parts))
            if kind == "Pair" and not all(self.kind(str(part)) != NUMBER for part in parts):
                raise UnknownFormError(f"a pair of numbers: {show(tuple(form))}")
        elif kind in ("UnstableFn", "Vec"):
            self.others.add(name)
        else:
            raise UnknownFormError(f"the sort {show(tuple(form))}")

    def holds(self, name: str) -> int:
        """What containers of a sort hold, as the machine has it."""
        elements = self.elements[name]
        if len(elements) == 2:
            return PAIR
        return NUMBERS if self.kind(elements[0]) == NUMBER else IDS

    def kind(self, sort: str) -> int:
        """The kind of a column of a sort."""
        if sort in _NUMERIC:
            return NUMBER
        if sort in self.containers:
            return CONTAINER
        if sort in self.classes:
            return CLASS
        raise UnknownFormError(f"a value of the sort {sort}")

    def multiset_of(self, element: str) -> str:
        """The sort of multisets of such elements."""
        for name, elements in self.elements.items():
            if elements == (element,):
                return name
        raise UnknownFormError(f"a multiset of {element}")

    def pair_of(self, first: str, second: str) -> str:
        """The sort of such pairs."""
        for name, elements in self.elements.items():
            if elements == (first, second):
                return name
        raise UnknownFormError(f"a pair of {first} and {second}")

    def declare_table(self, form: Sequence[Sexp]) -> TableDeclaration:
        """A constructor, relation or function."""
        kind, name, inputs = str(form[0]), str(form[1]), tuple(map(str, form[2]))
        output = told = "" if kind == "relation" else str(form[3])
        options = [
            str(option) for option in form[3 if kind == "relation" else 4 :] if isinstance(option, str)
        ]
        merge = UNITE if kind == "constructor" else CONFLICTING
        if ":merge" in options:
            how = show(form[form.index(":merge") + 1])
            if how not in _MERGES or (output == "f64" and how.startswith("(")):
                raise UnknownFormError(f"the merge {how} of {name}")
            merge = _MERGES[how]
        unknown = {option for option in options if option.startswith(":")} - {
            ":merge",
            ":no-merge",
            ":unextractable",
            ":cost",
        }
        if unknown:
            raise UnknownFormError(f"{min(unknown)} of {name}")
        if output == "Unit":
            output = ""
        for sort in (*inputs, *((output,) if output else ())):
            self.kind(sort)
        if len(inputs) + bool(output) > WIDEST:
            raise UnknownFormError(f"{name}, which has more than {WIDEST} columns")
        told = told or f"@{name}Sort"
        table = TableDeclaration(len(self.tables), inputs, output, merge, kind == "constructor", told)
        self.tables[name] = table
        return table

    def constant(self, word: int) -> int:
        """The register of a constant."""
        return self.constants.setdefault(word, CONSTANTS + len(self.constants))


def forms_of(text: str) -> list[tuple[Sexp, ...]]:
    """The top-level forms of a text; a tenth of the time that positions take.

    Raises
    ------
    UnknownFormError
        For what is no list of forms: egglog says why.
    """
    top: list[Sexp] = []
    items = top
    above: list[list[Sexp]] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            above.append(items)
            items = []
        elif token == ")":
            if not above:
                raise UnknownFormError("a closing parenthesis without an opening one")
            form = tuple(items)
            items = above.pop()
            items.append(form)
        elif token[0] != ";":
            items.append(token)
    if above:
        raise UnknownFormError("a parenthesis is never closed")
    found = [form for form in top if not isinstance(form, str)]
    if len(found) < len(top):
        raise UnknownFormError("an atom outside of all forms")
    return found


def literal(atom: Sexp) -> tuple[str, int] | None:
    """The sort of a number, and what registers hold of it; None for what is no number."""
    if not isinstance(atom, str) or not is_number(atom):
        return None
    if atom.lstrip("+-").isdigit():
        value = int(atom)
        if -(1 << 63) <= value < 1 << 63:
            return "i64", value
    return "f64", bits_of(float(atom))
