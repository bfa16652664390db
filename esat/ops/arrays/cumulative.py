"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.graph.op import Array, as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.along_axis import AlongAxis, apply_along
from esat.ops.cast import cast
from esat.ops.index.basic import subtensor
from esat.ops.reduction import accumulator_dtype


@record(frozen=True, eq=False, repr=False)
class Cumulative(AlongAxis):
    """``cumsum`` or ``cumprod`` along an axis; integers are accumulated in 64 bits as NumPy does."""

    variants = MappingProxyType({"CumSum": "cumsum", "CumProd": "cumprod"})

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operand = as_variable(inputs[0])
        return (cast(operand, accumulator_dtype(operand.tensor_type.dtype)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        function: Callable[..., Array] = np.cumsum if self.name == "cumsum" else np.cumprod
        with np.errstate(all="ignore"):
            return (function(inputs[0], axis=self.axis),)

    def linear_in(self, count: int) -> range:
        return range(int(self.name == "cumsum"))

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        if self.name == "cumsum":
            return [self._sum_of_later(cotangent)]
        return [self._product_gradient(node.inputs[0], node.outputs[0], cotangent)]

    def _sum_of_later(self, terms: Variable) -> Variable:
        """At each place the sum of the terms from there to the end."""
        backwards = (*[slice(None)] * self.axis, slice(None, None, -1))
        running = cumsum(subtensor(terms, backwards), self.axis)
        return subtensor(running, backwards)

    def _product_gradient(self, operand: Variable, result: Variable, cotangent: Variable) -> Variable:
        """Before the first zero, the sum of the later products over the element; at it, the sum of the
        products without it; after it, nothing."""
        mul, switch, eq = op_named("mul"), op_named("switch"), op_named("eq")
        is_zero = eq(operand, 0)
        zeros = cumsum(is_zero, self.axis)
        first_zero = switch(is_zero, eq(zeros, 1), False)
        product: Variable = Cumulative("cumprod", "CumProd", self.axis)(switch(first_zero, 1, operand))
        before = op_named("div")(self._sum_of_later(mul(cotangent, result)), switch(is_zero, 1, operand))
        at_zero = self._sum_of_later(mul(cotangent, product))
        derivative: Variable = switch(eq(zeros, 0), before, switch(first_zero, at_zero, 0))
        return derivative


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running sums along ``axis``, or of all elements in C order."""
    return _accumulate("cumsum", "CumSum", a, axis, dtype)


def cumprod(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running products along ``axis``, or of all elements in C order."""
    return _accumulate("cumprod", "CumProd", a, axis, dtype)


def _accumulate(name: str, constructor: str, operand: Any, axis: Any, dtype: Any) -> Variable:
    given = operand if dtype is None else cast(as_variable(operand), dtype)
    result = apply_along(Cumulative, name, constructor, given, axis, scalar_axis=True)
    return result if dtype is None else cast(result, dtype)
