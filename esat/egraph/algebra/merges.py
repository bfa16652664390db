"""Classes that are equal: of one value in both fields, and of one dtype and shape."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from esat.base.union_find import UnionFind
from esat.egraph.algebra.finite_fields.backend import compiled
from esat.egraph.algebra.finite_fields.coded import FILL, SHUFFLE
from esat.egraph.algebra.finite_fields.fields import FIELDS, LARGEST_PART, constant_of
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.algebra.finite_fields.reading import Integers


def equal_classes(found: Fingerprints) -> list[list[int]]:
    """Groups of classes that have a value in common, each in the order of what they are."""
    reading, nodes = found.reading, found.evaluated
    classes = reading.class_of[nodes]
    # A fill has the value of what it is filled with: all there is to know of it is known of the class.
    is_own = found.chosen[classes] == nodes
    is_kept = (reading.dtype[classes] > 0) & (is_own | (found.coded.nodes.code[nodes] != FILL))
    nodes, classes = nodes[is_kept], classes[is_kept]
    columns = [*found.values[:, nodes], found.shape[classes]]
    order = np.lexsort(columns)
    equal = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        equal &= column[order[1:]] == column[order[:-1]]
    equal &= classes[order[1:]] != classes[order[:-1]]
    if not equal.any():
        return []
    groups, rank = UnionFind[int](), found.rank
    pairs = [(int(classes[order[place]]), int(classes[order[place + 1]])) for place in np.flatnonzero(equal)]
    for pair in pairs:
        groups.unite(*pair)
    members = sorted({klass for pair in pairs for klass in pair}, key=rank.__getitem__)
    return groups.classes(members)


def fits(value: Fraction, dtype: str) -> bool:
    """Whether a number is one of a dtype, up to rounding."""
    if np.dtype(dtype).kind in "fc":
        return True
    limits = np.iinfo(dtype)
    return value.denominator == 1 and limits.min <= value <= limits.max


def constants(found: Fingerprints) -> Iterator[tuple[int, Fraction]]:
    """Classes that turn out to be a number, which they are not known to be."""
    reading, codes = found.reading, found.coded.nodes.code
    classes = found.order
    code = codes[found.chosen[classes]]
    is_computed = (code >= SHUFFLE) & (code != FILL)
    classes = classes[is_computed & (reading.dtype[classes] > 0) & ~found.coded.is_constant[classes]]
    elements = np.ascontiguousarray(found.values[0][found.chosen[classes]])
    is_small: Integers = np.zeros(len(classes), np.int64)
    compiled().small_fractions(elements, FIELDS[0].prime, LARGEST_PART, is_small)
    for klass in sorted(classes[is_small == 1].tolist(), key=found.rank.__getitem__):
        value = constant_of(found.value_of(klass))
        if value is not None:
            yield klass, value
