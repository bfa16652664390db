"""Elements of results that have axes other than their operands': loops that :mod:`esat.base.native` compiles.

A sum over an axis is one with weights, the same wherever the axis is summed over, and the length of the axis
is their sum. What holds for all weights holds for all lengths: a matrix with equal rows is one with fewer
rows and larger weights.
"""

from __future__ import annotations

from esat.egraph.algebra.finite_fields.coded import CONTRACT, DIAGONAL, ON_DIAGONAL, REDUCE, SHUFFLE, Nodes
from esat.egraph.algebra.finite_fields.modular import power, product
from esat.egraph.algebra.finite_fields.space import Space
from esat.rules.language.macros import INSERTED


def fits(nodes: Nodes, space: Space, node: int, ranks: int) -> bool:
    """Whether the lengths of the axes of an e-node and its operands are known to be as its op needs them."""
    code = nodes.code[node]
    if code == SHUFFLE:
        return fits_shuffle(nodes, space, node, ranks)
    if code == CONTRACT:
        return fits_product(nodes, space, node, ranks)
    klass = nodes.class_of[node] * ranks
    below = nodes.operands[nodes.start[node]] * ranks
    sizes = space.sizes
    if code == DIAGONAL:
        last = nodes.number[node] - 1
        if last < 1 or last >= ranks or sizes[below + last] != sizes[below + last - 1]:
            return False
        return bool(sizes[klass + last - 1] == sizes[below + last])
    if code == ON_DIAGONAL:
        return bool(ranks > 1 and sizes[klass] == sizes[klass + 1] and sizes[below] == sizes[klass])
    if code == REDUCE:
        for axis in range(ranks):
            is_summed = (nodes.number[node] >> axis) & 1 == 1
            if sizes[klass + axis] != (1 if is_summed else sizes[below + axis]):
                return False
    return True


def fits_shuffle(nodes: Nodes, space: Space, node: int, ranks: int) -> bool:
    """Whether each axis of a DimShuffle has the length of the axis that it is."""
    klass = nodes.class_of[node] * ranks
    below = nodes.operands[nodes.start[node]] * ranks
    word = nodes.number[node]
    rank = (word >> 36) & 15
    if rank > ranks or (word >> 40) & 15 > ranks:
        return False
    for axis in range(rank):
        source = (word >> (4 * axis)) & 15
        size = 1
        if source != INSERTED:
            size = space.sizes[below + source]
        if space.sizes[klass + axis] != size:
            return False
    return True


def fits_product(nodes: Nodes, space: Space, node: int, ranks: int) -> bool:
    """Whether the matrices of a product fit, and so does the product."""
    klass = nodes.class_of[node] * ranks
    left = nodes.operands[nodes.start[node]] * ranks
    right = nodes.operands[nodes.start[node] + 1] * ranks
    column = nodes.number[node] - 1
    if column < 1 or column >= ranks or space.sizes[left + column] != space.sizes[right + column - 1]:
        return False
    if space.sizes[klass + column] != space.sizes[right + column]:
        return False
    return bool(space.sizes[klass + column - 1] == space.sizes[left + column - 1])


def unravel(space: Space, klass: int, ranks: int, element: int) -> None:
    """Take the number of an element apart into its indices."""
    rest = element
    for axis in range(ranks - 1, -1, -1):
        size = space.sizes[klass * ranks + axis]
        space.index[axis] = rest % size
        rest = rest // size


def place_of(space: Space, klass: int, ranks: int) -> int:
    """The number of the element at indices, of which those of axes of length 1 are taken for 0."""
    place = 0
    for axis in range(ranks):
        size = space.sizes[klass * ranks + axis]
        place = place * size + (space.other[axis] if size > 1 else 0)
    return place


def shuffled(nodes: Nodes, space: Space, node: int, ranks: int, element: int) -> int:
    """An element of a DimShuffle: axis ``j`` of the result is the axis in nibble ``j`` of its word."""
    below = nodes.operands[nodes.start[node]]
    word = nodes.number[node]
    unravel(space, nodes.class_of[node], ranks, element)
    for axis in range(ranks):
        space.other[axis] = 0
    for axis in range((word >> 36) & 15):
        source = (word >> (4 * axis)) & 15
        if source != INSERTED and axis < ranks:
            space.other[source] = space.index[axis]
    return int(space.values[space.offset[space.chosen[below]] + place_of(space, below, ranks)])


def sum_axes(nodes: Nodes, space: Space, node: int, ranks: int, prime: int, inverse: float) -> None:
    """All elements of a sum over the axes of a mask, which keep the length 1."""
    klass = nodes.class_of[node]
    below = nodes.operands[nodes.start[node]]
    source = space.offset[space.chosen[below]]
    base = space.offset[node]
    for element in range(space.count[klass]):
        space.values[base + element] = 0
    for element in range(space.count[below]):
        unravel(space, below, ranks, element)
        value = int(space.values[source + element])
        for axis in range(ranks):
            space.other[axis] = space.index[axis]
            if (nodes.number[node] >> axis) & 1 == 1:
                weight = space.weights[space.weight[below * ranks + axis] + space.index[axis]]
                value = product(value, weight, prime, inverse)
        place = base + place_of(space, klass, ranks)
        total = space.values[place] + value
        space.values[place] = total - prime if total >= prime else total


def contracted(
    nodes: Nodes, space: Space, node: int, ranks: int, element: int, prime: int, inverse: float
) -> int:
    """An element of a product of matrices, which are the last two axes."""
    left = nodes.operands[nodes.start[node]]
    right = nodes.operands[nodes.start[node] + 1]
    column = nodes.number[node] - 1
    unravel(space, nodes.class_of[node], ranks, element)
    for axis in range(ranks):
        space.other[axis] = space.index[axis]
    of_row = space.index[column - 1]
    of_column = space.index[column]
    summed = left * ranks + column
    total = 0
    for place in range(space.sizes[summed]):
        space.other[column - 1] = of_row
        space.other[column] = place
        value = space.values[space.offset[space.chosen[left]] + place_of(space, left, ranks)]
        space.other[column - 1] = place
        space.other[column] = of_column
        factor = space.values[space.offset[space.chosen[right]] + place_of(space, right, ranks)]
        value = product(value, factor, prime, inverse)
        total += product(value, space.weights[space.weight[summed] + place], prime, inverse)
        if total >= prime:
            total -= prime
    return total


def diagonal(nodes: Nodes, space: Space, node: int, ranks: int, element: int) -> int:
    """An element of the main diagonal of square matrices, the last two axes of the operand."""
    below = nodes.operands[nodes.start[node]]
    last = nodes.number[node] - 1
    unravel(space, nodes.class_of[node], ranks, element)
    for axis in range(ranks):
        space.other[axis] = space.index[axis]
    space.other[last] = space.index[last - 1]
    return int(space.values[space.offset[space.chosen[below]] + place_of(space, below, ranks)])


def on_diagonal(
    nodes: Nodes, space: Space, node: int, ranks: int, element: int, prime: int, inverse: float
) -> int:
    """An element of the matrix that has a vector on its diagonal: a product with it multiplies by the vector.

    So that weights cancel in products with it, they are divided out here.
    """
    klass = nodes.class_of[node]
    below = nodes.operands[nodes.start[node]]
    unravel(space, klass, ranks, element)
    row = space.index[0]
    if row != space.index[1]:
        return 0
    weight = space.weights[space.weight[klass * ranks] + row]
    value = space.values[space.offset[space.chosen[below]] + (row if space.count[below] > 1 else 0)]
    return product(int(value), power(weight, prime - 2, prime, inverse), prime, inverse)


def gathered(nodes: Nodes, space: Space, node: int, element: int, prime: int) -> int:
    """An element of what is put together of parts of the operands."""
    entry = space.tables[nodes.number[node]] + 4 * element
    first = nodes.operands[nodes.start[node] + space.tables[entry]]
    result = space.values[space.offset[space.chosen[first]] + space.tables[entry + 1]]
    if space.tables[entry + 2] >= 0:
        second = nodes.operands[nodes.start[node] + space.tables[entry + 2]]
        result += space.values[space.offset[space.chosen[second]] + space.tables[entry + 3]]
        if result >= prime:
            result -= prime
    return int(result)


def given(nodes: Nodes, space: Space, node: int, element: int) -> int:
    """An element of a table."""
    return int(space.tables[space.tables[nodes.number[node]] + element])


def length(nodes: Nodes, space: Space, node: int, ranks: int, prime: int) -> int:
    """The length of an axis: the sum of its weights."""
    below = nodes.operands[nodes.start[node]]
    axis = nodes.number[node]
    if axis >= ranks:
        return 1
    total = 0
    for place in range(space.sizes[below * ranks + axis]):
        total += space.weights[space.weight[below * ranks + axis] + place]
        if total >= prime:
            total -= prime
    return total
