"""Structure of matrices as facts: ``structure.egg``, expanded, and what is known of the terms of a graph.

Rules may ask for ``(lower-triangular a)`` and the other facts of :mod:`esat.ops.inference.structure`,
written with hyphens. A rule that does is loaded only where something in the graph could have the fact: an
assumption, a constant, or an op that makes such matrices.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.egraph.analyses.matrices import BY_CONSTRUCTOR
from esat.egraph.language.terms import TermGraph
from esat.ops.inference.structure import RECORDS, STRUCTURES, ZERO_PATTERNS, pattern, structure_of
from esat.rules.language.macros import expand
from esat.rules.language.reader import read_forms, show
from esat.rules.language.rule_signature import Operator

WANTED = "structure/wanted"
"""Holds where the structure of matrices may matter at all."""
SAME, TRANSPOSED = "structure/same", "structure/transposed"
"""Relations of a matrix to one that has all facts that it has, and to its transpose."""
MASKS = ("structure/masks-below", "structure/masks-above")


def relation_of(fact: str) -> str:
    """The name that rules call a fact by."""
    return fact.replace("_", "-")


RELATIONS = tuple(map(relation_of, STRUCTURES))
"""Facts about matrices, as rules write them."""
STRUCTURE_OPERATORS = {name: Operator(("T",), "Unit") for name in RELATIONS}
"""What the rule compiler must know of them."""
STRUCTURE_TABLES = frozenset((*RELATIONS, *MASKS))
"""Tables without rows of which a rule that reads them has no effect."""


def _kept_by(op: str) -> tuple[str, ...]:
    return tuple(relation_of(fact.name) for fact in RECORDS.values() if op in fact.kept_by)


_CHOICES = {
    "ZEROS": tuple(map(relation_of, ZERO_PATTERNS)),
    "FACT": (*RELATIONS, *MASKS),
    "CASTS": _kept_by("cast"),
    "TRANSPOSES": _kept_by("transpose"),
    "INVERSES": _kept_by("inverse"),
    "PRODUCTS": _kept_by("product"),
    "SUMS": _kept_by("sum"),
    "MULTIPLES": _kept_by("multiple"),
    "CONGRUENCES": _kept_by("congruence"),
    "SIDE": ("p", "n"),
}
"""What a form with one of these words in it is written for (see the head of the file)."""
_CONDITION = re.compile(r"\((matrices|all) ([\w-]+) ([\w-]+)\)")
_MEANT = {
    "matrices": r"(> (bp \2) 0) (= 0 (& (bp \2) (<< 3 (- \3 2))))",
    "all": r'(= 0 (multiset-length (unstable-multiset-filter-not (unstable-fn "\2") \3)))',
}
"""What conditions mean that have names in the file."""
STRUCTURAL = frozenset(BY_CONSTRUCTOR)
"""Constructors that make the structure of matrices matter."""
_LARGEST_CONSTANT = 1 << 22
"""Elements up to which constants are looked at."""


def structure_program() -> str:
    """Declarations and rules, to be loaded after the layer of n-ary sums and products."""
    return "\n".join(
        _CONDITION.sub(lambda found: found.expand(_MEANT[found[1]]), form) for form in structure_forms()
    )


def structure_forms() -> Iterator[str]:
    """What the program consists of, its conditions (``matrices``, ``all``) by name."""
    source = resources.files("esat.egraph.analyses").joinpath("structure.egg").read_text(encoding="utf-8")
    for form in read_forms(source, "structure.egg"):
        yield from _instances(show(expand(form)))
    for fact, structure in RECORDS.items():
        for other in structure.implies:
            floats = " (float-dtype (dt e))" * (RECORDS[other].is_real and not structure.is_real)
            yield _rule(
                f"({relation_of(fact)} e){floats}", other, f"{relation_of(fact)}-is-{relation_of(other)}"
            )
        if structure.transposed:
            body = f"(structure/transposed e a) ({relation_of(fact)} a)"
            yield _rule(body, structure.transposed, f"transposed-{relation_of(fact)}")


def _rule(body: str, fact: str, name: str) -> str:
    return f'(rule ({body}) ((set ({relation_of(fact)} e) ())) :ruleset esat-known :name "{name}")'


def _instances(form: str) -> Iterator[str]:
    """The forms one form of the file stands for (see its head)."""
    for placeholder, choices in _CHOICES.items():
        if re.search(rf"\b{placeholder}\b", form):
            for choice in choices:
                yield from _instances(re.sub(rf"\b{placeholder}\b", choice, form))
            return
    yield form


def given_tables(terms: TermGraph) -> Collection[str]:
    """Tables that hold rows once the terms are loaded, besides those of their constructors."""
    facts = {fact for _, fact in terms.facts}
    return {WANTED, *facts} if terms.structured else facts


def with_structure(terms: TermGraph) -> TermGraph:
    """The terms, with what constants and types show of matrices, if anything in them makes that matter."""
    assumed = any(fact in STRUCTURE_TABLES for _, fact in terms.facts)
    if not assumed and STRUCTURAL.isdisjoint(term.constructor for term in terms.terms):
        return terms
    facts = dict.fromkeys((*terms.facts, *_constant_facts(terms), *_square_terms(terms)))
    return replace(terms, facts=tuple(facts), structured=True)


def _constant_facts(terms: TermGraph) -> Iterator[tuple[int, str]]:
    for number, term in enumerate(terms.terms):
        if term.constructor == "Array":
            data = terms.arrays[int(term.attributes[0])].data
            yield from ((number, table) for table in tables_of(data))


def tables_of(data: NDArray[Any]) -> Iterator[str]:
    """What a constant shows of the structure of matrices, as rules call it; of a mask what it is true of."""
    if data.ndim < 2 or 1 in data.shape[-2:] or not 0 < data.size <= _LARGEST_CONSTANT:
        return
    yield from map(relation_of, structure_of(data))
    if data.dtype == np.bool_:
        for mask, fact in zip(MASKS, ("upper_triangular", "lower_triangular"), strict=True):
            if data[..., ~pattern(fact, *data.shape[-2:])].all():
                yield mask


def _square_terms(terms: TermGraph) -> Iterator[tuple[int, str]]:
    for number, type in enumerate(terms.types):
        if len(type.shape) >= 2 and type.shape[-1] == type.shape[-2] != 1:
            yield number, "square"
