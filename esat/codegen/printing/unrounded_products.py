"""Polynomials whose products are not rounded.

Horner's rule multiplies by the variable and adds a number, in turns. Processors that multiply and add in one
instruction round each step once instead of twice: the result is more accurate on the whole, and there are
half as many instructions. A single ``a * x + b`` remains what NumPy computes, bit for bit, and so does what
adds values that are not known: ``x * x - y * y`` would no longer be 0 where ``x`` equals ``y``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from esat.base.records import record
from esat.codegen.kernel.loop_ir import Compute, Kernel, Literal, operands_of, walk

_ADDED = re.compile(r"\(-?(?!0\.0\))[0-9.e+-]+\)$")
"""The text of a number that may be added: with zeros, signs would differ, with infinity what overflows."""
_PRODUCT, _SUM, _DIFFERENCE = "{0} * {1}", "{0} + {1}", "{0} - {1}"


@record(frozen=True)
class HornerStep:
    """One step of Horner's rule: the value of the product, its factors, and the number that is added to it.

    Attributes
    ----------
    subtracts
        Whether the number is subtracted.
    """

    product: int
    factors: tuple[int, int]
    number: int
    subtracts: bool


def horner_steps(kernel: Kernel) -> Mapping[int, HornerStep]:
    """The steps of polynomials in a kernel, two or more after one another, by the values they result in."""
    statements = tuple(walk(kernel.body))
    numbers = {one.value for one in statements if isinstance(one, Literal) and _ADDED.search(one.text)}
    uses = Counter(operand for one in statements for operand in operands_of(one))
    computed = {one.value: one for one in statements if isinstance(one, Compute)}
    steps: dict[int, HornerStep] = {}
    for value, one in computed.items():
        step = _step(one, numbers, computed)
        if step is not None and uses[step.product] == 1:
            steps[value] = step
    before = {
        value: factor
        for value, step in steps.items()
        for factor in step.factors
        if factor in steps and uses[factor] == 1
    }
    chained = before.keys() | set(before.values())
    return {value: step for value, step in steps.items() if value in chained}


def _step(one: Compute, numbers: set[int], computed: Mapping[int, Compute]) -> HornerStep | None:
    if not _is_float(one) or one.template not in (_SUM, _DIFFERENCE):
        return None
    first, second = one.operands
    if one.template == _SUM and first in numbers:
        first, second = second, first
    product = computed.get(first)
    if second not in numbers or product is None or product.template != _PRODUCT or product.dtype != one.dtype:
        return None
    return HornerStep(first, (product.operands[0], product.operands[1]), second, one.template == _DIFFERENCE)


def _is_float(one: Compute) -> bool:
    return one.dtype == one.operand_dtype and one.dtype in ("float32", "float64")
