"""What is parallel in a kernel: its outermost loops, each the nest of one launch or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal as Choice
from typing import TypeAlias

from esat.base.records import record
from esat.codegen.kernel.loop_ir import (
    Accumulator,
    Definition,
    Kernel,
    Load,
    Loop,
    Statement,
    Store,
    Tile,
    Update,
    operands_of,
    walk,
)
from esat.gpu.printing.body import definitions_in

Family: TypeAlias = Choice["flat", "rows", "full", "columns", "points"]
"""
===========  ============================================================================================
``flat``     loops without accumulators, one in the other
``rows``     loops over rows whose body gathers along each
``full``     a loop outside all others that gathers
``columns``  a tile: its body gathers along other axes than that along which memory runs
``points``   all else without accumulators outside: a thread for each place of the outer loops
===========  ============================================================================================
"""


@record(frozen=True)
class Nest:
    """An outermost loop or tile.

    Attributes
    ----------
    family
        See :data:`Family`.
    axes
        Those whose places are shared among threads, outermost first; of rows and columns, without the axis
        along which memory runs.
    before
        Definitions between the loops over ``axes``, each after its operands.
    body
        What is inside of all of them.
    inner
        The axis along which memory runs, where threads take neighbours along it.
    accumulators
        Of a ``full`` reduction.
    """

    family: Family
    axes: tuple[int, ...]
    before: tuple[Definition, ...]
    body: tuple[Statement, ...]
    inner: int | None = None
    accumulators: tuple[Accumulator, ...] = ()


def nests_of(kernel: Kernel) -> list[Nest]:
    """The nests of a kernel, in order."""
    return [nest_of(one) for one in kernel.body if isinstance(one, Loop | Tile)]


def nest_of(statement: Loop | Tile) -> Nest:
    """What is parallel in an outermost statement."""
    if isinstance(statement, Loop) and statement.accumulators:
        loop = _flattened(statement)
        inner = None if any(isinstance(one, Loop | Tile) for one in loop.body) else loop.axes[-1]
        return Nest("full", loop.axes, (), loop.body, inner, loop.accumulators)
    axes: list[int] = []
    before: list[Definition] = []
    body: tuple[Statement, ...] = (statement,)
    while (inside := _only_loop(body)) is not None:
        before += definitions_in(body)
        axes += inside.axes
        body = inside.body
    body = tuple(_flattened(one) if isinstance(one, Loop) else one for one in body)
    loops = [one for one in body if isinstance(one, Loop | Tile)]
    parallel = tuple(axes)
    if not loops:
        return Nest("flat", parallel, tuple(before), body, parallel[-1])
    if len(loops) == 1 and isinstance(loops[0], Tile) and not any(isinstance(one, Store) for one in body):
        before += definitions_in(body)
        return Nest("columns", parallel, tuple(before), loops[0].body, loops[0].axis)
    if all(isinstance(one, Loop) and _is_innermost(one) for one in loops):
        lasts = {one.axes for one in loops if isinstance(one, Loop)}
        ((*_, inner), *others) = lasts
        return Nest("rows", parallel, tuple(before), body, None if others else inner)
    return Nest("points", parallel, tuple(before), body)


def _only_loop(body: Sequence[Statement]) -> Loop | None:
    """The only loop of a body, if it gathers nothing and nothing but definitions stands beside it."""
    loops = [one for one in body if isinstance(one, Loop | Tile)]
    if len(loops) != 1 or not isinstance(loops[0], Loop) or loops[0].accumulators:
        return None
    return None if any(isinstance(one, Store | Update) for one in body) else loops[0]


def _is_innermost(loop: Loop) -> bool:
    return not any(isinstance(one, Loop | Tile) for one in loop.body)


def _flattened(loop: Loop) -> Loop:
    """A loop and the only one inside as one, if that gathers for it alone: a sum of sums is one over both."""
    inside = [one for one in loop.body if isinstance(one, Loop | Tile)]
    if len(inside) != 1 or not isinstance(inside[0], Loop):
        return loop
    inner = _flattened(inside[0])
    taken = {one.operand: one.accumulator for one in loop.body if isinstance(one, Update)}
    outer = {part.value: part for part in loop.accumulators}
    mine = {part.value: part for part in inner.accumulators}
    rest = [one for one in loop.body if one is not inside[0] and not isinstance(one, Update)]
    reads = {operand for one in rest for operand in operands_of(one)}
    if (
        set(taken) != set(mine)
        or len(taken) != len(outer)
        or any(isinstance(one, Store) for one in rest)
        or reads.intersection(mine)
        or not all(_is_same(mine[operand], outer[number]) for operand, number in taken.items())
    ):
        return loop
    body = tuple(
        replace(one, accumulator=taken[one.accumulator]) if isinstance(one, Update) else one
        for one in inner.body
    )
    return Loop((*loop.axes, *inner.axes), (*rest, *body), loop.accumulators)


def _is_same(first: Accumulator, second: Accumulator) -> bool:
    """Whether two accumulators gather alike, so that parts may be gathered apart."""
    indices = ("argmax", "argmin")
    if first.kind in indices or second.kind in indices:
        return False
    return (first.kind, first.template, first.dtype, first.start) == (
        second.kind,
        second.template,
        second.dtype,
        second.start,
    )


def needed_by(
    statements: Sequence[Statement], known: Sequence[Definition]
) -> tuple[list[Definition], set[int]]:
    """The definitions among ``known`` that statements depend on, in order, and all values read by both."""
    values = {operand for one in walk(tuple(statements)) for operand in operands_of(one)}
    needed: list[Definition] = []
    for one in reversed(known):
        if one.value in values:
            values.update(operands_of(one))
            needed.insert(0, one)
    return needed, values


def parts_of(body: Sequence[Statement]) -> list[Loop | list[Statement]]:
    """Loops, and what is between them."""
    parts: list[Loop | list[Statement]] = []
    for one in body:
        if isinstance(one, Loop):
            parts.append(one)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(one)
        else:
            parts.append([one])
    return parts


def without_kept(nest: Nest) -> Nest:
    """The nest whose loops compute again what earlier ones would keep in an output for them.

    Where a thread does not hold it, that saves writing and reading an array.
    """
    again: dict[int, tuple[Definition, ...]] = {}
    body: list[Statement] = []
    for one in nest.body:
        if not isinstance(one, Loop):
            body.append(one)
            continue
        kept = [part for part in one.body if isinstance(part, Store) and part.kept]
        loop = [replaced for part in one.body for replaced in _computed(part, again) if part not in kept]
        for store in kept:
            definitions = definitions_in(loop)
            by_value, _ = needed_by((store,), definitions)
            again[store.operand] = tuple(by_value)
        body.append(replace(one, body=tuple(dict.fromkeys(loop))))
    return replace(nest, body=tuple(body))


def _computed(one: Statement, again: Mapping[int, tuple[Definition, ...]]) -> tuple[Statement, ...]:
    """A statement, or what computes the value that it would load."""
    return again[one.value] if isinstance(one, Load) and one.value in again else (one,)
