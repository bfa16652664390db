"""Common sub-expressions of a rule's body, computed once.

Macros over permutation words and type guards expand to arithmetic that repeats its parts many times over, and
egglog neither merges equal primitive calls nor compiles long bodies quickly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from esat.rules.language.reader import Sexp, head_of

SHARED = frozenset({"&", "|", "^", "<<", ">>", "+", "-", "*", "min", "max", "not-i64", "dt", "bp"})
"""Pure functions whose calls are merged: arithmetic, and the types of classes."""

_VARIABLE = "?%shared{}"


def with_shared_parts(facts: Sequence[Sexp]) -> list[Sexp]:
    """The facts of a body, with every call in :data:`SHARED` that occurs twice bound to a variable.

    Each is bound right before the fact that needs it first: egglog evaluates calls in the order they are
    written.
    """
    counts = Counter(_calls(facts))
    if all(count == 1 for count in counts.values()):
        return list(facts)
    names: dict[Sexp, str] = {}
    pending: list[Sexp] = []

    def rewritten(sexp: Sexp) -> Sexp:
        if isinstance(sexp, str):
            return sexp
        if sexp in names:
            return names[sexp]
        changed: Sexp = tuple([part if isinstance(part, str) else rewritten(part) for part in sexp])
        if counts[sexp] > 1:
            name = names[sexp] = _VARIABLE.format(len(names))
            pending.append(("=", name, changed))
            return name
        return changed

    result: list[Sexp] = []
    for fact in facts:
        changed = rewritten(fact)
        result += [*pending, changed]
        pending.clear()
    return result


def _calls(forms: Iterable[Sexp]) -> Iterator[Sexp]:
    """Every occurrence of a shared function's call, in this order: outer ones first."""
    for form in forms:
        if not isinstance(form, str):
            if head_of(form) in SHARED:
                yield form
            yield from _calls(form)
