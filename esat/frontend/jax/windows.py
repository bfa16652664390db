"""Rules of what slides over axes: convolutions, and reductions of windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from esat.errors import ShapeError, describe
from esat.frontend.arrays.indexing import inc_subtensor, set_subtensor, take_along_axis
from esat.frontend.arrays.shaping import broadcast_to, concatenate, stack
from esat.frontend.elements.reductions import argmax
from esat.frontend.elements.searching import where
from esat.frontend.jax.foldings import folded, joined_by
from esat.frontend.jax.steps import Equation, Rule
from esat.frontend.linear_algebra.einsum import einsum
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.view import expand_dims, reshape, transpose
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL

MOST_PLACES = 1024
"""Places of a window up to which it is taken apart."""


def _convolution(step: Equation) -> Variable:
    """The parts of all windows side by side, in one product with the weights."""
    params = step.params
    groups = int(params["feature_group_count"])
    if int(params["batch_group_count"]) != 1:
        raise ShapeError(
            describe("conv", [one.type for one in step.operands], "batch_group_count is 1 here", step.where)
        )
    numbers = params["dimension_numbers"]
    images, weights = (cast(one, step.results[0].dtype) for one in step.operands)
    batch, feature, *spatial = numbers.lhs_spec
    images = transpose(images, (batch, *spatial, feature))
    made, taken, *window_axes = numbers.rhs_spec
    weights = transpose(weights, (*window_axes, taken, made))
    sizes = [int(size or 0) for size in weights.tensor_type.shape]
    window, inner, outer = sizes[:-2], sizes[-2], sizes[-1]
    gaps = zip(params["padding"], params["lhs_dilation"], strict=True)
    config = [(0, 0, 1), *((*pair, int(gap)) for pair, gap in gaps), (0, 0, 1)]
    images = _spaced(images, constant(0, images.tensor_type.dtype), config)
    result = [step.results[0].shape[axis] for axis in numbers.out_spec]
    _check_places(step, window)
    parts = [
        reshape(images[(slice(None), *place)], (*result[:1], *result[2:], groups, inner))
        for place in _places(window, params["window_strides"], params["rhs_dilation"], result[2:])
    ]
    columns = concatenate(parts, -1) if len(parts) > 1 else parts[0]
    rows = math.prod(window) * inner
    if groups == 1:
        flat = reshape(columns, (math.prod([*result[:1], *result[2:]]), rows))
        found = MATMUL(flat, reshape(weights, (rows, outer)))
    else:
        flat = reshape(columns, (math.prod([*result[:1], *result[2:]]), groups, rows))
        found = einsum("ngi,igo->ngo", flat, reshape(weights, (rows, groups, outer // groups)))
    found = reshape(found, (result[0], *result[2:], outer))
    order = (0, len(result) - 1, *range(1, len(result) - 1))
    back = [0] * len(result)
    for place, axis in enumerate(numbers.out_spec):
        back[axis] = order[place]
    return transpose(found, tuple(back))


def _spaced(x: Variable, value: Variable, config: Sequence[tuple[Any, ...]]) -> Variable:
    """An array with elements ``gap`` apart, and others before and after; fewer where numbers are negative."""
    shape = [int(size or 0) for size in x.tensor_type.shape]
    if all((int(low), int(high), int(gap)) == (0, 0, 1) for low, high, gap in config):
        return x
    spread = [(size - 1) * int(gap) + 1 for size, (_, _, gap) in zip(shape, config, strict=True)]
    wide = [
        max(0, int(low)) + size + max(0, int(high))
        for size, (low, high, _) in zip(spread, config, strict=True)
    ]
    inside = tuple(
        slice(max(0, int(low)), max(0, int(low)) + size, int(gap))
        for size, (low, _, gap) in zip(spread, config, strict=True)
    )
    whole = set_subtensor(broadcast_to(value, tuple(wide))[inside], x)
    return whole[
        tuple(
            slice(max(0, -int(low)), size - max(0, -int(high)))
            for size, (low, high, _) in zip(wide, config, strict=True)
        )
    ]


def _places(
    window: Sequence[int], strides: Sequence[int], dilation: Sequence[int], result: Sequence[int]
) -> Iterator[tuple[slice, ...]]:
    """For each place of a window, the elements that are there in all windows."""
    for place in itertools.product(*map(range, window)):
        yield tuple(
            slice(own * gap, own * gap + stride * (count - 1) + 1, stride)
            for own, gap, stride, count in zip(place, dilation, strides, result, strict=True)
        )


def _check_places(step: Equation, window: Sequence[int]) -> None:
    if math.prod(window) > MOST_PLACES:
        reason = f"a window of {math.prod(window)} places; at most {MOST_PLACES} are taken apart"
        raise ShapeError(describe(step.name, [one.type for one in step.operands], reason, step.where))


def _identity(name: str, dtype: str) -> Any:
    """What changes nothing in a sum or an extremum."""
    if name == "add":
        return 0
    if np.dtype(dtype).kind == "f":
        return -math.inf if name == "maximum" else math.inf
    if dtype == "bool":
        return name == "minimum"
    return np.iinfo(dtype).min if name == "maximum" else np.iinfo(dtype).max


def _reduced(name: str) -> Rule:
    """Sums and extrema of windows, axis by axis."""

    def rule(step: Equation) -> Variable:
        params, x, op = step.params, step.first, op_named(name)
        dtype = x.tensor_type.dtype
        pads = zip(params["padding"], params["base_dilation"], strict=True)
        x = _spaced(x, constant(_identity(name, dtype), dtype), [(*pair, int(gap)) for pair, gap in pads])
        for axis, size in enumerate(params["window_dimensions"]):
            stride, gap = int(params["window_strides"][axis]), int(params["window_dilation"][axis])
            _check_places(step, [int(size)])
            parts = [
                x[(*[slice(None)] * axis, place[0])]
                for place in _places([int(size)], [stride], [gap], [step.results[0].shape[axis]])
            ]
            x = parts[0]
            for part in parts[1:]:
                x = op(x, part)
        return x

    return rule


def _folded_windows(step: Equation) -> list[Variable]:
    """Windows of one or several arrays, whose places are joined by an associative function of two values."""
    params = step.params
    count = len(step.operands) // 2
    window = [int(size) for size in params["window_dimensions"]]
    _check_places(step, window)
    pads = list(zip(params["padding"], params["base_dilation"], strict=True))
    config = [(*pair, int(gap)) for pair, gap in pads]
    shape = step.results[0].shape
    strides, gaps = ([int(one) for one in params[name]] for name in ("window_strides", "window_dilation"))
    places = list(_places(window, strides, gaps, shape))
    parts = [
        stack([wide[place] for place in places], 0)
        for wide in map(_spaced, step.operands[:count], step.operands[count:], [config] * count)
    ]
    join = joined_by(step, params["jaxpr"])
    begins = [broadcast_to(one, shape) for one in step.operands[count:]]
    return join(begins, folded(parts, join))


def _chosen(step: Equation) -> Variable:
    """Of each window of a first array the element at the place of the extremum of a second one."""
    params, (source, x) = step.params, step.operands
    select = str(getattr(params["select_prim"], "name", params["select_prim"]))
    largest = select in ("ge", "gt")
    window = [int(size) for size in params["window_dimensions"]]
    _check_places(step, window)
    dtype = x.tensor_type.dtype
    outside = constant(_identity("maximum" if largest else "minimum", dtype), dtype)
    pads = zip(params["padding"], params["base_dilation"], strict=True)
    config = [(*pair, int(gap)) for pair, gap in pads]
    strides, gaps = ([int(one) for one in params[name]] for name in ("window_strides", "window_dilation"))
    places = list(_places(window, strides, gaps, step.results[0].shape))
    wide, sources = _spaced(x, outside, config), _spaced(source, constant(0, dtype), config)
    parts = stack([wide[place] for place in places], 0)
    first = argmax(parts if largest else op_named("neg")(parts), axis=0)
    values = stack([sources[place] for place in places], 0)
    return take_along_axis(values, expand_dims(first, 0), 0)[0]


def _chosen_and_added(step: Equation) -> Variable:
    """The cotangents of windows' extrema, each at the place of the first one in its window."""
    params, (source, x) = step.params, step.operands
    select = str(getattr(params["select_prim"], "name", params["select_prim"]))
    window = [int(size) for size in params["window_dimensions"]]
    _check_places(step, window)
    dtype = x.tensor_type.dtype
    outside = constant(_identity("maximum" if select in ("ge", "gt") else "minimum", dtype), dtype)
    pads = [(int(low), int(high), 1) for low, high in params["padding"]]
    wide = _spaced(x, outside, pads)
    strides = [int(stride) for stride in params["window_strides"]]
    places = [*_places(window, strides, [1] * len(window), step.shape_of(0))]
    parts = stack([wide[place] for place in places], 0)
    first = argmax(parts if select in ("ge", "gt") else op_named("neg")(parts), axis=0)
    total = broadcast_to(constant(0, dtype), tuple(int(size or 0) for size in wide.tensor_type.shape))
    for number, place in enumerate(places):
        own = where(op_named("eq")(first, number), source, constant(0, dtype))
        total = inc_subtensor(total[place], own)
    return total[
        tuple(slice(low, low + size) for (low, _, _), size in zip(pads, step.results[0].shape, strict=True))
    ]


RULES: dict[str, Rule] = {
    "conv_general_dilated": _convolution,
    "reduce_window": _folded_windows,
    "reduce_window_max": _reduced("maximum"),
    "reduce_window_min": _reduced("minimum"),
    "reduce_window_sum": _reduced("add"),
    "select_and_gather_add": _chosen,
    "select_and_scatter_add": _chosen_and_added,
}
