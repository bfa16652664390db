"""From a term DAG to the rows of an engine, with sums and products flattened on the way.

Chains of additions and multiplications become one n-ary term each, as long as the inner terms are
used once: unrestricted flattening through shared terms copies them into every user. What is shared
stays a term of its own, with a small budget in the rules (``flatten-budget`` in ``core.egg``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from esat.base.records import record
from esat.egraph.analyses.structure import WANTED
from esat.egraph.language.term_rows import COLUMNS, VARIABLES, TermRows
from esat.egraph.language.terms import Term, TermGraph, TermType
from esat.graph.types import DTYPES
from esat.ops.inference.structure import NUMBERS, RANGES

if TYPE_CHECKING:
    from esat.egraph.engine import AnyEngine

LONGEST_FLAT = 256
"""Elements of the longest n-ary term built here; the rules' work per term is quadratic at worst."""

LONGEST_POWER = 16
"""Elements of the longest product built through squares, which double."""

_SUMS = frozenset({"Add", "Sub", "Neg", "NarySum"})
_PRODUCTS = frozenset({"Mul", "Div", "Sqr", "Reciprocal", "NaryProd"})
NARY_FORM = {**dict.fromkeys(_SUMS, "NarySum"), **dict.fromkeys(_PRODUCTS, "NaryProd")}
"""The n-ary constructor that stands for each of those that are flattened."""
_CARRYING = _SUMS | _PRODUCTS | {"DimShuffle", "Cast"}
_NEEDS_FIELD = frozenset({"Div", "Reciprocal"})


@record(frozen=True, slots=True)
class NaryTerm:
    """A flattened sum or product: the numbers of its operands above and below."""

    constructor: str
    above: tuple[int, ...]
    below: tuple[int, ...]


@record(frozen=True, slots=True)
class LoadPlan:
    """What to load for each term.

    Attributes
    ----------
    forms
        By number: the term itself, its n-ary form, or None if it is part of others' n-ary forms only.
    """

    forms: tuple[Term | NaryTerm | None, ...]


def flatten(graph: TermGraph, strict: bool = False) -> LoadPlan:
    """Decide the form in which every term is loaded.

    Parameters
    ----------
    graph
        The term DAG.
    strict
        Flatten integer terms only: reordering floats changes their rounding.
    """
    families = [_family(term, type, strict) for term, type in zip(graph.terms, graph.types, strict=True)]
    uses = [0] * len(graph.terms)
    for term in graph.terms:
        for operand in term.operands:
            uses[operand] += 1
    for root in (*graph.roots, *chain.from_iterable(graph.equal)):
        uses[root] += 2
    for number, fact in graph.facts:
        uses[number] += fact != "square"  # what something is assumed of stays a term of its own
    absorbed = _absorbed(graph.terms, families, uses)
    forms: list[Term | NaryTerm | None] = []
    for number, term in enumerate(graph.terms):
        if absorbed[number]:
            forms.append(None)
        elif families[number]:
            forms.append(_flat_term(number, graph.terms, families, absorbed))
        else:
            forms.append(term)
    return LoadPlan(tuple(forms))


def _family(term: Term, type: TermType, strict: bool) -> str:
    kind = np.dtype(DTYPES[type.dtype]).kind
    ring = kind in "iu" or (kind in "fc" and not strict)
    if not ring or (term.constructor in _NEEDS_FIELD and kind not in "fc"):
        return ""
    return NARY_FORM.get(term.constructor, "")


def _absorbed(terms: Sequence[Term], families: Sequence[str], uses: Sequence[int]) -> list[bool]:
    """Which terms disappear into the one n-ary term that uses them."""
    absorbed = [False] * len(terms)
    lengths = [1] * len(terms)
    for number, term in enumerate(terms):
        family = families[number]
        if not family:
            continue
        copies, longest = (2, LONGEST_POWER) if term.constructor == "Sqr" else (1, LONGEST_FLAT)
        length = copies * len(term.operands)
        for operand in sorted(set(term.operands), key=lambda operand: lengths[operand]):
            if families[operand] != family or uses[operand] != 1:
                continue
            longer = length + copies * (lengths[operand] - 1)
            if longer <= longest:
                absorbed[operand] = True
                length = longer
        lengths[number] = length
    return absorbed


def _flat_term(
    root: int, terms: Sequence[Term], families: Sequence[str], absorbed: Sequence[bool]
) -> NaryTerm:
    sides: tuple[list[int], list[int]] = ([], [])
    stack = [(root, 0)]
    while stack:
        number, side = stack.pop()
        term = terms[number]
        if number != root and not (absorbed[number] and families[number] == families[root]):
            sides[side].append(number)
            continue
        stack.extend((operand, side ^ below) for operand, below in signed_operands(term))
    return NaryTerm(families[root], tuple(sides[0]), tuple(sides[1]))


def signed_operands(term: Term) -> list[tuple[int, int]]:
    """Operands with 0 where they are added or multiplied, 1 where subtracted or divided by."""
    match term.constructor:
        case "Add" | "Mul":
            return [(operand, 0) for operand in term.operands]
        case "Sub" | "Div":
            return [(term.operands[0], 0), (term.operands[1], 1)]
        case "Neg" | "Reciprocal":
            return [(term.operands[0], 1)]
        case "Sqr":
            return [(term.operands[0], 0)] * 2
        case _:
            positives = int(term.attributes[0])
            return [(operand, int(place >= positives)) for place, operand in enumerate(term.operands)]


@record(frozen=True, slots=True)
class Loading:
    """A term DAG as an engine is told of it.

    Attributes
    ----------
    rows
        The terms, but those that are too long for a row.
    long
        Numbers and forms of the others.
    texts
        Programs for what is known of the terms, to be run in order after the rows.
    """

    rows: TermRows
    long: tuple[tuple[int, Term | NaryTerm], ...]
    texts: tuple[str, ...]

    def all_texts(self) -> Iterator[str]:
        """The whole of it as text."""
        yield from self.rows.texts()
        yield from (f"{number} {_expression(form)}" for number, form in self.long)
        yield from self.texts

    def into(self, engine: AnyEngine) -> None:
        """Load it into an engine, which holds :data:`~esat.egraph.language.term_rows.ROW_TABLES`.

        Term ``k`` becomes the class ``(N k)``; its dtype, broadcast word and value, where known, come with
        it, and the sizes of its axes where there are sums over axes to compare
        (:mod:`esat.egraph.analyses.dims`).
        """
        self.rows.load(engine)
        for number, form in self.long:
            if isinstance(form, NaryTerm):
                engine.unite_multisets("N", number, form.constructor, (form.above, form.below))
            else:
                engine.execute(f"(union (N {number}) {_expression(form)})")
        for text in self.texts:
            engine.execute(text)

    def beyond(self, known: Loading) -> Loading:
        """What there is to load where something is loaded that this begins with."""
        long, texts = set(known.long), set(known.texts)
        return Loading(
            self.rows.beyond(known.rows),
            tuple(one for one in self.long if one not in long),
            tuple(text for text in self.texts if text not in texts),
        )


def loading(graph: TermGraph, plan: LoadPlan) -> Loading:
    """How to load a DAG in the forms of a plan."""
    sized = _adds_sums_over_axes(graph.terms)
    rows = TermRows()
    long: list[tuple[int, Term | NaryTerm]] = []
    for number, form in enumerate(plan.forms):
        if form is not None:
            if not _add_row(rows, number, form, graph.types[number]):
                long.append((number, form))
            if sized:
                _add_sizes(rows, number, graph.types[number])
    return Loading(rows, tuple(long), tuple(_known(graph, plan)))


def load(engine: AnyEngine, graph: TermGraph, plan: LoadPlan) -> None:
    """Load a DAG into an engine."""
    loading(graph, plan).into(engine)


def _add_row(rows: TermRows, number: int, form: Term | NaryTerm, type: TermType) -> bool:
    """Add a term's row; whether all of the term is in it."""
    if type.value is not None:
        rows.values.append(f"{number}\t{float(type.value)!r}")
    if isinstance(form, NaryTerm):
        count, split = len(form.above) + len(form.below), len(form.above)
        if count <= COLUMNS:
            action = nary_action(form.constructor, split, count)
            rows.add(number, type.dtype, type.broadcast, action, (*form.above, *form.below))
            return True
    elif form.constructor == "K":
        rows.add(number, type.dtype, type.broadcast)
        rows.constants.append(f"{number}\t{float(form.attributes[0])!r}\t{int(form.attributes[1])}")
        return True
    elif len(form.operands) + len(form.attributes) <= COLUMNS and not any(
        isinstance(attribute, float) for attribute in form.attributes
    ):
        action = term_action(form.constructor, len(form.operands), len(form.attributes))
        rows.add(number, type.dtype, type.broadcast, action, (*form.operands, *map(int, form.attributes)))
        return True
    rows.add(number, type.dtype, type.broadcast)
    return False


@cache
def nary_action(constructor: str, above: int, count: int) -> str:
    """What makes a row a sum or product of so many operands."""
    operands = [f"(N {name})" for name in VARIABLES[:count]]
    sides = (" ".join(["multiset-of", *side]) for side in (operands[:above], operands[above:]))
    return f"(union (N n) ({constructor} {' '.join(f'({side})' for side in sides)}))"


@cache
def term_action(constructor: str, operands: int, attributes: int) -> str:
    """What makes a row a term of so many operands and literals."""
    parts = [f"(N {name})" for name in VARIABLES[:operands]]
    return f"(union (N n) ({' '.join([constructor, *parts, *VARIABLES[operands : operands + attributes]])}))"


def _add_sizes(rows: TermRows, number: int, type: TermType) -> None:
    # What comes after the axes, of a sparse matrix, is no size of an axis.
    for axis, size in enumerate(type.shape[: type.rank]):
        if size != 1:
            known = isinstance(size, int)
            action = f"(union (dim (N n) x0) {'(DK x1)' if known else '(Size x1 x2)'})"
            numbers = (axis, size) if isinstance(size, int) else (axis, *size)
            rows.add(number, type.dtype, type.broadcast, action, numbers)


def _known(graph: TermGraph, plan: LoadPlan) -> Iterator[str]:
    """Programs that tell what is known of terms beside their types."""
    for left, right in graph.equal:
        yield f"(union (N {left}) (N {right}))"
    if graph.structured:
        yield f"({WANTED})"
    for number, fact in graph.facts:
        if plan.forms[number] is not None:
            yield (
                f"({fact} (N {number}))" if fact in (*NUMBERS, *RANGES) else f"(set ({fact} (N {number})) ())"
            )


def _adds_sums_over_axes(terms: Sequence[Term]) -> bool:
    """Whether two sums over axes, or multiples or views of them, are added somewhere."""
    none, several = -1, -2
    carried: list[int] = []
    for number, term in enumerate(terms):
        if term.constructor == "ReduceSum":
            carried.append(number)
            continue
        found = {carried[operand] for operand in term.operands} - {none}
        if not found or term.constructor not in _CARRYING:
            carried.append(none)
            continue
        value = found.pop() if len(found) == 1 else several
        if value == several and term.constructor in _SUMS:
            return True
        carried.append(value)
    return False


def _expression(form: Term | NaryTerm) -> str:
    if isinstance(form, NaryTerm):
        return f"({form.constructor} {_multiset(form.above)} {_multiset(form.below)})"
    operands = [f"(N {operand})" for operand in form.operands]
    return "(" + " ".join([form.constructor, *operands, *map(_literal, form.attributes)]) + ")"


def _multiset(numbers: Sequence[int]) -> str:
    return "(multiset-of" + "".join(f" (N {number})" for number in numbers) + ")"


def _literal(value: int | float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
