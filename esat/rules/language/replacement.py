"""Rules that can be read as replacements: of what matches one term, under conditions, by another term."""

from __future__ import annotations

from esat.base.records import record
from esat.rules.language.reader import Sexp
from esat.rules.language.rule import Rule


@record(frozen=True)
class Replacement:
    """What a rule replaces by what.

    Attributes
    ----------
    root
        The variable that stands for what is replaced.
    pattern
        The term that it matches.
    conditions
        The other facts.
    term
        What stands in its place.
    for_good
        Whether the rule subsumes what it replaces.
    """

    root: str
    pattern: tuple[Sexp, ...]
    conditions: tuple[Sexp, ...]
    term: Sexp
    for_good: bool


def replacement_of(rule: Rule) -> Replacement | None:
    """The replacement that a rule is; None for one that says something else, such as a fact."""
    defined = _defined(rule)
    if defined is None:
        return None
    root, pattern = defined
    actions = [action for action in rule.head if isinstance(action, tuple) and action[0] != "subsume"]
    if len(actions) != 1 or actions[0][0] != "union":
        return None
    left, right = actions[0][1:]
    conditions = tuple(part for part in rule.body if not _is_definition(part, root, pattern))
    return Replacement(
        root, pattern, conditions, right if left == root else left, len(actions) < len(rule.head)
    )


def _defined(rule: Rule) -> tuple[str, tuple[Sexp, ...]] | None:
    """The variable a rule's head unites, and the term its body equates it with."""
    for action in rule.head:
        if isinstance(action, tuple) and action[0] == "union":
            for fact in rule.body:
                if isinstance(fact, tuple) and fact[0] == "=" and len(fact) == 3:
                    name, term = fact[1], fact[2]
                    if isinstance(name, str) and isinstance(term, tuple) and name in action[1:]:
                        return name, term
    return None


def _is_definition(part: Sexp, root: str, pattern: tuple[Sexp, ...]) -> bool:
    return isinstance(part, tuple) and part[0] == "=" and root in part[1:] and pattern in part
