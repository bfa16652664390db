"""The small arrays that stand for the values of classes in one field."""

from __future__ import annotations

from esat.base.native import Arrays, Integers
from esat.base.records import record


@record(frozen=True, eq=False)
class Space(Arrays):
    """The small arrays that stand for the values of classes.

    Attributes
    ----------
    chosen
        By class, the e-node whose value is the class's.
    sizes
        Of the axes, equally many for each class.
    count
        Elements of each class.
    offset
        By e-node, where its elements begin; -1 for e-nodes that have no value.
    constants
        The elements of the field that constants are.
    weights, weight
        Of the indices of axes, one after the other; by axis of a class, where those of the axis begin.
    values
        All elements.
    exponents
        The same in the field of exponents; empty in that field itself, and where nothing has an exponent.
    bases
        What powers with such exponents are taken of.
    tables
        By what has a table, where that begins, then the tables: of gathers, by element, an operand and the
        number of the element in it, and another two, which are negative where nothing is added; of others
        the elements.
    index, other
        Room, by axis.
    """

    chosen: Integers
    sizes: Integers
    count: Integers
    offset: Integers
    constants: Integers
    weights: Integers
    weight: Integers
    values: Integers
    exponents: Integers
    bases: Integers
    tables: Integers
    index: Integers
    other: Integers
