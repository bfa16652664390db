"""The loop IR: what a kernel does, as frozen data between lowering and printing.

A :class:`Kernel` is a tree of statements. Values are numbered; each is defined once in its block and
seen in that block and those inside it. Arrays are numbered too, outputs first, then inputs. For
``softmax`` of the rows of a matrix, lowering gives::

    loop (0,)                                  rows
        loop (1,) accumulating v3              the greatest element
            v0 = load array 1 [0, 1]
            v3 <- v0
        loop (1,) accumulating v6              exponentials, kept in the output, and their sum
            v0 = load array 1 [0, 1]
            v4 = v0 - v3
            v5 = exp(v4)
            store array 0 [0, 1] = v5
            v6 <- v5
        v7 = 1 / v6
        loop (1,)
            v5 = load array 0 [0, 1]
            v8 = v5 * v7
            store array 0 [0, 1] = v8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Literal as Choice
from typing import TypeAlias

from esat.base.records import record

Index: TypeAlias = tuple[int | None, ...]
"""One entry an axis of an array: the loop axis that runs along it, or None where its size is 1."""


@record(frozen=True, slots=True)
class At:
    """The place along an axis that an int64 value says: one that there is, counted from the front."""

    value: int


Places: TypeAlias = tuple[int | At | None, ...]
"""As :data:`Index`, with values for axes that no loop runs along."""

AccumulatorKind: TypeAlias = Choice["sum", "combine", "argmax", "argmin"]

MAXIMUM = "maximum({0}, {1})"
MINIMUM = "minimum({0}, {1})"
"""Templates that accumulators of extrema combine by; NaN is handed on."""


@record(frozen=True, slots=True)
class Array:
    """An array the kernel is called with.

    Attributes
    ----------
    dtype
        One of the dtypes that have kernel code.
    rank
        Number of axes as passed.
    groups
        For each axis of the view that loads and stores index, the axes of the array that it runs
        through; axes of size 1 may be missing. By default each axis stands for itself.
    """

    dtype: str
    rank: int
    groups: tuple[tuple[int, ...], ...]


@record(frozen=True, slots=True)
class Axis:
    """An axis of the iteration space.

    Attributes
    ----------
    factors
        Its size is the product of these sizes: pairs of an array and an axis of it.
    equal
        Other axes of arrays that must have the same size.
    size
        The size, where it is known and short: loops along it are unrolled or written out.
    bound
        A number that the size does not exceed, one of a few; None where none of them is known to be.
    """

    factors: tuple[tuple[int, int], ...]
    equal: tuple[tuple[int, int], ...] = ()
    size: int | None = None
    bound: int | None = None


@record(frozen=True, slots=True)
class Load:
    """``value`` is the element of ``array`` at the present place of the loops."""

    value: int
    array: int
    index: Index
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class LoadAt:
    """``value`` is the element of ``array`` at a place that values say, for some of its axes."""

    value: int
    array: int
    index: Places
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Size:
    """``value`` is the size of an axis of an array as passed, as int64."""

    value: int
    array: int
    axis: int
    comment: str = field(default="", compare=False)

    dtype = "int64"


@record(frozen=True, slots=True)
class Literal:
    """``value`` is a number, given as source text because NaN and -0.0 do not compare by value."""

    value: int
    dtype: str
    text: str
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Compute:
    """``value`` is an op's template filled with operands, converted to ``dtype``.

    ``operand_dtype`` decides which functions the names in the template stand for.
    """

    value: int
    dtype: str
    template: str
    operand_dtype: str
    operands: tuple[int, ...]
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Convert:
    """``value`` is ``operand`` cast to ``dtype`` as NumPy casts."""

    value: int
    dtype: str
    operand: int
    operand_dtype: str
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Store:
    """Writes ``operand`` to ``array`` at the present place of the loops.

    Attributes
    ----------
    kept
        Whether that is no result: loops that follow read it there, and one of them writes the result over it.
    """

    array: int
    index: Index
    operand: int
    comment: str = field(default="", compare=False)
    kept: bool = False


@record(frozen=True, slots=True)
class Scatter:
    """Writes ``operand`` to ``array``, an output that is filled before, at a place that values say.

    Attributes
    ----------
    adds
        Whether it is added to the element there, instead of taking its place.
    """

    array: int
    index: Places
    operand: int
    adds: bool
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Check:
    """Leaves the kernel where the bool ``operand`` is True: nothing has been written yet.

    It stands outside of loops.
    """

    operand: int
    comment: str = field(default="", compare=False)


@record(frozen=True, slots=True)
class Accumulator:
    """A value that a loop gathers; it can be read after the loop.

    Attributes
    ----------
    kind
        ``sum`` in pairwise or better accuracy, ``combine`` by a template of two partial results,
        ``argmax`` and ``argmin`` for the number of the first extreme iteration (the first NaN wins).
    dtype
        Of what is gathered; an index is int64 itself.
    start
        Source text of the first value of a ``combine``, and of the first extremum of an index.
    """

    value: int
    kind: AccumulatorKind
    dtype: str
    start: str
    template: str = ""
    comment: str = field(default="", compare=False)

    @property
    def result_dtype(self) -> str:
        """Dtype of the value after the loop."""
        return "int64" if self.kind in ("argmax", "argmin") else self.dtype


@record(frozen=True, slots=True)
class Update:
    """One step of an accumulator of the innermost enclosing loop."""

    accumulator: int
    operand: int


@record(frozen=True, slots=True)
class Loop:
    """Runs ``body`` for every place of ``axes``, the last one fastest."""

    axes: tuple[int, ...]
    body: tuple[Statement, ...]
    accumulators: tuple[Accumulator, ...] = ()


@record(frozen=True, slots=True)
class Tile:
    """Runs ``body`` for all places of an axis side by side, a few hundred at a time.

    Values in the body are vectors over these places, accumulators of the loops in it too. So a
    reduction over outer axes reads memory along rows.
    """

    axis: int
    body: tuple[Statement, ...]


Definition: TypeAlias = Load | LoadAt | Size | Literal | Compute | Convert
Statement: TypeAlias = Definition | Store | Scatter | Check | Update | Loop | Tile


@record(frozen=True, slots=True)
class Kernel:
    """One generated function, called with its outputs, preallocated, and then its inputs.

    Attributes
    ----------
    outputs, inputs
        The arrays, numbered together in this order.
    axes
        The iteration space.
    body
        What is done.
    operands
        For each input, its position among the inputs of the group that was lowered: inputs that are
        constants of one element stand in the source and are not passed.
    comment
        What the kernel computes.
    """

    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    axes: tuple[Axis, ...]
    body: tuple[Statement, ...]
    operands: tuple[int, ...] = field(default=(), compare=False)
    comment: str = field(default="", compare=False)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Outputs, then inputs."""
        return self.outputs + self.inputs


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements in order, each loop before its body."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop | Tile):
            yield from walk(statement.body)


def operands_of(statement: Statement) -> tuple[int, ...]:
    """The values a statement reads itself."""
    if isinstance(statement, Compute):
        return statement.operands
    if isinstance(statement, LoadAt):
        return places_of(statement.index)
    if isinstance(statement, Scatter):
        return (statement.operand, *places_of(statement.index))
    if isinstance(statement, Convert | Store | Check | Update):
        return (statement.operand,)
    return ()


def axes_of(index: Places) -> tuple[int, ...]:
    """The loop axes an index names, in order."""
    return tuple(entry for entry in index if isinstance(entry, int))


def places_of(index: Places) -> tuple[int, ...]:
    """The values an index names, in order."""
    return tuple(entry.value for entry in index if isinstance(entry, At))


def is_square(statement: Compute) -> bool:
    """Whether a value is the square of one operand, in the operand's dtype."""
    square = statement.template in ("{0} * {0}", "{0} * {1}") and len(set(statement.operands)) == 1
    return square and statement.dtype == statement.operand_dtype
