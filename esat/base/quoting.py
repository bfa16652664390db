"""Users' texts within text that the package writes: Python, CUDA, pictures and pages.

Names of variables, functions and files, messages and documentation hold whatever a user, or the sender of a
graph, has put there: line breaks, quotes, ends of comments, halves of surrogates, a megabyte. Nothing of that
is copied into text that is compiled or shown by a browser but through these functions.
"""

from __future__ import annotations

import json
import re
from html import escape

LONGEST_REMARK = 100
LONGEST_NAME = 60
"""Characters of what is for readers only; the rest is left out."""

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEVER_ASSIGNED = "__debug__"


def remark(text: str, longest: int = LONGEST_REMARK) -> str:
    """A text as (the rest of) a comment of one line, in Python or C: printable characters alone."""
    kept = " ".join(text[: 2 * longest].split())
    # These end a comment of C, and continue its line.
    shown = "".join(map(_printable, kept)).replace("*/", "* /").rstrip("\\")
    return shown if len(shown) <= longest and len(text) <= 2 * longest else f"{shown[: longest - 3]}..."


def identifier(text: str) -> str:
    """A text as a name in Python or C, like it where that is one; empty for an empty text."""
    name = re.sub(r"\W", "_", text[:LONGEST_NAME], flags=re.ASCII)
    return f"_{name}" if name[:1].isdigit() or name == _NEVER_ASSIGNED else name


def label(text: str) -> str:
    """A text in double quotes, as DOT and C read it, of printable characters and line breaks."""
    lines = ["".join(map(_printable, line)) for line in text.split("\n")]
    return json.dumps("\n".join(lines), ensure_ascii=False)


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"


def xml_text(text: str) -> str:
    """A text without the characters that XML cannot hold, escaped or not."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def markup(text: str) -> str:
    """A text as the content of an element or an attribute of HTML."""
    return escape(xml_text(text))
