"""Which axes of classes have the same length."""

from __future__ import annotations

import numpy as np

from esat.egraph.algebra.backend import compiled
from esat.egraph.algebra.coding import Coded, ranks_of
from esat.egraph.algebra.reading import Integers, Reading
from esat.egraph.terms import TermGraph
from esat.records import record


@record(frozen=True, eq=False)
class Symbols:
    """Lengths of the axes of loaded terms, by what they are called.

    Attributes
    ----------
    terms, axes, names
        int64, of equal length: an axis of a term, and a number for its length. Equal numbers, equal lengths.
    count
        How many numbers there are.
    """

    terms: Integers
    axes: Integers
    names: Integers
    count: int

    @classmethod
    def of(cls, graph: TermGraph) -> Symbols:
        """The lengths that are known of a graph's terms."""
        known: dict[object, int] = {}
        found = [
            (number, axis, known.setdefault(size, len(known)))
            for number, type in enumerate(graph.types)
            for axis, size in enumerate(type.shape[: type.rank])
        ]
        terms, axes, names = np.ascontiguousarray(np.array(found, np.int64).reshape(-1, 3).T)
        return cls(terms, axes, names, len(known))


def lengths(reading: Reading, coded: Coded, symbols: Symbols) -> tuple[Integers, int]:
    """For each axis of each class a number: equal for axes of which it is known that they are of one length.

    Returns
    -------
    int64 ``(classes * ranks,)``, and how many ranks there are.
    """
    ranks = int(ranks_of(reading.word).max(initial=0))
    backend = compiled()
    first = reading.classes * ranks
    parent = np.arange(first + symbols.count)
    classes = reading.class_of_term(symbols.terms)
    is_known = (classes >= 0) & (symbols.axes < ranks)
    axes = classes[is_known] * ranks + symbols.axes[is_known]
    backend.unite_pairs(parent, axes, first + symbols.names[is_known])
    backend.unite(coded.nodes, coded.is_pointwise, reading.word, ranks, parent)
    backend.find_all(parent)
    return parent[:first], ranks
