"""Close matches for misspelt names in messages."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.75) -> str:
    """A question naming the known names closest to `name`, in parentheses, or nothing.

    Those are close of which difflib's ratio is at least ``cutoff``.
    """
    import difflib  # of messages alone

    names = list(known)
    matches = [other for other in names if other.casefold() == name.casefold() != ""]
    matches = matches or difflib.get_close_matches(name, names, n=3, cutoff=cutoff)
    return f" (did you mean {' or '.join(matches)}?)" if matches else ""
