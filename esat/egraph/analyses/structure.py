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

import numpy as np

from esat.egraph.analyses.matrices import BY_CONSTRUCTOR
from esat.egraph.language.terms import TermGraph
from esat.ops.inference.structure import STRUCTURES, ZERO_PATTERNS, pattern, structure_of
from esat.rules.language.macros import expand
from esat.rules.language.reader import read_forms, show
from esat.rules.language.rule_signature import Operator

WANTED = "structure/wanted"
"""Holds where the structure of matrices may matter at all."""
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

_CHOICES = {
    "ZEROS": tuple(map(relation_of, ZERO_PATTERNS)),
    "FACT": (*RELATIONS, *MASKS),
    "SIDE": ("p", "n"),
}
STRUCTURAL = frozenset(BY_CONSTRUCTOR)
"""Constructors that make the structure of matrices matter."""
_LARGEST_CONSTANT = 1 << 22
"""Elements up to which constants are looked at."""


def structure_program() -> str:
    """Declarations and rules, to be loaded after the layer of n-ary sums and products."""
    source = resources.files("esat.egraph.analyses").joinpath("structure.egg").read_text(encoding="utf-8")
    forms = (show(expand(form)) for form in read_forms(source, "structure.egg"))
    return "\n".join(text for form in forms for text in _instances(form))


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
        if term.constructor != "Array":
            continue
        data = terms.arrays[int(term.attributes[0])].data
        if data.ndim < 2 or 1 in data.shape[-2:] or not 0 < data.size <= _LARGEST_CONSTANT:
            continue
        yield from ((number, relation_of(fact)) for fact in structure_of(data))
        if data.dtype == np.bool_:
            for mask, fact in zip(MASKS, ("upper_triangular", "lower_triangular"), strict=True):
                if data[..., ~pattern(fact, *data.shape[-2:])].all():
                    yield number, mask


def _square_terms(terms: TermGraph) -> Iterator[tuple[int, str]]:
    for number, type in enumerate(terms.types):
        if len(type.shape) >= 2 and type.shape[-1] == type.shape[-2] != 1:
            yield number, "square"
