"""The e-nodes of an e-graph as loops take them, which :mod:`esat.base.native` compiles."""

from __future__ import annotations

from esat.base.native import Arrays, Integers
from esat.base.records import record

(
    OPAQUE,
    POINTWISE,
    FUNCTION,
    CONSTANT,
    COPY,
    SHUFFLE,
    REDUCE,
    CONTRACT,
    DIAGONAL,
    ON_DIAGONAL,
    LENGTH,
    GATHER,
    GIVEN,
    CONJUGATE,
    FILL,
    SUM,
    PRODUCT,
    POWER,
) = range(18)
"""What an e-node does with the values of its operands.

``OPAQUE``: something unknown with all of them. ``POINTWISE``: something unknown, element by element.
``FUNCTION``: what :mod:`esat.egraph.algebra.finite_fields.transcendental` knows of, element by element.
``COPY``: the first operand. ``SHUFFLE``, ``REDUCE``, ``CONTRACT``: a DimShuffle, a sum over axes, a product
of matrices. ``DIAGONAL``, ``ON_DIAGONAL``: the diagonal of a matrix, the matrix of a diagonal. ``LENGTH``: of
an axis. ``GATHER``: elements of operands, or sums of two, at places in a table. ``GIVEN``:
elements of a table. ``CONJUGATE``: the conjugate
of complex numbers, or a part of them.

Then the ring operations. ``FILL``: the second operand in the shape of the first. ``SUM``, ``PRODUCT``: of the
first operands, minus or divided by the others. ``POWER``: a fixed integer power.
"""


SIZE = 3
"""The number of absolute values among what is made of complex numbers and their conjugates."""


@record(frozen=True, eq=False)
class Nodes(Arrays):
    """The e-nodes of an e-graph.

    Attributes
    ----------
    class_of, start, operands
        As of :class:`~esat.egraph.algebra.finite_fields.reading.Reading`.
    code
        What each does.
    number
        Of sums and products how many operands are positive; of powers the exponent; of constants their place
        among the constants; of functions which one. Of what moves axes the word, the mask, the rank or the
        axis; of what has a table which one; 0 for conjugates, 1 for real parts, 2 for
        imaginary ones, ``SIZE`` for absolute values.
    seed
        Stands for the operator, the attributes and the dtype: 62 bits.
    owner
        By operand, the e-node that has it.
    divides
        1 for what divides by what is no constant, or by zero: where its other factors are zero, so it is only
        where that is not.
    is_parallel
        1 for what does with conjugates what it does, and conjugates the result.
    parent_start, parents
        The e-nodes that have a class as an operand, once for each time they have it.
    """

    class_of: Integers
    start: Integers
    operands: Integers
    code: Integers
    number: Integers
    seed: Integers
    owner: Integers
    divides: Integers
    is_parallel: Integers
    parent_start: Integers
    parents: Integers
