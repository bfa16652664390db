"""A sum, and the squares of what is left when its mean is taken away, in one pass over memory.

The variance as it is written reads its operand twice: for the mean, then for the deviations from it. Here
each chunk of 4096 elements is summed about a pivot, and so are the squares::

    t = sum(x - pivot)      q = sum((x - pivot) ** 2)

Chunks are taken in one after another by Chan's formula [1]_, which gives the squares ``s`` about the mean
``m`` of all ``n`` elements; about any other centre ``c`` they are ``s + n * (m - c) ** 2``. So nothing here
need know that the centre is a mean. Running means are double words: steps between chunks cost no more than
one rounding.

What cancels in ``q - t * t / 4096`` grows with the distance between the pivot and the chunk's own mean. While
the start of a chunk is read once more for a pivot, memory waits. So 2**15 elements make a group, and only its
first chunk has a pivot of its own, the mean of its first quarter: what cancels is at most four times the
chunk's own share of ``s``. Another one takes the mean of the chunk before it, and what lies between two such
means is part of ``s``, too: what cancels in all chunks is at most four times all of ``s``.

Some processors read faster from four places in turns than from one end to the other. There each chunk of a
group takes a block of 1024 from every quarter of it, all four at once, and the first pivot is the mean of a
block. What is left behind the last whole group is read as above.

Against long doubles, errors of float64 variances of four million elements (noise, steps, a random walk, a
trend, all of these far from zero) are at most 1e-16, those of NumPy 1.4e-16. For sorted data far from zero
they are larger than NumPy's: 4e-16 as read above, and of a million elements 6.1e-16 from four places (NumPy's
2.6e-16).

Long rows whose results are written past the caches in groups
(:mod:`esat.codegen.printing.print_nontemporal`) are read in chunks, too: while their sums are taken memory
waits, and the second pass was half of that. The rounding of rows differs from that of others then, as the
size of the arrays decides, and nothing else.

Where a sum is not finite, or squares are not, the loops run as they are written, for NumPy's NaN and
infinities.

.. [1] Chan, Golub, LeVeque (1983). Algorithms for computing the sample variance. The American Statistician
   37(3).
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.codegen.ground.memory_access import LINE
from esat.codegen.ground.target import Target
from esat.codegen.kernel.loop_ir import Accumulator, Compute, Load, Loop, Statement, Update, is_square
from esat.codegen.kernel.partition import SUM_BLOCK_BITS, Gather, Part

CHUNK_BITS = 12
"""2**12 elements have a pivot; with larger chunks more cancels."""
GROUP_BITS = 15
"""2**15 elements are a unit that threads share, read from four places in turns where that is faster."""


@record(frozen=True)
class Moments:
    """Two loops that one pass stands for.

    Attributes
    ----------
    total, squares
        The loop that sums a value, and the one that sums the squares of its differences from ``centre``.
    centre
        The value that does not vary.
    """

    total: Gather
    squares: Gather
    centre: int

    @property
    def value(self) -> int:
        """The value of the sum, by which the pair is called."""
        return accumulator_of(self.total).value

    @property
    def loops(self) -> tuple[Loop, Loop]:
        """Both loops."""
        return self.total.statement, self.squares.statement

    @property
    def dtype(self) -> str:
        """Of all that is computed."""
        return accumulator_of(self.total).dtype

    @property
    def load(self) -> Load:
        """The value that is summed."""
        load = self.total.statement.body[0]
        assert isinstance(load, Load)
        return load

    @property
    def chunks(self) -> Gather:
        """What leaves partial results for chunks."""
        return Gather(self.total.statement, CHUNK_BITS)


def accumulator_of(part: Gather) -> Accumulator:
    """The only accumulator of a loop that moments are made of."""
    (accumulator,) = part.statement.accumulators
    return accumulator


def find_moments(parts: Sequence[Part]) -> tuple[Moments, ...]:
    """The pairs of loops, among the parts of a kernel, that one pass can stand for."""
    gathers = [part for part in parts if isinstance(part, Gather) and part.block_bits == SUM_BLOCK_BITS]
    totals: dict[int, Gather] = {}
    found: list[Moments] = []
    for part in gathers:
        summed, squared = _summed(part.statement), _squared(part.statement)
        if summed is not None:
            totals[summed.value] = part
        if squared is None:
            continue
        value, centre = squared
        total = totals.pop(value, None)
        if total is not None and total.statement.axes == part.statement.axes:
            found.append(Moments(total, part, centre))
    return tuple(found)


def moments_of_row(body: Sequence[Statement], target: Target) -> tuple[Moments, ...]:
    """The same among the loops of a row; none where vectors have 64 bytes: that was not measured."""
    if target.vector_bytes >= LINE:
        return ()
    return find_moments([Gather(one, SUM_BLOCK_BITS) for one in body if isinstance(one, Loop)])


def _is_plain_sum(loop: Loop) -> bool:
    kinds = [(accumulator.kind, accumulator.dtype[:5]) for accumulator in loop.accumulators]
    return kinds == [("sum", "float")] and len(loop.axes) == 1


def _summed(loop: Loop) -> Load | None:
    """What a loop sums, if that is all it does and it stands in memory."""
    if not _is_plain_sum(loop) or len(loop.body) != 2:
        return None
    load, update = loop.body
    if isinstance(load, Load) and isinstance(update, Update) and update.operand == load.value:
        return load
    return None


def _squared(loop: Loop) -> tuple[int, int] | None:
    """The value and the centre, if a loop sums squares of their differences and does nothing else."""
    if not _is_plain_sum(loop) or len(loop.body) != 4:
        return None
    load, difference, square, update = loop.body
    if not (
        isinstance(load, Load)
        and isinstance(difference, Compute)
        and isinstance(square, Compute)
        and isinstance(update, Update)
        and update.operand == square.value
        and is_square(square)
        and difference.value in square.operands
        and difference.template == "{0} - {1}"
    ):
        return None
    left, right = difference.operands
    if left == right or load.value not in (left, right):
        return None
    return load.value, right if left == load.value else left
