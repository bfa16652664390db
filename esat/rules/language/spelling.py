"""Close matches for misspelt names in messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question naming the known names closest to `name`, in parentheses, or nothing."""
    names = list(known)
    matches = [other for other in names if other.casefold() == name.casefold() != ""]
    matches = matches or difflib.get_close_matches(name, names, n=3, cutoff=0.75)
    return f" (did you mean {' or '.join(matches)}?)" if matches else ""
