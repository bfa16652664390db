"""Rules of primitives about the axes of arrays: shapes, parts, reductions, orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.arrays.creation import zeros
from esat.frontend.arrays.indexing import set_subtensor, take_along_axis
from esat.frontend.arrays.pieces import lexsort
from esat.frontend.arrays.shaping import broadcast_to, concatenate, flip, stack, tile
from esat.frontend.elements import reductions
from esat.frontend.jax.steps import Equation, Rule
from esat.frontend.linear_algebra.einsum import einsum
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.arrays.view import reshape, squeeze, transpose
from esat.ops.cast import cast

# ---- shapes


def _broadcast(step: Equation) -> Variable:
    shape = step.results[0].shape
    places = step.params.get("broadcast_dimensions", ())
    sizes = [1] * len(shape)
    for own, place in enumerate(places):
        sizes[place] = step.shape_of(0)[own]
    return broadcast_to(reshape(step.first, tuple(sizes)), shape)


def _iota(step: Equation) -> Variable:
    (value,), place = step.results, step.params["dimension"]
    numbers = cast(arange(value.shape[place]), value.dtype)
    sizes = [1] * len(value.shape)
    sizes[place] = value.shape[place]
    return broadcast_to(reshape(numbers, tuple(sizes)), value.shape)


def _numbers_in_halves(step: Equation) -> list[Variable]:
    """The number of each element in C order, as the high and the low half of 64 bits."""
    shape = step.results[0].shape
    numbers = reshape(cast(arange(math.prod(shape)), "uint64"), shape)
    right_shift = op_named("right_shift")
    return [cast(right_shift(numbers, 32), "uint32"), cast(numbers, "uint32")]


def _padded(step: Equation) -> Variable:
    """Numbers of elements before and after an axis, which are taken away if negative, and between them."""
    x, value = step.operands
    config = [tuple(int(number) for number in one) for one in step.params["padding_config"]]
    kept: list[slice] = []
    places: list[slice] = []
    for size, (low, _, inner), whole in zip(step.shape_of(0), config, step.results[0].shape, strict=True):
        places_of_axis = low + np.arange(size) * (inner + 1)
        inside = np.flatnonzero((places_of_axis >= 0) & (places_of_axis < whole))
        if not len(inside):
            return broadcast_to(value, step.results[0].shape)
        kept.append(slice(int(inside[0]), int(inside[-1]) + 1))
        first, last = int(places_of_axis[inside[0]]), int(places_of_axis[inside[-1]])
        places.append(slice(first, last + 1, inner + 1))
    around = broadcast_to(value, step.results[0].shape)
    return set_subtensor(around[tuple(places)], x[tuple(kept)])


def _slice(step: Equation) -> Variable:
    starts, limits = step.params["start_indices"], step.params["limit_indices"]
    strides = step.params["strides"] or [1] * len(starts)
    bounds = zip(starts, limits, strides, strict=True)
    return step.first[tuple(slice(int(start), int(limit), int(stride)) for start, limit, stride in bounds)]


def _split(step: Equation) -> list[Variable]:
    axis, begin, parts = step.params["axis"], 0, []
    for size in step.params["sizes"]:
        parts.append(step.first[(*[slice(None)] * axis, slice(begin, begin + int(size)))])
        begin += int(size)
    return parts


def _stack(step: Equation) -> Variable:
    return stack(list(step.operands), step.params.get("axis", step.params.get("dimension", 0)))


# ---- products


def _dot(step: Equation) -> Variable:
    """A letter for each axis: those of both operands that go together first, then each one's own."""
    (left_sum, right_sum), (left_batch, right_batch) = step.params["dimension_numbers"]
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    names: list[list[str]] = [[""] * one.tensor_type.ndim for one in step.operands]
    result = ""
    for left, right in zip(left_batch, right_batch, strict=True):
        names[0][left] = names[1][right] = letter = next(letters)
        result += letter
    for left, right in zip(left_sum, right_sum, strict=True):
        names[0][left] = names[1][right] = next(letters)
    for own in names:
        for place, name in enumerate(own):
            if not name:
                own[place] = letter = next(letters)
                result += letter
    operands = [cast(one, step.results[0].dtype) for one in step.operands]
    return einsum(f"{''.join(names[0])},{''.join(names[1])}->{result}", *operands)


# ---- reductions and running results


def _reduction(reduce: Callable[..., Variable], **options: Any) -> Rule:
    def rule(step: Equation) -> Any:
        axes = tuple(int(axis) for axis in step.params["axes"])
        return reduce(step.first, axis=axes, **options) if axes else step.first

    return rule


def _sum(step: Equation) -> Any:
    return _reduction(reductions.sum, dtype=step.results[0].dtype)(step)


def _product(step: Equation) -> Any:
    return _reduction(reductions.prod, dtype=step.results[0].dtype)(step)


def _logical(name: str, reduce: Callable[..., Variable]) -> Rule:
    def rule(step: Equation) -> Any:
        if step.first.tensor_type.dtype != "bool":
            raise DtypeError(
                describe(name, [step.first.type], "bits of integers are not reduced", step.where)
            )
        return _reduction(reduce)(step)

    return rule


def _place(argument: Callable[..., Variable]) -> Rule:
    return lambda step: argument(step.first, axis=int(step.params["axes"][0]))


def _running(accumulate: Callable[[Variable, int, str], Variable]) -> Rule:
    def rule(step: Equation) -> Any:
        axis = int(step.params["axis"])
        x = flip(step.first, axis) if step.params["reverse"] else step.first
        found = accumulate(x, axis, step.results[0].dtype)
        return flip(found, axis) if step.params["reverse"] else found

    return rule


def _doubling(name: str) -> Callable[[Variable, int, str], Variable]:
    """Running results of an op in which elements may take part twice: over 1, 2, 4, ... of them."""

    def accumulate(x: Variable, axis: int, dtype: str) -> Variable:
        op, distance = op_named(name), 1
        size = int(x.tensor_type.shape[axis] or 0)
        before = (slice(None),) * axis
        while distance < size:
            joined = op(x[(*before, slice(distance, None))], x[(*before, slice(0, size - distance))])
            x = concatenate([x[(*before, slice(0, distance))], joined], axis)
            distance *= 2
        return x

    return accumulate


# ---- order


def _sort(step: Equation) -> list[Variable]:
    axis, keys = int(step.params["dimension"]), int(step.params["num_keys"])
    if len(step.operands) == 1:
        return [sort(step.first, axis)]
    order = lexsort(step.operands[:keys][::-1], axis)
    return [take_along_axis(one, order, axis) for one in step.operands]


def _top(step: Equation) -> list[Variable]:
    """The largest elements in descending order; of equal ones, the first."""
    x, count = step.first, int(step.params["k"])
    rank = x.tensor_type.ndim
    axis = int(step.params.get("axis", -1)) % rank
    reverse = op_named("invert" if x.tensor_type.kind in "biu" else "neg")(x)
    order = argsort(reverse, axis)[(*[slice(None)] * axis, slice(0, count))]
    return [take_along_axis(x, order, axis), order]


def _empty(step: Equation) -> Variable:
    """Of what nobody reads: zeros, as JAX's own."""
    (value,) = step.results
    made: Variable = zeros(value.shape, value.dtype)
    return made


RULES: dict[str, Rule] = {
    "argmax": _place(reductions.argmax),
    "argmin": _place(reductions.argmin),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda step: concatenate(list(step.operands), int(step.params["dimension"])),
    "cummax": _running(_doubling("maximum")),
    "cummin": _running(_doubling("minimum")),
    "cumprod": _running(cumprod),
    "cumsum": _running(cumsum),
    "dot_general": _dot,
    "empty": _empty,
    "empty2": _empty,
    "iota": _iota,
    "iota_2x32_shape": _numbers_in_halves,
    "pad": _padded,
    "reduce_and": _logical("reduce_and", reductions.all),
    "reduce_max": _reduction(reductions.max),
    "reduce_min": _reduction(reductions.min),
    "reduce_or": _logical("reduce_or", reductions.any),
    "reduce_prod": _product,
    "reduce_sum": _sum,
    "reshape": lambda step: reshape(step.first, step.results[0].shape),
    "rev": lambda step: flip(step.first, tuple(step.params["dimensions"])),
    "slice": _slice,
    "sort": _sort,
    "split": _split,
    "squeeze": lambda step: squeeze(step.first, tuple(step.params["dimensions"])),
    "stack": _stack,
    "tile": lambda step: tile(step.first, tuple(step.params["reps"])),
    "top_k": _top,
    "transpose": lambda step: transpose(step.first, tuple(step.params["permutation"])),
}
