"""How loops read and write memory, and which form of code suits that.

What is decided here is done elsewhere: prefetches, non-temporal stores, and the length of vectors, in
:mod:`esat.codegen.llvm`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from esat.codegen.kernel.loop_ir import (
    Array,
    Compute,
    Kernel,
    Literal,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    Update,
    walk,
)
from esat.codegen.vector_math.function_table import FUNCTIONS

LEAST_ROW = 4096
"""Bytes of a row from which the lines at its ends, which are stored in part, do not matter."""
_CHEAP = re.compile(r"(?:[-+*() ]|\{\d+\})+")
_MOST_OPERATIONS = 2
"""Additions and multiplications for each array that is read along memory."""
_CALLED = re.compile(r"\w+(?=\()")


def loads_along(loop: Loop, axes: Sequence[int]) -> list[Load]:
    """The loads of an innermost loop that run along memory, and through all of the given axes."""
    return [
        statement
        for statement in loop.body
        if isinstance(statement, Load)
        and statement.index
        and statement.index[-1] == loop.axes[-1]
        and set(axes) <= set(statement.index)
    ]


def read_by_elements(kernel: Kernel) -> frozenset[int]:
    """Positions of the inputs that innermost loops read; loops around those read few numbers."""
    innermost = [
        one.body
        for one in walk(kernel.body)
        if isinstance(one, Loop | Tile) and not any(isinstance(inner, Loop | Tile) for inner in one.body)
    ]
    read = {one.array for body in innermost for one in body if isinstance(one, Load | LoadAt)}
    return frozenset(array - len(kernel.outputs) for array in read if array >= len(kernel.outputs))


def read_before(load: Load, loop: Loop, around: Loop) -> bool:
    """Whether an earlier loop beside ``loop``, in the body of a loop over rows, reads the same row."""
    if loop not in around.body or len(load.index) < 2 or load.index[-2] != around.axes[-1]:
        return False
    before = around.body[: around.body.index(loop)]
    return any(
        isinstance(inner, Load) and (inner.array, inner.index) == (load.array, load.index)
        for other in before
        if isinstance(other, Loop)
        for inner in other.body
    )


def rereads_rows(kernel: Kernel, outputs: Sequence[int]) -> bool:
    """Whether a loop that stores one of the outputs along memory reads rows that were read before."""
    return any(
        read_before(load, loop, around)
        for around in walk(kernel.body)
        if isinstance(around, Loop)
        for loop in around.body
        if isinstance(loop, Loop) and set(stores_along(loop)).intersection(outputs)
        for load in loads_along(loop, ())
    )


def streamed_outputs(kernel: Kernel) -> tuple[int, ...]:
    """Outputs that a kernel stores once, along memory, and never reads: it may write them past the caches."""
    stored: dict[int, int] = {}
    along: set[int] = set()
    loaded: set[int] = set()
    for statement in walk(kernel.body):
        if isinstance(statement, Load | Scatter):
            loaded.add(statement.array)
        elif isinstance(statement, Store):
            stored[statement.array] = stored.get(statement.array, 0) + 1
        elif isinstance(statement, Loop):
            along.update(stores_along(statement))
    return tuple(sorted(array for array in along if stored[array] == 1 and array not in loaded))


def stores_along(loop: Loop) -> list[int]:
    """The arrays that an innermost loop stores along memory, if it gathers nothing."""
    if loop.accumulators or any(isinstance(inner, Loop | Tile) for inner in loop.body):
        return []
    stores = [statement for statement in loop.body if isinstance(statement, Store)]
    return [store.array for store in stores if store.index and store.index[-1] == loop.axes[-1]]


def waits_for_memory(body: Sequence[Statement], arrays: Sequence[Array]) -> bool:
    """Whether all innermost loops of a body do little but read and write memory, of one float type.

    Parameters
    ----------
    body
        Statements of a kernel.
    arrays
        All arrays of that kernel.
    """
    statements = list(walk(tuple(body)))
    used = {arrays[one.array].dtype for one in statements if isinstance(one, Load | Store)}
    loops = [one for one in statements if isinstance(one, Loop)]
    inner = [loop for loop in loops if not any(isinstance(one, Loop) for one in loop.body)]
    return used in ({"float32"}, {"float64"}) and bool(inner) and all(map(_is_cheap, inner))


def adds_from_memory(loop: Loop, arrays: Sequence[Array]) -> bool:
    """Whether a loop does little but read memory along its last axis and add up, all in one float type."""
    loads = [one for one in loop.body if isinstance(one, Load)]
    along = loads_along(loop, loop.axes)
    operations = [one for one in loop.body if isinstance(one, Compute)]
    return (
        bool(along)
        and {arrays[one.array].dtype for one in loads} in ({"float32"}, {"float64"})
        and all(one.kind == "sum" for one in loop.accumulators)
        and all(isinstance(one, Compute | Literal | Load | Update) for one in loop.body)
        and all(_CHEAP.fullmatch(one.template) for one in operations)
        and len(operations) <= _MOST_OPERATIONS * len(along)
    )


def _is_cheap(loop: Loop) -> bool:
    stored = {axis for one in loop.body if isinstance(one, Store) for axis in one.index if axis is not None}
    operations = [one for one in loop.body if isinstance(one, Compute)]
    return (
        bool(stores_along(loop))
        and all(isinstance(one, Compute | Literal | Load | Store) for one in loop.body)
        and all(_CHEAP.fullmatch(one.template) for one in operations)
        and len(operations) <= _MOST_OPERATIONS * len(loads_along(loop, tuple(stored)))
        and bool(loads_along(loop, tuple(stored)))
    )


def takes_whole_vectors(kernel: Kernel) -> bool:
    """Whether a kernel is one loop that calls functions, over all elements of all its arrays but scalars.

    It is called once more for the elements that are left over, and not at all where there are none, so it
    writes no scalar: it would read one that it overwrote, or leave it unwritten.
    """
    loops = [one for one in walk(kernel.body) if isinstance(one, Loop | Tile)]
    if len(loops) != 1 or not isinstance(loop := loops[0], Loop):
        return False
    accessed = [one for one in loop.body if isinstance(one, Load | Store)]
    arrays = [array for array in kernel.arrays if array.rank]
    stored = [one for one in walk(kernel.body) if isinstance(one, Store)]
    return (
        len(loop.axes) == 1
        and not loop.accumulators
        and not any(isinstance(one, LoadAt | Scatter) for one in loop.body)
        and all(kernel.arrays[one.array].rank for one in stored)
        and all(array.groups == (tuple(range(array.rank)),) for array in arrays)
        and all(one.index == loop.axes for one in accessed if kernel.arrays[one.array].rank)
        and any(isinstance(one, Compute) and calls_function(one) for one in loop.body)
    )


def calls_function(statement: Compute) -> bool:
    """Whether a value is computed by an elementary function."""
    return not FUNCTIONS.keys().isdisjoint(_CALLED.findall(statement.template))
