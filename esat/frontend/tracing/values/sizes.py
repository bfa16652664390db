"""Sizes of arrays that a traced function takes in any size: how large they are, and which slices have one
element of them, so that these broadcast."""

from __future__ import annotations

import math
from typing import Any

from esat.frontend.tracing.trace import SizesAsked, current_trace
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.shape import ShapeI, size_of, sizes_of
from esat.ops.arrays.view import Reshape
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice, is_array_item, split_index
from esat.ops.inference.sizes import size_before, sliced_axis

MOST_ASKED = 16
"""Size up to which a slice may ask that axes be no smaller: for each smaller size there is a program."""


def with_single_elements(variable: Variable, places: Any) -> Any:
    """An index in which slices of one element are integers with a new axis, whose size is known.

    ``x[:1]`` has one element where ``x`` has any: it is ``x[0, None]``.

    Raises
    ------
    SizesAsked
        Where a slice has one element of arrays that are large enough.
    """
    trace, type = current_trace(), variable.tensor_type
    if trace is None or None not in type.shape:
        return places
    items = split_index("subtensor", places, type)
    if any(map(is_array_item, items)):
        return places
    changed: list[Any] = []
    axis = 0
    for item in items:
        is_open = item is not None and type.shape[axis] is None
        place = _only_place(item, size_of(variable, axis)) if is_open and isinstance(item, slice) else None
        changed += [item] if place is None else [place, None]
        axis += item is not None
    return tuple(changed) if len(changed) > len(items) else places


def _only_place(item: slice, size: Variable) -> int | None:
    """The place of a slice's only element, from the begin or the end of the axis; None if it may have another
    number of them."""
    trace = current_trace()
    if trace is None or least_size(size, MOST_ASKED) == 0:
        return None
    for asked in range(trace.least, max(trace.least, MOST_ASKED) + 1):
        place = _place_from(item, size, least_size(size, asked))
        if place is not None and asked > trace.least:
            raise SizesAsked(asked)
        if place is not None:
            return place
    return None


def _place_from(item: slice, size: Variable, at_least: int) -> int | None:
    bounds = [_as_number(part, size, at_least) for part in (item.start, item.stop, item.step)]
    if not all(bound is None or type(bound) is int for bound in bounds) or bounds[2] == 0:
        return None
    numbers = slice(*bounds)
    sizes = _sizes_to_look_at(at_least, bounds)
    found = [range(*numbers.indices(size)) for size in sizes]
    if any(len(one) != 1 for one in found):
        return None
    for places in ([one[0] for one in found], [one[0] - n for one, n in zip(found, sizes, strict=True)]):
        if len({*places}) == 1:
            return places[0]
    return None


def _sizes_to_look_at(at_least: int, bounds: Any) -> range:
    """Sizes from the least one up to where a slice by these numbers takes the same, or ever more."""
    return range(at_least, at_least + sum(abs(bound or 0) for bound in bounds) + 2)


def _as_number(bound: Any, size: Variable, at_least: int) -> Any:
    """A bound that is computed from the size of its axis, ``n - 1`` as -1."""
    if not isinstance(bound, Variable):
        return bound
    offset, rest = 0, bound
    while (node := rest.owner) is not None and node.op in (op_named("add"), op_named("sub")):
        known = [one for one in node.inputs if isinstance(one, Constant)]
        if len(known) != 1 or (node.op is op_named("sub") and known[0] is node.inputs[0]):
            return bound
        sign = -1 if node.op is op_named("sub") else 1
        offset += sign * int(known[0].data)
        (rest,) = (one for one in node.inputs if one is not known[0])
    if not _is_same_size(_followed(rest), _followed(size)):
        return bound
    return offset if offset < 0 <= at_least + offset else bound


def _is_same_size(one: Variable, other: Variable) -> bool:
    left, right = one.owner, other.owner
    if left is None or right is None or not isinstance(left.op, ShapeI):
        return False
    return left.op == right.op and left.inputs[0] is right.inputs[0]


def _followed(size: Variable) -> Variable:
    """A size, of what it is computed from, as far as that is one size of one array."""
    while size.owner is not None and isinstance(size.owner.op, ShapeI):
        source = size.owner.inputs[0].owner
        before = None if source is None else size_before(source, size.owner.op.axis)
        if before is None or before.owner is None:
            break
        size = before
    return size


def least_size(size: Variable, at_least: int) -> int:
    """How large a size is at least, where those of arguments that are open are ``at_least``; 0 if unknown."""
    if isinstance(size, Constant):
        return int(size.data)
    node = size.owner
    if node is not None and node.op is op_named("add"):
        return sum(least_size(one, at_least) for one in node.inputs)
    if node is None or not isinstance(node.op, ShapeI):
        return 0
    return _least_of_axis(node.inputs[0], node.op.axis, at_least)


def _least_of_axis(variable: Variable, axis: int, at_least: int) -> int:
    node, trace = variable.owner, current_trace()
    if node is None:
        if trace is not None and variable in trace.stand_ins:
            return least_size(trace.stand_ins[variable][axis], at_least)
        return at_least if trace is not None and variable in trace.arrays else 0
    if isinstance(node.op, Subtensor):
        place, entry = sliced_axis(node.op, axis)
        source = least_size(size_of(node.inputs[0], place), at_least)
        return _least_length(entry, source)
    if isinstance(node.op, Reshape) and variable.tensor_type.ndim == 1:
        return math.prod(least_size(one, at_least) for one in sizes_of(node.inputs[0]))
    before = size_before(node, axis)
    return 0 if before is None else least_size(before, at_least)


def _least_length(entry: Slice, at_least: int) -> int:
    if not entry.is_static or entry.step == 0:
        return 0
    lengths = (entry.length(size) for size in _sizes_to_look_at(at_least, entry.parts()))
    return min(length or 0 for length in lengths)
