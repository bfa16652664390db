"""Classes and expressions as text, for reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.egraph.algebra.equal_forms.expressions import Expression, Name, NumberExpression, Sum
from esat.egraph.algebra.equal_forms.normal_forms import Forms
from esat.egraph.algebra.equal_forms.polynomials import magnitude
from esat.egraph.algebra.equal_forms.words import MatrixProduct, Plan, Total
from esat.egraph.algebra.finite_fields.coded import FILL, POWER, PRODUCT, SUM
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.language.form_text import call_text
from esat.egraph.language.terms import TermGraph

_DEPTH = 4
"""Levels of an expression that are written out."""


class Wording:
    """Writes classes down by their chosen e-nodes."""

    def __init__(self, found: Fingerprints, forms: Forms, terms: TermGraph) -> None:
        self._found, self._forms, self._terms = found, forms, terms
        self._known: dict[tuple[int, int], str] = {}

    def of(self, klass: int, depth: int = _DEPTH) -> str:
        """A class."""
        known = self._known.get((klass, depth))
        if known is None:
            known = self._known[klass, depth] = self._worded(klass, depth)
        return known

    def _worded(self, klass: int, depth: int) -> str:
        found = self._found
        node = found.chosen_list[klass]
        name = found.reading.names[int(found.reading.operator[node])]
        attributes, operands = found.reading.attributes[node], found.reading.operands_of(node)
        if name == "In":
            return str(self._terms.inputs[int(attributes[0])])
        if found.coded.is_constant[klass]:
            return f"{float(found.reading.value[klass]):g}"
        if name == "Array":
            return f"constant {int(attributes[0])}"
        if not operands:
            return call_text(name, (), [str(attribute) for attribute in attributes])
        if depth == 0:
            return "..."
        code, number = found.code_list[node], found.number_list[node]
        if code in (SUM, PRODUCT):  # the engine has no order of its own for what stands on one side
            sides = operands[:number], operands[number:]
            operands = [operand for side in sides for operand in sorted(side, key=found.rank.__getitem__)]
        shown = [self.of(operand, depth - 1) for operand in operands]
        if code == FILL:
            return shown[1]
        if code == POWER:
            return f"{shown[0]}**{number}"
        if found.is_ring(node):
            return _joined(code == SUM, shown[:number], shown[number:])
        return call_text(name, attributes, shown)

    def expression(self, expression: Expression, depth: int = _DEPTH) -> str:
        """An expression."""
        match expression:
            case Name(rank):
                return self.of(self._forms.classes[rank], depth)
            case NumberExpression(value):
                return str(value) if value.denominator < 1000 else f"{float(value):g}"
        above, below = (
            [self.expression(part, depth) for part in side] for side in (expression.above, expression.below)
        )
        return _joined(isinstance(expression, Sum), above, below)

    def plan(self, plan: Plan, classes: Mapping[int, int], depth: int = _DEPTH) -> str:
        """A way to compute a matrix."""
        match plan:
            case MatrixProduct(left, right):
                return " @ ".join(self.plan(part, classes, depth) for part in (left, right)).join("()")
            case Total(parts):
                sides: tuple[list[str], list[str]] = [], []
                for coefficient, part in parts:
                    size = magnitude(coefficient)
                    text = self.plan(part, classes, depth)
                    sides[coefficient < 0].append(text if size == 1 else f"{float(size):g} * {text}")
                return _joined(True, *sides)
        name, turned = plan
        return self.of(classes[name], depth) + ("'" if turned else "")


def _joined(is_sum: bool, above: Sequence[str], below: Sequence[str]) -> str:
    sign, inverse = (" + ", " - ") if is_sum else (" * ", " / ")
    start = sign.join(above) if above else ("" if is_sum else "1")
    return f"({start}{''.join(inverse + part for part in below)})".replace("( - ", "(-")
