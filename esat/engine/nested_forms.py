"""egglog's forms as nested tuples, without positions: what is read here was checked before."""

from __future__ import annotations

import re

from esat.engine.vocabulary import UnknownFormError
from esat.rules.reader import Sexp

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()]|[^\s()";]+')


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
