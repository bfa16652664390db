"""Normal forms of classes: quotients of polynomials over what the classes are made of."""

from __future__ import annotations

from functools import cached_property

from esat.egraph.algebra.coded import CONSTANT, FILL, POWER, SUM
from esat.egraph.algebra.fingerprints import Fingerprints
from esat.egraph.algebra.polynomials import TooLongError, power_operations
from esat.egraph.algebra.quotients import (
    ZERO,
    Quotient,
    inverted,
    of_atom,
    of_number,
    power_of,
    product_of,
    sum_of,
)
from esat.egraph.algebra.reading import UNKNOWN

UNIT_QUOTIENT = of_number(1.0)


class Forms:
    """Normal forms of classes, each made when first asked for.

    Atoms are the classes whose chosen e-node is no ring operation, or whose form is too long. Their names are
    the classes' places in the order of what they are.
    """

    def __init__(self, found: Fingerprints) -> None:
        self.found = found
        self._forms: dict[int, Quotient] = {}
        self._operations: dict[int, int] = {}

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
            below = found.reading.operands_of(node) if found.is_ring(node) else []
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

    def _settle(self, klass: int, node: int) -> None:
        try:
            form = self._combined(klass, node)
        except (TooLongError, ZeroDivisionError):
            form = None
        self._forms[klass] = of_atom(self.found.rank[klass]) if form is None else form
        self._operations[klass] = 0 if form is None else self._counted(node)

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
        return result

    def _counted(self, node: int) -> int:
        found = self.found
        code = found.code_list[node]
        if found.coded.is_constant[found.reading.class_of[node]]:
            return 0
        operands = found.reading.operands_of(node)
        number = found.number_list[node]
        if code == FILL:
            return self._operations[operands[1]]
        if code == POWER:
            own = power_operations(abs(number)) + (number < 0) if number else 0
            return own + self._operations[operands[0]]
        return sum(self._operations[operand] for operand in operands) + len(operands) - 1 + (number == 0)

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
