"""Rules of primitives that join the parts of arrays by functions of two values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from esat.frontend.arrays.shaping import broadcast_to, concatenate, flip
from esat.frontend.derivatives.batching import vectorize
from esat.frontend.elements import elementwise as own
from esat.frontend.jax.steps import Equation, Rule
from esat.graph.constants import constant
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.ops.arrays.view import moveaxis, reshape, transpose

Join = Callable[[Sequence[Variable], Sequence[Variable]], list[Variable]]
"""Two lists of as many arrays of one shape -> one."""


def folded(values: Sequence[Variable], join: Join) -> list[Variable]:
    """The parts of arrays along their first axis, joined: halves with halves, again and again."""
    parts = list(values)
    while (size := int(parts[0].tensor_type.shape[0] or 0)) > 1:
        half = size // 2
        joined = join([one[:half] for one in parts], [one[half : 2 * half] for one in parts])
        rest = [one[2 * half :] for one in parts]
        parts = (
            [concatenate([new, old]) for new, old in zip(joined, rest, strict=True)] if size % 2 else joined
        )
    return [one[0] for one in parts]


def joined_by(step: Equation, jaxpr: Any) -> Join:
    """A function of scalars that a jaxpr is, of the elements of arrays."""

    def join(left: Sequence[Variable], right: Sequence[Variable]) -> list[Variable]:
        operands = [*left, *right]
        scalars = [TensorType(one.tensor_type.dtype, shape=()).make_variable() for one in operands]
        results = step.inline(jaxpr, scalars)
        shape = tuple(int(size or 0) for size in left[0].tensor_type.shape)
        flat = {scalar: reshape(one, (-1,)) for scalar, one in zip(scalars, operands, strict=True)}
        return [
            reshape(value, shape) if depends else broadcast_to(value, shape)
            for value, depends in vectorize(results, flat)
        ]

    return join


def _together(x: Variable, axes: Sequence[int]) -> Variable:
    """An array with some axes put together, as the first."""
    others = [axis for axis in range(x.tensor_type.ndim) if axis not in axes]
    moved = transpose(x, (*axes, *others))
    sizes = [int(size or 0) for size in moved.tensor_type.shape]
    return reshape(moved, (math.prod(sizes[: len(axes)]), *sizes[len(axes) :]))


def _reduced(step: Equation) -> list[Variable]:
    """By an associative function of two values; what it begins with takes part once."""
    count = len(step.operands) // 2
    axes = [int(axis) for axis in step.params["dimensions"]]
    values = [_together(one, axes) for one in step.operands[:count]]
    shapes = [value.shape for value in step.results]
    begins = [broadcast_to(one, shape) for one, shape in zip(step.operands[count:], shapes, strict=True)]
    if not values[0].tensor_type.shape[0]:
        return begins
    join = joined_by(step, step.params["jaxpr"])
    return join(begins, folded(values, join))


def _exclusive_or(step: Equation) -> Variable:
    flat = _together(step.first, [int(axis) for axis in step.params["axes"]])
    if not flat.tensor_type.shape[0]:
        return broadcast_to(constant(0, flat.tensor_type.dtype), step.results[0].shape)
    return folded([flat], lambda left, right: [own.bitwise_xor(left[0], right[0])])[0]


def _running_logsumexp(step: Equation) -> Variable:
    """After Hillis and Steele: each element with the one that is 1, 2, 4, ... places before it."""
    axis = int(step.params["axis"])
    x = flip(step.first, axis) if step.params["reverse"] else step.first
    x = moveaxis(x, axis, 0)
    size, distance = int(x.tensor_type.shape[0] or 0), 1
    while distance < size:
        x = concatenate([x[:distance], own.logaddexp(x[distance:], x[:-distance])])
        distance *= 2
    x = moveaxis(x, 0, axis)
    return flip(x, axis) if step.params["reverse"] else x


RULES: dict[str, Rule] = {
    "cumlogsumexp": _running_logsumexp,
    "reduce": _reduced,
    "reduce_xor": _exclusive_or,
}
