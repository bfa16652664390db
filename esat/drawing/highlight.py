"""Python source as HTML, its words coloured."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize

from esat.quoting import markup, xml_text

_KINDS = {tokenize.COMMENT: "comment", tokenize.STRING: "string", tokenize.NUMBER: "number"}


def highlighted(source: str) -> str:
    """The source with its keywords, names of builtins, numbers, strings and comments in spans.

    Parameters
    ----------
    source
        Python, of any number of modules one after the other.
    """
    source = xml_text(source)
    lines = source.splitlines(keepends=True)
    pieces: list[str] = []
    row, column = 1, 0

    def copy(to_row: int, to_column: int) -> str:
        """The source from where the last piece ended."""
        if row == to_row:
            return lines[row - 1][column:to_column] if row <= len(lines) else ""
        first, last = lines[row - 1][column:], lines[to_row - 1][:to_column] if to_row <= len(lines) else ""
        return first + "".join(lines[row : to_row - 1]) + last

    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = _KINDS.get(token.type)
        if token.type == tokenize.NAME:
            kind = "keyword" if keyword.iskeyword(token.string) else None
            kind = kind or ("builtin" if hasattr(builtins, token.string) else None)
        if kind is not None:
            pieces.append(markup(copy(*token.start)))
            pieces.append(f'<span class="{kind}">{markup(token.string)}</span>')
            row, column = token.end
    pieces.append(markup(copy(len(lines) + 1, 0)))
    return "".join(pieces)
