"""From a term DAG to egglog text, with sums and products flattened on the way.

Chains of additions and multiplications become one n-ary term each, as long as the inner terms are
used once: unrestricted flattening through shared terms copies them into every user. What is shared
stays a term of its own, with a small budget in the rules (``flatten-budget`` in ``core.egg``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from esat.egraph.structure import WANTED
from esat.egraph.terms import Term, TermGraph, TermType
from esat.graph.types import DTYPES
from esat.ops.structure import SIGNS

TERMS_PER_TEXT = 8
"""egglog compiles an action in time that grows faster than its length; an action each has an overhead."""

LOADING_RULES = "esat-load"
LOADING = """
(sort Loading)
(sort Loadings (Vec Loading))
(constructor Loaded (T T i64 i64) Loading :unextractable)   ; class, term, dtype, broadcast word
(constructor LoadedValue (T f64) Loading :unextractable)
(rule ((= l (Loaded n t d b))) ((union n t) (set (dt n) d) (set (bp n) b) (delete (Loaded n t d b)))
      :ruleset esat-load :name "load-term")
(rule ((= l (LoadedValue n v))) ((set (val n) v) (delete (LoadedValue n v)))
      :ruleset esat-load :name "load-value")
"""
"""What loads terms: rules would stay in an engine for good, so terms come as rows that rules take over."""

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


@dataclass(frozen=True, slots=True)
class NaryTerm:
    """A flattened sum or product: the numbers of its operands above and below."""

    constructor: str
    above: tuple[int, ...]
    below: tuple[int, ...]


@dataclass(frozen=True, slots=True)
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


def load_text(graph: TermGraph, plan: LoadPlan) -> Iterator[str]:
    """Programs that load the DAG, to be run in order: a few terms each. The engine holds :data:`LOADING`.

    Term ``k`` becomes the class ``(N k)``; its dtype, broadcast word and value, where known, come with it,
    and the sizes of its axes where there are sums over axes to compare (:mod:`esat.egraph.dims`).
    """
    sized = _adds_sums_over_axes(graph.terms)
    numbers = [number for number, form in enumerate(plan.forms) if form is not None]
    for first in range(0, len(numbers), TERMS_PER_TEXT):
        members = numbers[first : first + TERMS_PER_TEXT]
        yield f"(vec-of {' '.join(_loading(number, graph, plan, sized) for number in members)})"
    yield f"(run {LOADING_RULES} 1)"
    for left, right in graph.equal:
        yield f"(union (N {left}) (N {right}))"
    if graph.structured:
        yield f"({WANTED})"
    for number, fact in graph.facts:
        if plan.forms[number] is not None:
            yield f"({fact} (N {number}))" if fact in SIGNS else f"(set ({fact} (N {number})) ())"


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


def _loading(number: int, graph: TermGraph, plan: LoadPlan, sized: bool) -> str:
    type = graph.types[number]
    # The class comes before the term, and so in the order of the numbers: rules prefer what is older.
    rows = [f"(Loaded (N {number}) {_expression(number, graph, plan)} {type.dtype} {type.broadcast})"]
    if type.value is not None:
        rows.append(f"(LoadedValue (N {number}) {float(type.value)!r})")
    if sized:
        # What comes after the axes, of a sparse matrix, is no size of an axis.
        for axis, size in enumerate(type.shape[: type.rank]):
            if size != 1:
                known = f"(DK {size})" if isinstance(size, int) else f"(Size {size[0]} {size[1]})"
                rows.append(f"(LoadedSize (N {number}) {axis} {known})")
    return " ".join(rows)


def _expression(number: int, graph: TermGraph, plan: LoadPlan) -> str:
    form = plan.forms[number]
    if isinstance(form, NaryTerm):
        return f"({form.constructor} {_multiset(form.above)} {_multiset(form.below)})"
    term = graph.terms[number]
    operands = [f"(N {operand})" for operand in term.operands]
    return "(" + " ".join([term.constructor, *operands, *map(_literal, term.attributes)]) + ")"


def _multiset(numbers: Sequence[int]) -> str:
    return "(multiset-of" + "".join(f" (N {number})" for number in numbers) + ")"


def _literal(value: int | float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
