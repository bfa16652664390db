"""Switches between a value and zero, made after what is linear in the value and not before.

PyTensor's gradient of ``switch(c, f(x), y)`` is ``switch(c, g, 0) * f'(x)``, which is NaN where the side that
is not chosen has an infinite slope. Its rewrites move such choices outward; here they move while a graph is
translated, over all that is linear in them, and those that one number decides over sums and products of
matrices too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pytensor.tensor.basic import get_underlying_scalar_constant_value

from esat.base.records import record
from esat.frontend.elements.searching import where
from esat.frontend.pytensor.steps import PyTensorStep
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast

_ELEMENTWISE: dict[str, tuple[int, ...]] = {
    "Cast": (0,), "Identity": (0,), "Neg": (0,), "Second": (1,), "TrueDiv": (0,),
}  # fmt: skip
"""Scalar ops, and the operands that they are linear in; products are in all of them."""

_ARRAYS: dict[str, tuple[int, ...]] = {
    "AdvancedSubtensor": (0,), "Alloc": (0,), "BatchedDot": (0, 1), "Dot": (0, 1), "JoinDims": (0,),
    "Reshape": (0,), "SpecifyShape": (0,), "SplitDims": (0,), "Subtensor": (0,),
}  # fmt: skip
"""Ops over which choices move that one number decides."""

_SUMS = ("Add", "Sub")
_POINTWISE = frozenset({*_ELEMENTWISE, *_SUMS, "Mul"})

Build = Callable[[Sequence[Any]], list[Any]]


@record(frozen=True, eq=False)
class TwoSides:
    """One value where a condition holds and another where it does not; None is zero.

    Attributes
    ----------
    condition
        bool, of as many axes as the values.
    sides
        The two values.
    """

    condition: Variable
    sides: tuple[Variable | None, Variable | None]


class Switches:
    """What has been found to be such a choice, while a graph is translated."""

    def __init__(self) -> None:
        self._known: dict[Any, TwoSides] = {}
        self._bools: dict[Any, Variable] = {}

    def results(self, step: PyTensorStep, build: Build) -> list[Any]:
        """The results of a node: where an operand is a choice and they are linear in it, a choice again.

        Parameters
        ----------
        step
            The node.
        build
            Gives its results for operands.
        """
        result = step.node.outputs[0].type
        if len(step.node.outputs) != 1 or "float" not in getattr(result, "dtype", ""):
            return build(step.operands)
        elementwise = type(step.op).__name__ == "Elemwise"
        name = type(step.op.scalar_op if elementwise else step.op).__name__
        if name == "Switch" and elementwise:
            return [self._switched(step, build)]
        return [self._result(step, name, step.operands, build)]

    def _result(self, step: PyTensorStep, name: str, operands: Sequence[Any], build: Build) -> Any:
        linear = _linear(name, len(operands))
        zeros = [_is_zero(*pair) for pair in zip(step.node.inputs, operands, strict=True)]
        conditions = self._conditions(step, name, linear, zeros, operands)
        if conditions is None:
            return build(operands)[0]
        sides: list[Any] = []
        for side in range(2):
            given = [
                self._side(one, conditions[0], side) if place in linear else one
                for place, one in enumerate(operands)
            ]
            nothing = [given[place] is None or zeros[place] for place in linear]
            if all(nothing) if name in _SUMS else any(nothing):
                sides.append(None)
            else:
                given = [constant(0, step.dtype) if one is None else one for one in given]
                sides.append(self._result(step, name, given, build))
        if all(one is None for one in sides):
            return _nothing(step, build(operands)[0])
        return self._chosen(TwoSides(conditions[1], (sides[0], sides[1])), step.dtype)

    def _conditions(
        self,
        step: PyTensorStep,
        name: str,
        linear: Sequence[int],
        zeros: Sequence[bool],
        operands: Sequence[Any],
    ) -> tuple[Variable, Variable] | None:
        """That of an operand, and that of the result; None where there is no choice to move."""
        for place in linear:
            choice = self._known.get(operands[place])
            # Of two sides each would be summed by itself.
            if choice is not None and (name in _POINTWISE or any(one is None for one in choice.sides)):
                after = _condition(step, name, choice.condition)
                if name in _SUMS and not all(
                    zeros[other] or self._side(operands[other], choice.condition, 0) is not operands[other]
                    for other in linear
                ):
                    return None
                if after is not None:
                    return choice.condition, after
        return None

    def _side(self, operand: Any, condition: Variable, side: int) -> Any:
        """An operand where the condition holds, or where it does not; None for zero."""
        choice = self._known.get(operand)
        return operand if choice is None or choice.condition is not condition else choice.sides[side]

    def _switched(self, step: PyTensorStep, build: Build) -> Any:
        zeros = [_is_zero(*pair) for pair in zip(step.node.inputs[1:], step.operands[1:], strict=True)]
        decided = _value_of(step.first)
        if decided is not None and self._known.get(step.operands[1 if decided else 2]):
            value = step.operands[1 if decided else 2]
            if value.type == build(step.operands)[0].type:
                return value
        if zeros[0] == zeros[1]:
            return build(step.operands)[0]
        condition = self._bools.setdefault(step.first, cast(step.first, "bool"))
        place = zeros.index(False)
        value = cast(step.operands[1 + place], step.dtype)
        outer = self._known.get(value)
        if outer is None or _ones(outer.condition) <= _ones(condition):
            return self._chosen(_one_sided(condition, value, place), step.dtype)
        sides = [
            one if one is None else self._chosen(_one_sided(condition, one, place), step.dtype)
            for one in outer.sides
        ]
        if all(one is None for one in sides):
            return _nothing(step, value)
        return self._chosen(TwoSides(outer.condition, (sides[0], sides[1])), step.dtype)

    def _chosen(self, choice: TwoSides, dtype: str) -> Variable:
        sides = [constant(0, dtype) if one is None else one for one in choice.sides]
        result: Variable = where(choice.condition, *sides)
        self._known[result] = choice
        return result


def _one_sided(condition: Variable, value: Variable, place: int) -> TwoSides:
    return TwoSides(condition, (None, value) if place else (value, None))


def _nothing(step: PyTensorStep, value: Variable) -> Variable:
    """Zeros in the shape of a value."""
    zeros: Variable = op_named("fill")(value, constant(0, step.dtype))
    return zeros


def _is_zero(variable: Any, operand: Any) -> bool:
    """Whether an operand, which stands for a variable of PyTensor's, is known to be zero everywhere."""
    if isinstance(operand, Constant) and isinstance(operand.data, np.ndarray):
        return not operand.data.any()
    value = get_underlying_scalar_constant_value(variable, raise_not_constant=False)
    return isinstance(value, (np.ndarray, np.generic)) and bool(value == 0)


def _value_of(condition: Any) -> bool | None:
    """Of a condition that is one known number."""
    if isinstance(condition, Constant) and condition.data.size == 1:
        return bool(condition.data.any())
    return None


def _ones(condition: Variable) -> int:
    return sum(condition.tensor_type.broadcastable)


def _linear(name: str, count: int) -> Sequence[int]:
    """The operands in each of which an op is linear; of a sum in all of them together."""
    if name == "Mul" or name in _SUMS:
        return range(count)
    if name in ("DimShuffle", "Sum"):
        return (0,)
    return _ELEMENTWISE.get(name) or _ARRAYS.get(name, ())


def _condition(step: PyTensorStep, name: str, condition: Variable) -> Variable | None:
    """The condition of a choice made after an op; None where there is none."""
    ones, rank = condition.tensor_type.broadcastable, step.node.outputs[0].type.ndim
    if name == "DimShuffle":
        return dimshuffle(condition, tuple(step.op.new_order))
    if name == "Sum":
        axes = range(len(ones)) if step.op.axis is None else step.op.axis
        if not all(ones[axis] for axis in axes):
            return None
        return dimshuffle(condition, tuple(axis for axis in range(len(ones)) if axis not in axes))
    if name in _ARRAYS:
        return dimshuffle(condition, ("x",) * rank) if all(ones) else None
    return condition
