"""S-expressions of egglog text that remember where they stood.

An atom is a string, a form a tuple; both compare and hash like plain strings and tuples, so generated
forms (plain ones, without a position) mix freely with those of a file::

    >>> (form,) = read_forms("(Add x 1.0) ; comment", file="user.egg")
    >>> form == ("Add", "x", "1.0"), str(form.position)
    (True, 'user.egg:1:1')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from esat.errors import RuleError
from esat.graph.calls.arguments import instance_of

Sexp: TypeAlias = str | tuple["Sexp", ...]
"""An atom or a form."""


class Position(NamedTuple):
    """Where text stands: file name, line and column (both from 1; 0 where unknown)."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)

    def error(self, message: str) -> RuleError:
        """The RuleError that reports `message` here."""
        return RuleError(message, self.file, self.line, self.column)


UNKNOWN_POSITION = Position()


class Atom(str):
    """A symbol, number or string (with its quotes) read from a file."""

    __slots__ = ("position",)
    position: Position

    @classmethod
    def at(cls, text: str, position: Position) -> Atom:
        atom = cls(text)
        atom.position = position
        return atom


class Form(tuple[Sexp, ...]):
    """A parenthesised list read from a file.

    It stands between two offsets of the whole text, which all forms of that text share: with copies of their
    own, nested forms would take memory by the square of their depth.
    """

    position: Position
    text: str
    span: tuple[int, int]

    @classmethod
    def at(cls, items: Iterable[Sexp], position: Position, text: str, span: tuple[int, int]) -> Form:
        form = cls(items)
        form.position = position
        form.text = text
        form.span = span
        return form

    @property
    def source(self) -> str:
        """Its text, comments included."""
        start, end = self.span
        return self.text[start:end]


def position_of(sexp: Sexp) -> Position:
    """Where `sexp` was read; the unknown position for a generated one."""
    return sexp.position if isinstance(sexp, (Atom, Form)) else UNKNOWN_POSITION


_TOKEN = re.compile(
    r"""\s+ | ;[^\n]*
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<parenthesis>[()])
      | (?P<unfinished>")
      | (?P<symbol>[^\s()";]+)""",
    re.VERBOSE | re.DOTALL,
)
MOST_NESTED = 60
"""Forms inside each other; what reads, prints and compiles them goes down by recursion, and egglog too."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf)\Z|NaN\Z")


def is_number(sexp: Sexp) -> bool:
    """Whether `sexp` is an integer or float literal (``inf`` and ``NaN`` included)."""
    return isinstance(sexp, str) and _NUMBER.match(sexp) is not None


def is_string(sexp: Sexp) -> bool:
    """Whether `sexp` is a string literal."""
    return isinstance(sexp, str) and sexp.startswith('"')


def is_variable(sexp: Sexp) -> bool:
    """Whether an operand is a rule variable: no literal, and no global (``$name``)."""
    return (
        isinstance(sexp, str)
        and not sexp.startswith(('"', "$"))
        and sexp not in ("true", "false")
        and not is_number(sexp)
    )


def string_value(sexp: Sexp) -> str:
    """The text between the quotes of a string literal."""
    assert isinstance(sexp, str)
    return re.sub(r"\\(.)", r"\1", sexp[1:-1], flags=re.DOTALL)


def _tokens(text: str, start: Position) -> Iterator[tuple[str, str, int, Position]]:
    """(kind, text, offset, position) of every token; blanks and comments are none."""
    file = start.file
    # The first line begins left of the text.
    breaks = [-start.column, *(match.start() for match in re.finditer("\n", text)), len(text)]
    lines = enumerate(pairwise(breaks), start=start.line)
    line, (line_break, next_break) = next(lines)
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        offset = match.start()
        while offset > next_break:
            line, (line_break, next_break) = next(lines)
        position = Position(file, line, offset - line_break)
        if kind == "unfinished":
            raise position.error("this string has no closing quote")
        yield kind, match.group(), offset, position


def _require_encodable(text: str, start: Position) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        before = text[: error.start]
        line = before.count("\n")
        column = error.start - before.rfind("\n") if line else start.column + error.start
        position = Position(start.file, start.line + line, column)
        raise position.error(f"the character {text[error.start]!a} cannot be encoded as UTF-8") from None


def read_forms(text: str, file: str = "", line: int = 1, column: int = 1) -> tuple[Form, ...]:
    """The top-level forms of egglog text.

    Parameters
    ----------
    text
        What to read.
    file, line, column
        Where it stands.

    Errors
    ------
    RuleError
        On unbalanced parentheses, an unfinished string, an atom outside every form, forms nested too deeply,
        or characters that UTF-8 cannot encode, with its position.
    """
    instance_of("read_forms", "text", text, str)
    for argument, place in (("line", line), ("column", column)):
        instance_of("read_forms", argument, place, int)
    _require_encodable(text, Position(file, line, column))
    top: list[Sexp] = []
    # One (items, offset, position) per parenthesis still open, the top level first.
    open_forms: list[tuple[list[Sexp], int, Position]] = [(top, 0, UNKNOWN_POSITION)]
    for kind, token, offset, position in _tokens(text, Position(file, line, column)):
        items = open_forms[-1][0]
        if token == "(":
            if len(open_forms) > MOST_NESTED:
                raise position.error(f"forms are nested more than {MOST_NESTED} deep here")
            open_forms.append(([], offset, position))
        elif token == ")":
            if len(open_forms) == 1:
                raise position.error("this closing parenthesis matches no opening one")
            items, start, opened = open_forms.pop()
            open_forms[-1][0].append(Form.at(items, opened, text, (start, offset + 1)))
        elif len(open_forms) == 1:
            raise position.error(f"expected a form in parentheses, found the {kind} {token}")
        else:
            items.append(Atom.at(token, position))
    if len(open_forms) > 1:
        items, _, opened = open_forms[-1]
        head = items[0] if items and isinstance(items[0], str) else ""
        raise opened.error(f"the form '({head} ...' is never closed")
    return tuple(form for form in top if isinstance(form, Form))


def show(sexp: Sexp) -> str:
    """`sexp` as egglog text on one line."""
    if isinstance(sexp, str):
        return sexp
    return "(" + " ".join([item if isinstance(item, str) else show(item) for item in sexp]) + ")"


def head_of(sexp: Sexp) -> str:
    """The symbol a form begins with; empty for an atom, an empty form, or a form of forms."""
    if isinstance(sexp, str) or not sexp or not isinstance(sexp[0], str):
        return ""
    return sexp[0]


def subforms(sexp: Sexp) -> Iterator[tuple[Sexp, ...]]:
    """`sexp` and every form inside it, outermost first."""
    if not isinstance(sexp, str):
        yield sexp
        for item in sexp:
            yield from subforms(item)
