"""Kernels in parts: which loops of a kernel several threads can share, and what they leave for the caller.

The outermost loops of a kernel run one after another, each shared by all threads. A loop without
accumulators is split along one of its axes. One with accumulators leaves, for every unit of its work, what
a single thread would have taken into the accumulator at that place; the caller takes these partial
results in, in the order and by the steps of a single thread. So the same code gives the same bits in any
number of threads.
"""

from __future__ import annotations

from typing import TypeAlias

from esat.base.records import record
from esat.codegen.kernel.loop_ir import (
    MAXIMUM,
    MINIMUM,
    Accumulator,
    Definition,
    Kernel,
    Load,
    LoadAt,
    Loop,
    Scatter,
    Size,
    Statement,
    Tile,
    operands_of,
    walk,
)

SUM_BLOCK_BITS = 8
"""2**8 elements are summed before rounding errors are taken account of."""
INDEX_BLOCK_BITS = 8
"""The index of an extremum is looked for among 2**8 elements, one by one."""
COLUMNS = 64
"""Along the last axis of a loop threads share so many elements at a time: whole cache lines."""
TILE_COLUMNS = 256
"""The same along a tile, which reads this much of each row: with less, reading rows is slower."""


@record(frozen=True)
class LoopPartition:
    """A loop without accumulators, shared along one axis.

    Attributes
    ----------
    axes
        Its outermost axis, and its innermost one if that is another: the caller takes the one that has
        more to share.
    """

    statement: Loop | Tile
    axes: tuple[int, ...]

    @property
    def columns(self) -> int:
        """How many neighbours along the last axis make a unit."""
        return TILE_COLUMNS if self.is_tiled else COLUMNS

    @property
    def is_tiled(self) -> bool:
        """Whether its last axis is that of a tile."""
        inside = (self.statement,) if isinstance(self.statement, Tile) else self.statement.body
        return isinstance(inside[0], Tile)

    @property
    def by_lines(self) -> bool:
        """Whether its only axis is shared by cache lines: neighbours along it are neighbours in memory."""
        if isinstance(self.statement, Tile):
            return True
        return not any(isinstance(inner, Loop | Tile) for inner in self.statement.body)

    def units(self, sizes: tuple[int, ...]) -> int:
        """How many units there are to share, for axes of such sizes."""
        lines = -(-sizes[self.axes[-1]] // self.columns)
        if len(self.axes) > 1:
            return max(sizes[self.axes[0]], lines)
        return lines if self.by_lines else sizes[self.axes[0]]


@record(frozen=True)
class Gather:
    """A loop with accumulators; a unit of its work is a block of its only axis, or a place of its first.

    Attributes
    ----------
    block_bits
        A partial result stands for up to 2**block_bits places of the last axis; for one if 0.
    """

    statement: Loop
    block_bits: int

    @property
    def by_blocks(self) -> bool:
        """Whether a unit is a block, since there is no outer axis."""
        return self.block_bits > 0 and len(self.statement.axes) == 1

    def units(self, sizes: tuple[int, ...]) -> int:
        """How many units there are to share, for axes of such sizes."""
        size = sizes[self.statement.axes[0]]
        return -(-size >> self.block_bits) if self.by_blocks else size

    def partial_results(self, sizes: tuple[int, ...]) -> int:
        """How many partial results each accumulator has, for axes of such sizes."""
        *outer, last = (sizes[axis] for axis in self.statement.axes)
        count = -(-last >> self.block_bits)
        for size in outer:
            count *= size
        return count


Part: TypeAlias = LoopPartition | Gather | Statement
"""A loop for all threads, or a statement that the caller runs."""


def partition(kernel: Kernel) -> tuple[Part, ...]:
    """The parts of a kernel, in order."""
    return tuple(_part(statement) for statement in kernel.body)


def gathered(parts: tuple[Part, ...]) -> list[tuple[Gather, Accumulator]]:
    """The accumulators that leave partial results, in order."""
    gathers = [part for part in parts if isinstance(part, Gather)]
    return [(gather, accumulator) for gather in gathers for accumulator in gather.statement.accumulators]


def _part(statement: Statement) -> Part:
    if isinstance(statement, Tile):
        return LoopPartition(statement, (statement.axis,))
    if not isinstance(statement, Loop):
        return statement
    if any(isinstance(inner, Scatter) for inner in walk(statement.body)):
        return statement  # one place may be written several times, in order
    if not statement.accumulators:
        last = statement.axes[-1]
        if len(statement.body) == 1 and isinstance(statement.body[0], Tile):
            last = statement.body[0].axis
        return LoopPartition(statement, tuple(dict.fromkeys((statement.axes[0], last))))
    if any(isinstance(inner, Loop | Tile) for inner in statement.body):
        return Gather(statement, 0)
    if not all(_is_associative(accumulator) for accumulator in statement.accumulators):
        return statement
    if any(accumulator.kind in ("argmax", "argmin") for accumulator in statement.accumulators):
        return Gather(statement, INDEX_BLOCK_BITS) if len(statement.axes) == 1 else statement
    return Gather(statement, SUM_BLOCK_BITS)


def _is_associative(accumulator: Accumulator) -> bool:
    """Whether blocks can be gathered apart and then together, with the same result."""
    exact = accumulator.kind != "combine" or accumulator.template in (MAXIMUM, MINIMUM)
    return exact or not accumulator.dtype.startswith("float")


def has_open_order(kernel: Kernel) -> bool:
    """Whether LLVM chooses the order of what a kernel gathers, and so may choose another one in other code.

    That is so for float sums; and which of two zeros is the largest element, extrema leave open.
    """
    return any(
        accumulator.kind == "sum" or accumulator.template in (MAXIMUM, MINIMUM)
        for statement in walk(kernel.body)
        if isinstance(statement, Loop)
        for accumulator in statement.accumulators
        if accumulator.dtype.startswith("float")
    )


# ---- what a part reads


def definitions(kernel: Kernel) -> dict[int, Definition]:
    """Values that the kernel defines outside of loops."""
    return {statement.value: statement for statement in kernel.body if isinstance(statement, Definition)}


def captured(statement: Loop | Tile) -> list[int]:
    """Values that a loop reads and does not define."""
    own: set[int] = set()
    read: dict[int, None] = {}
    for inner in walk((statement,)):
        read.update(dict.fromkeys(operands_of(inner)))
        if isinstance(inner, Loop):
            own.update(accumulator.value for accumulator in inner.accumulators)
        elif isinstance(inner, Definition):
            own.add(inner.value)
    return [value for value in read if value not in own]


def is_constant(value: int, known: dict[int, Definition]) -> bool:
    """Whether a value is computed from numbers in the source alone: parts define it for themselves."""
    definition = known.get(value)
    if definition is None or isinstance(definition, Load | LoadAt | Size):
        return False
    return all(is_constant(operand, known) for operand in operands_of(definition))


def constants(values: list[int], known: dict[int, Definition]) -> list[Definition]:
    """The definitions that constant values need, each after those of its operands."""
    found: dict[int, Definition] = {}

    def visit(value: int) -> None:
        if value not in found:
            for operand in operands_of(known[value]):
                visit(operand)
            found[value] = known[value]

    for value in values:
        visit(value)
    return list(found.values())
