"""What keeps a rule from matching: its left side searched for without conditions, and each of them by itself.

For this the rows of a saturated e-graph that other rules subsumed count as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from esat.egraph.analyses.facts import FACT_OPERATORS
from esat.egraph.preparation.modules import Module
from esat.engine.matching_engine import MatchingEngine
from esat.engine.queries import RuleQuery
from esat.engine.vocabulary import UnknownFormError, Vocabulary, forms_of
from esat.rules.language.macros import CONDITIONS, condition_meant
from esat.rules.language.reader import Sexp, is_number, show

_RULES = "why-not"
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "!="})
_TYPE_FUNCTIONS = frozenset({"dt", "bp", "val"})
_OWN = "%"
"""Marks variables that the compiler made."""


class Unproven(NamedTuple):
    """A condition of a rule, and what it was not proven for.

    Attributes
    ----------
    condition
        As the rule has it.
    values
        Variables of it, and their classes.
    """

    condition: str
    values: tuple[tuple[str, int], ...]


class LeftSides(NamedTuple):
    """Where the left side of a rule was found.

    Attributes
    ----------
    places
        How often, with operands that its conditions tell apart.
    unproven
        Conditions that do not hold there.
    """

    places: int
    unproven: tuple[Unproven, ...]


def left_sides(engine: MatchingEngine, modules: Sequence[Module]) -> LeftSides:
    """Where a rule has its left side in an e-graph, which is of no use for anything else afterwards.

    Parameters
    ----------
    engine
        Holds it.
    modules
        What the rule compiler made of the rule, to match pairs.
    """
    engine.reveal()
    engine.execute(f"(ruleset {_RULES})")
    questions = [
        question
        for number, module in enumerate(modules)
        for question in _questions(engine.vocabulary, module.text, number)
    ]
    for question in questions:
        for text in question.texts:
            engine.execute(text)
    engine.execute(f"(run {_RULES} 1)")
    tables = engine.freeze().functions
    places = 0
    found: dict[Unproven, None] = {}
    for question in questions:
        all_rows = {tuple(row.inputs) for row in tables[question.table].rows}
        places += len(all_rows)
        for condition, table in question.conditions:
            for row in sorted(all_rows - {tuple(row.inputs) for row in tables[table].rows}):
                values = tuple(
                    (name, klass)
                    for name, klass in zip(question.variables, row, strict=False)
                    if name in condition.variables
                )
                found[Unproven(condition.text, values)] = None
    return LeftSides(places, tuple(found))


class _Condition(NamedTuple):
    form: Sexp
    text: str
    variables: frozenset[str]


class _Question(NamedTuple):
    texts: tuple[str, ...]
    table: str
    variables: tuple[str, ...]
    conditions: tuple[tuple[_Condition, str], ...]


def _questions(vocabulary: Vocabulary, text: str, number: int) -> Iterator[_Question]:
    (form,) = forms_of(text)
    body = form[1]
    if form[0] != "rule" or isinstance(body, str):
        return
    conditions = [_Condition(fact, _told(fact), _names(fact)) for fact in body if _is_condition(fact)]
    forms = [condition.form for condition in conditions]
    base = [fact for fact in body if fact not in forms]
    try:
        sorts = RuleQuery.of(vocabulary, base).sorts
    except UnknownFormError:
        return
    conditions = [one for one in conditions if all(name in sorts for name in one.variables)]
    base += [fact for fact in forms if fact not in [one.form for one in conditions]]
    used = dict.fromkeys(name for one in conditions for name in sorted(one.variables))
    variables = tuple(name for name in used if sorts[name] == "T")
    table = f"{_RULES}/{number}"
    texts = [_question_text(table, base, variables)]
    told = []
    for place, condition in enumerate(conditions):
        told.append((condition, f"{table}/{place}"))
        texts.append(_question_text(told[-1][1], [*base, condition.form], variables))
    yield _Question(tuple(texts), table, tuple(name.lstrip("?") for name in variables), _plain(told))


def _plain(told: Sequence[tuple[_Condition, str]]) -> tuple[tuple[_Condition, str], ...]:
    """Conditions with the user's names of variables."""
    return tuple(
        (one._replace(variables=frozenset(name.lstrip("?") for name in one.variables)), table)
        for one, table in told
    )


def _question_text(table: str, facts: Sequence[Sexp], variables: Sequence[str]) -> str:
    columns, values = " ".join("T" for _ in variables) or "i64", " ".join(variables) or "0"
    body = " ".join(map(show, facts))
    return (
        f"(relation {table} ({columns}))"
        f' (rule ({body}) (({table} {values})) :ruleset {_RULES} :name "{table}")'
    )


def _is_condition(fact: Sexp) -> bool:
    """Whether a fact is one that a rule asks for, and not what the compiler looks for."""
    if isinstance(fact, str):
        return False
    head = str(fact[0])
    if any(_OWN in name for name in _names(fact)):
        return False
    if head == "=" and len(fact) == 3:
        numbers = [part for part in fact[1:] if isinstance(part, str) and is_number(part)]
        calls = [part for part in fact[1:] if not isinstance(part, str) and part[0] in _TYPE_FUNCTIONS]
        return bool(numbers and calls)
    return head in FACT_OPERATORS or head in _COMPARISONS


def _names(fact: Sexp) -> frozenset[str]:
    if isinstance(fact, str):
        return frozenset({fact} if fact.startswith("?") else ())
    return frozenset[str]().union(*map(_names, fact[1:]))


def _told(fact: Sexp) -> str:
    """A condition as its rule has it, for a reader."""
    for name, (arity, _) in CONDITIONS.items():
        for variable in sorted(_names(fact)) if arity == 1 else ():
            if condition_meant((name, variable)) == (fact,):
                return f"({name} {variable.lstrip('?')})"
    return show(fact).replace("?", "")
