"""Collapsing: axes that lie behind each other in every array become one, for contiguous arrays.

A loop over ``x[i, j]`` becomes a flat one, and ``x + row`` keeps its two. Axes of size 1 disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from esat.codegen.kernel.loop_ir import (
    Array,
    Axis,
    Kernel,
    Load,
    LoadAt,
    Loop,
    Places,
    Scatter,
    Statement,
    Store,
    Tile,
    walk,
)

_Pair = tuple[int, int]
_Entry = TypeVar("_Entry")


class _MapIndex(Protocol):
    """Another index for the same array."""

    def __call__(self, array: int, index: tuple[_Entry, ...], /) -> tuple[_Entry, ...]: ...


def collapse(kernel: Kernel) -> Kernel:
    """The kernel for arrays that are all contiguous in C order."""
    kernel = _without_single_axes(kernel)
    while True:
        pairs = sorted(_adjacent_pairs(kernel))
        pair = next((pair for pair in pairs if _is_joint(kernel, pair)), None)
        if pair is None:
            return kernel
        kernel = _join(kernel, pair)


def _without_single_axes(kernel: Kernel) -> Kernel:
    """Arrays viewed without their axes of size 1."""
    named: dict[int, set[int]] = {}
    for statement in walk(kernel.body):
        if isinstance(statement, Load | LoadAt | Store | Scatter):
            places = (place for place, axis in enumerate(statement.index) if axis is not None)
            named.setdefault(statement.array, set()).update(places)
    kept = {number: sorted(places) for number, places in named.items()}
    arrays = [
        replace(array, groups=tuple(array.groups[place] for place in kept[number]))
        if number in kept
        else array
        for number, array in enumerate(kernel.arrays)
    ]

    def named_only(array: int, index: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
        return tuple(index[place] for place in kept[array])

    body = _map_body(kernel.body, named_only)
    return _with_arrays(replace(kernel, body=body), arrays)


def _with_arrays(kernel: Kernel, arrays: list[Array]) -> Kernel:
    count = len(kernel.outputs)
    return replace(kernel, outputs=tuple(arrays[:count]), inputs=tuple(arrays[count:]))


def _map_body(
    body: tuple[Statement, ...],
    map_index: _MapIndex,
    map_loop: Callable[[Loop], tuple[Statement, ...]] = lambda loop: (loop,),
) -> tuple[Statement, ...]:
    """All statements with their indices, and then their loops, mapped."""
    mapped: list[Statement] = []
    for statement in body:
        if isinstance(statement, LoadAt):
            index = map_index(statement.array, statement.index)
            mapped.append(LoadAt(statement.value, statement.array, index, statement.comment))
        elif isinstance(statement, Scatter):
            index = map_index(statement.array, statement.index)
            mapped.append(
                Scatter(statement.array, index, statement.operand, statement.adds, statement.comment)
            )
        elif isinstance(statement, Load | Store):
            mapped.append(replace(statement, index=map_index(statement.array, statement.index)))
        elif isinstance(statement, Loop):
            inner = replace(statement, body=_map_body(statement.body, map_index, map_loop))
            mapped += map_loop(inner)
        elif isinstance(statement, Tile):
            mapped.append(replace(statement, body=_map_body(statement.body, map_index, map_loop)))
        else:
            mapped.append(statement)
    return tuple(mapped)


def _adjacent_pairs(kernel: Kernel) -> Iterator[_Pair]:
    """Axes that follow each other in a loop: within one, or the last of a loop and the tile in it."""
    for statement in walk(kernel.body):
        if isinstance(statement, Loop):
            yield from zip(statement.axes, statement.axes[1:], strict=False)
            if len(statement.body) == 1 and isinstance(statement.body[0], Tile):
                yield statement.axes[-1], statement.body[0].axis


def _is_joint(kernel: Kernel, pair: _Pair) -> bool:
    """Whether loops and arrays have either both axes, the second right behind the first, or neither.

    An array that is read in several loops has them in all of these, at the same place.
    """
    outer, inner = pair
    tiles_below: set[int] = set()
    places: dict[int, int] = {}
    for statement in walk(kernel.body):
        if isinstance(statement, Load | LoadAt | Store | Scatter):
            place = statement.index.index(outer) if outer in statement.index else -1
            if not _behind(statement.index, pair) or places.setdefault(statement.array, place) != place:
                return False
        elif isinstance(statement, Tile):
            if outer == statement.axis or (inner == statement.axis and id(statement) not in tiles_below):
                return False
        elif isinstance(statement, Loop):
            only = statement.body[0] if len(statement.body) == 1 else None
            if isinstance(only, Tile) and (statement.axes[-1], only.axis) == pair:
                tiles_below.add(id(only))
            elif not _behind(statement.axes, pair):
                return False
    return True


def _behind(axes: Places, pair: _Pair) -> bool:
    outer, inner = pair
    if outer not in axes or inner not in axes:
        return outer not in axes and inner not in axes
    return axes.index(inner) == axes.index(outer) + 1


def _join(kernel: Kernel, pair: _Pair) -> Kernel:
    """The kernel with the first axis of the pair taken into the second's loops, under its own number."""
    outer, inner = pair
    groups: dict[int, tuple[tuple[int, ...], ...]] = {}
    for statement in walk(kernel.body):
        if isinstance(statement, Load | LoadAt | Store | Scatter) and outer in statement.index:
            place = statement.index.index(outer)
            old = kernel.arrays[statement.array].groups
            groups[statement.array] = (*old[:place], old[place] + old[place + 1], *old[place + 2 :])
    arrays = [
        replace(array, groups=groups.get(number, array.groups)) for number, array in enumerate(kernel.arrays)
    ]

    def without_outer(array: int, index: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
        return tuple(axis for axis in index if axis != outer)

    def joined(loop: Loop) -> tuple[Statement, ...]:
        axes = tuple(axis for axis in loop.axes if axis != outer)
        return (replace(loop, axes=axes),) if axes else loop.body

    axes = list(kernel.axes)
    axes[inner] = Axis(kernel.axes[outer].factors + kernel.axes[inner].factors)
    body = _map_body(kernel.body, without_outer, joined)
    return _with_arrays(replace(kernel, axes=tuple(axes), body=body), arrays)
