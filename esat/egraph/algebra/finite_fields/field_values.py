"""The values of e-nodes in a finite field: loops that :mod:`esat.base.native` compiles."""

from __future__ import annotations

from esat.base.native import Integers
from esat.egraph.algebra.finite_fields.coded import (
    CONJUGATE,
    CONSTANT,
    CONTRACT,
    COPY,
    DIAGONAL,
    FILL,
    FUNCTION,
    GATHER,
    GIVEN,
    ON_DIAGONAL,
    OPAQUE,
    POWER,
    PRODUCT,
    REDUCE,
    SHUFFLE,
    SIZE,
    SUM,
    Nodes,
)
from esat.egraph.algebra.finite_fields.modular import mixed, power, product
from esat.egraph.algebra.finite_fields.space import Space
from esat.egraph.algebra.finite_fields.tensors import (
    contracted,
    diagonal,
    fits,
    gathered,
    given,
    length,
    on_diagonal,
    shuffled,
    sum_axes,
)
from esat.egraph.algebra.finite_fields.transcendental import divided, value_of

CONJUGATED = 0x27D4EB2F165667C
"""Tells hashes of conjugates from others."""


def evaluate(
    nodes: Nodes, space: Space, conjugate: Space, order: Integers, prime: int, inverse: float, seed: int
) -> None:
    """The elements of e-nodes in the order given, operands first, in one field.

    Complex numbers are evaluated twice, where conjugates matter: with a root of -1 and independent elements
    for what is unknown, and with the other root and other elements. The conjugate of the one is the other.

    Parameters
    ----------
    nodes, order
        What to evaluate.
    space, conjugate
        Receive the elements, and those of the conjugates: at the same place where these are not needed.
    prime, inverse, seed
        Those of the field.
    """
    for place in range(len(order)):
        node = order[place]
        evaluate_node(nodes, space, conjugate, node, prime, inverse, seed, seed)
        if conjugate.offset[node] != space.offset[node]:
            other = seed if nodes.is_parallel[node] == 1 else seed ^ CONJUGATED
            evaluate_node(nodes, conjugate, space, node, prime, inverse, seed ^ CONJUGATED, other)


def evaluate_node(
    nodes: Nodes,
    space: Space,
    conjugate: Space,
    node: int,
    prime: int,
    inverse: float,
    seed: int,
    seed_of_functions: int,
) -> None:
    """The elements of one e-node."""
    ranks = len(space.sizes) // max(len(space.count), 1)
    base = space.offset[node]
    count = space.count[nodes.class_of[node]]
    code = nodes.code[node]
    if code > COPY and code < FILL and not fits(nodes, space, node, ranks):
        code = OPAQUE
    if code == REDUCE:
        sum_axes(nodes, space, node, ranks, prime, inverse)
    elif code == OPAQUE:
        word = mixed(nodes.seed[node] ^ seed)
        for edge in range(nodes.start[node], nodes.start[node + 1]):
            below = nodes.operands[edge]
            other = space.offset[space.chosen[below]]
            for element in range(space.count[below]):
                word = mixed(word ^ space.values[other + element])
        for element in range(count):
            space.values[base + element] = mixed(word ^ element) % prime
    else:
        for element in range(count):
            if code < CONSTANT or code >= FILL:
                value = pointwise(nodes, space, conjugate, node, element, prime, inverse)
            elif code == CONJUGATE:
                value = part(nodes, space, conjugate, node, element, prime, inverse)
            else:
                value = moved(nodes, space, node, ranks, element, prime, inverse)
            if value < 0:
                value = unknown(nodes, space, node, element, seed_of_functions) % prime
            space.values[base + element] = value


def part(
    nodes: Nodes, space: Space, conjugate: Space, node: int, element: int, prime: int, inverse: float
) -> int:
    """One element of conjugates, parts or absolute values of complex numbers."""
    own = operand(nodes, space, nodes.start[node], element)
    other = operand(nodes, conjugate, nodes.start[node], element)
    if nodes.number[node] == 0:
        return other
    if nodes.number[node] == 1:
        return product((own + other) % prime, (prime + 1) >> 1, prime, inverse)
    if nodes.number[node] == SIZE:
        return mixed(product(own, other, prime, inverse)) % prime
    double = (space.bases[2] + space.bases[2]) % prime
    return divided((own - other + prime) % prime, double, prime, inverse)


def mark_exponents(nodes: Nodes, chosen: Integers, order: Integers, is_needed: Integers) -> None:
    """Mark the classes that functions have for operands, and all that these are computed from.

    Parameters
    ----------
    nodes
        The e-nodes.
    chosen, order
        The e-node of each class, and the classes, operands first.
    is_needed
        By class, 0; receives 1 for those marked.
    """
    for node in range(len(nodes.code)):
        if nodes.code[node] == FUNCTION:
            for edge in range(nodes.start[node], nodes.start[node + 1]):
                is_needed[nodes.operands[edge]] = 1
    for place in range(len(order) - 1, -1, -1):
        klass = order[place]
        if is_needed[klass] == 1:
            node = chosen[klass]
            for edge in range(nodes.start[node], nodes.start[node + 1]):
                is_needed[nodes.operands[edge]] = 1


def moved(nodes: Nodes, space: Space, node: int, ranks: int, element: int, prime: int, inverse: float) -> int:
    """One element of an e-node that has other axes than its operands."""
    code = nodes.code[node]
    if code == CONSTANT:
        return int(space.constants[nodes.number[node]])
    if code == COPY:
        return operand(nodes, space, nodes.start[node], element)
    if code == SHUFFLE:
        return shuffled(nodes, space, node, ranks, element)
    if code == CONTRACT:
        return contracted(nodes, space, node, ranks, element, prime, inverse)
    if code == DIAGONAL:
        return diagonal(nodes, space, node, ranks, element)
    if code == ON_DIAGONAL:
        return on_diagonal(nodes, space, node, ranks, element, prime, inverse)
    if code == GATHER:
        return gathered(nodes, space, node, element, prime)
    if code == GIVEN:
        return given(nodes, space, node, element)
    return length(nodes, space, node, ranks, prime)


def pointwise(
    nodes: Nodes, space: Space, conjugate: Space, node: int, element: int, prime: int, inverse: float
) -> int:
    """One element of an e-node that does the same for all of them; -1 where arithmetic does not say it."""
    code = nodes.code[node]
    if code == FUNCTION and len(space.exponents) > 0:
        exponent = space.exponents[place(nodes, space, nodes.start[node], element)]
        other = space.exponents[place(nodes, space, nodes.start[node + 1] - 1, element)]
        bases = space.bases
        function = nodes.number[node]
        return value_of(function, exponent, other, bases[0], bases[1], bases[2], prime, inverse)
    if code == FILL:
        return operand(nodes, space, nodes.start[node] + 1, element)
    if code == SUM:
        return total(nodes, space, node, element, prime)
    if code == PRODUCT:
        return quotient(nodes, space, node, element, prime, inverse)
    if code == POWER:
        base = operand(nodes, space, nodes.start[node], element)
        exponent = nodes.number[node]
        below = space.chosen[nodes.operands[nodes.start[node]]]
        if exponent & 1 == 0 and nodes.code[below] == CONJUGATE and nodes.number[below] == SIZE:
            own = place(nodes, space, nodes.start[node], element) - space.offset[below]
            base = squared_size(nodes, space, conjugate, below, own, prime, inverse)
            exponent = exponent >> 1
        if exponent >= 0:
            return power(base, exponent, prime, inverse)
        if base != 0:
            return power(power(base, -exponent, prime, inverse), prime - 2, prime, inverse)
    return -1


def squared_size(
    nodes: Nodes, space: Space, conjugate: Space, node: int, element: int, prime: int, inverse: float
) -> int:
    """The square of one element of absolute values of complex numbers."""
    own = operand(nodes, space, nodes.start[node], element)
    return product(own, operand(nodes, conjugate, nodes.start[node], element), prime, inverse)


def total(nodes: Nodes, space: Space, node: int, element: int, prime: int) -> int:
    """One element of a sum."""
    result = 0
    first = nodes.start[node]
    for edge in range(first, nodes.start[node + 1]):
        value = operand(nodes, space, edge, element)
        result = result + value if edge - first < nodes.number[node] else result - value
        if result >= prime:
            result -= prime
        if result < 0:
            result += prime
    return result


def quotient(nodes: Nodes, space: Space, node: int, element: int, prime: int, inverse: float) -> int:
    """One element of a product; -1 where a divisor is zero.

    Zero divided by what may be zero is a number of its own, the same for equal divisors.
    """
    result = 1
    divisor = 1
    quotients = 1
    first = nodes.start[node]
    for edge in range(first, nodes.start[node + 1]):
        value = operand(nodes, space, edge, element)
        if edge - first < nodes.number[node]:
            result = product(result, value, prime, inverse)
            if is_quotient(nodes, space.chosen, nodes.operands[edge]):
                quotients = product(quotients, value, prime, inverse)
        else:
            divisor = product(divisor, value, prime, inverse)
    if divisor == 0:
        return -1
    if result == 0 and (nodes.divides[node] == 1 or quotients != 1):
        if quotients != 1:
            divisor = product(divisor, power(quotients, prime - 2, prime, inverse), prime, inverse)
        return 0 if divisor == 1 else mixed(divisor) % prime
    if divisor == 1:
        return result
    return product(result, power(divisor, prime - 2, prime, inverse), prime, inverse)


def is_quotient(nodes: Nodes, chosen: Integers, klass: int) -> bool:
    """Whether a class divides by what may be zero, behind views, sums over axes and powers."""
    node = chosen[klass]
    while nodes.divides[node] == 0:
        code = nodes.code[node]
        is_view = code >= COPY and code <= ON_DIAGONAL and code != CONTRACT
        is_view = is_view or code == CONJUGATE
        if is_view or code == POWER:
            below = nodes.operands[nodes.start[node]]
        elif code == FILL:
            below = nodes.operands[nodes.start[node] + 1]
        else:
            return False
        node = chosen[below]
    return True


def unknown(nodes: Nodes, space: Space, node: int, element: int, seed: int) -> int:
    """A hash for an element of what is no arithmetic, or of a quotient by what is zero everywhere."""
    word = mixed(nodes.seed[node] ^ seed)
    for edge in range(nodes.start[node], nodes.start[node + 1]):
        word = mixed(word ^ operand(nodes, space, edge, element))
    return word


def operand(nodes: Nodes, space: Space, edge: int, element: int) -> int:
    """The element of an operand that belongs to an element of the result, under broadcasting."""
    return int(space.values[place(nodes, space, edge, element)])


def place(nodes: Nodes, space: Space, edge: int, element: int) -> int:
    """Where that element is among all."""
    below = nodes.operands[edge]
    klass = nodes.class_of[nodes.owner[edge]]
    base = space.offset[space.chosen[below]]
    count = space.count[below]
    if count == 1:
        return int(base)
    if count == space.count[klass]:
        return int(base + element)
    ranks = len(space.sizes) // len(space.count)
    rest = element
    stride = 1
    for axis in range(ranks - 1, -1, -1):
        size = space.sizes[klass * ranks + axis]
        own = space.sizes[below * ranks + axis]
        if own > 1:
            base += stride * (rest % size)
            stride *= own
        rest = rest // size
    return int(base)


def condense(nodes: Nodes, space: Space, order: Integers, result: Integers) -> None:
    """A word for the value of each e-node: that of all its elements, or a hash of them."""
    for place in range(len(order)):
        node = order[place]
        base = space.offset[node]
        count = space.count[nodes.class_of[node]]
        word = mixed(space.values[base])  # else two elements and the same in the other order have one word
        differing = 0
        for element in range(1, count):
            differing += 1 if space.values[base + element] != space.values[base] else 0
            word = mixed(word ^ space.values[base + element])
        result[node] = word if differing > 0 else space.values[base]


def small_fractions(elements: Integers, prime: int, limit: int, is_small: Integers) -> None:
    """Which elements of a field are fractions of small numerator and denominator.

    By Euclid's algorithm, as :func:`~esat.egraph.algebra.finite_fields.fields.small_fraction`, of which the
    factors alternate in sign: here they are without.
    """
    for place in range(len(elements)):
        above = prime
        remainder = elements[place]
        unused = 0
        factor = 1
        while remainder > limit and factor <= limit:
            quotient = above // remainder
            rest = above - quotient * remainder
            above = remainder
            remainder = rest
            larger = unused + quotient * factor
            unused = factor
            factor = larger
        is_small[place] = 1 if remainder <= limit and factor <= limit else 0
