"""Normal forms of classes: quotients of polynomials over what the classes are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np

from esat.egraph.algebra.equal_forms.polynomials import ONE, Polynomial, TooLongError, power_operations
from esat.egraph.algebra.equal_forms.quotients import (
    ZERO,
    Quotient,
    inverted,
    of_atom,
    of_number,
    power_of,
    product_of,
    sum_of,
    without_squares,
)
from esat.egraph.algebra.finite_fields.coded import CONSTANT, FILL, POWER, PRODUCT, SUM
from esat.egraph.algebra.finite_fields.field_values import is_quotient
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.algebra.finite_fields.reading import UNKNOWN

UNIT_QUOTIENT = of_number(1.0)
ROOT, NONNEGATIVE = "Sqrt", "nonnegative"
"""The op, and the relation that has to hold of its operand."""


class Forms:
    """Normal forms of classes, each made when first asked for.

    Atoms are the classes whose chosen e-node is no ring operation, or whose form is too long. Their names
    are the classes' places in the order of what they are. Atoms that are square roots of what is known not
    to be negative are in no form squared.

    Parameters
    ----------
    found
        The e-graph.
    roots
        Classes of a program's outputs.

    Attributes
    ----------
    squares
        The roots met so far, with what they are roots of.
    """

    def __init__(self, found: Fingerprints, roots: Collection[int]) -> None:
        self.found, self._roots_of_program = found, roots
        self._forms: dict[int, Quotient] = {}
        self._operations: dict[int, int] = {}
        self._own_operations: dict[int, int] = {}
        self.squares: dict[int, Polynomial] = {}

    @cached_property
    def classes(self) -> list[int]:
        """The class of each atom's name."""
        classes = [0] * len(self.found.rank)
        for klass, rank in enumerate(self.found.rank):
            classes[rank] = klass
        return classes

    def is_atom(self, klass: int) -> bool:
        """Whether a class stands in forms as it is."""
        self.form(klass)
        return self._operations[klass] == 0 and self._forms[klass] == of_atom(self.found.rank[klass])

    def form(self, klass: int) -> Quotient:
        """The normal form of a class that has an e-node chosen."""
        known = self._forms.get(klass)
        if known is not None:
            return known
        found = self.found
        stack = [klass]
        while stack:
            current = stack[-1]
            node = found.chosen_list[current]
            is_open = found.is_ring(node) or node in self._roots
            below = found.reading.operands_of(node) if is_open else []
            missing = [operand for operand in below if operand not in self._forms]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if current not in self._forms:
                self._settle(current, node)
        return self._forms[klass]

    def operations(self, klass: int) -> int:
        """Ring operations of the chosen tree, down to atoms."""
        self.form(klass)
        return self._operations[klass]

    def own_operations(self, klass: int) -> int:
        """As :meth:`operations`, without those of values that are computed anyway.

        Outputs are, and operands of what is no ring operation: in ``v3 = v2 + f(u(v2))`` another form of
        ``v3`` saves one addition, whatever ``v2`` is the sum of.
        """
        self.form(klass)
        return self._own_operations[klass]

    @cached_property
    def _computed_anyway(self) -> frozenset[int]:
        found = self.found
        stack = [root for root in self._roots_of_program if root != UNKNOWN]
        computed, reached = set(stack), set(stack)
        while stack:
            node = found.chosen_list[stack.pop()]
            if node == UNKNOWN:
                continue
            operands = found.reading.operands_of(node)
            if not found.is_ring(node):
                computed.update(operands)
            elif found.code_list[node] == FILL:
                operands = operands[1:]
            stack += set(operands) - reached
            reached.update(operands)
        return frozenset(computed)

    def _settle(self, klass: int, node: int) -> None:
        try:
            form = self._combined(klass, node)
        except (TooLongError, ZeroDivisionError):
            form = None
        if form is not None and self.squares:
            form = self._rooted(form)
        if node in self._roots:
            radicand = self._forms[self.found.reading.operands_of(node)[0]]
            if radicand.below == ONE:
                self.squares[self.found.rank[klass]] = radicand.above
        self._forms[klass] = of_atom(self.found.rank[klass]) if form is None else form
        self._operations[klass] = 0 if form is None else self._counted(node, self._operations.__getitem__)
        self._own_operations[klass] = 0 if form is None else self._counted(node, self._own_operations_below)

    @cached_property
    def _roots(self) -> frozenset[int]:
        """Square roots of classes that are known not to be negative."""
        reading = self.found.reading
        held = set(reading.facts.get(NONNEGATIVE, np.zeros(0, np.int64)).tolist())
        if not held or ROOT not in reading.names:
            return frozenset()
        nodes = np.flatnonzero(reading.operator == reading.names.index(ROOT)).tolist()
        return frozenset(node for node in nodes if reading.operands_of(node)[0] in held)

    def _rooted(self, form: Quotient) -> Quotient | None:
        try:
            return without_squares(form, self.squares)
        except TooLongError:
            return None

    def _combined(self, klass: int, node: int) -> Quotient | None:
        found = self.found
        code, number = found.code_list[node], found.number_list[node]
        if found.coded.is_constant[klass]:
            return of_number(float(found.reading.value[klass]))
        if code == CONSTANT or not found.is_ring(node):
            return None
        operands = found.reading.operands_of(node)
        forms = [self._forms[operand] for operand in operands]
        if code == FILL:
            return forms[1]
        if code == POWER:
            return power_of(forms[0], number)
        result = ZERO if code == SUM else UNIT_QUOTIENT
        for place, form in enumerate(forms):
            if code == SUM:
                result = sum_of(result, form, 1 if place < number else -1)
            else:
                result = product_of(result, form if place < number else inverted(form))
        if code == PRODUCT and result == ZERO and self._divides(node, operands[:number]):
            return None
        return result

    def _divides(self, node: int, factors: Sequence[int]) -> bool:
        """Whether a product, or a quotient among its factors, divides by what may be zero."""
        nodes, chosen = self.found.coded.nodes, self.found.chosen
        return bool(nodes.divides[node]) or any(is_quotient(nodes, chosen, factor) for factor in factors)

    def _own_operations_below(self, operand: int) -> int:
        return 0 if operand in self._computed_anyway else self._own_operations[operand]

    def _counted(self, node: int, operations: Callable[[int], int]) -> int:
        found = self.found
        code = found.code_list[node]
        if found.coded.is_constant[found.reading.class_of[node]]:
            return 0
        operands = found.reading.operands_of(node)
        number = found.number_list[node]
        if code == FILL:
            return operations(operands[1])
        if code == POWER:
            own = power_operations(abs(number)) + (number < 0) if number else 0
            return own + operations(operands[0])
        return sum(map(operations, operands)) + len(operands) - 1 + (number == 0)

    def atoms(self, klass: int) -> set[int]:
        """Classes of all the atoms of a class's tree, those that cancel included."""
        found, below, stack = self.found, set(), [klass]
        seen = {UNKNOWN}
        while stack:
            current = stack.pop()
            if current in seen:
                continue
            seen.add(current)
            if found.coded.is_constant[current]:
                continue
            if self.is_atom(current):
                below.add(current)
                continue
            node = found.chosen_list[current]
            operands = found.reading.operands_of(node)
            stack += operands[1:] if found.code_list[node] == FILL else operands
        return below
