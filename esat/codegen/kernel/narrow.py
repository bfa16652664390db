"""Narrow kernels: variants for one size of a short innermost axis.

A loop over ten elements has no room for vectors, and leaves the loop around it without any. Where the
innermost axis is known to be short, or turns out to be, its loops are written out element by element, so that
the loop around them vectorises. Arrays that such a loop reads again and again are first transposed, some
places at a time, into scratch where neighbours lie next to each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from esat.base.records import record
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import (
    Compute,
    Index,
    Kernel,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Statement,
    Store,
    Tile,
    walk,
)
from esat.ops.elementwise.records.code import VECTOR_MATH

_NAME = re.compile(r"[A-Za-z_]\w*")

TRANSPOSED_WIDTH = 64
"""Places that are transposed at a time: with the widest narrow axis they fill one scratch array."""
_WIDEST_TRANSPOSED = 16
_WIDEST_COSTLY = 12
_WIDEST_COSTLY_STORED = 8
_WIDEST_REDUCED_BYTES = 32
_WIDEST_BROADCAST = 4
"""Sizes up to which a narrow variant was measured to be faster, by what its loops do."""
SMALLEST_WORK = 1 << 15
"""Places of all loops from which a variant of its own pays for being compiled."""


@record(frozen=True)
class Narrow:
    """What could be narrow in a kernel.

    Attributes
    ----------
    kernel
        The kernel, collapsed.
    axis
        Its innermost axis.
    around
        The axis of the loop around it.
    transposed
        Inputs, by the numbers of their arrays, that are transposed.
    widest
        Size of the axis up to which its loops are better written out.
    """

    kernel: Kernel
    axis: int
    around: int
    transposed: tuple[int, ...]
    widest: int

    @property
    def known_size(self) -> int | None:
        """The size of the axis where types tell that its loops are better written out."""
        size = self.kernel.axes[self.axis].size
        return size if size is not None and size <= self.widest else None

    def size_in(self, shapes: Sequence[tuple[int, ...]]) -> int | None:
        """The size of the axis where the kernel is better compiled for it, else None.

        Parameters
        ----------
        shapes
            Those of the kernel's arrays, outputs first.
        """
        sizes = [
            prod(shapes[array][place] for array, place in axis.factors) if number in self._used else 1
            for number, axis in enumerate(self.kernel.axes)
        ]
        size = sizes[self.axis]
        if (
            not 1 <= size <= self.widest
            or sizes[self.around] < TRANSPOSED_WIDTH
            or prod(sizes) < SMALLEST_WORK
        ):
            return None
        return size

    @property
    def _used(self) -> set[int]:
        return {axis for loop in _loops(self.kernel.body) for axis in loop.axes}


def find_narrow(kernel: Kernel) -> Narrow | None:
    """What could be narrow in a kernel for contiguous arrays; None where all loops nest in other ways."""
    kernel = collapse(kernel)
    kernel = replace(kernel, body=_merged(kernel.body))
    paths = list(_paths(kernel.body, ()))
    if any(isinstance(one, Tile | LoadAt | Scatter) for one in walk(kernel.body)) or not paths:
        return None
    axis, around = _innermost(paths)
    if axis is None or around is None or not all(_suits(loop, axis) for loop in _loops(kernel.body)):
        return None
    if not any(path[-2:] == (around, axis) for path in paths) or not _runs_along(kernel, axis, around):
        return None
    transposed = _transposed(kernel, axis, around)
    return Narrow(kernel, axis, around, transposed, _widest(kernel, axis, bool(transposed)))


def _merged(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Loops with nothing but another loop inside, as one."""
    statements: list[Statement] = []
    for statement in body:
        if isinstance(statement, Loop):
            inner = _merged(statement.body)
            only = inner[0] if len(inner) == 1 else None
            if isinstance(only, Loop) and not (statement.accumulators or only.accumulators):
                statements.append(Loop((*statement.axes, *only.axes), only.body))
            else:
                statements.append(replace(statement, body=inner))
        else:
            statements.append(statement)
    return tuple(statements)


def computes_functions(kernel: Kernel) -> bool:
    """Whether a kernel computes elementary functions: these take long unless the loop around vectorises."""
    return any(
        isinstance(statement, Compute) and VECTOR_MATH.intersection(_NAME.findall(statement.template))
        for statement in walk(kernel.body)
    )


def is_transposed_around(loop: Loop, around: int) -> bool:
    """Whether arrays can be transposed outside the other loops of a nest: its last axis becomes its first."""
    inner = any(isinstance(statement, Loop) for statement in loop.body)
    return loop.axes[-1] == around and len(loop.axes) > 1 and inner and not loop.accumulators


def _widest(kernel: Kernel, axis: int, transposed: bool) -> int:
    if transposed:
        return _WIDEST_TRANSPOSED
    if not any(loop.accumulators for loop in _loops(kernel.body)):
        return _WIDEST_BROADCAST
    if computes_functions(kernel):
        stored = any(isinstance(s, Store) and axis in s.index for s in walk(kernel.body))
        return _WIDEST_COSTLY_STORED if stored else _WIDEST_COSTLY
    return _WIDEST_REDUCED_BYTES // max(np.dtype(array.dtype).itemsize for array in kernel.arrays)


def _loops(body: tuple[Statement, ...]) -> list[Loop]:
    return [statement for statement in walk(body) if isinstance(statement, Loop)]


def _paths(body: tuple[Statement, ...], outside: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The axes of all loops around each loop that has none inside, outermost first."""
    found: list[tuple[int, ...]] = []
    for statement in body:
        if isinstance(statement, Loop):
            path = (*outside, *statement.axes)
            found += _paths(statement.body, path) or [path]
    return found


def _innermost(paths: Sequence[tuple[int, ...]]) -> tuple[int | None, int | None]:
    """The axis of all innermost loops inside others, and that of the loop around them."""
    ends = {path[-2:] for path in paths if len(path) > 1}
    if len(ends) != 1:
        return None, None
    ((around, axis),) = ends
    if any(axis in path[:-1] for path in paths):
        return None, None
    return axis, around


def _suits(loop: Loop, axis: int) -> bool:
    """Whether a loop can be written out, or is none of those that are."""
    if loop.axes[-1] != axis:
        return True
    kinds = {accumulator.kind for accumulator in loop.accumulators}
    return not kinds & {"argmax", "argmin"} and (not loop.accumulators or len(loop.axes) == 1)


def _indices(kernel: Kernel) -> list[tuple[int, Index]]:
    return [
        (statement.array, statement.index)
        for statement in walk(kernel.body)
        if isinstance(statement, Load | Store)
    ]


def _runs_along(kernel: Kernel, axis: int, around: int) -> bool:
    """Whether all arrays lie in memory along the axis around, or along both."""
    for _, index in _indices(kernel):
        ends = [place for place in index if place in (axis, around)]
        if ends == [around, axis]:
            good = index[-2:] == (around, axis)
        else:
            good = len(ends) < 2 and (not ends or index[-1] == ends[0])
        if not good:
            return False
    return True


def _transposed(kernel: Kernel, axis: int, around: int) -> tuple[int, ...]:
    if not any(is_transposed_around(loop, around) for loop in _loops(kernel.body)):
        return ()
    if not all(is_transposed_around(loop, around) for loop in _loops(kernel.body) if around in loop.axes):
        return ()
    read: dict[int, set[Index]] = {}
    for array, index in _indices(kernel):
        read.setdefault(array, set()).add(index)
    outputs = len(kernel.outputs)
    return tuple(array for array in sorted(read) if array >= outputs and read[array] == {(around, axis)})
